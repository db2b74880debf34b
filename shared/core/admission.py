"""The one heart: may this job run now, and if not, what holds it and until when?

Admission only looks; the worker takes. The stream consumer, the dispatcher, `penstock jobs why` and the
simulator all call `admit`: there is no second opinion. A new gate is one object in `GATES`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Protocol

from shared.core import rate
from shared.core.account import AccountSpec, Limit
from shared.core.job import Job
from shared.core.lane import LaneSpec
from shared.core.lifecycle import is_due
from shared.core.moment import iso
from shared.core.switches import Switches


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """How much the lane's queue holds and may hold."""

    depth: int
    limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountView:
    """A vendor account as it was last seen, and the line of starts that are promised there."""

    spec: AccountSpec
    budget: rate.Budget
    line_us: int = 0
    """Up to here starts are promised, by others or by whoever asks."""
    urgent_us: int = 0
    """The same for the most urgent jobs, who have half of the pace to themselves and stand behind one another only."""
    readable: bool = True
    """False: it could not be read, and nobody knows what it has left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """All that admission may look at, read beforehand."""

    lane: LaneSpec
    switches: Switches
    capacity: Capacity
    accounts: tuple[AccountView, ...] = ()
    """The accounts that its tasks spend, or the one task that it was built for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GateAnswer:
    """One gate's answer. `key` says which switch, time or limit; `unblock` what would open it."""

    gate: str
    open: bool
    key: str = ""
    retry_at: datetime | None = None
    unblock: str = ""
    stuck: bool = False
    """`retry_at` is the next look, not a promise that it opens."""


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

    def starts_at(self, at: datetime, ahead_s: float) -> datetime | None:
        """When the job starts, asked at `at`: then, or at its turn if only its turn is missing and it comes within
        `ahead_s`; None when it has to wait. The turn at a shut account is that of its next probe."""
        closed = [answer for answer in self.gates if not answer.open]
        if not closed:
            return at
        turn = closed[0].retry_at
        paced = len(closed) == 1 and closed[0].gate == BudgetGate.name
        return turn if paced and turn is not None and turn <= at + timedelta(seconds=ahead_s) else None

    def closed(self, gate: str) -> bool:
        """True when that gate is closed, whatever blocks first."""
        return any(answer.gate == gate and not answer.open for answer in self.gates)

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
        standing = view.switches.for_job(job, view.lane.vendors_of(job.task))
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


URGENT = 0
PROMISE_KEPT_S = 60
"""A promised turn is good for this long; later the job stands in line like everybody."""


class BudgetGate:
    """Closed while an account of the lane is shut, quiet or spent, or starts are promised to others first."""

    name = "budget"

    def look(self, job: Job, view: View, now: datetime) -> GateAnswer:
        answers = [self._ask(job, account, now) for account in view.accounts]
        closed = [answer for answer in answers if not answer.open]
        if not closed:
            return GateAnswer(gate=self.name, open=True, key=",".join(account.spec.name for account in view.accounts))
        times = [answer.retry_at for answer in closed if answer.retry_at is not None]
        worst = max(closed, key=lambda answer: (answer.stuck, answer.retry_at is None, answer.retry_at or now))
        # All of them have to be open: the last one's time, unknown if one's is.
        return replace(worst, retry_at=max(times) if len(times) == len(closed) else None)

    def _ask(self, job: Job, account: AccountView, now: datetime) -> GateAnswer:
        spec, budget, now_us = account.spec, account.budget, rate.us_of(now)
        if not rate.enforced(spec, budget.terms):
            return GateAnswer(gate=self.name, open=True, key=spec.name)
        if not account.readable:
            repair = f"penstock budget set {spec.name} --reset --why …"
            return self._closed(spec, None, f"account {spec.name} cannot be read; if that stays: {repair}", stuck=True)
        # Its first call has to find a place among those that run at once.
        refusal = rate.refused(spec, budget, replace(rate.want_of(job, budget), slots=1), now_us)
        shut = budget.terms.shut
        promised = job.permit_at is not None and now - job.permit_at <= timedelta(seconds=PROMISE_KEPT_S)
        line_us = 0 if promised else account.urgent_us if job.priority == URGENT else account.line_us
        if shut is not None and refusal is not None:
            if refusal.probe:
                return GateAnswer(gate=self.name, open=True, key=spec.name)
            retry_at = rate.at_us(refusal.retry_us)
            sentence = f"account {spec.name} is shut ({shut.reason}); the next probe may open it"
            return self._closed(spec, retry_at, sentence, stuck=True)
        turn_us = max(line_us, refusal.retry_us if refusal is not None else 0)
        if turn_us <= now_us:
            return GateAnswer(gate=self.name, open=True, key=spec.name)
        why = [] if refusal is None else [_missing(refusal)]
        if line_us > (0 if refusal is None else refusal.retry_us):
            why.append("others are promised first")
        sentence = f"account {spec.name}: {', and '.join(why)}; its turn is at {iso(rate.at_us(turn_us))}"
        return self._closed(spec, rate.at_us(turn_us), sentence)

    def _closed(self, spec: AccountSpec, at: datetime | None, sentence: str, *, stuck: bool = False) -> GateAnswer:
        return GateAnswer(gate=self.name, open=False, key=spec.name, retry_at=at, unblock=sentence, stuck=stuck)


def _missing(refusal: rate.Refusal) -> str:
    """What an account lacks for a job, by the kind of its limit."""
    few = f"{refusal.deficit:,}"
    match refusal.limit:
        case "quiet":
            return "it is quiet after a 429 of the vendor"
        case Limit.REQUESTS | Limit.TOKENS:
            return f"{few} {refusal.limit} missing"
        case Limit.REQUESTS_PER_DAY | Limit.TOKENS_PER_DAY:
            return (
                f"{few} {refusal.limit.removesuffix('_per_day')} over the limit of the day, which ends at midnight UTC"
            )
        case Limit.CONCURRENCY:
            return f"{few} more calls at once than it allows"
        case _:
            return f"{few} {refusal.limit.replace('_', ' ')} missing"


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


GATES: tuple[Gate, ...] = (SwitchGate(), ScheduleGate(), BudgetGate(), CapacityGate())


def admit(job: Job, view: View, now: datetime, gates: tuple[Gate, ...] = GATES) -> Verdict:
    """Ask every gate, in order. Pure: the same job, view and time give the same verdict."""
    return Verdict(gates=tuple(gate.look(job, view, now) for gate in gates))
