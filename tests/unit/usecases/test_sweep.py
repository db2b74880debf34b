"""Sweep and recover: claims without a message are found by their time, their effects looked at first."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from shared.contract import metrics
from shared.core.job import Category, Job, Status
from shared.core.run import RunConfig
from shared.usecases.recover import recover
from shared.usecases.sweep import OVERDUE_S
from tests.builders import NOW, a_job, an_effect_row
from tests.unit.usecases.desk import Desk


@pytest.fixture
def desk() -> Desk:
    return Desk(admission="scheduled", run=RunConfig(retry_backoff_seconds=(5, 10, 20, 40)), runs={"worker": 3600})


def claimed(desk: Desk, key: str = "event-1", **overrides: object) -> Job:
    """A job claimed by a run: it stands in the index by the time of its claim."""
    return desk.put(a_job(key=key, status=Status.PROCESSING, **{"claimed_at": NOW, "due": NOW, **overrides}))


def swept(desk: Desk) -> tuple[int, int]:
    done = desk.sweep()
    counted = {"recovered": done.recovered, "overdue": done.overdue}
    assert done.counts("support") == {f"support.{name}": count for name, count in counted.items()}
    return done.recovered, done.overdue


@pytest.mark.req("R9", "M9")
def test_a_dead_runs_claims_go_back_to_the_queue(desk: Desk) -> None:
    """Exactly when they are stale, with one attempt used and the fence raised; not before."""
    job = claimed(desk)
    desk.clock.advance(desk.lane.claim_timeout_s - 1)
    assert swept(desk)[0] == 0
    desk.clock.advance(1)
    assert swept(desk)[0] == 1
    after = desk.job(job.job_id)
    assert (after.status, after.attempt_count, after.fence) == (Status.QUEUED, 1, job.fence + 1)
    assert (after.last_error, after.due) == ("stale_claim_requeued", desk.clock.now())
    assert desk.telemetry.total(metrics.STALE) == 1
    assert swept(desk)[0] == 0


@pytest.mark.req("R9")
@pytest.mark.parametrize(("open_intent", "category"), [(True, Category.OUTCOME_UNKNOWN), (False, Category.POISON)])
def test_at_the_last_try_its_effects_are_looked_at_first(desk: Desk, open_intent: bool, category: Category) -> None:
    """An intent without a result is unknown, whatever killed the worker."""
    job = claimed(desk, max_attempts=1)
    if open_intent:
        desk.effects.intend(an_effect_row(job_id=job.job_id))
    desk.clock.advance(desk.lane.claim_timeout_s)
    assert swept(desk)[0] == 1
    assert (desk.job(job.job_id).status, desk.job(job.job_id).category) == (Status.FAILED, category)


@pytest.mark.fault("C4")
def test_the_index_only_nominates(desk: Desk) -> None:
    """A job that was claimed anew since is alive, whatever an old entry says."""
    job = claimed(desk)
    desk.clock.advance(desk.lane.claim_timeout_s)
    fresh = replace(job, claimed_at=desk.clock.now(), fence=2)
    desk.jobs.move(job, fresh)
    assert swept(desk)[0] == 0
    assert desk.job(job.job_id) == fresh


@pytest.mark.fault("K1")
def test_an_unreadable_row_is_left_and_its_neighbours_are_swept(desk: Desk) -> None:
    """Named in an event, not touched."""
    strange, good = claimed(desk, "a"), claimed(desk, "b")
    item = {**(desk.jobs.item(strange.job_id) or {}), "status": {"S": "hibernating"}}
    desk.jobs.plant(item)
    desk.clock.advance(desk.lane.claim_timeout_s)
    assert swept(desk)[0] == 1
    assert desk.jobs.item(strange.job_id) == item
    assert desk.job(good.job_id).status is Status.QUEUED
    assert desk.telemetry.named("row_unreadable")


def test_jobs_that_are_long_due_are_reported() -> None:
    """Back-pressure that lasts is said aloud; the jobs are the dispatcher's."""
    desk = Desk()
    for key, late_s in (("a", OVERDUE_S + 1), ("b", OVERDUE_S - 1)):
        desk.put(a_job(key=key, due=NOW - timedelta(seconds=late_s), blocked_by="capacity:support"))
    assert swept(desk) == (0, 1)
    assert desk.telemetry.named("waiting_overdue")[0].ids["count"] == 1


@pytest.mark.fault("A4")
def test_two_who_recover_at_once_use_one_attempt() -> None:
    """The second finds the row moved and is told so."""
    desk = Desk()
    job = desk.put(a_job(status=Status.PROCESSING))
    desk.clock.advance(desk.lane.claim_timeout_s)
    ports = {"jobs": desk.jobs, "effects": desk.effects, "clock": desk.clock, "telemetry": desk.telemetry}
    assert recover(job, desk.lane, **ports) is not None  # type: ignore[arg-type]
    desk.clock.advance(1)
    assert recover(job, desk.lane, **ports) is None  # type: ignore[arg-type]
    assert (desk.job(job.job_id).attempt_count, desk.job(job.job_id).fence) == (1, 2)
