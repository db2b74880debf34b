"""Triage: look at what stands in a dead-letter queue, say what it is, and delete only what is settled elsewhere."""

from __future__ import annotations

from dataclasses import dataclass

from shared.contract import envelope
from shared.core import lifecycle, liveness
from shared.core.errors import UnreadableRow
from shared.core.job import Category, Job, Status
from shared.core.lane import LaneSpec
from shared.core.message import DeadMessage
from shared.core.ports import Clock, ContentStore, DeadLetterQueues, EffectStore, JobStore, Telemetry
from shared.usecases.persist import persist
from shared.usecases.quarantine import quarantine
from shared.usecases.recover import recover
from shared.usecases.try_move import try_move

HIDE_S = 45
LIMIT = 100


@dataclass(slots=True)
class Triaged:
    """What one look found."""

    depth: int = 0
    looked_at: int = 0
    infrastructure: int = 0
    quarantined: int = 0
    removed: int = 0
    kept: int = 0

    def counts(self, lane: str) -> dict[str, int]:
        """For the run record, by lane."""
        return {
            f"{lane}.depth": self.depth,
            f"{lane}.looked_at": self.looked_at,
            f"{lane}.infrastructure": self.infrastructure,
            f"{lane}.quarantined": self.quarantined,
            f"{lane}.removed": self.removed,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Triage:
    """What triage works with."""

    jobs: JobStore
    effects: EffectStore
    content: ContentStore
    dead_letters: DeadLetterQueues
    clock: Clock
    telemetry: Telemetry

    def run(self, lane: LaneSpec, *, last_depth: int | None = None, limit: int = LIMIT) -> Triaged:
        """Bounded, and only when the depth changed; state first, then delete."""
        done = Triaged(depth=self.dead_letters.depth(lane.name).total)
        if done.depth == 0 or done.depth == last_depth:
            return done
        for message in self.dead_letters.receive(lane.name, limit=limit, hide_s=HIDE_S):
            done.looked_at += 1
            if self._settled_elsewhere(message, lane, done):
                self.dead_letters.delete(lane.name, message.receipt)
                done.removed += 1
            else:
                done.kept += 1
        return done

    def _settled_elsewhere(self, message: DeadMessage, lane: LaneSpec, done: Triaged) -> bool:
        """True when the message is no longer needed: what it stands for is written down."""
        if message.job_id is None:
            return self._quarantine(message, "envelope_unreadable", lane, done)
        try:
            job = persist(lambda: self.jobs.get(message.job_id or ""), self.clock)
        except UnreadableRow as exc:
            # Left alone: a newer version may know this row.
            self.telemetry.error("row_unreadable", exc, job_id=message.job_id)
            return False
        if job is None:
            return self._quarantine(message, "job_missing", lane, done)
        if job.status is Status.QUEUED:
            return job.waits or self._queued(job, message, lane, done)
        if job.status is Status.PROCESSING:
            return self._claimed(job, lane)
        return job.status is not Status.FAILED

    def _queued(self, job: Job, message: DeadMessage, lane: LaneSpec, done: Triaged) -> bool:
        """A ticket here has died. A dead letter is that of a job which a plan let go: the ticket of a native redrive,
        and of no use otherwise."""
        if envelope.is_dead_letter(message.body):
            return job.route is None
        return self._died_unclaimed(job, lane, done)

    def _died_unclaimed(self, job: Job, lane: LaneSpec, done: Triaged) -> bool:
        """Ten receives and no claim: the platform failed, not the job. Its own dead letter follows by the stream."""
        unknown = any(row.open for row in persist(lambda: self.effects.of_job(job.job_id), self.clock))
        category = Category.OUTCOME_UNKNOWN if unknown else Category.INFRASTRUCTURE
        after = lifecycle.failed_unclaimed(job, lane, self.clock.now(), category, "receives_without_claim")
        if not try_move(job, after, jobs=self.jobs, clock=self.clock, telemetry=self.telemetry):
            return False
        done.infrastructure += 1
        self.telemetry.event("dead_letter_labelled", job_id=job.job_id, lane=lane.name, category=after.category)
        return True

    def _claimed(self, job: Job, lane: LaneSpec) -> bool:
        if not liveness.is_stale(job, lane, self.clock.now()):
            return False
        back = recover(job, lane, jobs=self.jobs, effects=self.effects, clock=self.clock, telemetry=self.telemetry)
        return back is not None

    def _quarantine(self, message: DeadMessage, problem: str, lane: LaneSpec, done: Triaged) -> bool:
        quarantine(
            message.body,
            problem,
            lane=lane,
            jobs=self.jobs,
            content=self.content,
            clock=self.clock,
            telemetry=self.telemetry,
        )
        done.quarantined += 1
        return True
