"""Audit: every job in exactly one state, every queued job on its way, every failed job with its dead letter.

The only finder of a lost message or stream record; its period is the bound on how long such a job stands.
Repairs only under a second look, and only by doing again what is harmless twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from shared.contract import metrics
from shared.core import lifecycle, liveness
from shared.core.batch_ports import BatchStore
from shared.core.errors import UnreadableRow
from shared.core.job import CANARY, Job, Status
from shared.core.lane import LaneSpec
from shared.core.message import dead_letter_of, message_of
from shared.core.ports import Clock, DeadLetterQueues, EffectStore, JobStore, LaneQueues, Telemetry
from shared.usecases.look_for_letters import LATE_S, PATIENCE_S, look_for_letters
from shared.usecases.persist import persist
from shared.usecases.recover import recover
from shared.usecases.try_move import try_move

UNTOUCHED_S = 3600


class Fault(StrEnum):
    """What an audit can find, each with its repair."""

    NO_MESSAGE = "queued, due, in no index and untouched for an hour"
    NOT_IN_LINE = "queued and due, in no line that its lane looks at, and untouched for an hour"
    NO_BATCH = "handed to a provider's batch that is not under way"
    DEAD_CLAIM = "claimed by a worker that died, and no message came to rescue it"
    NO_DEAD_LETTER = "failed without its dead letter"
    UNREADABLE = "a row this version cannot read"
    UNKNOWN_LANE = "of a lane that is not configured"

    @property
    def repair(self) -> str:
        """What `--repair` does about it."""
        return {
            Fault.NO_MESSAGE: "its message is sent again",
            Fault.NOT_IN_LINE: "it is put in line",
            Fault.NO_BATCH: "it waits to be submitted again, one attempt used",
            Fault.DEAD_CLAIM: "it goes back to the queue, one attempt used",
            Fault.NO_DEAD_LETTER: "its dead letter is sent again",
            Fault.UNREADABLE: "left alone: read it with the version that wrote it",
            Fault.UNKNOWN_LANE: "left alone: configure the lane or cancel the job",
        }[self]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One job that is not as it should be."""

    job_id: str
    lane: str
    fault: Fault
    repaired: bool = False


@dataclass(slots=True)
class AuditReport:
    """Counts that must add up, and what does not."""

    jobs: int = 0
    by_status: Counter[str] = field(default_factory=Counter)
    by_lane: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)
    unchecked: Counter[str] = field(default_factory=Counter)
    """By lane, failed jobs of which nobody can tell now whether their dead letter stands."""
    listed: int = 0
    """Failed jobs that had no place among the failed jobs of their lane, as older versions wrote them, and have one
    now. That is no finding: nothing about them was lost."""

    @property
    def checked(self) -> bool:
        """Nothing had to be left open."""
        return not self.unchecked

    @property
    def conserved(self) -> bool:
        """Every job has exactly one state, none is stranded, and all of it was checked."""
        return self.checked and not self.findings and sum(self.by_status.values()) == self.jobs

    def counts(self) -> dict[str, int]:
        """For the run record."""
        return {
            "jobs": self.jobs,
            "findings": len(self.findings),
            "repaired": sum(finding.repaired for finding in self.findings),
            "unchecked": self.unchecked.total(),
            "listed": self.listed,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Auditor:
    """What an audit works with."""

    lanes: Mapping[str, LaneSpec]
    jobs: JobStore
    effects: EffectStore
    queues: LaneQueues
    dead_letters: DeadLetterQueues
    clock: Clock
    telemetry: Telemetry
    batches: BatchStore | None = None
    """For lanes with runs."""
    patience_s: float = PATIENCE_S
    """How long to wait for letters that somebody has in hand."""

    def run(self, *, repair: bool, segments: int = 1, untouched_s: int = UNTOUCHED_S) -> AuditReport:
        """Scan every segment; with `repair`, look a second time and mend."""
        report = AuditReport()
        failed: list[Job] = []
        submitted: list[Job] = []
        for segment in range(segments):
            for row in self.jobs.scan(segment=segment, segments=segments):
                report.jobs += 1
                if isinstance(row, UnreadableRow):
                    report.by_status["unreadable"] += 1
                    report.findings.append(Finding(job_id=row.key, lane="?", fault=Fault.UNREADABLE))
                    continue
                report.by_status[row.status] += 1
                report.by_lane[row.lane] += 1
                if row.status is Status.FAILED:
                    failed.append(row)
                    if repair and row.place_as_read is not None:
                        report.listed += self._list(row)
                elif row.status is Status.BATCH_SUBMITTED:
                    submitted.append(row)
                fault = self.fault_of(row, self.clock.now(), untouched_s)
                if fault is not None:
                    self._note(row, fault, report, repair, untouched_s)
        self._dead_letters_of(failed, report, repair)
        self._batches_of(submitted, report, repair)
        for finding in report.findings:
            self.telemetry.event(
                "audit_finding", job_id=finding.job_id, fault=finding.fault.name, repaired=finding.repaired
            )
        self.telemetry.count(metrics.REPAIRED, sum(finding.repaired for finding in report.findings))
        return report

    def fault_of(self, job: Job, now: datetime, untouched_s: int) -> Fault | None:
        """What is wrong with one row, by itself."""
        lane = self.lanes.get(job.lane)
        if lane is None:
            return None if job.status.ended else Fault.UNKNOWN_LANE
        untouched = now - job.updated_at >= timedelta(seconds=untouched_s)
        if job.status is Status.QUEUED and not job.waits and untouched and lifecycle.is_due(job, now):
            return Fault.NO_MESSAGE if lane.run is None else Fault.NOT_IN_LINE
        if job.status is Status.QUEUED and lane.run is None and job.task not in lane.tasks and untouched:
            # Perhaps in the line of a task that the lane no longer has; where nobody knows it, it fails for that.
            return Fault.NOT_IN_LINE if lifecycle.is_due(job, now) and job.task != CANARY else None
        if job.status is Status.PROCESSING and lane.run is None and liveness.is_stale(job, lane, now):
            # The claims of runs stand in the index, where the sweeper finds them; it knows which of them a batch has.
            # A message still under its visibility time-out will rescue it; wait for two of them.
            rescue_s = lane.claim_timeout_s + 2 * lane.visibility_s
            if now - liveness.claimed_since(job) >= timedelta(seconds=rescue_s):
                return Fault.DEAD_CLAIM
        return None

    def _note(self, job: Job, fault: Fault, report: AuditReport, repair: bool, untouched_s: int) -> None:
        repaired = repair and self._mend(job, fault, untouched_s)
        report.findings.append(Finding(job_id=job.job_id, lane=job.lane, fault=fault, repaired=repaired))

    def _mend(self, seen: Job, fault: Fault, untouched_s: int) -> bool:
        """Under a second look: the scan may be minutes old."""
        if fault is Fault.UNKNOWN_LANE:
            return False
        job = self._again(seen)
        if job is None or self.fault_of(job, self.clock.now(), untouched_s) is not fault:
            return False
        if fault is Fault.NO_MESSAGE:
            return not persist(lambda: self.queues.send([message_of(job)]), self.clock)
        lane = self.lanes[job.lane]
        if fault is Fault.NOT_IN_LINE:
            return self._moved(job, lifecycle.held(job, "run" if lane.run else "line", self.clock.now()))
        back = recover(job, lane, jobs=self.jobs, effects=self.effects, clock=self.clock, telemetry=self.telemetry)
        return back is not None

    def _list(self, seen: Job) -> bool:
        job = self._again(seen)
        if job is None or job.status is not Status.FAILED or job.place_as_read is None:
            return False
        return self._moved(job, lifecycle.listed(job))

    def _batches_of(self, submitted: list[Job], report: AuditReport, repair: bool) -> None:
        """Who is in no batch under way will never be collected. The batches are read after the rows, and each row once
        more after them: a job says that it was handed over only after its batch can be found, and leaves it first."""
        for name, lane in self.lanes.items():
            mine = [job for job in submitted if job.lane == name]
            batches = self.batches
            if not mine or batches is None:
                continue
            kept = {
                (member.job_id, member.fence)
                for batch in persist(lambda: batches.under_way(name), self.clock)  # noqa: B023
                for member in persist(lambda: batches.members(batch.tag), self.clock)  # noqa: B023
            }
            for seen in mine:
                if (seen.job_id, seen.fence) in kept:
                    continue
                job = self._again(seen)
                if job is None or job.status is not Status.BATCH_SUBMITTED or job.fence != seen.fence:
                    continue
                after = lifecycle.sent_back(job, "batch_lost", lane, self.clock.now())
                repaired = repair and self._moved(job, after)
                report.findings.append(Finding(job_id=job.job_id, lane=name, fault=Fault.NO_BATCH, repaired=repaired))

    def _again(self, seen: Job) -> Job | None:
        """The row as it stands now; None when it is gone, or was written by another version since."""
        try:
            return persist(lambda: self.jobs.get(seen.job_id), self.clock)
        except UnreadableRow:
            return None

    def _moved(self, before: Job, after: Job) -> bool:
        return try_move(before, after, jobs=self.jobs, clock=self.clock, telemetry=self.telemetry)

    def _dead_letters_of(self, failed: list[Job], report: AuditReport, repair: bool) -> None:
        settled = self.clock.now() - timedelta(seconds=LATE_S)
        # One that asks the sweeper for its letter by itself is not looked for.
        known = {job.job_id: job for job in failed if not job.waits and job.updated_at <= settled}
        looked = look_for_letters(
            {name: [job_id for job_id, job in known.items() if job.lane == name] for name in self.lanes},
            dead_letters=self.dead_letters,
            clock=self.clock,
            patience_s=self.patience_s,
        )
        for name, letters in looked.items():
            if letters.unchecked:
                report.unchecked[name] += len(letters.unchecked)
                self.telemetry.event("letters_unchecked", lane=name, count=len(letters.unchecked))
            for seen in (known[job_id] for job_id in letters.missing):
                job = self._again(seen)
                if job is None or (job.status, job.fence, job.waits) != (Status.FAILED, seen.fence, False):
                    continue
                letter = dead_letter_of(job)
                sent = repair and not persist(lambda letter=letter: self.dead_letters.send([letter]), self.clock)  # type: ignore[misc]
                report.findings.append(
                    Finding(job_id=job.job_id, lane=name, fault=Fault.NO_DEAD_LETTER, repaired=bool(sent))
                )
