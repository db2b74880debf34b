"""What functions wrote, read back: the port of whoever sweeps logs. One contract suite in `tests/contract`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """One line; `stream` and `at` are where it can be found again."""

    at: datetime
    stream: str
    text: str


class Logs(Protocol):
    """The log groups of a stage."""

    def lines(self, group: str, *, since: datetime, until: datetime) -> Iterator[LogLine]:
        """Every line of a group in a span of time, both ends included. Raises Unavailable, also where there is
        no such group."""
        ...

    def kept_days(self, group: str) -> int | None:
        """For how many days a group keeps its lines; None: for ever. Raises Unavailable."""
        ...
