"""Counts what the ports cost: calls, and DynamoDB's units by its published rules of size.

Units are counted from the items themselves, so the same numbers come out on the memory adapters, in tests
and in an account; the local stack's own count is the check.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from shared.adapters.attributes import Attribute, Item
from shared.contract import table

WRITE_UNIT_BYTES = 1024
READ_UNIT_BYTES = 4096


def item_size(item: Item) -> int:
    """Bytes of a row as DynamoDB counts them: every attribute's name and value."""
    return sum(len(name.encode()) + _size(value) for name, value in item.items())


def _size(attribute: Attribute) -> int:
    ((kind, value),) = attribute.items()
    match kind:
        case "S":
            return len(value.encode())
        case "N":
            return _number_size(value)
        case "B":
            return len(value)
        case "BOOL" | "NULL":
            return 1
        case "L":
            return 3 + sum(1 + _size(part) for part in value)
        case "M":
            return 3 + sum(1 + len(name.encode()) + _size(part) for name, part in value.items())
        case "SS":
            return sum(len(part.encode()) for part in value)
        case "NS":
            return sum(_number_size(part) for part in value)
        case "BS":
            return sum(len(part) for part in value)
    raise ValueError(f"no attribute has the type {kind!r}")


def _number_size(text: str) -> int:
    """One byte, one for every two significant digits, one for a minus; at most 21."""
    mantissa = text.lower().partition("e")[0].lstrip("+-")
    digits = mantissa.replace(".", "").lstrip("0")
    digits = digits.rstrip("0")
    return min(21, 1 + (len(digits) + 1) // 2 + text.startswith("-"))


def write_units(*sizes: int) -> int:
    """Units of one write: per started KB of the larger of the old and the new row."""
    return max(1, -(-max(sizes, default=0) // WRITE_UNIT_BYTES))


def read_units(size_bytes: int, *, consistent: bool) -> float:
    """Units of one read: per started 4 KB, half of it when the read may be a little out of date."""
    units = max(1, -(-size_bytes // READ_UNIT_BYTES))
    return float(units) if consistent else units / 2


def index_units(old: Item | None, new: Item | None) -> int:
    """Units of the waiting index. It projects keys only, so nothing is written unless its key changes."""
    before, after = _index_key(old), _index_key(new)
    if before == after:
        return 0
    return (before is not None) + (after is not None)


def _index_key(item: Item | None) -> tuple[Any, Any] | None:
    if item is None or table.WAITING_PK not in item or table.WAITING_SK not in item:
        return None
    return item[table.WAITING_PK]["S"], item[table.WAITING_SK]["S"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What was used: calls made, units read, units written to tables, units written to the index."""

    calls: int = 0
    read_units: float = 0.0
    write_units: int = 0
    index_units: int = 0

    @property
    def all_write_units(self) -> int:
        """Every write unit that is paid for."""
        return self.write_units + self.index_units

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            calls=self.calls + other.calls,
            read_units=self.read_units + other.read_units,
            write_units=self.write_units + other.write_units,
            index_units=self.index_units + other.index_units,
        )

    def __sub__(self, other: Usage) -> Usage:
        return Usage(
            calls=self.calls - other.calls,
            read_units=self.read_units - other.read_units,
            write_units=self.write_units - other.write_units,
            index_units=self.index_units - other.index_units,
        )


Snapshot = Mapping[tuple[str, str], Usage]
"""Usage by port and operation, for example `("jobs", "claim")`."""


class Meter:
    """Counts what the adapters report, by port and operation; safe to share between threads."""

    counts = True
    """An adapter asks for rows it does not need itself only when somebody counts."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._used: dict[tuple[str, str], Usage] = {}

    def call(self, port: str, operation: str) -> None:
        """A call without units: a queue, the content store."""
        self._add(port, operation, Usage(calls=1))

    def read(self, port: str, operation: str, items: Iterable[Item | None], *, consistent: bool) -> None:
        """One read of these rows (none found still costs the least unit)."""
        size = sum(item_size(item) for item in items if item is not None)
        self._add(port, operation, Usage(calls=1, read_units=read_units(size, consistent=consistent)))

    def write(self, port: str, operation: str, *, old: Item | None, new: Item | None) -> None:
        """One write that was applied."""
        sizes = [item_size(item) for item in (old, new) if item is not None]
        self._add(
            port,
            operation,
            Usage(calls=1, write_units=write_units(*sizes), index_units=index_units(old, new)),
        )

    def refused(self, port: str, operation: str, *, old: Item | None) -> None:
        """One write whose condition was false: paid by the row that stands there, the index untouched."""
        size = 0 if old is None else item_size(old)
        self._add(port, operation, Usage(calls=1, write_units=write_units(size)))

    def total(self) -> Usage:
        """Everything so far."""
        return sum(self.snapshot().values(), Usage())

    def snapshot(self) -> Snapshot:
        """Everything so far, by port and operation."""
        with self._lock:
            return dict(self._used)

    def delta(self, since: Snapshot) -> Snapshot:
        """What was used since a snapshot; operations that were not used are left out."""
        changes = {key: used - since.get(key, Usage()) for key, used in self.snapshot().items()}
        return {key: change for key, change in changes.items() if change != Usage()}

    def _add(self, port: str, operation: str, usage: Usage) -> None:
        with self._lock:
            self._used[port, operation] = self._used.get((port, operation), Usage()) + usage


class _Unmetered(Meter):
    """Counts nothing, at no cost."""

    counts = False

    def call(self, port: str, operation: str) -> None:
        """Nothing."""

    def read(self, port: str, operation: str, items: Iterable[Item | None], *, consistent: bool) -> None:
        """Nothing."""

    def write(self, port: str, operation: str, *, old: Item | None, new: Item | None) -> None:
        """Nothing."""

    def refused(self, port: str, operation: str, *, old: Item | None) -> None:
        """Nothing."""


UNMETERED: Meter = _Unmetered()
"""For adapters nobody measures."""
