"""The change feed on EventBridge: the request it makes, and what it reads from every kind of answer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import botocore.session
import pytest
from botocore.exceptions import ClientError
from botocore.stub import ANY, Stubber

from shared.adapters.aws.clients import settings
from shared.adapters.aws.feed import EventBridgeChangeFeed
from shared.core.errors import Unavailable
from shared.core.feed import StateChange
from tests.unit.usecases.test_publish_changes import changes

TAKEN = {"EventId": "11111111-1111-4111-8111-111111111111"}
REFUSED = {"ErrorCode": "ThrottlingException", "ErrorMessage": "rate exceeded"}


@pytest.fixture
def feed() -> Iterator[tuple[EventBridgeChangeFeed, Stubber]]:
    """The adapter, with the SDK's own model checking both sides of the call."""
    session: Any = botocore.session.get_session()
    session.set_credentials("testing", "testing")
    client = session.create_client(
        "events", region_name="eu-central-1", config=settings("events", tries=1, validate=True)
    )
    with Stubber(client) as stub:
        yield EventBridgeChangeFeed(client=client, bus="penstock-test"), stub
        stub.assert_no_pending_responses()


def answers(stub: Stubber, *entries: dict[str, str]) -> None:
    failed = sum("ErrorCode" in entry for entry in entries)
    stub.add_response("put_events", {"FailedEntryCount": failed, "Entries": list(entries)}, {"Entries": ANY})


def test_what_is_asked_for(feed: tuple[EventBridgeChangeFeed, Stubber]) -> None:
    """Bus, source, type and detail, and nothing else: EventBridge might refuse a time that a row says."""
    adapter, stub = feed
    (change,) = changes(1)
    wanted = {
        "EventBusName": "penstock-test",
        "Source": "penstock",
        "DetailType": "Job State Changed",
        "Detail": json.dumps(change.detail(), separators=(",", ":")),
    }
    stub.add_response("put_events", {"FailedEntryCount": 0, "Entries": [TAKEN]}, {"Entries": [wanted]})
    assert adapter.publish([change]) == []


@pytest.mark.req("R15")
def test_exactly_the_failed_entries_are_given_back(feed: tuple[EventBridgeChangeFeed, Stubber]) -> None:
    """A call that succeeds may have taken only some; answers stand in the order of the entries."""
    adapter, stub = feed
    given = changes(4)
    answers(stub, TAKEN, REFUSED, TAKEN, REFUSED)
    assert adapter.publish(given) == [given[1], given[3]]


def test_ten_entries_a_call(feed: tuple[EventBridgeChangeFeed, Stubber]) -> None:
    """PutEvents refuses a call with more."""
    adapter, stub = feed
    given = changes(23)
    for size in (10, 10, 3):
        answers(stub, *[TAKEN] * (size - 1), REFUSED)
    assert adapter.publish(given) == [given[9], given[19], given[22]]


def test_a_call_without_an_answer_is_given_back_whole(feed: tuple[EventBridgeChangeFeed, Stubber]) -> None:
    """Perhaps it was taken: then its changes are published twice, under the same ids."""
    adapter, stub = feed
    given = changes(12)
    stub.add_client_error("put_events", "InternalFailure", http_status_code=500)
    answers(stub, TAKEN, TAKEN)
    assert adapter.publish(given) == given[:10]


@pytest.mark.parametrize(("code", "status"), [("ThrottlingException", 400), ("InternalException", 500)])
def test_no_answer_at_all_is_unavailable(feed: tuple[EventBridgeChangeFeed, Stubber], code: str, status: int) -> None:
    """Nothing is known."""
    adapter, stub = feed
    stub.add_client_error("put_events", code, http_status_code=status)
    with pytest.raises(Unavailable):
        adapter.publish(changes(2))


def test_a_missing_permission_is_a_defect(feed: tuple[EventBridgeChangeFeed, Stubber]) -> None:
    """Asking again would not help."""
    adapter, stub = feed
    stub.add_client_error("put_events", "AccessDeniedException", http_status_code=400)
    with pytest.raises(ClientError):
        adapter.publish(changes(2))


def test_publishing_nothing_is_no_call(feed: tuple[EventBridgeChangeFeed, Stubber]) -> None:
    """EventBridge refuses an empty call."""
    nothing: list[StateChange] = []
    assert feed[0].publish(nothing) == []
