"""A waiting job's place in line is its own time, whichever way it came to wait."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.core import lifecycle
from shared.core.errors import IllegalMove
from shared.core.job import Category, Job, Status
from shared.core.outcome import Defer, Fail, Outcome
from tests.builders import NOW, a_job, a_lane
from tests.unit.core.strategies import claimed_jobs, moments, outcomes

LANE = a_lane()
SOON = NOW + timedelta(minutes=5)
queued_jobs = st.builds(
    lambda created_s, not_before: a_job(created_at=NOW - timedelta(seconds=created_s), not_before_at=not_before),
    st.integers(0, 10**6),
    st.none() | moments,
)


def in_place(job: Job) -> bool:
    """Stands in the index exactly where its own time, or else its age, puts it."""
    return job.due == (job.not_before_at or job.created_at)


@pytest.mark.req("X1")
@given(job=queued_jobs, at=moments)
def test_a_held_job_keeps_its_place_and_a_rescheduled_one_takes_its_new_one(job: Job, at: datetime) -> None:
    """A hold changes neither; another time changes both."""
    held = lifecycle.held(job, "capacity:support", NOW)
    assert (in_place(held), held.not_before_at) == (True, job.not_before_at)
    moved = lifecycle.rescheduled(held, at, "scheduled:alice", NOW)
    assert (in_place(moved), moved.due) == (True, at)


@pytest.mark.req("X1")
@given(job=claimed_jobs(), outcome=outcomes(), at=moments, open_intent=st.booleans())
def test_a_job_that_comes_back_from_its_worker_stands_where_its_time_puts_it(
    job: Job, outcome: Outcome, at: datetime, open_intent: bool
) -> None:
    """Deferred, retried, recovered or taken back: a hold that follows does not change its place."""
    back = [
        lifecycle.settled(job, outcome, LANE, SOON),
        lifecycle.recovered(job, LANE, SOON, open_intent=open_intent),
        lifecycle.taken_back(job, at, "reset:alice", SOON),
    ]
    for after in back:
        if after.status is Status.QUEUED:
            assert in_place(after)
            assert lifecycle.held(after, "switches:all", SOON).due == after.due
        else:
            assert after.due is None


@given(job=queued_jobs, at=moments)
def test_a_time_that_a_person_gives_is_no_turn_that_an_account_promised(job: Job, at: datetime) -> None:
    """Refused jobs that are told to run now stand in line like everybody, or a thousand old promises wake at once."""
    refused = replace(job, permit_at=SOON)
    assert lifecycle.rescheduled(refused, at, "scheduled:alice", NOW).permit_at is None
    running = a_job(status=Status.PROCESSING, permit_at=SOON)
    assert lifecycle.taken_back(running, at, "reset:alice", NOW).permit_at is None
    # What only keeps it waiting takes no promise away.
    assert lifecycle.held(refused, "capacity:support", NOW).permit_at == SOON


@pytest.mark.fault("C10")
@pytest.mark.parametrize("status", Status)
def test_every_move_writes_the_key_that_its_times_make(status: Status) -> None:
    """Whatever key a job was read under, what is written, and what may be moved on from there, has none of it."""
    job = a_job(status=status, due=NOW, place_as_read="2026-01-01T00:00:00Z#odd")
    fails = Fail(Category.AUTH, "no_key")
    moves: list[Callable[[], Job]] = [
        lambda: lifecycle.held(job, "capacity:support", NOW),
        lambda: lifecycle.handed_off(job, NOW),
        lambda: lifecycle.rescheduled(job, NOW, "ops", NOW),
        lambda: lifecycle.taken_back(job, NOW, "ops", NOW),
        lambda: lifecycle.recovered(job, LANE, NOW, open_intent=False),
        lambda: lifecycle.settled(job, fails, LANE, NOW),
        lambda: lifecycle.settled(job, Defer(NOW, "not_yet"), LANE, NOW),
        lambda: lifecycle.overflowed(job, NOW, "full", NOW),
        lambda: lifecycle.sent_back(job, "expired", LANE, NOW),
        lambda: lifecycle.failed_unclaimed(job, LANE, NOW, Category.POISON, "receives"),
        lambda: lifecycle.completed_by_evidence(job, LANE, NOW, "replied", None),
        lambda: lifecycle.canceled(job, LANE, "ops", NOW),
        lambda: lifecycle.replayed(job, "plan-1", NOW),
        lambda: lifecycle.withdrawn(job, LANE, Category.AUTH, None, NOW),
        lambda: lifecycle.letter_taken(job, NOW),
        lambda: lifecycle.letter_sent(job),
    ]
    made = []
    for one in moves:
        with suppress(IllegalMove):
            made.append(one())
    assert all(after.place_as_read is None for after in made)
    assert bool(made) == (status not in (Status.COMPLETED, Status.CANCELED))
