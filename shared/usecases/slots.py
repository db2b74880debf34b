"""Slots: how many calls of one environment run at an account, and how many it may run."""

from __future__ import annotations


class Slots:
    """What one environment holds of an account's calls at once. Not locked by itself."""

    def __init__(self) -> None:
        self._held, self._until_us, self._running = 0, 0, 0

    def begin(self) -> None:
        """A call begins."""
        self._running += 1

    def end(self) -> None:
        """A call is over."""
        self._running = max(0, self._running - 1)

    def hold(self, slots: int, until_us: int) -> None:
        """So many are held now, until then at the latest."""
        self._held, self._until_us = slots, until_us

    def let_go(self) -> None:
        """None is held any more."""
        self._held = 0

    def holds(self, now_us: int) -> bool:
        """True while any is held."""
        return self._held > 0 and now_us < self._until_us

    def missing(self, now_us: int) -> int:
        """How many must be held so that the next call may run, when there are too few; else 0."""
        held = self._held if now_us < self._until_us else 0
        return 0 if self._running < held else self._running + 1

    def wanted(self, expected: int, most: int) -> int:
        """How many to ask for when `expected` calls come soon."""
        return max(self._running + 1, min(self._running + expected, most))
