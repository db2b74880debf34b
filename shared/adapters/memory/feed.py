"""The change feed in memory: what subscribers would be sent, and entries that are refused for a while."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from typing import Any

from shared.core.feed import StateChange


class MemoryChangeFeed:
    """Keeps what was published, in its order."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._refusals: Counter[str] = Counter()
        self.taken: list[StateChange] = []
        self.asked: list[list[str]] = []
        """The change ids of every call."""

    def publish(self, changes: Sequence[StateChange]) -> list[StateChange]:
        """Take what is not refused; returns the rest, in its order."""
        with self._lock:
            self.asked.append([change.change_id for change in changes])
            refused: list[StateChange] = []
            for change in changes:
                if self._refusals[change.change_id] > 0:
                    self._refusals[change.change_id] -= 1
                    refused.append(change)
                else:
                    self.taken.append(change)
        return refused

    def refuse(self, change: StateChange, times: int = 1) -> None:
        """Do not take this one the next `times` times, as PutEvents may do with any entry of a call."""
        with self._lock:
            self._refusals[change.change_id] += times

    @property
    def details(self) -> list[dict[str, Any]]:
        """What subscribers read."""
        return [change.detail() for change in self.taken]
