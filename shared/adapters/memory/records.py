"""Effects, control, ledger, history and content in memory: rows kept as items, each method one step."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

from shared.adapters import attributes, capacity_rows, record_rows, rows, switch_rows
from shared.adapters.attributes import Item
from shared.adapters.memory.readings import Readings
from shared.adapters.meter import UNMETERED, Meter, item_size
from shared.contract import table
from shared.core.capacity import CapacityState
from shared.core.effects import EffectRow, EffectState, with_acceptance
from shared.core.errors import EffectMoved, UnreadableRow
from shared.core.history import HistoryEvent
from shared.core.schedule import RunRecord
from shared.core.switches import Level, Switch, Switches


class MemoryEffectStore:
    """The effects table. There is no way to delete a row."""

    def __init__(self, *, meter: Meter | None = None) -> None:
        self._rows: dict[str, dict[str, Item]] = {}
        self._meter = meter or UNMETERED
        self._readings = Readings(rows.effect_from_item)
        self._lock = threading.RLock()

    def intend(self, row: EffectRow) -> EffectRow | None:
        """None: the intent is yours."""
        with self._lock:
            present = self._present(row)
            if present is None:
                self._write("intend", row)
                return None
            if present.state is EffectState.REFUSED and _same_effect(present, row):
                # The window of a vendor's memory runs from the first time the key may have reached it.
                self._write("intend", replace(row, first_intent_at=present.first_intent_at))
                return None
            self._refused("intend", row)
            mine = present.open and (present.fence, present.intent_at) == (row.fence, row.intent_at)
            return None if mine else present

    def take_over(self, row: EffectRow, *, fence: int, now: datetime) -> EffectRow:
        """An open intent changes hands once."""
        with self._lock:
            present = self._present(row)
            if (
                present is not None
                and present.open
                and (present.fence, present.intent_at) == (row.fence, row.intent_at)
            ):
                taken = replace(present, fence=fence, intent_at=now, taken_over=True)
                self._write("take_over", taken)
                return taken
            self._refused("take_over", row)
            if present is not None and present.open and present.taken_over and present.fence == fence:
                return present
            raise EffectMoved(row.effect_id, present)

    def record(self, row: EffectRow, result: EffectRow) -> None:
        """One result, by the holder of the fence."""
        with self._lock:
            present = self._present(row)
            if present is not None and present.fence == row.fence:
                recorded = replace(
                    present,
                    state=result.state,
                    recorded_at=result.recorded_at,
                    vendor_id=result.vendor_id,
                    reason=result.reason,
                )
                if present.open:
                    self._write("record", recorded)
                    return
                if (present.state, present.vendor_id) == (result.state, result.vendor_id):
                    self._refused("record", row)
                    return
            self._refused("record", row)
            raise EffectMoved(row.effect_id, present)

    def accept(self, acceptance: EffectRow) -> EffectRow:
        """Over or beside whatever stands there."""
        with self._lock:
            present = self._present(acceptance)
            if present is None:
                self._refused("accept", acceptance)
                raise EffectMoved(acceptance.effect_id, None)
            after = with_acceptance(present, acceptance)
            if present.state is EffectState.ACCEPTED:
                self._refused("accept", acceptance)
            if after != present:
                self._write("accept", after)
            return after

    def of_job(self, job_id: str) -> list[EffectRow]:
        """Every effect of a job, by name."""
        with self._lock:
            items = [item for _, item in sorted(self._rows.get(table.job_pk(job_id), {}).items())]
            self._meter.read("effects", "of_job", items, consistent=True)
        return [self._readings.of(item) for item in items]

    def _present(self, row: EffectRow) -> EffectRow | None:
        item = self._rows.get(table.job_pk(row.job_id), {}).get(table.effect_sk(row.name))
        return None if item is None else self._readings.of(item)

    def _write(self, operation: str, row: EffectRow) -> None:
        of_job = self._rows.setdefault(table.job_pk(row.job_id), {})
        old, new = of_job.get(table.effect_sk(row.name)), rows.effect_item(row)
        of_job[table.effect_sk(row.name)] = new
        self._readings.forget(old)
        self._meter.write("effects", operation, old=old, new=new)

    def _refused(self, operation: str, row: EffectRow) -> None:
        old = self._rows.get(table.job_pk(row.job_id), {}).get(table.effect_sk(row.name))
        self._meter.refused("effects", operation, old=old)


def _same_effect(present: EffectRow, row: EffectRow) -> bool:
    return present.vendor == row.vendor and present.fingerprint in ("", row.fingerprint)


class MemoryControlStore:
    """Switches and wanted caps."""

    def __init__(self, *, meter: Meter | None = None) -> None:
        self._item: Item | None = None
        self._caps: dict[str, Item] = {}
        self._meter = meter or UNMETERED
        self._lock = threading.RLock()

    def switches(self) -> Switches:
        """Every switch that is set."""
        with self._lock:
            item = self._item
        self._meter.read("control", "switches", [item], consistent=True)
        return switch_rows.switches_from_item(item)

    def set_switch(self, switch: Switch) -> None:
        """Set one scope; back at its default, its entry goes."""
        with self._lock:
            scopes = self._scopes()
            if scopes is None:
                raise UnreadableRow(table.SWITCHES, f"{switch_rows.SCOPES} is not an object")
            new = switch_rows.switches_item(
                switch, among={name: one for name, one in scopes.items() if name != switch.scope}
            )
            if item_size(new) > table.MOST_BYTES:
                raise UnreadableRow(table.SWITCHES, f"{switch_rows.SCOPES} has no room for another entry")
            self._meter.write("control", "set_switch", old=self._item, new=new)
            self._item = new

    def reset_switches(self, *switches: Switch) -> None:
        """These alone."""
        with self._lock:
            old, self._item = self._item, switch_rows.switches_item(*switches)
            self._meter.write("control", "reset_switches", old=old, new=self._item)

    def _scopes(self) -> dict[str, Any] | None:
        """The entries as they stand; None where they are not what they must be."""
        if self._item is None:
            return {}
        scopes: dict[str, Any] | None = self._item.get(switch_rows.SCOPES, {}).get("M")
        return scopes

    def open_switch(self, switch: Switch, seen: Switch) -> bool:
        """Only what is as it was seen."""
        with self._lock:
            if (self._scopes() or {}).get(switch.scope) != switch_rows.switch_attribute(seen):
                self._meter.refused("control", "open_switch", old=self._item)
                return False
            self.set_switch(switch)
            return True

    def trip(self, switch: Switch) -> bool:
        """Only what is open and as it was seen; another scope's entry does not have to be readable."""
        open_ = {"level": {"S": Level.NORMAL.word}, "automation_enabled": {"BOOL": switch.automation_enabled}}
        with self._lock:
            scopes = self._scopes()
            present = None if scopes is None else scopes.get(switch.scope, {"M": open_}).get("M", {})
            if present is None or any(present.get(name) != value for name, value in open_.items()):
                self._meter.refused("control", "trip", old=self._item)
                return False
            self.set_switch(switch)
            return True

    def capacity(self, lane: str) -> CapacityState | None:
        """All that is kept."""
        with self._lock:
            item = self._caps.get(lane)
        self._meter.read("control", "capacity", [item], consistent=True)
        return capacity_rows.capacity_from_item(item)

    def set_capacity(self, lane: str, seen: CapacityState | None, after: CapacityState) -> bool:
        """Under its version."""
        item = capacity_rows.capacity_item(lane, after)
        with self._lock:
            old = self._caps.get(lane)
            version = (old or {}).get("version", attributes.whole(0))
            if version != attributes.whole(0 if seen is None else seen.version):
                self._meter.refused("control", "set_capacity", old=old)
                return old == item
            self._caps[lane] = item
            self._meter.write("control", "set_capacity", old=old, new=item)
            return True

    def reset_capacity(self, lane: str, state: CapacityState) -> None:
        """This alone."""
        with self._lock:
            old, self._caps[lane] = self._caps.get(lane), capacity_rows.capacity_item(lane, state)
            self._meter.write("control", "reset_capacity", old=old, new=self._caps[lane])

    def set_cap(self, lane: str, cap: int) -> None:
        """What a governor or an operator does."""
        with self._lock:
            self._caps[lane] = capacity_rows.cap_item(lane, cap)


class MemoryLedger:
    """Runs, by schedule and slot."""

    def __init__(self, *, meter: Meter | None = None) -> None:
        self._rows: dict[str, dict[str, Item]] = {}
        self._meter = meter or UNMETERED
        self._readings = Readings(record_rows.run_from_item)
        self._lock = threading.RLock()

    def open_run(self, run: RunRecord) -> bool:
        """The first wins."""
        with self._lock:
            slots = self._rows.setdefault(run.schedule, {})
            present = slots.get(run.slot)
            if present is not None:
                self._meter.refused("ledger", "open_run", old=present)
                return self._readings.of(present).run_id == run.run_id
            slots[run.slot] = self._written(run)
            self._meter.write("ledger", "open_run", old=None, new=slots[run.slot])
            return True

    def close_run(self, run: RunRecord) -> None:
        """Only the run that opened the slot may close it; anybody else changes nothing."""
        with self._lock:
            slots = self._rows.setdefault(run.schedule, {})
            present = slots.get(run.slot)
            if present is not None and self._readings.of(present).run_id == run.run_id:
                slots[run.slot] = self._written(run)
                self._meter.write("ledger", "close_run", old=present, new=slots[run.slot])

    def runs(self, schedule: str, *, limit: int) -> list[RunRecord]:
        """Newest first."""
        with self._lock:
            found = [item for _, item in sorted(self._rows.get(schedule, {}).items(), reverse=True)[:limit]]
            self._meter.read("ledger", "runs", found, consistent=True)
            return [self._readings.of(item) for item in found]

    def _written(self, run: RunRecord) -> Item:
        return self._readings.written(record_rows.run_item(run), run)


class MemoryHistory:
    """Append-only events, by subject and time."""

    def __init__(self, *, meter: Meter | None = None) -> None:
        self._rows: dict[str, dict[str, Item]] = {}
        self._meter = meter or UNMETERED
        self._lock = threading.RLock()

    def append(self, event: HistoryEvent) -> None:
        """Write once."""
        item = record_rows.history_item(event)
        with self._lock:
            of_subject = self._rows.setdefault(event.subject, {})
            if item[table.SK]["S"] not in of_subject:
                of_subject[item[table.SK]["S"]] = item
                self._meter.write("history", "append", old=None, new=item)

    def of(self, subject: str, *, limit: int) -> list[HistoryEvent]:
        """Newest first."""
        with self._lock:
            items = sorted(self._rows.get(subject, {}).items(), reverse=True)[:limit]
        return [record_rows.history_from_item(item) for _, item in items]


class MemoryContentStore:
    """Bytes by reference."""

    def __init__(self, *, meter: Meter | None = None) -> None:
        self._objects: dict[str, bytes] = {}
        self._meter = meter or UNMETERED
        self._lock = threading.RLock()

    def put(self, ref: str, data: bytes) -> None:
        """Store or store again."""
        self._call("put")
        with self._lock:
            self._objects[ref] = bytes(data)

    def get(self, ref: str) -> bytes | None:
        """What is there."""
        self._call("get")
        return self._objects.get(ref)

    def delete(self, ref: str) -> None:
        """Remove; removing twice is no error."""
        self._call("delete")
        with self._lock:
            self._objects.pop(ref, None)

    def under(self, place: str) -> Iterator[str]:
        """Every reference that begins so."""
        self._call("list")
        yield from (ref for ref in self.refs() if ref.startswith(place))

    def refs(self) -> list[str]:
        """Every reference; for sweeps."""
        return sorted(self._objects)

    def _call(self, operation: str) -> None:
        self._meter.call("content", operation)
