"""Settle: the end of an attempt is written by whoever still holds the claim, and by nobody else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shared.contract import metrics
from shared.core import lifecycle
from shared.core.effects import EffectState
from shared.core.errors import ClaimLost
from shared.core.job import Category, Job, Status
from shared.core.outcome import Defer, Done, Fail, Outcome, Retry
from shared.usecases.settle import settle
from tests.builders import NOW, a_job, an_effect_row
from tests.unit.usecases.desk import Desk


@pytest.fixture
def desk() -> Desk:
    return Desk(max_attempts=2, retry_backoff_s=(5,))


def settled(desk: Desk, job: Job, outcome: Outcome) -> Job:
    return settle(
        job,
        outcome,
        lane=desk.lane,
        jobs=desk.jobs,
        effects=desk.effects,
        clock=desk.clock,
        telemetry=desk.telemetry,
    )


def claimed(desk: Desk, **overrides: object) -> Job:
    desk.put(a_job(max_attempts=2, **overrides))
    job = desk.jobs.claim(a_job().job_id, by="w1/1", now=NOW).job
    assert job is not None
    return job


@pytest.mark.parametrize(
    ("outcome", "metric"),
    [
        (Done(), metrics.COMPLETED),
        (Retry("x"), metrics.RETRIED),
        (Defer(NOW, "x"), metrics.DEFERRED),
        (Fail(Category.AUTH, "x"), metrics.FAILED),
    ],
)
def test_what_is_returned_is_what_was_written_and_counted(desk: Desk, outcome: Outcome, metric: str) -> None:
    """One row, one event, one metric."""
    after = settled(desk, claimed(desk), outcome)
    assert desk.job(after.job_id) == after
    assert desk.telemetry.counts[metric, "support"] == 1
    (event,) = desk.telemetry.named("attempt_settled")
    assert event.ids["outcome"] == type(outcome).__name__.lower()


@pytest.mark.fault("C3")
def test_settling_twice_is_settling_once(desk: Desk) -> None:
    """The first answer was lost: asking again finds its own write and is content."""
    job = claimed(desk)
    first = settled(desk, job, Done("replied"))
    assert settled(desk, job, Done("replied")) == first


@pytest.mark.req("R9")
@pytest.mark.fault("A4")
@pytest.mark.parametrize("outcome", [Done(), Retry("x"), Defer(NOW, "x"), Fail(Category.AUTH, "x")])
def test_an_old_fence_writes_nothing(desk: Desk, outcome: Outcome) -> None:
    """Recovered and claimed by another: whatever the first worker found, the row is the other's."""
    job = claimed(desk)
    desk.jobs.move(job, lifecycle.recovered(job, desk.lane, NOW, open_intent=False))
    desk.jobs.claim(job.job_id, by="w2/2", now=NOW)
    before = desk.jobs.item(job.job_id)
    with pytest.raises(ClaimLost) as lost:
        settled(desk, job, outcome)
    assert (lost.value.job_id, lost.value.fence) == (job.job_id, job.fence)
    assert desk.jobs.item(job.job_id) == before
    assert not desk.telemetry.named("attempt_settled")


@pytest.mark.parametrize("gone", ["canceled", "expired"])
def test_a_job_that_was_taken_away_is_left(desk: Desk, gone: str) -> None:
    """Withdrawn by an operator, or its row gone: nothing is written over it."""
    job = claimed(desk)
    if gone == "canceled":
        desk.jobs.move(job, lifecycle.canceled(job, desk.lane, "op", NOW))
    else:
        desk.jobs.expire(job.job_id)
    before = desk.jobs.item(job.job_id)
    with pytest.raises(ClaimLost):
        settled(desk, job, Done())
    assert desk.jobs.item(job.job_id) == before


@pytest.mark.fault("A1")
def test_a_last_try_looks_at_its_effects_first(desk: Desk) -> None:
    """Open: nobody knows. Closed or none: simply exhausted."""
    job = claimed(desk, attempt_count=1)
    desk.effects.intend(an_effect_row(job_id=job.job_id))
    after = settled(desk, job, Retry("vendor_unknown:timeout"))
    assert (after.status, after.category) == (Status.FAILED, Category.OUTCOME_UNKNOWN)


def test_a_last_try_without_an_intent_is_exhausted(desk: Desk) -> None:
    """Nothing was begun, so a replay may send."""
    after = settled(desk, claimed(desk, attempt_count=1), Retry("x"))
    assert (after.status, after.category) == (Status.FAILED, Category.RETRIES_EXHAUSTED)


@pytest.mark.fault("A1")
def test_a_slow_worker_brings_the_evidence(desk: Desk) -> None:
    """Parked as unknown while it was away: its success is the proof that was asked for."""
    job = claimed(desk, attempt_count=1)
    row = an_effect_row(job_id=job.job_id)
    desk.effects.intend(row)
    desk.jobs.move(job, lifecycle.recovered(job, desk.lane, NOW, open_intent=True))
    assert desk.job(job.job_id).category is Category.OUTCOME_UNKNOWN
    desk.effects.accept(replace(row, state=EffectState.ACCEPTED, vendor_id="v-1"))
    after = settled(desk, job, Done("replied"))
    assert (after.status, after.result, after.category) == (Status.COMPLETED, "replied", None)
    assert desk.job(job.job_id).moves[-1].reason == "evidence"


@pytest.mark.parametrize("outcome", [Retry("x"), Defer(NOW, "x"), Fail(Category.AUTH, "x")])
def test_only_a_success_is_evidence(desk: Desk, outcome: Outcome) -> None:
    """A failure proves nothing about what the vendor has."""
    job = claimed(desk, attempt_count=1)
    desk.jobs.move(job, lifecycle.recovered(job, desk.lane, NOW, open_intent=True))
    with pytest.raises(ClaimLost):
        settled(desk, job, outcome)
    assert desk.job(job.job_id).category is Category.OUTCOME_UNKNOWN


def test_a_success_is_no_evidence_for_another_kind_of_failure(desk: Desk) -> None:
    """Poison stays poison: its effects were looked at and none was open."""
    job = claimed(desk, attempt_count=1)
    desk.jobs.move(job, lifecycle.recovered(job, desk.lane, NOW, open_intent=False))
    with pytest.raises(ClaimLost):
        settled(desk, job, Done())
    assert desk.job(job.job_id).category is Category.POISON
