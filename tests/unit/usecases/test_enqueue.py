"""Enqueue: one cause, one job; what cannot be used is refused by its field and writes no row."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.core.errors import BadInput, EnqueueConflict, Unavailable, UnknownLane
from shared.core.job import MAX_PAYLOAD_BYTES, Status, canonical_payload, job_id_of, payload_hash
from shared.usecases.enqueue import Enqueue, enqueue
from tests.builders import NOW
from tests.unit.core.strategies import few, json_values, words
from tests.unit.usecases.desk import Desk, Flaky

SECRET = "the customer's own words"


def nested(depth: int) -> object:
    """A list in a list in a list …"""
    value: object = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.mark.req("M4", "C1")
def test_a_new_cause_is_created_and_the_same_again_is_that_job(desk: Desk) -> None:
    """Created once; every later request with the same cause and payload gets the first job's id."""
    first = desk.enqueue()
    desk.clock.advance(3600)
    again = [desk.enqueue() for _ in range(3)]
    assert (first.created, first.existing) == (True, False)
    assert {(ref.job_id, ref.created, ref.existing) for ref in again} == {(first.job_id, False, True)}
    assert desk.job(first.job_id).created_at == NOW


@pytest.mark.req("M5")
def test_the_row_says_what_was_asked_for(desk: Desk) -> None:
    """Every field of the request, the lane's tries, and one move in the history; not yet in any index."""
    ref = desk.enqueue("reply", tenant="acme", key=["evt", "1"], priority=0, payload={"b": 1, "a": 2})
    job = desk.job(ref.job_id)
    assert (job.lane, job.task, job.tenant, job.key) == ("support", "reply", "acme", "evt#1")
    assert (job.status, job.priority, job.attempt_count, job.fence) == (Status.QUEUED, 0, 0, 0)
    assert (job.max_attempts, job.waits, job.not_before_at) == (desk.lane.max_attempts, False, None)
    assert [(move.to, move.reason) for move in job.moves] == [(Status.QUEUED, "enqueued")]
    assert ref.job_id == job_id_of("support", "acme", "reply", ["evt", "1"])


@pytest.mark.fault("D5")
@pytest.mark.parametrize(
    ("zone", "told", "meant"),
    [
        ("Europe/Berlin", (3, 29, 1, 59, 0), "2026-03-29T00:59:00Z"),
        ("Europe/Berlin", (3, 29, 3, 0, 0), "2026-03-29T01:00:00Z"),
        ("Europe/Berlin", (10, 25, 2, 30, 0), "2026-10-25T00:30:00Z"),
        ("Europe/Berlin", (10, 25, 2, 30, 1), "2026-10-25T01:30:00Z"),
        ("America/New_York", (3, 8, 1, 59, 0), "2026-03-08T06:59:00Z"),
        ("America/New_York", (3, 8, 3, 0, 0), "2026-03-08T07:00:00Z"),
        ("America/New_York", (11, 1, 1, 30, 0), "2026-11-01T05:30:00Z"),
        ("America/New_York", (11, 1, 1, 30, 1), "2026-11-01T06:30:00Z"),
    ],
)
def test_a_local_time_is_kept_as_the_moment_it_means(
    zone: str, told: tuple[int, int, int, int, int], meant: str
) -> None:
    """On both nights of a change, before and after it; of the hour that comes twice, each one as itself."""
    desk = Desk()
    month, day, hour, minute, fold = told
    moment = datetime.fromisoformat(meant)
    desk.clock.advance_to(moment - timedelta(hours=3))
    local = datetime(2026, month, day, hour, minute, fold=fold, tzinfo=ZoneInfo(zone))
    job = desk.job(desk.enqueue(not_before=local).job_id)
    assert job.not_before_at == job.due == moment
    assert job.not_before_at is not None
    assert job.not_before_at.tzinfo is UTC
    (waiting,) = desk.jobs.waiting(desk.lane, due_before=moment, limit=10)
    assert waiting.due == moment
    assert not desk.jobs.waiting(desk.lane, due_before=moment - timedelta(minutes=1), limit=10)


def test_a_job_whose_text_would_be_gone_is_refused(desk: Desk) -> None:
    """A time more than sixty days ahead is refused before anything is stored; without a payload it is taken."""
    last = NOW + timedelta(days=60)
    with pytest.raises(BadInput, match="more than 60 days after the payload was stored") as refused:
        desk.enqueue(not_before=last + timedelta(seconds=1))
    assert refused.value.field == "not_before"
    assert list(desk.jobs.scan()) == []
    assert list(desk.content.refs()) == []
    assert desk.job(desk.enqueue(not_before=last).job_id).due == last
    far = last + timedelta(days=300)
    assert desk.job(desk.enqueue(key="bare", payload={}, not_before=far).job_id).due == far


@pytest.mark.fault("H1")
def test_a_tenant_named_in_the_payload_is_only_text(desk: Desk) -> None:
    """The caller says whose job it is: its row and its id are that tenant's, whatever the payload claims."""
    ref = desk.enqueue(tenant="acme", payload={"tenant": "somebody-else"})
    job = desk.job(ref.job_id)
    assert job.tenant == "acme"
    assert ref.job_id == job_id_of(job.lane, "acme", job.task, job.key.split("#"))


@pytest.mark.req("R14")
@pytest.mark.parametrize(
    ("at_most", "size_bytes", "in_a_row"),
    [(4096, 4096, True), (4096, 4097, False), (1024, 1025, False), (0, 11, False)],
)
def test_size_decides_where_a_payload_is_kept(desk: Desk, at_most: int, size_bytes: int, in_a_row: bool) -> None:
    """In a row up to the lane's setting, in an object beyond it; with 0 every payload is an object."""
    desk.lanes = {**desk.lanes, "support": replace(desk.lane, row_payload_bytes=at_most)}
    ref = desk.enqueue(payload={"text": "x" * (size_bytes - len('{"text":""}'))})
    job = desk.job(ref.job_id)
    where = f"text/{job.tenant}#{job.job_id}#" if in_a_row else f"payload/{job.job_id}/"
    assert job.payload_ref == where + job.payload_hash


@pytest.mark.req("R14")
@pytest.mark.fault("I6")
def test_the_payload_is_in_the_content_store_and_nowhere_else(desk: Desk) -> None:
    """Written before the row, under an address that holds its hash; the row has the reference only."""
    ref = desk.enqueue(payload={"text": SECRET})
    job = desk.job(ref.job_id)
    data = canonical_payload({"text": SECRET})
    assert job.payload_ref == f"text/{job.tenant}#{ref.job_id}#{payload_hash(data)}"
    assert desk.content.get(job.payload_ref) == data
    assert SECRET not in repr(desk.jobs.item(ref.job_id))
    assert SECRET not in repr(Enqueue(lane="support", task="reply", tenant="t", key="k", payload={"a": SECRET}))


def test_an_empty_payload_needs_no_object(desk: Desk) -> None:
    """A job whose key says it all costs one write."""
    job = desk.job(desk.enqueue(payload={}).job_id)
    assert (job.payload_ref, desk.content.refs()) == (None, [])
    assert job.payload_hash


@pytest.mark.req("C1")
def test_the_same_key_with_another_payload_is_refused_and_replaces_nothing(desk: Desk) -> None:
    """The first one's row and text stay as they were; the error names the job."""
    ref = desk.enqueue(payload={"text": "one"})
    before = desk.jobs.item(ref.job_id)
    with pytest.raises(EnqueueConflict, match=ref.job_id) as refused:
        desk.enqueue(payload={"text": SECRET})
    assert (refused.value.field, refused.value.job_id) == ("payload", ref.job_id)
    assert SECRET not in str(refused.value)
    assert desk.jobs.item(ref.job_id) == before
    payload_ref = desk.job(ref.job_id).payload_ref or ""
    assert desk.content.get(payload_ref) == canonical_payload({"text": "one"})


@few
@given(payload=st.dictionaries(words, json_values, max_size=4))
def test_the_order_of_fields_makes_no_conflict(payload: dict[str, Any]) -> None:
    """The same payload spelt another way is the same payload."""
    desk = Desk()
    first = desk.enqueue(payload=payload)
    desk.clock.advance(1)
    again = desk.enqueue(payload=dict(reversed(payload.items())))
    assert (again.job_id, again.existing) == (first.job_id, True)


def test_a_future_time_stands_in_the_waiting_index_at_once(desk: Desk) -> None:
    """So does nothing else: a time that has come is no time."""
    later = NOW + timedelta(minutes=5)
    job = desk.job(desk.enqueue(not_before=later).job_id)
    assert (job.not_before_at, job.due, job.waits) == (later, later, True)
    past = desk.job(desk.enqueue(key="event-2", not_before=NOW - timedelta(minutes=5)).job_id)
    assert past.not_before_at == NOW - timedelta(minutes=5)
    assert not past.waits


REFUSED: dict[str, tuple[str, str, dict[str, Any]]] = {
    "unknown lane": ("lane", "'mail' is not configured; known lanes: support", {"lane": "mail"}),
    "lane that is no text": ("lane", "is not configured", {"lane": None}),
    "lane that is a list": ("lane", "is not configured", {"lane": ["support"]}),
    "unknown task": ("task", "is not one of lane support's: reply", {"task": "zzz"}),
    "task that is no text": ("task", "is not one of", {"task": 7}),
    "priority above": ("priority", "must be one of 0, 1, 2, 3", {"priority": 4}),
    "priority below": ("priority", "must be one of", {"priority": -1}),
    "priority as text": ("priority", "must be one of", {"priority": "1"}),
    "priority as truth": ("priority", "must be one of", {"priority": True}),
    "priority as float": ("priority", "must be one of", {"priority": 2.0}),
    "no tenant": ("tenant", "is missing or empty", {"tenant": ""}),
    "tenant that is no text": ("tenant", "is missing or empty", {"tenant": None}),
    "blank tenant": ("tenant", "may hold only", {"tenant": "  "}),
    "long tenant": ("tenant", "has 65 characters, at most 64", {"tenant": "t" * 65}),
    "prose as tenant": ("tenant", "may hold only", {"tenant": SECRET}),
    "no key": ("key[0]", "is missing or empty", {"key": ""}),
    "missing key": ("key", "is missing", {"key": None}),
    "no key parts": ("key", "is missing or empty", {"key": []}),
    "missing key part": ("key[1]", "is missing or empty", {"key": ["a", None]}),
    "blank key part": ("key[1]", "may hold only", {"key": ["a", " "]}),
    "long key": ("key[0]", "has 129 characters, at most 128", {"key": "k" * 129}),
    "many key parts": ("key", "has 5 parts, at most 4", {"key": list("abcde")}),
    "prose as key": ("key[0]", "may hold only", {"key": SECRET}),
    "naive time": ("not_before", "has no time zone", {"not_before": datetime(2026, 1, 1)}),
    "time as text": ("not_before", "must be a datetime", {"not_before": "2026-01-01T00:00:00Z"}),
    "time out of range": ("not_before", "between the years", {"not_before": datetime(1999, 1, 1, tzinfo=UTC)}),
    "large payload": ("payload", f"at most {MAX_PAYLOAD_BYTES}", {"payload": {"a": "x" * MAX_PAYLOAD_BYTES}}),
    "nan": ("payload[0]", "is not a finite number", {"payload": {SECRET: float("nan")}}),
    "infinity": ("payload[0][1]", "is not a finite number", {"payload": {"a": [1, float("-inf")]}}),
    "deep payload": ("payload", "nested deeper than 32", {"payload": {"a": nested(40)}}),
    "payload as list": ("payload", "must be an object", {"payload": [SECRET]}),
    "payload as text": ("payload", "must be an object", {"payload": SECRET}),
    "bytes": ("payload[0]", "is a bytes", {"payload": {"a": SECRET.encode()}}),
    "time in payload": ("payload[0]", "is a datetime", {"payload": {"a": NOW}}),
    "number as name": ("payload", "field name that is not text", {"payload": {1: SECRET}}),
}


@pytest.mark.fault("C8")
@pytest.mark.parametrize(("field", "problem", "request_"), REFUSED.values(), ids=REFUSED)
def test_bad_input_is_refused_by_its_field_and_writes_nothing(
    desk: Desk, field: str, problem: str, request_: dict[str, Any]
) -> None:
    """The exact field, what is wrong with it, none of the customer's words, no row and no text kept."""
    with pytest.raises(BadInput) as refused:
        desk.enqueue(**request_)
    assert refused.value.field == field
    assert problem in str(refused.value)
    assert SECRET not in str(refused.value)
    assert list(desk.jobs.scan()) == []
    assert desk.content.refs() == []


def test_an_unknown_lane_is_told_apart(desk: Desk) -> None:
    """A caller may want to know that the stage, not the request, is wrong."""
    with pytest.raises(UnknownLane):
        desk.enqueue(lane="mail")


@pytest.mark.fault("C3")
def test_a_store_that_does_not_answer_is_asked_again(desk: Desk) -> None:
    """Four tries with a growing wait, then the caller is told; nothing is half written but text that expires."""
    flaky = Flaky(desk.jobs, "put")
    flaky.down = True
    request = Enqueue(lane="support", task="reply", tenant="t", key="k", payload={"a": 1})
    with pytest.raises(Unavailable):
        enqueue(request, jobs=flaky, content=desk.content, lanes=desk.lanes, clock=desk.clock)  # type: ignore[arg-type]
    assert flaky.calls == 4
    assert desk.clock.now() > NOW
    assert list(desk.jobs.scan()) == []
