"""Send a canary: a job that does nothing, through a lane like any other; how long it takes is what users feel."""

from __future__ import annotations

from datetime import datetime, timedelta

from shared.contract import metrics
from shared.core.errors import UnreadableRow
from shared.core.job import CANARY, ENGINE_TENANT, Job, Status, job_id_of
from shared.core.lane import LaneSpec
from shared.core.moment import iso
from shared.core.ports import Clock, JobStore, Telemetry
from shared.core.schedule import slot_at
from shared.usecases.enqueue import Enqueue, enqueue
from shared.usecases.persist import persist

LOOKED_BACK = timedelta(days=1)
"""So far back the newest canary is looked for, slot by slot: one that is stuck stays late until somebody looks."""


def send_canary(lane: LaneSpec, *, period_s: int, jobs: JobStore, clock: Clock, telemetry: Telemetry) -> str | None:
    """Meter the newest canary and enqueue the next, one for a slot; its id. None while the newest is still at it:
    a lane that stands still is not filled up with canaries."""
    now = clock.now()
    newest = _newest(lane, now, period_s, jobs, clock)
    held = newest is not None and (newest.blocked_by or "").startswith("switches:")
    open_ = newest is not None and not newest.status.ended
    missed = newest is not None and (newest.status is Status.FAILED or (open_ and not held))
    telemetry.count(metrics.CANARY_AGE, 0 if newest is None or held else _age_s(newest, now), lane=lane.name)
    telemetry.count(metrics.CANARY_MISSED, int(missed), lane=lane.name)
    if newest is not None and (missed or held):
        telemetry.event("canary_held" if held else "canary_late", lane=lane.name, job_id=newest.job_id)
    if open_:
        return None
    request = Enqueue(lane=lane.name, task=CANARY, tenant=ENGINE_TENANT, key=iso(slot_at(now, period_s)))
    return enqueue(request, jobs=jobs, content=_NoText(), lanes={lane.name: lane}, clock=clock).job_id


def _newest(lane: LaneSpec, now: datetime, period_s: int, jobs: JobStore, clock: Clock) -> Job | None:
    """The newest canary of a slot before this one."""
    slot = slot_at(now, period_s)
    for back in range(1, int(LOOKED_BACK.total_seconds()) // period_s + 1):
        job_id = job_id_of(lane.name, ENGINE_TENANT, CANARY, iso(slot - timedelta(seconds=back * period_s)))
        try:
            found = persist(lambda one=job_id: jobs.get(one), clock)  # type: ignore[misc]
        except UnreadableRow:
            continue
        if found is not None:
            return found
    return None


def _age_s(job: Job, now: datetime) -> float:
    """From enqueue to end, or until now."""
    ended = (job.completed_at or job.updated_at) if job.status.ended else now
    return (ended - job.created_at).total_seconds()


class _NoText:
    """A canary has no payload: nothing is ever stored for one."""

    def put(self, ref: str, data: bytes) -> None:
        raise AssertionError("a canary has no payload")

    def get(self, ref: str) -> bytes | None:
        return None

    def delete(self, ref: str) -> None:
        return None
