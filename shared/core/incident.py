"""An incident: opened, noted, closed with its cause; what people changed by hand stands between."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from shared.core.history import HistoryEvent

OPENED, NOTED, CLOSED = "opened", "noted", "closed"


def subject_of(lane: str) -> str:
    """Where a lane's incidents stand in the history."""
    return f"incident/{lane}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """One incident of a lane; `events` are its own, oldest first."""

    lane: str
    opened_at: datetime
    opened_by: str
    why: str
    closed_at: datetime | None = None
    closed_by: str | None = None
    cause: str | None = None
    events: tuple[HistoryEvent, ...] = ()

    @property
    def incident_id(self) -> str:
        """How it is named: by the event that opened it."""
        return self.events[0].event_id[:8] if self.events else ""

    @property
    def open(self) -> bool:
        """True until somebody closed it with a cause."""
        return self.closed_at is None


def incidents(lane: str, events: Iterable[HistoryEvent]) -> list[Incident]:
    """A lane's incidents, the newest first, from its history in any order. What is in none is passed over."""
    found: list[Incident] = []
    mine: list[HistoryEvent] = []
    for event in sorted(events, key=lambda one: (one.at, one.event_id)):
        if event.kind == OPENED and not mine:
            mine = [event]
        elif mine:
            mine.append(event)
        if mine and event.kind == CLOSED:
            found.append(_incident(lane, mine))
            mine = []
    if mine:
        found.append(_incident(lane, mine))
    return found[::-1]


def _incident(lane: str, events: list[HistoryEvent]) -> Incident:
    first, last = events[0], events[-1]
    closed = last.kind == CLOSED
    return Incident(
        lane=lane,
        opened_at=first.at,
        opened_by=first.by,
        why=str(first.detail.get("why", "")),
        closed_at=last.at if closed else None,
        closed_by=last.by if closed else None,
        cause=str(last.detail.get("cause", "")) if closed else None,
        events=tuple(events),
    )
