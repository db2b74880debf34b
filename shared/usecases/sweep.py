"""Sweep: claims made by runs have no message to rescue them; the sweeper reads them from the index."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from shared.core import lifecycle
from shared.core.errors import UnreadableRow
from shared.core.lane import LaneSpec
from shared.core.ports import Clock, EffectStore, JobStore, Telemetry
from shared.usecases.persist import persist
from shared.usecases.recover import recover

LIMIT = 500
OVERDUE_S = 300


@dataclass(slots=True)
class Swept:
    """What one sweep found."""

    recovered: int = 0
    overdue: int = 0

    def counts(self, lane: str) -> dict[str, int]:
        """For the run record, by lane."""
        return {f"{lane}.recovered": self.recovered, f"{lane}.overdue": self.overdue}


def sweep(lane: LaneSpec, *, jobs: JobStore, effects: EffectStore, clock: Clock, telemetry: Telemetry) -> Swept:
    """Recover stale run claims; report jobs that have been due for minutes and still wait."""
    done = Swept()
    now = clock.now()
    stale_before = now - timedelta(seconds=lane.claim_timeout_s)
    for entry in jobs.claimed_by_runs(lane, before=stale_before, limit=LIMIT):
        try:
            job = persist(lambda job_id=entry.job_id: jobs.get(job_id), clock)  # type: ignore[misc]
        except UnreadableRow as exc:
            telemetry.error("row_unreadable", exc, job_id=entry.job_id)
            continue
        if job is not None and lifecycle.is_stale(job, lane, now):
            done.recovered += (
                recover(job, lane, jobs=jobs, effects=effects, clock=clock, telemetry=telemetry) is not None
            )
    overdue = jobs.waiting(lane, due_before=now - timedelta(seconds=OVERDUE_S), limit=LIMIT)
    done.overdue = len(overdue)
    if overdue:
        telemetry.event("waiting_overdue", lane=lane.name, count=len(overdue))
    return done
