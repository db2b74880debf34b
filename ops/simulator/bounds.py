"""How close a backlog comes to what a slow or strict vendor allows: one family of vendors a row, ten drawn members of
it each, with limits in headers and without.

All jobs are there at the start, and the time runs until the last call is accepted: cold starts, the first answers and
what is learnt from the first refusals count. The ideal knows every cut beforehand, sends each call at the first moment
at which it is accepted, and is refused none.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from ops.simulator.engine import Engine
from ops.simulator.families import ABOUT_HEADERS, CALLS, FAMILIES, Member, member
from ops.simulator.hub import Hub
from ops.simulator.rules import Window
from ops.simulator.strict import StrictVendor
from shared.core.effects import Call
from shared.core.job import Job
from shared.core.outcome import Done, Outcome
from shared.core.sensitive import Sensitive
from shared.usecases.context import Context

PATIENCE = 4.0
"""So many times the ideal a row may take before it is stopped."""
SEEDS = range(11, 21)
"""Who works on the law looks at seeds 1 to 10, and is judged by these."""
TOLD, UNTOLD = "headers", "no headers"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """How one member of a family went."""

    way: str
    seed: int
    family: str
    told: bool
    calls: int
    accepted: int
    refused: int
    ideal_s: float
    fluid_s: float
    windowed: bool
    """Its vendor counts calendar or sliding minutes: no even flow could be had from it after a cut."""
    seconds: float
    """When the last call was accepted, or when all was stopped."""
    failed: int
    budget_writes: int
    slept_s: float
    """How long jobs slept in their slots, all together."""
    held_s: float
    """How long jobs had a slot."""
    slots: int
    """So many jobs the lane may run at once."""
    called_in_quiet: int

    @property
    def drained(self) -> bool:
        """True when every job was done."""
        return self.accepted >= self.calls

    @property
    def times_ideal(self) -> float:
        """How much longer than the ideal it took; what was stopped counts as if the rest went at its own pace."""
        return self.seconds / self.ideal_s * max(1.0, self.calls / max(1, self.accepted))

    @property
    def times_fluid(self) -> float:
        """The same, beside an even flow at what is allowed."""
        return self.times_ideal * self.ideal_s / self.fluid_s

    @property
    def refused_share(self) -> float:
        """The part of all calls that met a 429."""
        return self.refused / max(1, self.accepted + self.refused)

    @property
    def slept_share(self) -> float:
        """The part of the time of all the lane's slots in which a job slept in one: what others could not use."""
        return self.slept_s / (self.slots * self.seconds)

    @property
    def slept_of_held(self) -> float:
        """The part of the time of slots that were taken: what is paid for and only waited."""
        return self.slept_s / max(0.001, self.held_s)

    @property
    def writes_per_accept(self) -> float:
        """Writes to the accounts' items for one accepted call."""
        return self.budget_writes / max(1, self.accepted)


def ways() -> tuple[str, ...]:
    """Every family, with headers and, where they are not what it is about, without."""
    return tuple(
        f"{family}, {told}"
        for told in (TOLD, UNTOLD)
        for family in FAMILIES
        if told == TOLD or family not in ABOUT_HEADERS
    )


def run(way: str, calls: int = CALLS, seed: int = SEEDS[0]) -> Bound:
    """One way by its name."""
    family, told = way.rsplit(", ", 1)
    return drain(way, member(family, seed, calls, tells=told == TOLD), seed)


def drain(way: str, one: Member, seed: int) -> Bound:
    """Work off a backlog of a call each."""
    hub, tokens = Hub(), one.tokens(seed)
    vendors = [
        StrictVendor(offer, clock=hub.clock, uses=lambda number: tokens[min(number, len(tokens) - 1)], seed=seed)
        for offer in one.vendors
    ]
    skews = random.Random(f"skew {seed}")

    def ask(job: Job, ctx: Context) -> Outcome:
        ctx.call(Call(vendor=job.task.removeprefix("ask_"), action="ask", body=Sensitive({}), tokens=one.estimate))
        return Done("asked")

    engine = Engine(
        hub,
        lane=one.lane,
        accounts=one.accounts,
        vendors=vendors,
        task=ask,
        seed=seed,
        skew=lambda: round(skews.uniform(-one.skew_s, one.skew_s), 3),
    )
    tasks = [f"ask_{offer.name}" for offer, calls in zip(one.vendors, one.calls, strict=True) for _ in range(calls)]
    random.Random(f"order {seed}").shuffle(tasks)
    engine.enqueue_tasks(tasks)
    engine.start(until_ended=len(tasks))
    each = list(zip(one.vendors, one.calls, strict=True))
    ideal_s = max(offer.soonest_s(calls, sum(tokens[:calls])) for offer, calls in each)
    hub.run(until_s=PATIENCE * ideal_s)
    accepted = [at_s for vendor in vendors for at_s in vendor.seen.accepted_at]
    stopped = len(accepted) < len(tasks)
    return Bound(
        way=way,
        seed=seed,
        family=way.rsplit(", ", 1)[0],
        told=way.endswith(f", {TOLD}"),
        calls=len(tasks),
        accepted=len(accepted),
        refused=sum(len(vendor.seen.refused_at) for vendor in vendors),
        ideal_s=ideal_s,
        fluid_s=max(offer.fluid_s(calls, sum(tokens[:calls])) for offer, calls in each),
        windowed=any(rule.window is not Window.BUCKET for offer in one.vendors for rule in offer.rules.values()),
        seconds=vendors[0].seconds if stopped else max(accepted),
        failed=engine.ends()["failed"],
        budget_writes=engine.budgets.writes,
        slept_s=engine.slept_s,
        held_s=engine.slot_s,
        slots=one.lane.ceiling * one.lane.parallel,
        called_in_quiet=sum(vendor.called_in_quiet for vendor in vendors),
    )
