"""Move tasks on SQS: the exact requests, which no emulator takes, checked against the real shapes."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from botocore.stub import Stubber

from shared.adapters.aws.move_tasks import SqsMoveTasks
from shared.adapters.memory.clock import VirtualClock
from shared.adapters.memory.move_tasks import MemoryMoveTasks
from shared.adapters.memory.queues import MemoryDeadLetterQueues, MemoryLaneQueues
from shared.core.native import MoveState, MoveTask
from tests.builders import a_lane

QUEUE, DEAD = "https://sqs.example/1/support", "https://sqs.example/1/support-dlq"
QUEUE_ARN, DEAD_ARN = "arn:aws:sqs:eu-central-1:1:support", "arn:aws:sqs:eu-central-1:1:support-dlq"
STARTED = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def stub() -> Iterator[tuple[SqsMoveTasks, Stubber]]:
    """An adapter whose answers are given by the test; it has asked for the ARNs already."""
    client = boto3.client("sqs", config=Config(retries={"total_max_attempts": 1}))
    with Stubber(client) as stubber:
        for url, arn in ((DEAD, DEAD_ARN), (QUEUE, QUEUE_ARN)):
            asked = {"QueueUrl": url, "AttributeNames": ["QueueArn"]}
            stubber.add_response("get_queue_attributes", {"Attributes": {"QueueArn": arn}}, asked)
        yield SqsMoveTasks(client=client, urls={"support": QUEUE}, dead_letter_urls={"support": DEAD}), stubber
        stubber.assert_no_pending_responses()


def listed(stubber: Stubber, *entries: dict[str, Any]) -> None:
    stubber.add_response(
        "list_message_move_tasks", {"Results": list(entries)}, {"SourceArn": DEAD_ARN, "MaxResults": 10}
    )


def entry(state: str, **more: Any) -> dict[str, Any]:
    return {"Status": state, "StartedTimestamp": int(STARTED.timestamp() * 1000), "SourceArn": DEAD_ARN, **more}


@pytest.mark.req("C10")
def test_a_move_says_its_destination_and_its_rate(stub: tuple[SqsMoveTasks, Stubber]) -> None:
    """From the lane's dead-letter queue to the lane's queue, always said, at so many a second."""
    tasks, stubber = stub
    asked = {"SourceArn": DEAD_ARN, "DestinationArn": QUEUE_ARN, "MaxNumberOfMessagesPerSecond": 20}
    stubber.add_response("start_message_move_task", {"TaskHandle": "h"}, asked)
    assert tasks.start("support", rate=20)


@pytest.mark.req("C10")
@pytest.mark.fault("F2")
def test_a_second_move_is_not_started(stub: tuple[SqsMoveTasks, Stubber]) -> None:
    """SQS refuses it, with no code of its own: what runs is looked up. Any other refusal is an error."""
    tasks, stubber = stub
    stubber.add_client_error("start_message_move_task", "UnsupportedOperation", http_status_code=400)
    listed(stubber, entry("RUNNING", TaskHandle="h"))
    assert not tasks.start("support", rate=20)
    stubber.add_client_error("start_message_move_task", "ResourceNotFoundException", http_status_code=404)
    listed(stubber, entry("COMPLETED"))
    with pytest.raises(ClientError):
        tasks.start("support", rate=20)


def test_tasks_are_told_the_newest_first(stub: tuple[SqsMoveTasks, Stubber]) -> None:
    """With what they are cancelled by while they run, and whether they move into the lane's queue."""
    tasks, stubber = stub
    mine = {"DestinationArn": QUEUE_ARN, "MaxNumberOfMessagesPerSecond": 20, "TaskHandle": "h"}
    later = int(STARTED.timestamp() * 1000) + 60_000
    other = entry("FAILED", DestinationArn="arn:aws:sqs:eu-central-1:1:other", FailureReason="whatever it says")
    listed(stubber, other, entry("RUNNING", ApproximateNumberOfMessagesMoved=7, **mine) | {"StartedTimestamp": later})
    newest, older = tasks.of("support")
    assert newest == MoveTask(
        state=MoveState.RUNNING, started_at=newest.started_at, moved=7, rate=20, to_lane=True, handle="h"
    )
    assert (older.state, older.started_at, older.to_lane, older.handle) == (MoveState.FAILED, STARTED, False, None)


def test_a_task_is_cancelled_by_its_handle() -> None:
    """One that is over already is no error."""
    client = boto3.client("sqs", config=Config(retries={"total_max_attempts": 1}))
    tasks = SqsMoveTasks(client=client, urls={}, dead_letter_urls={})
    with Stubber(client) as stubber:
        stubber.add_response("cancel_message_move_task", {"ApproximateNumberOfMessagesMoved": 3}, {"TaskHandle": "h"})
        tasks.cancel("support", "h")
        stubber.add_client_error("cancel_message_move_task", "ResourceNotFoundException", http_status_code=404)
        tasks.cancel("support", "h")
        stubber.add_client_error("cancel_message_move_task", "AccessDenied", http_status_code=403)
        with pytest.raises(ClientError):
            tasks.cancel("support", "h")


def test_the_memory_task_moves_at_its_rate_and_one_at_a_time() -> None:
    """Two a second of five, what is hidden stays behind, a second task is refused, a cancelled one moves no more."""
    clock = VirtualClock()
    dead = MemoryDeadLetterQueues(clock=clock)
    queues = MemoryLaneQueues(clock=clock, lanes={"support": a_lane()}, dead_letters=dead)
    tasks = MemoryMoveTasks(clock=clock, queues=queues, dead_letters=dead)
    for n in range(5):
        dead.add("support", f"body {n}")
    dead.receive("support", limit=1, hide_s=600)
    assert tasks.start("support", rate=2)
    assert not tasks.start("support", rate=2)
    clock.advance(1)
    (task,) = tasks.of("support")
    assert (task.state, task.moved, queues.depth("support").visible) == (MoveState.RUNNING, 2, 2)
    clock.advance(1)
    (task,) = tasks.of("support")
    assert (task.state, task.moved, dead.depth("support").total) == (MoveState.COMPLETED, 4, 1)
    dead.add("support", "one more")
    assert tasks.start("support", rate=1)
    tasks.cancel("support", tasks.of("support")[0].handle or "")
    clock.advance(60)
    assert [task.state for task in tasks.of("support")] == [MoveState.CANCELLED, MoveState.COMPLETED]
    assert dead.depth("support").total == 2
