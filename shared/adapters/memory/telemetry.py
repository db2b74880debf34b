"""Telemetry that is kept, for tests and the simulator to look at."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from shared.core.errors import PenstockError

Id = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Event:
    """One event: its name and ids; for an error also its type and code."""

    name: str
    ids: dict[str, Id | Mapping[str, Id]] = field(default_factory=dict)
    error: str = ""
    code: str = ""


class MemoryTelemetry:
    """Keeps every event and adds up every count."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.counts: Counter[tuple[str, str]] = Counter()
        self.of_accounts: Counter[tuple[str, str, str]] = Counter()
        self._lock = threading.Lock()

    def event(self, name: str, **ids: Id | Mapping[str, Id]) -> None:
        """Keep one event."""
        self.events.append(Event(name, ids))

    def count(self, metric: str, value: float = 1, *, lane: str = "all", account: str = "") -> None:
        """Add to one metric of one lane, and of one account of it."""
        with self._lock:
            self.counts[(metric, lane)] += value  # type: ignore[assignment]
            if account:
                self.of_accounts[(metric, lane, account)] += value  # type: ignore[assignment]

    def error(self, name: str, exc: BaseException, **ids: Id) -> None:
        """Keep an error as its type and code."""
        self.events.append(Event(name, {**ids}, type(exc).__name__, exc.code if isinstance(exc, PenstockError) else ""))

    def named(self, name: str) -> list[Event]:
        """Every event of that name."""
        return [event for event in self.events if event.name == name]

    def total(self, metric: str) -> float:
        """A metric over all lanes."""
        return sum(value for (name, _), value in self.counts.items() if name == metric)
