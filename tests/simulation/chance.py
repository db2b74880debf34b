"""Faults by chance: every call may go wrong, with probabilities drawn once per seed."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field

from shared.adapters.memory.faults import Boundary, Fault, Injection

RARE = (Fault.CRASH_BEFORE, Fault.CRASH_AFTER, Fault.APPLIED_BUT_ERROR, Fault.FREEZE, Fault.DUPLICATE_DELIVERY)


@dataclass(slots=True)
class Chance:
    """A plan that throws dice at each boundary until it is told to stop."""

    rng: random.Random
    odds: Mapping[Fault, float] = field(default_factory=dict)
    longest_freeze_s: float = 200.0
    on: bool = True
    _most: float = field(init=False)
    """Above this the dice say nothing: most of the time, without asking every fault."""

    def __post_init__(self) -> None:
        self._most = sum(self.odds.values()) + 1e-9

    @property
    def threaded(self) -> frozenset[str]:
        """Nobody: whoever freezes while another is frozen thaws first."""
        return frozenset()

    def at(self, boundary: Boundary) -> Injection | None:
        """What the dice say."""
        if not self.on:
            return None
        dice = self.rng.random()
        if dice > self._most:
            return None
        for fault, odds in self.odds.items():
            if dice < odds:
                return Injection(fault, self.rng.uniform(1, self.longest_freeze_s))
            dice -= odds
        return None


def drawn_odds(rng: random.Random) -> dict[Fault, float]:
    """How bad it gets: one seed in eight has no fault at all, one in five a store that throttles every other call."""
    if rng.random() < 0.125:
        return {}
    level = rng.choice((0.002, 0.005, 0.01, 0.02))
    odds = {fault: rng.uniform(0, level) for fault in RARE}
    odds[Fault.OUTAGE] = rng.uniform(0, level)
    odds[Fault.THROTTLE] = rng.uniform(0.1, 0.5) if rng.random() < 0.2 else rng.uniform(0, 2 * level)
    return odds
