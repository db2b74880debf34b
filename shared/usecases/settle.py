"""Settle: write how an attempt ended, if the claim is still ours."""

from __future__ import annotations

from shared.contract import metrics
from shared.core import lifecycle
from shared.core.effects import EffectState
from shared.core.errors import ClaimLost, RowMoved
from shared.core.job import Category, Job, Status
from shared.core.lane import LaneSpec
from shared.core.outcome import Done, Outcome, Retry
from shared.core.ports import Clock, EffectStore, JobStore, Telemetry
from shared.usecases.persist import persist

_COUNTED = {
    Status.COMPLETED: metrics.COMPLETED,
    Status.FAILED: metrics.FAILED,
}


def settle(
    job: Job,
    outcome: Outcome,
    *,
    lane: LaneSpec,
    jobs: JobStore,
    effects: EffectStore,
    clock: Clock,
    telemetry: Telemetry,
) -> Job:
    """The job as it was written. Raises ClaimLost when another worker owns it; nothing was written then."""
    now = clock.now()
    after = lifecycle.settled(job, outcome, lane, now)
    fails = after.status is Status.FAILED and after.category is not Category.OUTCOME_UNKNOWN
    if fails and any(row.open for row in persist(lambda: effects.of_job(job.job_id), clock)):
        after = lifecycle.settled(job, outcome, lane, now, open_intent=True)
    try:
        persist(lambda: jobs.move(job, after), clock)
    except RowMoved as moved:
        late = _late_evidence(moved.current, outcome, lane, effects, clock)
        if late is None or moved.current is None:
            raise ClaimLost(job.job_id, job.fence) from None
        after = late
        parked = moved.current
        try:
            persist(lambda: jobs.move(parked, late), clock)
        except RowMoved:
            raise ClaimLost(job.job_id, job.fence) from None
    telemetry.event(
        "attempt_settled",
        job_id=job.job_id,
        lane=job.lane,
        outcome=type(outcome).__name__.lower(),
        status=after.status,
        attempt=after.attempt_count,
    )
    telemetry.count(_metric(after, outcome), lane=job.lane)
    return after


def _late_evidence(
    current: Job | None, outcome: Outcome, lane: LaneSpec, effects: EffectStore, clock: Clock
) -> Job | None:
    """A slow worker that finished after the job was parked as unknown may hold the very evidence asked for: when it
    withheld nothing, and every effect of the job, read again, is accepted. That there is none proves nothing."""
    parked = current is not None and (current.status, current.category) == (Status.FAILED, Category.OUTCOME_UNKNOWN)
    if current is None or not parked or not isinstance(outcome, Done) or outcome.withheld:
        return None
    rows = persist(lambda: effects.of_job(current.job_id), clock)
    if not rows or any(row.state is not EffectState.ACCEPTED for row in rows):
        return None
    return lifecycle.completed_by_evidence(current, lane, clock.now(), outcome.result, outcome.ref)


def _metric(after: Job, outcome: Outcome) -> str:
    if after.status in _COUNTED:
        return _COUNTED[after.status]
    return metrics.RETRIED if isinstance(outcome, Retry) else metrics.DEFERRED
