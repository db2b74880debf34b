"""Turns: starts in an account's line, promised to one environment's refused jobs in blocks."""

from __future__ import annotations

from collections.abc import Callable

from shared.core.account import AccountSpec
from shared.core.errors import Unavailable, UnreadableRow
from shared.core.ports import BudgetLedger


class Turns:
    """What one environment was promised of an account's line and has not given to a job yet."""

    def __init__(self, spec: AccountSpec, *, ledger: BudgetLedger, chance: Callable[[], float]) -> None:
        self._spec, self._ledger, self._chance = spec, ledger, chance
        self._next_us, self._end_us = 0, 0

    def next(self, span_us: int, from_us: int, usual_us: int, expected: int) -> int:
        """A start that nobody else has, at or after `from_us`, for a request that takes `span_us`. A new block has room
        for this one and for the rest of the batch at their usual size, so that a batch costs one write."""
        if self._next_us < from_us or self._next_us + span_us > self._end_us:
            block_us = span_us + min(span_us, usual_us) * (max(1, expected) - 1)
            try:
                start_us = self._ledger.reserve(self._spec, block_us, not_before_us=from_us)
            except (Unavailable, UnreadableRow):
                start_us = from_us + int(self._chance() * block_us)
            self._next_us, self._end_us = start_us, start_us + block_us
        turn_us = self._next_us
        self._next_us += span_us
        return turn_us

    def forget(self) -> None:
        """Under new terms old promises are worth nothing."""
        self._next_us = self._end_us = 0
