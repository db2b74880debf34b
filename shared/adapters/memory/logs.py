"""Log groups in memory."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from shared.core.errors import Unavailable
from shared.core.logs import LogLine


class MemoryLogs:
    """`Logs` in memory; `write` is what a function does."""

    def __init__(self) -> None:
        self._groups: dict[str, list[LogLine]] = {}
        self.retention: dict[str, int] = {}

    def write(self, group: str, at: datetime, text: str, stream: str = "s") -> None:
        """One line."""
        self._groups.setdefault(group, []).append(LogLine(at=at, stream=stream, text=text))

    def lines(self, group: str, *, since: datetime, until: datetime) -> Iterator[LogLine]:
        """In the order of their time."""
        if group not in self._groups:
            raise Unavailable("logs", "ResourceNotFoundException")
        yield from sorted((line for line in self._groups[group] if since <= line.at <= until), key=lambda line: line.at)

    def kept_days(self, group: str) -> int | None:
        """As it was set."""
        return self.retention.get(group)
