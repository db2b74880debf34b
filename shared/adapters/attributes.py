"""Values and DynamoDB's typed attributes, both ways. Errors name an attribute and never repeat its value.

The SDK's own serializer is not used: its errors print what they could not convert.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NoReturn

from shared.core import moment
from shared.core.errors import BadInput, UnreadableRow

Attribute = dict[str, Any]
"""One typed value: `{"S": "text"}`, `{"N": "1"}`, `{"M": {…}}` …"""
Item = dict[str, Any]
"""A row: attribute names with their typed values."""

_WHOLE = re.compile(r"-?\d{1,38}", re.ASCII)
_MAX_DEPTH = 32
"""DynamoDB keeps no deeper nesting."""


def text(value: str) -> Attribute:
    """A string."""
    return {"S": value}


def text_set(values: Iterable[str]) -> Attribute:
    """A set of strings, at least one."""
    return {"SS": sorted(values)}


def whole(value: int) -> Attribute:
    """A whole number."""
    return {"N": str(value)}


def time(value: datetime) -> Attribute:
    """A moment: UTC, milliseconds, `Z`."""
    return {"S": moment.iso(value)}


def expiry(value: datetime) -> Attribute:
    """A moment as DynamoDB's expiry wants it: epoch seconds."""
    return {"N": str(moment.epoch_s(value))}


def from_json(value: object, where: str, depth: int = 1) -> Attribute:
    """The attribute of a JSON-like value; refuses anything else by its place."""
    if depth > _MAX_DEPTH:
        raise BadInput(where, f"is nested deeper than {_MAX_DEPTH} levels")
    match value:
        case None:
            return {"NULL": True}
        case bool():
            return {"BOOL": value}
        case str():
            return {"S": value}
        case int() if abs(value) < 10**38:
            return {"N": str(value)}
        case float() if math.isfinite(value) and abs(value) < 1e125:
            # DynamoDB keeps 1.0 as 1: written that way, what is read back equals what was written.
            return {"N": str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)}
        case Mapping():
            if not all(isinstance(name, str) for name in value):
                raise BadInput(where, "has a field name that is not text")
            return {"M": {name: from_json(inner, where, depth + 1) for name, inner in value.items()}}
        case list() | tuple():
            return {"L": [from_json(inner, where, depth + 1) for inner in value]}
    raise BadInput(where, f"holds a {type(value).__name__} that a row cannot carry")


def to_json(attribute: Attribute) -> Any:
    """The JSON-like value of an attribute; ValueError for anything `from_json` does not make."""
    match attribute:
        case {"S": str(value)} | {"BOOL": bool(value)}:
            return value
        case {"NULL": _}:
            return None
        case {"N": str(value)}:
            return int(value) if _WHOLE.fullmatch(value) else float(value)
        case {"M": dict(inner)}:
            return {name: to_json(part) for name, part in inner.items()}
        case {"L": list(parts)}:
            return [to_json(part) for part in parts]
    raise ValueError("has an unknown type")


class Fields:
    """Reads a row field by field; what cannot be read is an `UnreadableRow` that names the field."""

    __slots__ = ("_item", "_prefix", "key")

    def __init__(self, key: str, item: Item, prefix: str = "") -> None:
        self.key = key
        self._item = item
        self._prefix = prefix

    def unreadable(self, name: str, problem: str) -> NoReturn:
        """Give up on this row because of one field."""
        raise UnreadableRow(self.key, f"{self._prefix}{name} {problem}")

    def under(self, *names: str) -> str:
        """The first of these names that the row has, else the first: how a field's older names are read."""
        return next((name for name in names if name in self._item), names[0])

    def text(self, name: str) -> str:
        """A string that must be there."""
        value = self.text_or_none(name)
        return value if value is not None else self.unreadable(name, "is missing")

    def text_or_none(self, name: str) -> str | None:
        """A string, if it is there."""
        attribute = self._item.get(name)
        if attribute is None:
            return None
        value = attribute.get("S") if isinstance(attribute, dict) else None
        return value if isinstance(value, str) else self.unreadable(name, "is not text")

    def whole(self, name: str, default: int | None = None, *, least: int | None = None, most: int | None = None) -> int:
        """A whole number within its bounds; must be there unless there is a default."""
        attribute = self._item.get(name)
        if attribute is None:
            return default if default is not None else self.unreadable(name, "is missing")
        value = attribute.get("N") if isinstance(attribute, dict) else None
        if not isinstance(value, str) or not _WHOLE.fullmatch(value):
            self.unreadable(name, "is not a whole number")
        number = int(value)
        if least is not None and number < least:
            self.unreadable(name, f"is below {least:,}")
        if most is not None and number > most:
            self.unreadable(name, f"is above {most:,}")
        return number

    def whole_or_none(self, name: str) -> int | None:
        """A whole number, if it is there."""
        return self.whole(name) if name in self._item else None

    def flag(self, name: str, default: bool | None = None) -> bool:
        """A truth value; must be there unless there is a default."""
        attribute = self._item.get(name)
        if attribute is None and default is not None:
            return default
        value = attribute.get("BOOL") if isinstance(attribute, dict) else None
        return value if isinstance(value, bool) else self.unreadable(name, "is missing or not true or false")

    def time(self, name: str) -> datetime:
        """A moment that must be there."""
        return self.as_time(name, self.text(name))

    def time_or_none(self, name: str) -> datetime | None:
        """A moment, if it is there."""
        value = self.text_or_none(name)
        return None if value is None else self.as_time(name, value)

    def as_time(self, name: str, value: str) -> datetime:
        """The moment a text says, cut to the milliseconds a row keeps."""
        try:
            return moment.whole_ms(moment.parse(value))
        except (ValueError, OverflowError):
            self.unreadable(name, "is not a time with a time zone")

    def expiry_or_none(self, name: str) -> datetime | None:
        """An expiry in epoch seconds, if it is there."""
        if name not in self._item:
            return None
        try:
            return moment.from_epoch_s(self.whole(name))
        except (ValueError, OverflowError, OSError):
            self.unreadable(name, "is not a time in epoch seconds")

    def mapping(self, name: str) -> dict[str, Any] | None:
        """A JSON-like object, if it is there."""
        attribute = self._item.get(name)
        if attribute is None:
            return None
        try:
            value = to_json(attribute)
        except (ValueError, RecursionError):
            self.unreadable(name, "cannot be read")
        return value if isinstance(value, dict) else self.unreadable(name, "is not an object")

    def texts(self, name: str) -> list[str]:
        """A list of strings; empty when it is not there."""
        attribute = self._item.get(name, {"L": []})
        parts = attribute.get("L") if isinstance(attribute, dict) else None
        if not isinstance(parts, list):
            self.unreadable(name, "is not a list")
        values = [part.get("S") if isinstance(part, dict) else None for part in parts]
        return [value if isinstance(value, str) else self.unreadable(name, "is not a list of text") for value in values]

    def text_set(self, name: str) -> tuple[str, ...]:
        """A set of strings in their order; empty when it is not there."""
        attribute = self._item.get(name)
        if attribute is None:
            return ()
        values = attribute.get("SS") if isinstance(attribute, dict) else None
        if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            self.unreadable(name, "is not a set of text")
        return tuple(sorted(values))

    def part(self, name: str) -> Item:
        """An object that must be there, its attributes still unread."""
        attribute = self._item.get(name)
        inner = attribute.get("M") if isinstance(attribute, dict) else None
        return inner if isinstance(inner, dict) else self.unreadable(name, "is missing or not an object")
