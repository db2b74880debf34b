"""Keep an incident: who opened it, what was noted, and the cause it was closed with."""

from __future__ import annotations

from shared.core.errors import BadInput
from shared.core.incident import CLOSED, NOTED, OPENED, Incident, incidents, subject_of
from shared.core.ports import Clock, History
from shared.usecases.persist import persist
from shared.usecases.steer import note, reason_of

LOOKS_BACK = 500
"""Events of a lane that are looked at: the present incident is among the newest."""


def incidents_of(lane: str, *, history: History, clock: Clock) -> list[Incident]:
    """A lane's incidents, the newest first."""
    return incidents(lane, persist(lambda: history.of(subject_of(lane), limit=LOOKS_BACK), clock))


def open_incident(lane: str, *, by: str, why: str, history: History, clock: Clock) -> Incident:
    """Begin an incident. A lane has one at a time: a second is a note to the first."""
    text, present = reason_of(why), _present(lane, history, clock)
    if present is not None:
        raise BadInput(
            "incident",
            f"lane {lane} has one since {present.opened_at:%Y-%m-%d %H:%M} UTC: `penstock incident note` adds to it",
        )
    note(subject_of(lane), OPENED, by, {"why": text}, history, clock)
    return _stands(lane, history, clock)


def note_incident(lane: str, *, by: str, text: str, history: History, clock: Clock) -> Incident:
    """Write down what was seen or done by hand."""
    line = reason_of(text)
    _needs_one(lane, history, clock)
    note(subject_of(lane), NOTED, by, {"why": line}, history, clock)
    return _stands(lane, history, clock)


def close_incident(lane: str, *, by: str, cause: str, history: History, clock: Clock) -> Incident:
    """End an incident; its root cause is asked for, since a replay is planned on it."""
    try:
        text = reason_of(cause)
    except BadInput as exc:
        raise BadInput("cause", exc.problem) from None
    _needs_one(lane, history, clock)
    note(subject_of(lane), CLOSED, by, {"cause": text}, history, clock)
    return incidents_of(lane, history=history, clock=clock)[0]


def _present(lane: str, history: History, clock: Clock) -> Incident | None:
    found = incidents_of(lane, history=history, clock=clock)
    return found[0] if found and found[0].open else None


def _needs_one(lane: str, history: History, clock: Clock) -> Incident:
    present = _present(lane, history, clock)
    if present is None:
        raise BadInput("incident", f'lane {lane} has none: open one with `penstock incident open {lane} --why "…"`')
    return present


def _stands(lane: str, history: History, clock: Clock) -> Incident:
    return incidents_of(lane, history=history, clock=clock)[0]
