"""How a lane's capacity is written as a row of the control table, and read back."""

from __future__ import annotations

from datetime import datetime

from shared.adapters import attributes
from shared.adapters.attributes import Fields, Item
from shared.adapters.rows import key_of
from shared.contract import table
from shared.core.capacity import CapacityState, Pin
from shared.core.severity import Severity
from shared.core.signals import Moved

_TIMES = ("changed_at", "lowered_at", "calm_since", "looked_at")
_MOST_CAP = 1000
_MOST_VERSION = 10**18
_MOST_AGE_S = 10**10
_YEARS = range(1970, 3000)
"""Times are added to: one at the end of all calendars would stop the governor."""
ATTRIBUTES = ("cap", "version", *_TIMES, "moved_at", "moved_age_s", "pin", "stopped", "reason", "severity", "age_s")
"""Every attribute of the row but its key: what a state does not have is removed."""


def capacity_item(lane: str, state: CapacityState) -> Item:
    """A lane's row."""
    item: Item = {
        table.PK: attributes.text(table.cap_pk(lane)),
        "cap": attributes.whole(state.cap),
        "version": attributes.whole(state.version),
        "severity": attributes.text(state.severity.word),
        "age_s": attributes.whole(state.age_s),
    }
    times: dict[str, datetime | None] = {name: getattr(state, name) for name in _TIMES}
    item |= {name: attributes.time(value) for name, value in times.items() if value is not None}
    if state.reason:
        item["reason"] = attributes.text(state.reason)
    if state.stopped:
        item["stopped"] = {"BOOL": True}
    if state.moved is not None:
        item |= {"moved_at": attributes.time(state.moved.at), "moved_age_s": attributes.whole(state.moved.age_s)}
    if state.pin is not None:
        pin = state.pin
        item["pin"] = {
            "M": {
                "cap": attributes.whole(pin.cap),
                "until": attributes.time(pin.until),
                "by": attributes.text(pin.by),
                "why": attributes.text(pin.why),
            }
        }
    return item


def cap_item(lane: str, cap: int) -> Item:
    """A lane's wanted cap."""
    return {table.PK: attributes.text(table.cap_pk(lane)), "cap": attributes.whole(cap)}


def capacity_from_item(item: Item | None) -> CapacityState | None:
    """The state a row says, None when nobody wrote one. Raises UnreadableRow, also for a number that cannot be true: a
    cap that no lane can have would hold a lane still, or let it run."""
    if item is None:
        return None
    fields = Fields(key_of(item), item)
    moved_at = _time(fields, "moved_at")
    return CapacityState(
        cap=fields.whole("cap", least=0, most=_MOST_CAP),
        version=fields.whole("version", 0, least=0, most=_MOST_VERSION),
        **{name: _time(fields, name) for name in _TIMES},
        moved=None if moved_at is None else Moved(at=moved_at, age_s=_age_s(fields, "moved_age_s")),
        pin=_pin(fields, item),
        stopped="stopped" in item and fields.flag("stopped"),
        reason=fields.text_or_none("reason") or "",
        severity=_severity(fields),
        age_s=_age_s(fields, "age_s"),
    )


def _time(fields: Fields, name: str) -> datetime | None:
    at = fields.time_or_none(name)
    return at if at is None or at.year in _YEARS else fields.unreadable(name, "is not a time there can be")


def _age_s(fields: Fields, name: str) -> int:
    return fields.whole(name, 0, least=0, most=_MOST_AGE_S)


def _pin(fields: Fields, item: Item) -> Pin | None:
    if "pin" not in item:
        return None
    parts = Fields(key_of(item), fields.part("pin"), prefix="pin: ")
    cap = parts.whole("cap", least=0, most=_MOST_CAP)
    until = _time(parts, "until") or parts.time("until")
    return Pin(cap=cap, until=until, by=parts.text("by"), why=parts.text("why"))


def _severity(fields: Fields) -> Severity:
    word = fields.text_or_none("severity") or Severity.NORMAL.word
    known = {one.word: one for one in Severity}
    return known[word] if word in known else fields.unreadable("severity", "is not one this version knows")
