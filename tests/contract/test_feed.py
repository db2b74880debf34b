"""The promises of `ChangeFeed`, kept by every adapter: what is published is what a subscriber hears."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from shared.adapters.aws.feed import EventBridgeChangeFeed
from shared.adapters.memory.feed import MemoryChangeFeed
from shared.contract import names
from shared.core.feed import StateChange, change_of
from shared.core.job import Status
from shared.core.ports import ChangeFeed
from tests.builders import a_job
from tests.contract.worlds import AwsClients

ALL = {"source": [names.FEED_SOURCE], "detail-type": [names.FEED_DETAIL_TYPE]}


@dataclass(frozen=True, slots=True)
class Subscribed:
    """A feed, and what somebody who asked for everything on it has heard."""

    feed: ChangeFeed
    heard: Callable[[], list[dict[str, Any]]]


@pytest.fixture
def subscribed(kind: str, request: pytest.FixtureRequest) -> Iterator[Subscribed]:
    """On memory; on a bus of EventBridge with a rule and a queue behind it."""
    if kind == "memory":
        memory = MemoryChangeFeed()
        yield Subscribed(memory, lambda: memory.details)
        return
    clients: AwsClients = request.getfixturevalue("aws_clients")
    stage = f"ct{uuid.uuid4().hex[:8]}"
    bus = names.event_bus(stage)
    clients.events.create_event_bus(Name=bus)
    url = clients.sqs.create_queue(QueueName=stage)["QueueUrl"]
    arn = clients.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    clients.events.put_rule(Name=stage, EventBusName=bus, EventPattern=json.dumps(ALL))
    clients.events.put_targets(Rule=stage, EventBusName=bus, Targets=[{"Id": "queue", "Arn": arn}])

    def heard() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        while messages := clients.sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages"):
            found += [json.loads(message["Body"])["detail"] for message in messages]
        return found

    yield Subscribed(EventBridgeChangeFeed(client=clients.events, bus=bus), heard)
    if kind == "stack":
        clients.events.remove_targets(Rule=stage, EventBusName=bus, Ids=["queue"])
        clients.events.delete_rule(Name=stage, EventBusName=bus)
        clients.events.delete_event_bus(Name=bus)
        clients.sqs.delete_queue(QueueUrl=url)


def changes(count: int) -> list[StateChange]:
    jobs = [a_job(key=f"event-{number}", status=Status.FAILED) for number in range(count)]
    return [change for job in jobs if (change := change_of(job, Status.PROCESSING)) is not None]


@pytest.mark.req("R15")
def test_a_subscriber_hears_what_was_published(subscribed: Subscribed) -> None:
    """Field by field, and no field more."""
    (change,) = changes(1)
    assert subscribed.feed.publish([change]) == []
    assert subscribed.heard() == [change.detail()]


def test_changes_of_any_number_are_each_heard_once(subscribed: Subscribed) -> None:
    """More than a call takes: none lost, none doubled."""
    given = changes(23)
    assert subscribed.feed.publish(given) == []
    heard = [detail["change_id"] for detail in subscribed.heard()]
    assert sorted(heard) == sorted(change.change_id for change in given)


@pytest.mark.req("R15")
def test_published_twice_a_change_is_heard_twice_under_one_id(subscribed: Subscribed) -> None:
    """Delivery is at least once; what a subscriber dedupes by does not change."""
    (change,) = changes(1)
    assert subscribed.feed.publish([change]) == subscribed.feed.publish([change]) == []
    assert [detail["change_id"] for detail in subscribed.heard()] == [change.change_id] * 2


def test_publishing_nothing_is_no_error(subscribed: Subscribed) -> None:
    """A batch in which no state changed."""
    assert subscribed.feed.publish([]) == []
    assert subscribed.heard() == []
