"""Recover: a claim whose worker died goes back to the queue, one attempt used; its effects are looked at first."""

from __future__ import annotations

from shared.contract import metrics
from shared.core import lifecycle
from shared.core.errors import RowMoved
from shared.core.job import Job
from shared.core.lane import LaneSpec
from shared.core.ports import Clock, EffectStore, JobStore, Telemetry
from shared.usecases.persist import persist


def recover(
    job: Job, lane: LaneSpec, *, jobs: JobStore, effects: EffectStore, clock: Clock, telemetry: Telemetry
) -> Job | None:
    """The job after its recovery, or None when somebody else moved it first."""
    open_intent = any(row.open for row in persist(lambda: effects.of_job(job.job_id), clock))
    after = lifecycle.recovered(job, lane, clock.now(), open_intent=open_intent)
    try:
        persist(lambda: jobs.move(job, after), clock)
    except RowMoved:
        return None
    telemetry.event("claim_recovered", job_id=job.job_id, lane=job.lane, status=after.status, fence=after.fence)
    telemetry.count(metrics.STALE, lane=job.lane)
    return after
