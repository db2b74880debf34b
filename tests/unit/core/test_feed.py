"""The change feed's law: an event exactly when the state changed, in an order no clock decides, and never a text."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.core import lifecycle
from shared.core.errors import UnreadableRow
from shared.core.feed import _RANK, VERSION, StateChange, change_of
from shared.core.job import Category, Job, Status
from shared.core.outcome import Defer, Done, Fail, Retry, Submitted
from tests.builders import NOW, a_job, a_lane

LANE = a_lane()
LATER = NOW + timedelta(minutes=5)
WORD = "ZephyrQuokka"
RAISES_THE_FENCE = {"claim", "stale", "reset", "cancel", "dismiss", "replay"}


def claimed(job: Job) -> Job:
    return job.noted(Status.PROCESSING, "claim", LATER, fence=job.fence + 1, claimed_at=LATER, claimed_by="w", due=None)


Step = Callable[[Job], Job]
STEPS: dict[Status, list[Step]] = {
    Status.QUEUED: [
        claimed,
        lambda job: lifecycle.held(job, "switches:all", LATER),
        lambda job: lifecycle.handed_off(job, LATER),
        lambda job: lifecycle.failed_unclaimed(job, LANE, LATER, Category.INFRASTRUCTURE, "lost"),
        lambda job: lifecycle.canceled(job, LANE, "op", LATER),
        lambda job: lifecycle.withdrawn(job, LANE, Category.AUTH, "401", LATER),
    ],
    Status.PROCESSING: [
        lambda job: lifecycle.settled(job, Done("replied"), LANE, LATER),
        lambda job: lifecycle.settled(job, Retry("timeout"), LANE, LATER),
        lambda job: lifecycle.settled(job, Defer(LATER, "rate"), LANE, LATER),
        lambda job: lifecycle.settled(job, Fail(Category.AUTH, "401"), LANE, LATER),
        lambda job: lifecycle.settled(job, Submitted("b-1"), LANE, LATER),
        lambda job: lifecycle.recovered(job, LANE, LATER, open_intent=False),
        lambda job: lifecycle.taken_back(job, LATER, "reset", LATER),
        lambda job: lifecycle.overflowed(job, LATER, "time_budget", LATER),
        lambda job: lifecycle.canceled(job, LANE, "op", LATER),
    ],
    Status.BATCH_SUBMITTED: [
        lambda job: lifecycle.move(job, Status.COMPLETED, "done", LATER),
        lambda job: lifecycle.sent_back(job, "line_missing", LANE, LATER),
        lambda job: lifecycle.move(job, Status.FAILED, "failed", LATER, category=Category.MALFORMED),
        lambda job: lifecycle.canceled(job, LANE, "op", LATER),
    ],
    Status.FAILED: [
        lambda job: lifecycle.replayed(job, "plan-1", LATER),
        lambda job: lifecycle.completed_by_evidence(job, LANE, LATER, "replied", None),
        lambda job: lifecycle.canceled(job, LANE, "op", LATER),
        lambda job: lifecycle.letter_taken(job, LATER),
    ],
}


@st.composite
def walks(draw: st.DrawFn) -> list[Job]:
    """A job's rows, one after the other, by steps the lifecycle allows."""
    rows = [a_job()]
    for choice in draw(st.lists(st.integers(0, 8), max_size=30)):
        steps = STEPS.get(rows[-1].status)
        if steps is None:
            break
        rows.append(steps[choice % len(steps)](rows[-1]))
    return rows


@pytest.mark.req("R15")
@given(walks())
def test_an_event_exactly_when_the_state_changed(rows: list[Job]) -> None:
    """A new row is news; a row that was written and stays in its state is not."""
    first = change_of(rows[0], None)
    assert first is not None
    assert (first.previous, first.status) == (None, rows[0].status)
    for before, after in pairwise(rows):
        change = change_of(after, before.status)
        assert (change is not None) is (before.status is not after.status)
        if change is not None:
            assert (change.previous, change.status, change.at) == (before.status, after.status, after.updated_at)


@pytest.mark.req("R15")
@given(walks())
def test_changes_of_one_job_are_sorted_without_a_clock(rows: list[Job]) -> None:
    """Its numbers rise with every change, in every walk, though all of them happened in one millisecond."""
    told = [change_of(after, before) for before, after in zip([None, *(r.status for r in rows)], rows, strict=False)]
    numbers = [change.sequence for change in told if change is not None]
    assert numbers == sorted(set(numbers))


@pytest.mark.req("R15")
def test_every_move_of_the_table_goes_up_or_raises_the_fence() -> None:
    """A new edge of the lifecycle that does neither would make two changes of a job look alike."""
    flat = {
        (rule.was.value, rule.to.value, rule.reason)
        for rule in lifecycle.MOVES
        if rule.was is not rule.to and rule.reason not in RAISES_THE_FENCE and _RANK[rule.to] <= _RANK[rule.was]
    }
    assert flat == set()


@pytest.mark.req("R15")
def test_a_change_has_one_id_and_no_two_share_it() -> None:
    """Published twice it is the same; another state, another turn or another row of the same job is another."""
    job = a_job(status=Status.FAILED, fence=3)
    again = replace(job, created_at=job.created_at + timedelta(days=40))
    others = [replace(job, fence=4), replace(job, status=Status.COMPLETED), again, a_job(key="x", fence=3)]
    ids = [_told(one).change_id for one in (job, *others)]
    assert len(set(ids)) == len(ids)
    assert _told(job).change_id == _told(replace(job, updated_at=LATER, last_error="x")).change_id


@pytest.mark.req("R15", "R14")
def test_what_is_told_are_ids_and_states() -> None:
    """A closed list of fields: whatever a producer or a task wrote into the row is in none of them."""
    job = a_job(
        status=Status.FAILED,
        key=WORD,
        last_error=WORD,
        signature=WORD,
        blocked_by=WORD,
        claimed_by=WORD,
        result=WORD,
        result_ref=WORD,
        payload_ref=WORD,
        payload_hash=WORD,
        plan_id=WORD,
        routing_decision={WORD: WORD},
    )
    detail = _told(job).detail()
    assert set(detail) == {
        *("version", "change_id", "job_id", "lane", "tenant", "task", "status", "previous", "at", "created_at"),
        *("sequence", "attempt_count", "category"),
    }
    assert WORD not in json.dumps(detail)
    assert detail["version"] == VERSION == 1


def test_why_a_job_failed_is_told_of_failed_jobs_alone() -> None:
    """A dismissed job keeps its category in the row; it no longer fails."""
    failed = a_job(status=Status.FAILED)
    assert _told(failed).detail()["category"] == failed.category
    dismissed = lifecycle.canceled(failed, LANE, "op", LATER)
    assert "category" not in _told(dismissed).detail()
    assert "previous" not in (change_of(a_job(), None) or pytest.fail("no change")).detail()


@pytest.mark.parametrize("job_id", [WORD, "", "6F0C3A52-9A57-5D0E-9B1A-7E5B9F2D4C10", "{x}"])
def test_a_key_that_holds_no_job_id_is_not_told(job_id: str) -> None:
    """Whoever wrote it may have put anything there; the error does not repeat it."""
    with pytest.raises(UnreadableRow) as refused:
        change_of(replace(a_job(), job_id=job_id), None)
    assert job_id not in str(refused.value) or not job_id


@given(
    tenant=st.text("abcXYZ019._:@+=/-", min_size=1, max_size=64),
    numbers=st.integers(-(10**37), 10**37),
)
def test_ten_events_are_far_below_the_limit_of_a_call(tenant: str, numbers: int) -> None:
    """An event's detail is under 1 KB, whatever its ids and counts: PutEvents takes 256 KB a call."""
    job = replace(a_job(status=Status.FAILED, fence=numbers, attempt_count=numbers), tenant=tenant, lane="l" * 32)
    assert len(json.dumps(_told(job).detail())) < 1024


def _told(job: Job) -> StateChange:
    change = change_of(job, next(status for status in Status if status is not job.status))
    assert change is not None
    return change
