"""A waiting job's place in line is its own time, whichever way it came to wait."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.core import lifecycle
from shared.core.job import Job, Status
from shared.core.outcome import Outcome
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
