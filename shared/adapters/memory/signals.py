"""The signals in memory: rows kept as items, one per lane and minute."""

from __future__ import annotations

import threading
from datetime import datetime

from shared.adapters import signal_rows
from shared.adapters.attributes import Attribute, Item
from shared.adapters.meter import UNMETERED, Meter
from shared.contract import table
from shared.core.moment import iso
from shared.core.signals import MINUTE_S, Counts, Minute, minute_of


class MemorySignalLedger:
    """`SignalLedger` in memory."""

    def __init__(self, *, meter: Meter | None = None) -> None:
        self._rows: dict[str, dict[str, Item]] = {}
        self._meter = meter or UNMETERED
        self._lock = threading.RLock()

    def add(self, lane: str, at: datetime, counts: Counts, *, minute_s: int = MINUTE_S) -> None:
        """Add to the minute."""
        more = signal_rows.added(counts)
        if not more:
            return
        key = signal_rows.minute_key(lane, at, minute_s)
        with self._lock:
            minutes = self._rows.setdefault(lane, {})
            old = minutes.get(key[table.SK]["S"])
            before = old or {**key}
            new = {**before, **{name: _sum(before.get(name), value) for name, value in more.items()}}
            minutes[key[table.SK]["S"]] = {**new, table.TTL: signal_rows.expiry_of(at)}
        self._meter.write("signals", "add", old=None, new={**key, **more, table.TTL: signal_rows.expiry_of(at)})

    def minutes(self, lane: str, *, since: datetime) -> list[Minute]:
        """Oldest first."""
        first = iso(minute_of(since))
        with self._lock:
            items = [item for at, item in sorted(self._rows.get(lane, {}).items()) if at >= first]
        self._meter.read("signals", "minutes", items, consistent=True)
        return [signal_rows.minute_from_item(item) for item in items]


def _sum(before: Attribute | None, more: Attribute) -> Attribute:
    if before is None:
        return more
    if "NS" in more:
        return {"NS": sorted({*before["NS"], *more["NS"]})}
    return {"N": str(int(before["N"]) + int(more["N"]))}
