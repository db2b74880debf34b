"""Sweep: what no message brings back: claims of dead runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from shared.core import liveness
from shared.core.batch import BatchState
from shared.core.batch_ports import BatchStore
from shared.core.errors import UnreadableRow
from shared.core.job import Job
from shared.core.lane import LaneSpec
from shared.core.ports import Clock, EffectStore, JobStore, Telemetry, WaitingEntry
from shared.usecases.nominees import Nominees
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


def sweep(
    lane: LaneSpec,
    *,
    jobs: JobStore,
    effects: EffectStore,
    clock: Clock,
    telemetry: Telemetry,
    batches: BatchStore | None = None,
) -> Swept:
    """Recover stale run claims; report jobs that have been due for minutes and still wait."""
    done = Swept()
    now = clock.now()
    for dead in _dead_claims(lane, now, jobs, batches, clock, telemetry):
        if recover(dead, lane, jobs=jobs, effects=effects, clock=clock, telemetry=telemetry):
            done.recovered += 1
    if lane.run is not None:
        # Waiting for the next run is no delay.
        return done
    overdue = jobs.waiting(lane, due_before=now - timedelta(seconds=OVERDUE_S), limit=LIMIT)
    done.overdue = len(overdue)
    if overdue:
        telemetry.event("waiting_overdue", lane=lane.name, count=len(overdue))
    return done


def _dead_claims(
    lane: LaneSpec, now: datetime, jobs: JobStore, batches: BatchStore | None, clock: Clock, telemetry: Telemetry
) -> Iterator[Job]:
    """Claims of runs that are over, as far as no batch has them. Who is not dead does not hide the dead ones behind."""
    before = now - timedelta(seconds=lane.claim_timeout_s)
    claims = Nominees(lambda most: jobs.claimed_by_runs(lane, before=before, limit=most), LIMIT)
    kept = _in_batches(lane, batches, clock, telemetry) if claims.window and batches is not None else frozenset()
    if kept is None:
        return
    for entry in claims:
        job = _row(entry, claims, jobs, clock, telemetry)
        if job is not None and liveness.is_stale(job, lane, now) and (job.job_id, job.fence) not in kept:
            yield job
        else:
            claims.passed.add(entry)


def _in_batches(
    lane: LaneSpec, batches: BatchStore, clock: Clock, telemetry: Telemetry
) -> frozenset[tuple[str, int]] | None:
    """Claims that a batch under way was begun with: perhaps the provider has them. The next run finds out by the tag;
    sent back now they might be paid for twice. None when a batch cannot be read: perhaps that one has them, and nobody
    is sent back before an operator has looked."""
    try:
        return frozenset(
            (member.job_id, member.fence)
            for batch in persist(lambda: batches.under_way(lane.name), clock)
            if batch.state is not BatchState.HANDED
            for member in persist(lambda: batches.members(batch.tag), clock)  # noqa: B023
        )
    except UnreadableRow as exc:
        telemetry.error("batch_unreadable", exc, lane=lane.name)
        return None


def _row(entry: WaitingEntry, nominees: Nominees, jobs: JobStore, clock: Clock, telemetry: Telemetry) -> Job | None:
    try:
        return persist(lambda: jobs.get(entry.job_id), clock)
    except UnreadableRow as exc:
        telemetry.error("row_unreadable", exc, job_id=entry.job_id)
        nominees.passed.add(entry)
        return None
