"""At every port call: a fault, an act of a person, or somebody else's turn; and a worker past its time-out dies."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from shared.adapters.memory.faults import Boundary, Fault, Injection
from tests.strange.operators import Act, Operators
from tests.world import World

PLACES = {
    ("jobs", "claim"): "claim",
    ("content", "get"): "read",
    ("content", "put"): "keep",
    ("effects", "intend"): "intent",
    ("effects", "take_over"): "intent",
    ("helpdesk", "perform"): "send",
    ("mailer", "perform"): "send",
    ("vendor", "perform"): "send",
    ("vendor", "look_up"): "look_up",
    ("mailer", "look_up"): "look_up",
    ("effects", "record"): "record",
    ("effects", "of_job"): "effects",
    ("jobs", "move"): "settle",
}
"""A worker's calls, by what is about to happen."""
CLOSER = 3
ANOTHERS_TURN_S = (0.5, 3.0, 8.0)
"""The worker waits for so long and lives on; what is longer than its time-out it does not survive."""


@dataclass(slots=True)
class Tangle:
    """The plan of a strange execution."""

    rng: random.Random
    faults: dict[Fault, float]
    acts: dict[Act, float]
    turns: float
    """How likely a worker lets others run before a call."""
    threaded: frozenset[str]
    seen: Callable[[str], None]
    on: bool = True
    world: World | None = None
    operators: Operators | None = None
    note: Callable[[str], None] | None = None
    _most: float = field(init=False)
    """Above this the dice say nothing, wherever they are thrown."""

    def __post_init__(self) -> None:
        self._most = CLOSER * (sum(self.acts.values()) + self.turns + sum(self.faults.values()))

    def at(self, boundary: Boundary) -> Injection | None:
        """What happens here."""
        world = self.world
        if world is None:
            return None
        if self.note is not None:
            self.note(f"  {boundary}")
        is_worker = boundary.worker[0] == "w"
        if is_worker and world.timed_out(world.process(boundary.worker)):
            self.seen("time_out")
            return Injection(Fault.CRASH_BEFORE)
        if not self.on:
            return None
        dice = self.rng.random()
        if dice > self._most:
            return None
        role = boundary.worker.rstrip("0123456789")
        place = PLACES.get((boundary.port, boundary.method), "other") if is_worker else role
        if is_worker and place != "other":
            # Most of what can go wrong between two calls goes wrong between these.
            dice /= CLOSER
        return self._acted(dice, place, is_worker)

    def _acted(self, dice: float, place: str, is_worker: bool) -> Injection | None:
        for act, odds in self.acts.items():
            if dice < odds:
                if self.operators is None or not self.operators.act(act):
                    return None
                self.seen(f"at:{place}:{act}")
                # Whoever was interfered with goes on at once, or when others have seen it.
                waits = is_worker and self.rng.random() < 0.5
                return Injection(Fault.FREEZE, self.rng.choice(ANOTHERS_TURN_S)) if waits else None
            dice -= odds
        if is_worker:
            if dice < self.turns:
                self.seen(f"at:{place}:turn")
                return Injection(Fault.FREEZE, self.rng.choice(ANOTHERS_TURN_S))
            dice -= self.turns
        for fault, odds in self.faults.items():
            if dice < odds:
                self.seen(f"at:{place}:{fault}")
                return Injection(fault, self.rng.uniform(1, 40))
            dice -= odds
        return None


def drawn_tangle(rng: random.Random, seen: Callable[[str], None]) -> Tangle:
    """Some executions have only faults, some only people, most both; now and then nothing at all."""
    level = rng.choice((0.0, 0.005, 0.015, 0.04))
    faults = {fault: rng.uniform(0, level) for fault in Fault}
    acts: dict[Act, float] = {}
    if rng.random() < 0.7:
        often = rng.choice((0.004, 0.012, 0.03))
        acts = {act: often * rng.choice((0.3, 1.0)) for act in rng.sample(list(Act), rng.randint(1, 4))}
    threaded = frozenset({"w1", "w2", "w3"}) if rng.random() < 0.06 else frozenset()
    return Tangle(
        rng=rng,
        faults=faults,
        acts=acts,
        turns=rng.choice((0.0, 0.02, 0.08)),
        threaded=threaded,
        seen=seen,
    )
