"""The change feed on the local stack: a subscriber behind a rule hears every change of a job's state, and no text."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from shared.contract import names
from shared.core.job import Status
from tests.e2e.paths import LANE, STAGE, LocalStage
from tests.waiting import PATIENCE_S

PATTERN = {"source": [names.FEED_SOURCE], "detail-type": [names.FEED_DETAIL_TYPE], "detail": {"lane": [LANE]}}
WORD = "ZephyrQuokka"


class Subscriber:
    """A queue behind a rule on the stage's bus."""

    def __init__(self, stage: LocalStage) -> None:
        self._sqs, self._events = stage.clients.of("sqs"), stage.clients.of("events")
        self._name, self._bus = f"sub-{uuid.uuid4().hex[:8]}", names.event_bus(STAGE)
        self._url = self._sqs.create_queue(QueueName=self._name)["QueueUrl"]
        arn = self._sqs.get_queue_attributes(QueueUrl=self._url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        self._events.put_rule(Name=self._name, EventBusName=self._bus, EventPattern=json.dumps(PATTERN))
        self._events.put_targets(Rule=self._name, EventBusName=self._bus, Targets=[{"Id": "queue", "Arn": arn}])
        self.bodies: list[str] = []

    def until(self, job_id: str, status: Status) -> list[dict[str, Any]]:
        """What was heard of a job, each change once and in its order, when it has reached a state."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            reply = self._sqs.receive_message(QueueUrl=self._url, MaxNumberOfMessages=10, WaitTimeSeconds=1)
            for message in reply.get("Messages", ()):
                self.bodies.append(message["Body"])
                self._sqs.delete_message(QueueUrl=self._url, ReceiptHandle=message["ReceiptHandle"])
            details = [json.loads(body)["detail"] for body in self.bodies]
            heard = {one["change_id"]: one for one in details if one["job_id"] == job_id}
            if any(one["status"] == status.value for one in heard.values()):
                return sorted(heard.values(), key=lambda one: (one["created_at"], one["sequence"]))
            assert time.monotonic() < deadline, f"heard {[one['status'] for one in heard.values()]}, not {status}"

    def close(self) -> None:
        self._events.remove_targets(Rule=self._name, EventBusName=self._bus, Ids=["queue"])
        self._events.delete_rule(Name=self._name, EventBusName=self._bus)
        self._sqs.delete_queue(QueueUrl=self._url)


@pytest.fixture
def subscriber(stage: LocalStage) -> Iterator[Subscriber]:
    made = Subscriber(stage)
    yield made
    made.close()


@pytest.mark.req("R15")
def test_a_subscriber_hears_a_job_from_its_start_to_its_end(stage: LocalStage, subscriber: Subscriber) -> None:
    """Queued, processing, completed, and put back between where it had to be: each change from where the one before
    ended, without asking any function, and without the text its producer gave it."""
    job_id = stage.enqueue(payload={"conversation_id": f"c-{uuid.uuid4().hex}", "text": WORD})
    heard = subscriber.until(job_id, Status.COMPLETED)
    told = [one["status"] for one in heard]
    assert [one.get("previous") for one in heard] == [None, *told[:-1]]
    assert (told[0], told[-2:]) == ("queued", ["processing", "completed"])
    assert WORD not in "".join(subscriber.bodies)
    assert stage.job(job_id).status is Status.COMPLETED


@pytest.mark.req("R15")
def test_a_subscriber_hears_why_a_job_failed(stage: LocalStage, subscriber: Subscriber) -> None:
    """The category, a closed word; the error's code stays in the row."""
    job_id = stage.enqueue(payload={"topic": "general"})
    last = subscriber.until(job_id, Status.FAILED)[-1]
    job = stage.job(job_id)
    assert (last["status"], last["category"]) == ("failed", job.category)
    assert job.last_error
    assert job.last_error not in "".join(subscriber.bodies)
