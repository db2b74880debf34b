"""Event sources in memory: each lane's state and cap, and what can be in the way."""

from __future__ import annotations

from collections.abc import Iterable

from shared.core.capacity import EventSource
from shared.core.errors import Unavailable


class MemoryActuator:
    """`Actuator` in memory. A test may change `sources` as a deploy would, or set `busy`."""

    def __init__(self, lanes: Iterable[str] = (), *, cap: int = 2) -> None:
        self.sources = {lane: EventSource(state="Enabled", cap=cap) for lane in lanes}
        self.busy = False
        self.asked: list[tuple[str, int]] = []

    def source(self, lane: str) -> EventSource:
        """As it stands."""
        if lane not in self.sources:
            raise Unavailable("event_sources", "missing")
        return self.sources[lane]

    def assert_cap(self, lane: str, cap: int) -> bool:
        """False while busy."""
        present = self.source(lane)
        self.asked.append((lane, cap))
        if self.busy:
            return False
        if cap:
            self.sources[lane] = EventSource(state="Enabled", cap=cap)
        else:
            self.sources[lane] = EventSource(state="Disabled", cap=present.cap)
        return True
