"""Restore letters: a failed job whose dead letter was moved without a plan, or is gone, gets another."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from shared.core import lifecycle
from shared.core.errors import UnreadableRow
from shared.core.job import Job, Status
from shared.core.lane import LaneSpec
from shared.core.message import dead_letter_of
from shared.core.ports import Clock, DeadLetterQueues, JobStore, Telemetry, WaitingEntry
from shared.usecases.deadline import Deadline
from shared.usecases.look_for_letters import LATE_S, PATIENCE_S, Letters, look_for_letters
from shared.usecases.nominees import Nominees
from shared.usecases.persist import persist
from shared.usecases.try_move import try_move

LIMIT = 500
LOOKED_THROUGH = 1_000
"""Letters of a lane that one sweep looks through; where more stand, the auditor compares them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LetterKeeper:
    """What letters are restored with."""

    jobs: JobStore
    dead_letters: DeadLetterQueues
    clock: Clock
    telemetry: Telemetry
    patience_s: float = PATIENCE_S
    """How long to wait for letters that somebody has in hand."""

    def run(self, lanes: Collection[LaneSpec], deadline: Deadline | None = None) -> Mapping[str, int]:
        """Letters sent, by lane. A job that asks for its letter gets it unless it is seen; another gets it where it is
        seen to be missing. A second letter does no harm, a missing one does. What there is no time for is told, and
        left to the auditor."""
        asking = {lane.name: self._asking(lane) for lane in lanes}
        failed = {lane.name: self._failed(lane) for lane in lanes}
        looked = look_for_letters(
            {name: (*(job.job_id for job in asking[name]), *failed[name]) for name in asking},
            dead_letters=self.dead_letters,
            clock=self.clock,
            patience_s=self.patience_s,
            most=LOOKED_THROUGH,
            deadline=deadline,
        )
        return {
            f"{name}.letters": self._answer(asking[name], letters) + self._replace(name, failed[name], letters)
            for name, letters in looked.items()
        }

    def _asking(self, lane: LaneSpec) -> Sequence[Job]:
        now = self.clock.now()
        nominees = Nominees(lambda most: self.jobs.letters_missing(lane, before=now, limit=most), LIMIT)
        found: list[Job] = []
        for entry in nominees:
            job = self._row(entry)
            if job is None:
                nominees.passed.add(entry)
            elif job.status is Status.FAILED and job.waits:
                found.append(job)
        return found

    def _failed(self, lane: LaneSpec) -> Mapping[str, WaitingEntry]:
        before = self.clock.now() - timedelta(seconds=LATE_S)
        entries = self.jobs.failed(lane, before=before, limit=LOOKED_THROUGH + 1)
        return {entry.job_id: entry for entry in entries}

    def _answer(self, asking: Sequence[Job], letters: Letters) -> int:
        """Sent first, then noted. While somebody's move task runs it may be moved again at once; then the next sweep
        sends it again. Replayed, dismissed or resolved meanwhile: triage removes a letter that nobody needs."""
        unseen = {*letters.missing, *letters.unchecked}
        sent = 0
        for job in asking:
            wanted = job.job_id in unseen
            if wanted and not self._send(job):
                continue
            noted = try_move(
                job, lifecycle.letter_sent(job), jobs=self.jobs, clock=self.clock, telemetry=self.telemetry
            )
            sent += wanted and noted
        return sent

    def _replace(self, lane: str, failed: Mapping[str, WaitingEntry], letters: Letters) -> int:
        unchecked = sum(job_id in failed for job_id in letters.unchecked)
        if unchecked:
            self.telemetry.event("letters_unchecked", lane=lane, count=unchecked)
        sent = 0
        for entry in (failed[job_id] for job_id in letters.missing if job_id in failed):
            job = self._row(entry)
            # The entry says when it failed: one that has failed again since has its next letter on the way.
            if job is not None and (job.status, job.waits, job.updated_at) == (Status.FAILED, False, entry.due):
                self.telemetry.event("dead_letter_gone", job_id=job.job_id, lane=lane)
                sent += self._send(job)
        return sent

    def _send(self, job: Job) -> bool:
        return not persist(lambda: self.dead_letters.send([dead_letter_of(job)]), self.clock)

    def _row(self, entry: WaitingEntry) -> Job | None:
        try:
            return persist(lambda: self.jobs.get(entry.job_id), self.clock)
        except UnreadableRow as exc:
            self.telemetry.error("row_unreadable", exc, job_id=entry.job_id)
            return None
