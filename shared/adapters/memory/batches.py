"""Batches in memory: rows kept as items, each method one step."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from shared.adapters import batch_rows
from shared.adapters.attributes import Item
from shared.adapters.meter import UNMETERED, Meter
from shared.contract import table
from shared.core.batch import Batch, BatchState, Member
from shared.core.errors import BatchMoved


class MemoryBatchStore:
    """`BatchStore` in memory."""

    def __init__(self, *, meter: Meter | None = None) -> None:
        self._meter = meter or UNMETERED
        self._rows: dict[tuple[str, str], Item] = {}
        self._members: dict[str, list[Item]] = {}
        self._lock = threading.RLock()

    def intend(self, batch: Batch, members: Sequence[Member]) -> Batch | None:
        """Members first, once."""
        item = batch_rows.batch_item(batch)
        with self._lock:
            for part in batch_rows.member_items(batch, members):
                self._meter.write("batches", "intend", old=None, new=part)
            self._members.setdefault(batch.tag, list(batch_rows.member_items(batch, members)))
            present = self._rows.get(_key(item))
            if present is None:
                self._meter.write("batches", "intend", old=None, new=item)
                self._rows[_key(item)] = item
                return None
            self._meter.refused("batches", "intend", old=present)
        return None if present == item else batch_rows.batch_from_item(present)

    def members(self, tag: str) -> tuple[Member, ...]:
        """As written."""
        with self._lock:
            parts = self._members.get(tag, [])
            self._meter.read("batches", "members", list(parts), consistent=True)
        return batch_rows.members_from_items(parts)

    def move(self, before: Batch, after: Batch) -> None:
        """State as read."""
        key, wanted = _key(batch_rows.batch_item(before)), batch_rows.batch_item(after)
        with self._lock:
            present = self._rows.get(key)
            if present is not None and present["state"]["S"] == before.state.value:
                if after.state is BatchState.ENDED:
                    ended = batch_rows.ended_item(after)
                    self._rows[_key(ended)] = ended
                    self._meter.write("batches", "move", old=None, new=ended)
                self._rows[key] = wanted
                self._meter.write("batches", "move", old=present, new=wanted)
                return
            self._meter.refused("batches", "move", old=present)
        if present != wanted:
            raise BatchMoved(before.tag, None if present is None else batch_rows.batch_from_item(present))

    def under_way(self, lane: str, *, run_id: str = "", readable: bool = False) -> list[Batch]:
        """By time, then by tag."""
        items = self._items(lane, table.OPEN_BATCH, "under_way")
        return batch_rows.under_way(items, run_id=run_id, readable=readable)

    def ended(self, lane: str, *, limit: int) -> list[Batch]:
        """Newest first."""
        return self._of(lane, table.ENDED_BATCH, "ended")[::-1][:limit]

    def _of(self, lane: str, prefix: str, operation: str) -> list[Batch]:
        return [batch_rows.batch_from_item(item) for item in self._items(lane, prefix, operation)]

    def _items(self, lane: str, prefix: str, operation: str) -> list[Item]:
        with self._lock:
            found = [
                item
                for (pk, sk), item in sorted(self._rows.items())
                if pk == table.batch_pk(lane) and sk.startswith(prefix)
            ]
            self._meter.read("batches", operation, list(found), consistent=True)
        return found


def _key(item: Item) -> tuple[str, str]:
    return item[table.PK]["S"], item[table.SK]["S"]
