"""Nominees: what the waiting index nominates, window by window. Whom nobody can act on hides nobody behind it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from shared.core.ports import WaitingEntry

Look = Callable[[int], list[WaitingEntry]]
"""The first so many entries, in the order in which they are taken."""


class Nominees:
    """The first `limit` entries besides those `passed` over; each is given once. While it is gone through, who turns
    out to be of no use is added to `passed`, and as many more are looked at in its place."""

    def __init__(self, look: Look, limit: int, passed: set[WaitingEntry] | None = None) -> None:
        self.passed: set[WaitingEntry] = set() if passed is None else passed
        self._look, self._limit = look, limit
        self.window = self._next()

    def __iter__(self) -> Iterator[WaitingEntry]:
        given: set[WaitingEntry] = set()
        while True:
            known = len(self.passed)
            for entry in self.window:
                if entry not in given:
                    given.add(entry)
                    yield entry
            if len(self.passed) == known or not self.full:
                return
            self.window = self._next()

    def _next(self) -> list[WaitingEntry]:
        most = self._limit + len(self.passed)
        found = self._look(most)
        self.full = len(found) >= most
        """True when there may be more behind the window."""
        return [entry for entry in found if entry not in self.passed]
