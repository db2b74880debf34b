"""A log that could not be looked at is a gap of the report, never a clean one."""

from __future__ import annotations

from datetime import timedelta

from shared.adapters.memory.jobs import MemoryJobStore
from shared.core.job import Status
from shared.core.validation_facts import Verdict
from tests.builders import a_job
from tests.unit.usecases.aftermath import ENGINE, WORKER, Aftermath


def test_a_log_that_is_empty_though_jobs_ran_was_missed() -> None:
    """No line at all in the worker's group is no proof that nothing leaked."""
    after = Aftermath()
    after.logs._groups[WORKER].clear()
    assert "holds no line" in after.checks()["leaks"].unchecked[0]


def test_a_log_that_is_empty_though_jobs_were_tried_was_missed() -> None:
    """A job that only ever failed, or waits for its next attempt, has run, too."""
    for status in (Status.FAILED, Status.QUEUED):
        after = Aftermath()
        after.logs._groups[WORKER].clear()
        after.jobs = MemoryJobStore(lanes=after.lanes, clock=after.clock)
        now = after.clock.now()
        after.jobs.put(a_job(status=status, attempt_count=2, fence=2, created_at=now, updated_at=now))
        assert "holds no line, and 1 jobs ran" in after.checks()["leaks"].unchecked[0]


def test_a_group_that_is_not_there_was_not_swept() -> None:
    """Nothing was found in it because nobody could look."""
    after = Aftermath()
    after.logs._groups.pop(ENGINE)
    assert after.checks()["leaks"].verdict is Verdict.INCOMPLETE


def test_a_log_that_is_kept_for_less_than_was_asked_leaves_a_gap() -> None:
    """What stood in it before can no longer be swept."""
    after = Aftermath()
    after.logs.retention = {WORKER: 1, ENGINE: 90}
    assert after.checks()["leaks"].verdict is Verdict.PASS
    (gap,) = after.checks(since=after.clock.now() - timedelta(days=2))["leaks"].unchecked
    assert f"{WORKER} keeps its lines for 1 days" in gap
