"""Demand: what an environment has asked of an account lately, and so will soon."""

from __future__ import annotations

import math

from shared.core.rate import SECOND

DEMAND_S = 1.0
"""How far back an environment looks to guess what it will soon need."""
GUESSED_S = 0.05
"""So much of an account's pace may be in one environment's hands on a mere guess."""


class Demand:
    """Calls a second, older ones counting ever less."""

    def __init__(self) -> None:
        self._rate, self._at_us = 0.0, 0

    def note(self, now_us: int) -> None:
        """One more call."""
        self._rate, self._at_us = self.at(now_us) + 1 / DEMAND_S, now_us

    def at(self, now_us: int) -> float:
        """Calls a second, as of now."""
        return self._rate * math.exp(-max(0, now_us - self._at_us) / (DEMAND_S * SECOND))

    def soon(self, now_us: int, limit: float | None, within_us: int, announced: int) -> int:
        """Calls to expect within a lease's time: no more than a moment of the pace. `announced` are those of the batch
        at hand: as a batch begins the demand looks lowest, as it ends highest, and half of a batch more is the middle.

        What an environment holds and does not use is missed by others; at a fast pace a moment is many calls, and it is
        there that writes count. The call at hand is part of the demand; alone it is no reason to expect another.
        """
        calls = int((self.at(now_us) - 1 / DEMAND_S + announced / 2) * within_us / SECOND)
        return calls if limit is None else min(calls, int(limit / 60 * GUESSED_S))
