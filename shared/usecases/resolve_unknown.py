"""Resolve an unknown outcome: two people say, with evidence, whether the vendor has what was begun.

*Accepted* is a record: the effect stands, and the job is completed by evidence. *Not sent* is a record, too: the effect
is written down as refused, which is the one state in which it may be begun again, by an approved plan. Both are the
engine's own conditional write, on the fence of the intent and on there being no result: evidence that comes late, from
a worker or from another operator, finds the result there and changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta

from shared.core import lifecycle
from shared.core.effects import BY_OPERATOR, EffectRow, EffectState
from shared.core.errors import BadInput, EffectMoved, ResolutionMoved, RowMoved, UnknownLane
from shared.core.job import Job, Status, identifier
from shared.core.lane import LaneSpec
from shared.core.moment import iso
from shared.core.people import People
from shared.core.plan import VALID_FOR, Finding, Resolution
from shared.core.plan_ports import ResolutionStore
from shared.core.ports import Clock, EffectStore, History, JobStore
from shared.usecases.persist import persist
from shared.usecases.steer import note

MAX_EVIDENCE = 128
RESULT = "resolved"


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolver:
    """What a resolution needs."""

    jobs: JobStore
    effects: EffectStore
    resolutions: ResolutionStore
    history: History
    lanes: Mapping[str, LaneSpec]
    people: People
    clock: Clock

    def request(
        self,
        job_id: str,
        finding: Finding,
        evidence: str,
        *,
        by: str,
        more_to_do: bool = False,
        effect: str | None = None,
    ) -> Resolution:
        """Write down what was found out; nothing is changed before somebody else confirms it."""
        job, rows = self._parked(job_id)
        asked = self._resolution(job, rows, finding, evidence, by, more_to_do, effect)
        standing = persist(lambda: self.resolutions.request(asked), self.clock)
        if standing is not None:
            raise BadInput(
                "job", f"{job_id} was resolved as {standing.finding} and confirmed by {standing.confirmer} before"
            )
        self._tell(asked, "resolution_requested", by)
        return asked

    def confirm(
        self,
        job_id: str,
        finding: Finding,
        evidence: str,
        *,
        by: str,
        more_to_do: bool = False,
        effect: str | None = None,
    ) -> tuple[Resolution, Job]:
        """Agree to exactly what was requested, and record it. Given again after a crash, it goes on where it ended."""
        job = self._job(job_id)
        wanted = persist(lambda: self.resolutions.get(job_id, job.fence, effect), self.clock)
        if wanted is not None and wanted.confirmer == by:
            if (wanted.finding, wanted.evidence, wanted.more_to_do) != (finding, evidence, more_to_do):
                raise _another(wanted)
        else:
            job, rows = self._parked(job_id)
            said = self._resolution(job, rows, finding, evidence, by, more_to_do, effect)
            wanted = self._confirmed(said, wanted, by, alone=self._lane(job).one_person_redrive >= 1)
            self._tell(wanted, "resolution_confirmed", by)
        self._record(wanted)
        return wanted, self._complete(job, wanted)

    def _resolution(
        self,
        job: Job,
        rows: list[EffectRow],
        finding: Finding,
        evidence: str,
        by: str,
        more_to_do: bool,
        effect: str | None,
    ) -> Resolution:
        if more_to_do and finding is not Finding.ACCEPTED:
            raise BadInput("more_to_do", "is for what was accepted: what was not sent is replayed by a plan anyway")
        now = self.clock.now()
        return Resolution(
            job_id=job.job_id,
            fence=job.fence,
            finding=finding,
            evidence=identifier("evidence", evidence, MAX_EVIDENCE),
            effects=_meant(job, rows, effect),
            requester=by,
            requested_at=now,
            valid_until=now + VALID_FOR,
            more_to_do=more_to_do,
            only=effect,
        )

    def _parked(self, job_id: str) -> tuple[Job, list[EffectRow]]:
        """A failed job with its open effects, old enough that no worker can still be at them."""
        job = self._job(job_id)
        if job.status is not Status.FAILED:
            raise BadInput("job", f"{job_id} is {job.status}; only a failed job can be resolved")
        rows = [row for row in persist(lambda: self.effects.of_job(job_id), self.clock) if row.open]
        if not rows:
            raise BadInput("job", f"{job_id} has no open effect: its outcome is known; see `penstock dlq show`")
        # A worker that began to send may still be sending: it is dead for certain after one visibility time-out,
        # which is six times what its function may take.
        certain = max(row.intent_at for row in rows) + timedelta(seconds=self._lane(job).visibility_s)
        if self.clock.now() < certain:
            raise BadInput("job", f"{job_id}: its worker may still be sending; look at the vendor after {iso(certain)}")
        return job, rows

    def _confirmed(self, said: Resolution, asked: Resolution | None, by: str, *, alone: bool) -> Resolution:
        """The request as it was read, with the yes of somebody else."""
        current = asked
        if asked is not None:
            if not alone:
                self.people.check_second("job", said.job_id, asked=asked.requester, agrees=by, verb="confirm")
            said = replace(said, requester=asked.requester)
            try:
                return persist(
                    lambda: self.resolutions.confirm(said, by=by, now=self.clock.now(), alone=alone), self.clock
                )
            except ResolutionMoved as moved:
                current = moved.current
        if current is None:
            raise BadInput("job", f"{said.job_id}: nobody has asked for a resolution; ask without --confirm first")
        if current.hash != said.hash:
            raise _another(current)
        if current.confirmer is not None:
            raise BadInput("job", f"{said.job_id} was confirmed by {current.confirmer} before")
        if current.valid_until <= self.clock.now():
            raise BadInput("job", f"{said.job_id}: the request expired at {iso(current.valid_until)}; request it again")
        raise BadInput("job", f"{said.job_id} was requested by {current.requester} meanwhile; look at it again")

    def _record(self, wanted: Resolution) -> None:
        now, accepted = self.clock.now(), wanted.finding is Finding.ACCEPTED
        state = EffectState.ACCEPTED if accepted else EffectState.REFUSED
        for row in persist(lambda: self.effects.of_job(wanted.job_id), self.clock):
            if row.name not in wanted.effects or row.state is state:
                continue
            if row.fence > wanted.fence:
                raise BadInput(
                    "job", f"{wanted.job_id}: effect {row.name} was begun again after that was requested; look again"
                )
            result = replace(
                row,
                state=state,
                recorded_at=now,
                vendor_id=wanted.evidence if accepted else None,
                reason=f"{BY_OPERATOR}{wanted.finding}:{wanted.evidence}",
            )
            try:
                persist(lambda row=row, result=result: self.effects.record(row, result), self.clock)  # type: ignore[misc]
            except EffectMoved as moved:
                stands = "gone" if moved.current is None else moved.current.state
                raise BadInput("job", f"{wanted.job_id}: effect {row.name} is {stands} by now; look again") from None

    def _complete(self, job: Job, wanted: Resolution) -> Job:
        """Every effect accepted and nothing more to do: completed by evidence. Else it stays failed, for a plan."""
        if wanted.finding is not Finding.ACCEPTED or wanted.more_to_do or job.status is Status.COMPLETED:
            return job
        rows = persist(lambda: self.effects.of_job(job.job_id), self.clock)
        if any(row.state is not EffectState.ACCEPTED for row in rows):
            return job
        after = lifecycle.completed_by_evidence(job, self._lane(job), self.clock.now(), RESULT, None)
        try:
            persist(lambda: self.jobs.move(job, after), self.clock)
        except RowMoved:
            raise BadInput("job", f"{job.job_id} changed meanwhile; look at it again") from None
        return after

    def _job(self, job_id: str) -> Job:
        job = persist(lambda: self.jobs.get(job_id), self.clock)
        if job is None:
            raise BadInput("job", f"{job_id} does not exist in this stage")
        return job

    def _lane(self, job: Job) -> LaneSpec:
        lane = self.lanes.get(job.lane)
        if lane is None:
            raise UnknownLane(job.lane, tuple(sorted(self.lanes)))
        return lane

    def _tell(self, resolution: Resolution, kind: str, by: str) -> None:
        detail = {
            "finding": resolution.finding.value,
            "evidence": resolution.evidence,
            "effects": list(resolution.effects),
            "hash": resolution.hash,
        }
        note(f"job/{resolution.job_id}", kind, by, detail, self.history, self.clock)


def _another(standing: Resolution) -> BadInput:
    return BadInput(
        "job",
        f"{standing.job_id}: what was requested is {standing.finding} with evidence {standing.evidence}; confirm"
        " exactly that, or request another resolution",
    )


def _meant(job: Job, rows: list[EffectRow], effect: str | None) -> tuple[str, ...]:
    """Which effects a finding is about. Of several that are open the vendor may have one and not the other."""
    names = tuple(row.name for row in rows)
    if effect is not None and effect not in names:
        raise BadInput("effect", f"{effect[:64]} of {job.job_id} is not open; what is: {', '.join(names)}")
    if effect is None and len(names) > 1:
        raise BadInput(
            "effect", f"is missing: {job.job_id} has {', '.join(names)} open; look each up and resolve it by its name"
        )
    return names if effect is None else (effect,)
