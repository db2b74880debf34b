"""Jobs that runs take: they stand in the line of their mode, a run's claim stands apart until it is settled."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from shared.core import lifecycle
from shared.core.job import Job, Status
from shared.core.outcome import Submitted
from shared.core.ports import Claimed, NotClaimed
from shared.core.run import Mode
from tests.builders import NOW, a_job
from tests.contract.worlds import LANES, World

LANE = LANES["rewrite"]


def a_rewrite(key: str = "event-1", *, mode: Mode = Mode.BATCH, due_s: float = 0, **overrides: object) -> Job:
    """A job of the lane, in the index since its first write."""
    due = NOW + timedelta(seconds=due_s)
    decision = {"execution_mode": mode.value}
    given: dict[str, object] = {"not_before_at": due if due_s else None, "facts": {"surface": "other"}}
    return a_job(
        lane="rewrite", task="complaint_rewrite", key=key, due=due, routing_decision=decision, **{**given, **overrides}
    )


@pytest.mark.req("R8", "R12")
def test_each_mode_has_a_line_of_its_own(world: World) -> None:
    """A run of one mode reads nobody of the other; without a line, everybody of the lane."""
    for number, mode in enumerate((Mode.BATCH, Mode.ASYNC, Mode.BATCH)):
        world.jobs.put(a_rewrite(f"event-{number}", mode=mode, created_at=NOW + timedelta(seconds=number)))
    later = NOW + timedelta(minutes=1)

    def found(line: str | None) -> int:
        return len(world.jobs.waiting(LANE, due_before=later, limit=10, line=line))

    assert (found(LANE.line(Mode.BATCH)), found(LANE.line(Mode.ASYNC)), found(None)) == (2, 1, 3)


@pytest.mark.req("R8")
def test_a_runs_claim_is_atomic_and_found_by_its_time(world: World) -> None:
    """Once claimed it has left its line and stands among the claims of runs; only the same run may ask again."""
    world.jobs.put(a_rewrite())
    (entry,) = world.jobs.waiting(LANE, due_before=NOW, limit=10, line=LANE.line(Mode.BATCH))
    assert entry.created == NOW
    claim = world.jobs.claim_in_run(LANE, entry, by="run-1", now=NOW)
    assert isinstance(claim, Claimed)
    assert (claim.job.status, claim.job.claimed_by, claim.job.fence) == (Status.PROCESSING, "run-1", 1)
    assert (claim.job.claimed_at, claim.job.due) == (NOW, NOW)
    assert claim.job.facts == {"surface": "other"}
    assert world.jobs.get(claim.job.job_id) == claim.job
    again = world.jobs.claim_in_run(LANE, entry, by="run-1", now=NOW + timedelta(seconds=1))
    assert isinstance(again, Claimed)
    assert again.job == claim.job
    assert isinstance(world.jobs.claim_in_run(LANE, entry, by="run-2", now=NOW), NotClaimed)
    assert world.jobs.waiting(LANE, due_before=NOW, limit=10) == []
    assert [one.job_id for one in world.jobs.claimed_by_runs(LANE, before=NOW, limit=10)] == [claim.job.job_id]
    world.jobs.move(claim.job, lifecycle.settled(claim.job, Submitted("tag"), LANE, NOW))
    assert world.jobs.claimed_by_runs(LANE, before=NOW + timedelta(days=1), limit=10) == []


@pytest.mark.req("R6", "R8")
def test_a_job_that_is_not_due_is_taken_only_when_told_so(world: World) -> None:
    """`early` is `respect_not_before_at: false`."""
    job = a_rewrite(due_s=3600)
    world.jobs.put(job)
    (entry,) = world.jobs.waiting(LANE, due_before=NOW + timedelta(days=1), limit=10)
    assert isinstance(world.jobs.claim_in_run(LANE, entry, by="run-1", now=NOW), NotClaimed)
    assert isinstance(world.jobs.claim_in_run(LANE, entry, by="run-1", now=NOW, early=True), Claimed)


def test_what_a_run_puts_back_stands_in_its_line_again(world: World) -> None:
    """Overflow and a dead run's claim: due at their new time, in the same line."""
    world.jobs.put(a_rewrite())
    (entry,) = world.jobs.waiting(LANE, due_before=NOW, limit=10)
    claim = world.jobs.claim_in_run(LANE, entry, by="run-1", now=NOW)
    assert isinstance(claim, Claimed)
    until = NOW + timedelta(seconds=60)
    world.jobs.move(claim.job, lifecycle.overflowed(claim.job, until, "overflow:openai", NOW))
    (back,) = world.jobs.waiting(LANE, due_before=until, limit=10, line=LANE.line(Mode.BATCH))
    assert (back.job_id, back.due, back.created) == (claim.job.job_id, until, NOW)
    row = world.jobs.get(claim.job.job_id)
    assert row is not None
    assert replace(row, moves=()).attempt_count == 0
