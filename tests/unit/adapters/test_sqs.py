"""SQS answers that an emulator does not give: partly refused batches, and no answer in the middle."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.stub import ANY, Stubber

from shared.adapters.aws.dead_letters import SqsDeadLetterQueues
from shared.adapters.aws.queues import SqsLaneQueues
from shared.adapters.meter import Meter
from shared.contract import envelope
from shared.core.errors import Unavailable
from shared.core.job import Status
from shared.core.message import Message, dead_letter_of, message_of
from tests.builders import a_job

URLS = {"support": "https://sqs.example/support"}


@pytest.fixture
def stub() -> Iterator[tuple[Any, Stubber]]:
    """A client whose answers are given by the test, and whose requests are checked against the real shapes."""
    client = boto3.client("sqs", config=Config(retries={"total_max_attempts": 1}))
    with Stubber(client) as stubber:
        yield client, stubber
        stubber.assert_no_pending_responses()


def messages(count: int) -> list[Message]:
    """Tickets of different jobs."""
    return [message_of(a_job(key=f"event-{n}")) for n in range(count)]


def answer(*failed: str, of: int = 10) -> dict[str, Any]:
    """A batch's answer in which these entries were refused."""
    return {
        "Successful": [
            {"Id": str(n), "MessageId": "m", "MD5OfMessageBody": "x"} for n in range(of) if str(n) not in failed
        ],
        "Failed": [{"Id": entry, "SenderFault": False, "Code": "InternalError"} for entry in failed],
    }


@pytest.mark.fault("B6")
def test_exactly_the_refused_entries_are_given_back(stub: tuple[Any, Stubber]) -> None:
    """A batch may be taken in part: the third of ten is not taken, and it alone is said not to be."""
    client, stubber = stub
    sent = messages(10)
    stubber.add_response("send_message_batch", answer("3"), {"QueueUrl": URLS["support"], "Entries": ANY})
    assert SqsLaneQueues(client=client, urls=URLS).send(sent) == [sent[3]]


@pytest.mark.fault("B6")
def test_refused_dead_letters_are_given_back(stub: tuple[Any, Stubber]) -> None:
    """The same for the dead-letter queue."""
    client, stubber = stub
    letters = [dead_letter_of(a_job(key=f"e-{n}", status=Status.FAILED)) for n in range(3)]
    stubber.add_response("send_message_batch", answer("0", "2", of=3))
    assert SqsDeadLetterQueues(client=client, urls=URLS).send(letters) == [letters[0], letters[2]]


def test_a_message_is_asked_for_in_the_shape_sqs_wants(stub: tuple[Any, Stubber]) -> None:
    """Ten a call, the tenant as the group, the delay within what SQS allows."""
    client, stubber = stub
    job = a_job(tenant="acme")
    ticket = envelope.encode_ticket(job.job_id, "support")
    for given, asked in ((0, 0), (30, 30), (5000, 900)):
        entry = {"Id": "0", "MessageBody": ticket, "MessageGroupId": "acme", "DelaySeconds": asked}
        stubber.add_response("send_message_batch", answer(of=1), {"QueueUrl": URLS["support"], "Entries": [entry]})
        assert SqsLaneQueues(client=client, urls=URLS).send([message_of(job, delay_s=given)]) == []


@pytest.mark.fault("B7")
def test_a_batch_without_an_answer_is_given_back(stub: tuple[Any, Stubber]) -> None:
    """One of three batches is lost: its messages may be sent again, the others are not."""
    client, stubber = stub
    sent = messages(25)
    meter = Meter()
    stubber.add_response("send_message_batch", answer())
    stubber.add_client_error("send_message_batch", "ServiceUnavailable", http_status_code=503)
    stubber.add_response("send_message_batch", answer(of=5))
    assert SqsLaneQueues(client=client, urls=URLS, meter=meter).send(sent) == sent[10:20]
    assert meter.total().calls == 3


def test_no_answer_at_all_is_unavailable(stub: tuple[Any, Stubber]) -> None:
    """Nothing is known, so nothing is said about any message."""
    client, stubber = stub
    for _ in range(2):
        stubber.add_client_error("send_message_batch", "RequestThrottled", http_status_code=403)
    with pytest.raises(Unavailable, match="RequestThrottled"):
        SqsLaneQueues(client=client, urls=URLS).send(messages(12))


def test_a_message_seen_twice_in_one_look_counts_once(stub: tuple[Any, Stubber]) -> None:
    """A standard queue may deliver twice; the newer receipt is the one that deletes."""
    client, stubber = stub
    body = envelope.encode_ticket(a_job().job_id, "support")
    for receipt in ("old", "new"):
        message = {"MessageId": "m", "ReceiptHandle": receipt, "Body": body}
        stubber.add_response("receive_message", {"Messages": [message]})
    stubber.add_response("receive_message", {})
    (seen,) = SqsDeadLetterQueues(client=client, urls=URLS).receive("support", limit=5, hide_s=30)
    assert (seen.receipt, seen.receive_count) == ("new", 1)


def test_a_look_asks_with_the_hiding_time_and_waits(stub: tuple[Any, Stubber]) -> None:
    """Long polling asks every server of the queue; short polling could find nothing where there is much."""
    client, stubber = stub
    stubber.add_response(
        "receive_message",
        {},
        {
            "QueueUrl": URLS["support"],
            "MaxNumberOfMessages": 10,
            "VisibilityTimeout": 45,
            "WaitTimeSeconds": 1,
            "MessageSystemAttributeNames": ["ApproximateReceiveCount"],
        },
    )
    assert SqsDeadLetterQueues(client=client, urls=URLS).receive("support", limit=100, hide_s=45) == []
