"""Rows: every value survives, older words are read, and what cannot be read is named without its value."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.adapters import attributes, record_rows, rows, switch_rows
from shared.adapters.meter import item_size
from shared.core import lifecycle
from shared.core.effects import EffectState
from shared.core.errors import BadInput, UnreadableRow
from shared.core.history import HistoryEvent
from shared.core.job import STATUS_ALIASES, Category, Job, Move, Status
from shared.core.moment import whole_ms
from shared.core.outcome import Done, Fail
from shared.core.schedule import RunRecord
from shared.core.switches import Level, Switches
from tests.builders import NOW, a_job, a_lane, a_run_lane, a_switch, an_effect_row

CANARY = "Dear customer, my card is 4111"
LANE = a_lane()

task_names = st.from_regex(r"[a-z][a-z0-9_]{0,31}", fullmatch=True)
codes = st.text("abcdefgh_:|#.0123456789é", min_size=1, max_size=20)
times = st.datetimes(datetime(2000, 1, 2), datetime(2199, 1, 1), timezones=st.just(UTC)).map(whole_ms)
seconds = times.map(lambda at: at.replace(microsecond=0))
small = st.integers(0, 10**6)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats(-1e9, 1e9) | codes,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(codes, inner, max_size=3),
    max_leaves=6,
)
jobs = st.builds(
    Job,
    job_id=st.uuids().map(str),
    lane=st.just("support"),
    tenant=task_names,
    task=task_names,
    key=codes,
    created_at=times,
    updated_at=times,
    status=st.sampled_from(Status),
    task_version=small,
    priority=st.integers(0, 3),
    not_before_at=st.none() | times,
    claimed_at=st.none() | times,
    claimed_by=st.none() | codes,
    taken_from=st.none() | times,
    fence=small,
    attempt_count=small,
    max_attempts=small,
    last_error=st.none() | codes,
    last_error_at=st.none() | times,
    category=st.none() | st.sampled_from(Category),
    signature=st.none() | codes,
    blocked_by=st.none() | codes,
    waiting_since=st.none() | times,
    due=st.none() | times,
    payload_ref=st.none() | codes,
    payload_hash=st.just("") | codes,
    result=st.none() | codes,
    result_ref=st.none() | codes,
    completed_at=st.none() | times,
    expires_at=st.none() | seconds,
    replay_count=small,
    plan_id=st.none() | codes,
    routing_decision=st.none() | st.dictionaries(codes, json_values, min_size=1, max_size=3),
    withheld=st.none() | st.dictionaries(codes, codes, min_size=1, max_size=3),
    moves=st.lists(st.builds(Move, at=times, to=st.sampled_from(Status), reason=codes), max_size=8).map(tuple),
)


@given(job=jobs)
def test_every_job_survives_its_row(job: Job) -> None:
    """Written and read, a job is the same; writing what was read gives the same row."""
    item = rows.job_item(job, rows.lane_wpk(job, LANE))
    back = rows.job_from_item(item)
    assert back == job
    assert rows.job_item(back, rows.lane_wpk(back, LANE)) == item
    assert ("wpk" in item) == ("wsk" in item) == (job.waits or job.status is Status.FAILED)


@given(job=jobs)
def test_nothing_empty_is_stored(job: Job) -> None:
    """None, empty text, empty lists and maps are absent attributes."""
    item = rows.job_item(job, "support#0#2")
    for name, attribute in item.items():
        assert attribute not in ({"S": ""}, {"NULL": True}, {"L": []}, {"M": {}}), name


def test_the_index_key_is_the_lanes() -> None:
    """Ordered lanes by shard, fair lanes by tenant, jobs claimed by a run apart."""
    job = a_job(due=NOW, priority=1)
    sharded = a_lane(shards=4)
    assert rows.lane_wpk(job, a_lane()) == "support#0#1"
    assert rows.lane_wpk(job, sharded) == f"support#{sharded.shard_of(job.job_id)}#1"
    assert rows.lane_wpk(job, a_lane(admission="fair")) == "support#tenant-1#1"
    scheduled = a_run_lane(name="support")
    assert rows.lane_wpk(job, scheduled) == "support:async#0#1"
    batched = replace(job, routing_decision={"execution_mode": "batch"})
    assert rows.lane_wpk(batched, scheduled) == "support:batch#0#1"
    assert rows.lane_wpk(a_job(status=Status.PROCESSING, due=NOW), scheduled) == "CLAIMED#support"
    with pytest.raises(ValueError, match="partition"):
        rows.job_item(job)


def test_a_plain_jobs_row_stays_below_a_kilobyte() -> None:
    """With ids as long as real ones are, the open path's largest row leaves room in one write unit."""
    tenant, event = "workspace_01JCDJ6W3M9Q2K8Z7X5V4T3S2R", "evt_01JCDJ6W3M9Q2K8Z7X5V4T3S2R"
    bare = a_job(tenant=tenant, task="answer_event", key=event, payload_hash="0" * 32)
    job = replace(
        bare,
        key=f"{event}#conversation_215468513245",
        payload_ref=f"payload/{bare.job_id}/{bare.payload_hash}",
    )
    sizes = {"queued": item_size(rows.job_item(job))}
    claimed = rows.claimed_item(rows.job_item(job), by="support-worker/3c2b9a7e-8f3d-4c55-9a53-1f0f6f8e2b11", now=NOW)
    sizes["processing"] = item_size(claimed)
    done = lifecycle.settled(rows.job_from_item(claimed), Done("replied", ref=job.payload_ref), LANE, NOW)
    sizes["completed"] = item_size(rows.job_item(done))
    dead = lifecycle.settled(rows.job_from_item(claimed), Fail(Category.VENDOR_PERMANENT, "http_422"), LANE, NOW)
    sizes["failed"] = item_size(rows.job_item(dead))
    print(f"bytes of a plain job's row: {sizes}")
    assert max(sizes.values()) < 1000


@pytest.mark.req("R1")
@pytest.mark.parametrize(("word", "status"), STATUS_ALIASES.items())
def test_older_status_words_are_read_and_never_written(word: str, status: Status) -> None:
    """A row with an older word is a job; the row made of it has today's word."""
    item = {**rows.job_item(a_job(status=status)), "status": {"S": word}}
    job = rows.job_from_item(item)
    assert job.status is status
    assert rows.job_item(job)["status"] == {"S": status.value}
    assert rows.spellings(status) == (status.value, word)


@pytest.mark.req("R1")
def test_older_field_names_are_read_and_never_written() -> None:
    """scheduled_at, attempts, error_message; today's name wins where a row has both."""
    job = a_job(not_before_at=NOW, attempt_count=2, last_error="timeout")
    item = rows.job_item(job)
    older = dict(item)
    for name, alias in rows.FIELD_ALIASES.items():
        older[alias] = older.pop(name)
    assert rows.job_from_item(older) == job
    both = {**item, "attempts": {"N": "9"}, "scheduled_at": {"S": "2027-01-01T00:00:00Z"}}
    assert rows.job_from_item(both) == job
    assert not set(rows.FIELD_ALIASES.values()) & set(rows.job_item(rows.job_from_item(older)))


@pytest.mark.fault("K1")
def test_a_newer_versions_attributes_are_ignored() -> None:
    """Whatever their type."""
    extra = {"colour": {"S": "green"}, "weights": {"NS": ["1"]}, "blob": {"B": b"x"}}
    assert rows.job_from_item({**rows.job_item(a_job()), **extra}) == a_job()


@pytest.mark.fault("I1")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, None) for name in ("lane", "tenant", "task", "key", "status", "created_at", "updated_at")),
        *((name, {"N": "1"}) for name in ("lane", "status", "created_at", "claimed_by", "last_error", "wsk")),
        *((name, {"S": CANARY}) for name in ("status", "created_at", "not_before_at", "wsk", "category")),
        *((name, {"S": CANARY}) for name in ("fence", "priority", "expires_at", "moves", "routing_decision")),
        ("created_at", {"S": "2026-01-01T00:00:00"}),
        ("created_at", {"S": "0001-01-01T00:00:00+14:00"}),
        ("priority", {"N": "4"}),
        ("fence", {"N": "1.5"}),
        ("expires_at", {"N": "9" * 30}),
        ("moves", {"L": [{"N": "1"}]}),
        ("moves", {"L": [{"S": CANARY}]}),
        ("moves", {"L": [{"S": f"2026-01-01T00:00:00.000Z|{CANARY}|x"}]}),
        ("routing_decision", {"M": {CANARY: {"B": b"x"}}}),
        ("routing_decision", {"L": []}),
    ],
)
def test_what_cannot_be_read_is_named_without_its_value(name: str, value: Any) -> None:
    """The error says which row and field, and neither it nor its cause repeats what stood there."""
    item = rows.job_item(a_job(due=NOW), "support#0#2")
    if value is None:
        del item[name]
    else:
        item[name] = value
    with pytest.raises(UnreadableRow, match=name) as unreadable:
        rows.job_from_item(item)
    assert a_job().job_id in unreadable.value.key
    error: BaseException | None = unreadable.value
    while error is not None:
        assert CANARY not in str(error)
        error = error.__cause__


@given(
    item=st.dictionaries(
        st.sampled_from(sorted(rows.job_item(a_job(due=NOW), "w"))),
        st.one_of(
            st.fixed_dictionaries({"S": st.text()}),
            st.fixed_dictionaries({"N": st.text()}),
            st.fixed_dictionaries({"L": st.lists(st.fixed_dictionaries({"S": st.text()}), max_size=2)}),
            st.just("not an attribute"),
            st.none(),
        ),
    )
)
def test_no_row_at_all_raises_anything_else(item: Any) -> None:
    """A row of any shape is a job or an UnreadableRow."""
    for base in ({}, rows.job_item(a_job())):
        try:
            rows.job_from_item({**base, **item})
        except UnreadableRow:
            continue


def test_a_row_that_is_not_a_jobs_is_told_apart() -> None:
    """The table also holds ring rows."""
    assert rows.is_job(rows.job_item(a_job()))
    assert not rows.is_job({"pk": {"S": "RING#outreach#t1"}})
    with pytest.raises(UnreadableRow, match="pk"):
        rows.job_from_item({**rows.job_item(a_job()), "pk": {"S": "RING#outreach#t1"}})


def test_every_effect_survives_its_row() -> None:
    """Open, accepted, refused; the job and the name are in its key."""
    row = an_effect_row(name="reply")
    accepted = replace(row, state=EffectState.ACCEPTED, recorded_at=NOW, vendor_id="v-1")
    refused = replace(row, state=EffectState.REFUSED, recorded_at=NOW, reason="http_429")
    for one in (row, accepted, refused):
        item = rows.effect_item(one)
        assert rows.effect_from_item(item) == one
        assert item_size(item) < 400


@pytest.mark.parametrize("name", ["effect_id", "vendor", "state", "fence", "first_intent_at", "intent_at"])
def test_an_effect_without_a_field_is_unreadable(name: str) -> None:
    """A guard with a hole in it is not read as if it were whole."""
    item = rows.effect_item(an_effect_row())
    del item[name]
    with pytest.raises(UnreadableRow, match=name):
        rows.effect_from_item(item)


SCOPES = ("all", "lane/support", "task/support/reply", "tenant/support/a/b")


def test_switches_survive_their_row() -> None:
    """Every scope with everything about it; no row at all is no switch."""
    entries = {scope: a_switch(scope, level) for scope, level in zip(SCOPES, list(Level)[1:], strict=True)}
    scopes = {scope: switch_rows.switch_attribute(switch) for scope, switch in entries.items()}
    item = {"pk": {"S": "SWITCHES"}, switch_rows.SCOPES: {"M": scopes}}
    assert switch_rows.switches_from_item(item) == Switches(entries=entries)
    assert switch_rows.switches_from_item(None) == Switches()


def test_runs_and_events_survive_their_rows() -> None:
    """With and without counts and details."""
    run = RunRecord(schedule="triage", slot="2026-01-01T00:00:00.000Z", run_id="r", started_at=NOW)
    closed = RunRecord(
        schedule="triage",
        slot=run.slot,
        run_id="r",
        started_at=NOW,
        finished_at=NOW + timedelta(seconds=1),
        counts={"support.depth": 2},
    )
    for one in (run, closed):
        assert record_rows.run_from_item(record_rows.run_item(one)) == one
    event = HistoryEvent(subject="all", event_id="e", at=NOW, kind="k", by="ops", detail={"n": [1, {"a": None}]})
    assert record_rows.history_from_item(record_rows.history_item(event)) == event
    with pytest.raises(UnreadableRow, match="counts"):
        record_rows.run_from_item({**record_rows.run_item(closed), "counts": {"M": {"a": {"S": "x"}}}})


@pytest.mark.fault("C8")
@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), 10**38, 1e126, {1: "a"}, object(), b"bytes", {"a": {"b": set()}}]
)
def test_what_a_row_cannot_carry_is_refused_before_it_is_written(value: object) -> None:
    """By its place, never by its value."""
    with pytest.raises(BadInput, match="detail"):
        attributes.from_json({"x": value}, "detail")


@pytest.mark.fault("C8")
def test_nesting_deeper_than_a_row_can_be_is_refused() -> None:
    """DynamoDB keeps 32 levels."""
    deep: object = "x"
    for _ in range(40):
        deep = [deep]
    with pytest.raises(BadInput, match="nested"):
        attributes.from_json(deep, "detail")
