"""Recover: a claim whose worker died goes back to the queue, one attempt used; its effects are looked at first."""

from __future__ import annotations

from shared.contract import metrics
from shared.core import lifecycle
from shared.core.errors import UnreadableRow
from shared.core.job import Job
from shared.core.lane import LaneSpec
from shared.core.ports import Clock, EffectStore, JobStore, Telemetry
from shared.usecases.persist import persist
from shared.usecases.try_move import try_move


def recover(
    job: Job, lane: LaneSpec, *, jobs: JobStore, effects: EffectStore, clock: Clock, telemetry: Telemetry
) -> Job | None:
    """The job after its recovery, or None when somebody else moved it first, or a row of it cannot be read."""
    try:
        open_intent = any(row.open for row in persist(lambda: effects.of_job(job.job_id), clock))
    except UnreadableRow as exc:
        # Perhaps the vendor has it: nobody goes on before somebody could read that.
        telemetry.error("row_unreadable", exc, job_id=job.job_id)
        return None
    after = lifecycle.recovered(job, lane, clock.now(), open_intent=open_intent)
    if not try_move(job, after, jobs=jobs, clock=clock, telemetry=telemetry):
        return None
    telemetry.event("claim_recovered", job_id=job.job_id, lane=job.lane, status=after.status, fence=after.fence)
    telemetry.count(metrics.STALE, lane=job.lane)
    return after
