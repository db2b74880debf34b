"""The one heart: may this job run now, and if not, what holds it and until when?

Admission only looks; the worker takes. The stream consumer, the dispatcher, `penstock jobs why` and the
simulator all call `admit`: there is no second opinion. A new gate is one object in `GATES`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from shared.core.job import Job
from shared.core.lane import LaneSpec
from shared.core.lifecycle import is_due
from shared.core.switches import Switches


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """How much the lane's queue holds and may hold."""

    depth: int
    limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """All that admission may look at, read beforehand."""

    lane: LaneSpec
    switches: Switches
    capacity: Capacity


@dataclass(frozen=True, slots=True, kw_only=True)
class GateAnswer:
    """One gate's answer. `key` says which switch, time or limit; `unblock` what would open it."""

    gate: str
    open: bool
    key: str = ""
    retry_at: datetime | None = None
    unblock: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Every gate's answer, in order; the first closed one is what blocks."""

    gates: tuple[GateAnswer, ...]

    @property
    def blocked(self) -> GateAnswer | None:
        """The first closed gate, or None when the job may run now."""
        return next((answer for answer in self.gates if not answer.open), None)

    @property
    def runs(self) -> bool:
        """True when every gate is open."""
        return self.blocked is None

    @property
    def reason(self) -> str | None:
        """What is kept on the job: the gate and its key."""
        blocked = self.blocked
        return None if blocked is None else f"{blocked.gate}:{blocked.key}"


class Gate(Protocol):
    """One reason to wait."""

    name: str

    def look(self, job: Job, view: View, now: datetime) -> GateAnswer:
        """Open or closed for this job, now."""
        ...


class SwitchGate:
    """Closed from `no_new_starts` upwards on any scope the job is in."""

    name = "switches"

    def look(self, job: Job, view: View, now: datetime) -> GateAnswer:
        standing = view.switches.for_job(job, view.lane.vendors)
        if not standing.closes_admission:
            return GateAnswer(gate=self.name, open=True, key=standing.scope)
        return GateAnswer(
            gate=self.name,
            open=False,
            key=standing.scope,
            unblock=f"penstock control set {standing.scope} normal --why …",
        )


class ScheduleGate:
    """Closed until the job's own time."""

    name = "schedule"

    def look(self, job: Job, view: View, now: datetime) -> GateAnswer:
        if is_due(job, now):
            return GateAnswer(gate=self.name, open=True)
        at = job.runnable_at
        return GateAnswer(
            gate=self.name,
            open=False,
            key=job.blocked_by or "not_before_at",
            retry_at=at,
            unblock=f"time; or penstock jobs schedule {job.job_id} --now --why …",
        )


class CapacityGate:
    """Closed while the queue already holds a window's worth of work at the present cap."""

    name = "capacity"

    def look(self, job: Job, view: View, now: datetime) -> GateAnswer:
        capacity = view.capacity
        if capacity.depth < capacity.limit:
            return GateAnswer(gate=self.name, open=True, key=job.lane)
        return GateAnswer(
            gate=self.name,
            open=False,
            key=job.lane,
            unblock=f"the queue holds {capacity.depth} of {capacity.limit}; it opens as workers take from it",
        )


GATES: tuple[Gate, ...] = (SwitchGate(), ScheduleGate(), CapacityGate())


def admit(job: Job, view: View, now: datetime, gates: tuple[Gate, ...] = GATES) -> Verdict:
    """Ask every gate, in order. Pure: the same job, view and time give the same verdict."""
    return Verdict(gates=tuple(gate.look(job, view, now) for gate in gates))
