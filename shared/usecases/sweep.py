"""Sweep: what no message brings back: claims of dead runs, and dead letters that were moved without a plan."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from shared.core import lifecycle
from shared.core.batch import BatchState
from shared.core.batch_ports import BatchStore
from shared.core.errors import RowMoved, UnreadableRow
from shared.core.job import Job, Status
from shared.core.lane import LaneSpec
from shared.core.message import dead_letter_of
from shared.core.ports import Clock, DeadLetterQueues, EffectStore, JobStore, Telemetry
from shared.usecases.persist import persist
from shared.usecases.recover import recover

LIMIT = 500
OVERDUE_S = 300


@dataclass(slots=True)
class Swept:
    """What one sweep found."""

    recovered: int = 0
    overdue: int = 0
    letters: int = 0

    def counts(self, lane: str) -> dict[str, int]:
        """For the run record, by lane."""
        return {
            f"{lane}.recovered": self.recovered,
            f"{lane}.overdue": self.overdue,
            f"{lane}.letters": self.letters,
        }


def sweep(
    lane: LaneSpec,
    *,
    jobs: JobStore,
    effects: EffectStore,
    dead_letters: DeadLetterQueues,
    clock: Clock,
    telemetry: Telemetry,
    batches: BatchStore | None = None,
) -> Swept:
    """Recover stale run claims; send dead letters again that were moved without a plan; report jobs that have been due
    for minutes and still wait."""
    done = Swept()
    now = clock.now()
    stale_before = now - timedelta(seconds=lane.claim_timeout_s)
    stale = jobs.claimed_by_runs(lane, before=stale_before, limit=LIMIT)
    kept: frozenset[tuple[str, int]] = frozenset()
    if stale and batches is not None:
        try:
            kept = _in_batches(lane, batches, clock)
            # Those that are kept must not hide the dead ones behind them.
            stale = jobs.claimed_by_runs(lane, before=stale_before, limit=LIMIT + len(kept))
        except UnreadableRow as exc:
            # Perhaps the batch that nobody can read has them: nobody is sent back before an operator has looked.
            telemetry.error("batch_unreadable", exc, lane=lane.name)
            stale = []
    for entry in stale:
        job = _row(entry.job_id, jobs, clock, telemetry)
        if job is not None and lifecycle.is_stale(job, lane, now) and (job.job_id, job.fence) not in kept:
            done.recovered += (
                recover(job, lane, jobs=jobs, effects=effects, clock=clock, telemetry=telemetry) is not None
            )
    for entry in jobs.letters_missing(lane, before=now, limit=LIMIT):
        job = _row(entry.job_id, jobs, clock, telemetry)
        if job is not None and job.status is Status.FAILED and job.waits:
            done.letters += _send_letter(job, jobs, dead_letters, clock)
    if lane.run is not None:
        # Waiting for the next run is no delay.
        return done
    overdue = jobs.waiting(lane, due_before=now - timedelta(seconds=OVERDUE_S), limit=LIMIT)
    done.overdue = len(overdue)
    if overdue:
        telemetry.event("waiting_overdue", lane=lane.name, count=len(overdue))
    return done


def _in_batches(lane: LaneSpec, batches: BatchStore, clock: Clock) -> frozenset[tuple[str, int]]:
    """Claims that a batch under way was begun with: perhaps the provider has them. The next run finds out by the tag;
    sent back now they might be paid for twice."""
    return frozenset(
        (member.job_id, member.fence)
        for batch in persist(lambda: batches.under_way(lane.name), clock)
        if batch.state is not BatchState.HANDED
        for member in persist(lambda: batches.members(batch.tag), clock)  # noqa: B023
    )


def _send_letter(job: Job, jobs: JobStore, dead_letters: DeadLetterQueues, clock: Clock) -> bool:
    """Sent first, then noted: a second letter does no harm, a missing one does. While somebody's move task runs it may
    be moved again at once; then the next sweep sends it again."""
    if persist(lambda: dead_letters.send([dead_letter_of(job)]), clock):
        return False
    try:
        persist(lambda: jobs.move(job, lifecycle.letter_sent(job)), clock)
    except RowMoved:
        # Replayed, dismissed or resolved meanwhile: triage removes a letter that nobody needs.
        return False
    return True


def _row(job_id: str, jobs: JobStore, clock: Clock, telemetry: Telemetry) -> Job | None:
    try:
        return persist(lambda: jobs.get(job_id), clock)
    except UnreadableRow as exc:
        telemetry.error("row_unreadable", exc, job_id=job_id)
        return None
