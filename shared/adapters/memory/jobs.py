"""The jobs table in memory, with its stream and its sparse index: the same promises as in DynamoDB.

Rows are kept as items, encoded and decoded by the same code as in DynamoDB: what a row cannot hold is lost
here, too, and a Meter sizes the same bytes. Every method is one atomic step; a store may be shared between threads.
"""

from __future__ import annotations

import threading
import zlib
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from functools import lru_cache

from shared.adapters import rows
from shared.adapters.attributes import Item
from shared.adapters.memory.clock import VirtualClock
from shared.adapters.memory.index import Place, WaitingIndex
from shared.adapters.memory.stream import MemoryStream, Row
from shared.adapters.meter import UNMETERED, Meter
from shared.contract import table
from shared.core import lifecycle
from shared.core.errors import BadInput, RowMoved, UnknownLane, UnreadableRow
from shared.core.job import PRIORITIES, Job, Status
from shared.core.lane import LaneSpec
from shared.core.moment import iso, parse
from shared.core.ports import Claimed, Clock, NotClaimed, WaitingEntry

_ENDED = frozenset(word for status in Status if status.ended for word in rows.spellings(status))


class MemoryJobStore:
    """The jobs table, its stream and its sparse index."""

    def __init__(
        self,
        *,
        lanes: Mapping[str, LaneSpec] | None = None,
        meter: Meter | None = None,
        clock: Clock | None = None,
        index_lag_s: float | Callable[[], float] = 0,
    ) -> None:
        self._lanes, self._meter = dict(lanes or {}), meter or UNMETERED
        self._clock: Clock = clock or VirtualClock()
        self._index = WaitingIndex(clock=self._clock, lag_s=index_lag_s)
        self._rows: dict[str, Row] = {}
        self._planted: set[str] = set()
        self.open_jobs = 0
        """Rows that are in no end state; unreadable ones count."""
        self._lock = threading.RLock()
        self.stream = MemoryStream(clock=self._clock)

    def put(self, job: Job) -> Job | None:
        """None when written, or when this very write was applied before."""
        pk, new = table.job_pk(job.job_id), self._item(job)
        with self._lock:
            row = self._rows.get(pk)
            if row is None:
                self._write("put", pk, None, Row(new, rows.stored(job)))
                return None
            self._meter.refused("jobs", "put", old=row.item)
            present = row.job
        # Ours to the last field: an earlier try was applied and its reply lost.
        return None if row.item == new else present

    def get(self, job_id: str) -> Job | None:
        """The row as it stands."""
        with self._lock:
            row = self._rows.get(table.job_pk(job_id))
            self._meter.read("jobs", "get", [None if row is None else row.item], consistent=True)
        return None if row is None else row.job

    def claim(self, job_id: str, *, by: str, now: datetime) -> Claimed | NotClaimed:
        """Queued and due: yours. Yours already: still yours."""
        return self._claim(job_id, by, now)

    def claim_in_run(
        self, lane: LaneSpec, entry: WaitingEntry, *, by: str, now: datetime, early: bool = False
    ) -> Claimed | NotClaimed:
        """As `claim`, and it stands among the claims of runs."""
        return self._claim(entry.job_id, by, now, run=rows.run_place(lane, entry, now), early=early)

    def _claim(
        self, job_id: str, by: str, now: datetime, *, run: Place | None = None, early: bool = False
    ) -> Claimed | NotClaimed:
        pk = table.job_pk(job_id)
        with self._lock:
            row = self._rows.get(pk)
            if row is None:
                self._meter.refused("jobs", "claim", old=None)
                return NotClaimed(job=None)
            if row.job.status is Status.QUEUED and (early or lifecycle.is_due(row.job, now)):
                claimed = Row(rows.claimed_item(row.item, by=by, now=now, run=run))
                self._write("claim", pk, row, claimed)
                return Claimed(job=claimed.job)
            self._meter.refused("jobs", "claim", old=row.item)
            if row.job.status is Status.PROCESSING and row.job.claimed_by == by:
                return Claimed(job=row.job)
            return NotClaimed(job=row.job)

    def move(self, before: Job, after: Job) -> None:
        """Status, fence and place in the index must be as read."""
        pk, new = table.job_pk(before.job_id), self._item(after)
        with self._lock:
            row = self._rows.get(pk)
            if row is not None and _as_read(row.job, before):
                same = row.job == before and pk not in self._planted
                # As in DynamoDB only what differs is written: what somebody noted meanwhile stays.
                written = (
                    Row(new, rows.stored(after)) if same else Row(_changed(row.item, self._item_before(before), new))
                )
                self._write("move", pk, row, written)
                return
            self._meter.refused("jobs", "move", old=None if row is None else row.item)
            if row is None:
                raise RowMoved(before.job_id, None)
            if row.item != new and self._item_before(row.job) != new:
                raise RowMoved(before.job_id, row.job)

    def waiting(
        self,
        lane: LaneSpec,
        *,
        due_before: datetime,
        limit: int,
        due_after: datetime | None = None,
        line: str | None = None,
    ) -> list[WaitingEntry]:
        """What the index nominates, as late as the index is."""
        if lane.admission == "fair":
            raise BadInput(f"lanes.{lane.name}.admission", "is fair: its waiting jobs are found by its ring")
        found: list[WaitingEntry] = []
        with self._lock:
            for priority in PRIORITIES:
                lines = lane.lines if line is None else (line,)
                shards = [table.ordered_wpk(name, shard, priority) for name in lines for shard in range(lane.shards)]
                found += self._nominated("waiting", shards, due_before, limit, due_after)
        return found

    def claimed_by_runs(self, lane: LaneSpec, *, before: datetime, limit: int) -> list[WaitingEntry]:
        """Claims of scheduled runs, oldest first."""
        with self._lock:
            return self._nominated("claimed_by_runs", [table.claimed_wpk(lane.name)], before, limit)

    def letters_missing(self, lane: LaneSpec, *, before: datetime, limit: int) -> list[WaitingEntry]:
        """Failed jobs that lost their dead letter, oldest first."""
        with self._lock:
            return self._nominated("letters_missing", [table.letters_wpk(lane.name)], before, limit)

    def failed(self, lane: LaneSpec, *, before: datetime, limit: int) -> list[WaitingEntry]:
        """Failed jobs that ask for no letter, oldest failure first."""
        with self._lock:
            return self._nominated("failed", [table.failed_wpk(lane.name)], before, limit)

    def scan(self, *, segment: int = 0, segments: int = 1) -> Iterator[Job | UnreadableRow]:
        """Every job of a segment as it stood when the scan began; an unreadable row as its error."""
        with self._lock:
            found = [row for pk, row in self._rows.items() if zlib.crc32(pk.encode()) % segments == segment]
            self._meter.read("jobs", "scan", [row.item for row in found], consistent=False)
        for row in found:
            if rows.is_job(row.item):
                try:
                    yield row.job
                except UnreadableRow as exc:
                    yield exc

    # ---- what a table has and the port does not
    def plant(self, item: Item) -> None:
        """Write a row as somebody else would: another version, another program, a person."""
        pk = item[table.PK]["S"]
        with self._lock:
            row = self._rows.get(pk)
            self._planted.add(pk)
            self._write("plant", pk, row, Row(item))

    def expire(self, job_id: str) -> None:
        """What DynamoDB does with a row whose time is over."""
        with self._lock:
            row = self._rows.pop(table.job_pk(job_id), None)
            if row is not None:
                self._index.follow(table.job_pk(job_id), None)
                self.open_jobs -= _open(row.item)
                self.stream.append(row, None)

    def item(self, job_id: str) -> Item | None:
        """The row as it is stored."""
        row = self._rows.get(table.job_pk(job_id))
        return None if row is None else dict(row.item)

    def next_due(self) -> datetime | None:
        """The earliest time anything in the index is due."""
        with self._lock:
            due = self._index.first_due()
        return None if due is None else parse(due)

    def _nominated(
        self,
        operation: str,
        partitions: list[str],
        due_before: datetime,
        limit: int,
        due_after: datetime | None = None,
    ) -> list[WaitingEntry]:
        since, until = table.FIRST_DUE if due_after is None else iso(due_after), table.due_until(iso(due_before))
        found: list[WaitingEntry] = []
        for wpk in partitions:
            nominated: list[WaitingEntry] = []
            seen: list[Item] = []
            for pk, wsk in self._index.query(wpk, since, until):
                if self._meter.counts:
                    seen.append(_index_item(pk, wpk, wsk))
                entry = _entry(pk, wpk, wsk)
                if entry is not None:
                    nominated.append(entry)
                    if len(nominated) == limit:
                        break
            self._meter.read("jobs", operation, seen, consistent=False)
            found += nominated
        found.sort(key=lambda entry: (entry.due, entry.created, entry.job_id))
        return found[:limit]

    def _item(self, job: Job) -> Item:
        if job.due is None:
            return rows.job_item(job)
        lane = self._lanes.get(job.lane)
        if lane is None:
            raise UnknownLane(job.lane, tuple(sorted(self._lanes)))
        return rows.job_item(job, rows.lane_wpk(job, lane))

    def _item_before(self, job: Job) -> Item:
        # A job of a lane that is no longer configured can still leave the index.
        lane = self._lanes.get(job.lane)
        return rows.job_item(job, job.lane if lane is None else rows.lane_wpk(job, lane))

    def _write(self, operation: str, pk: str, old: Row | None, new: Row) -> None:
        self._rows[pk] = new
        place, before = _place(new.item), None if old is None else old.item
        self.open_jobs += _open(new.item) - (before is not None and _open(before))
        if place != (None if before is None else _place(before)):
            self._index.follow(pk, place)
        self._meter.write("jobs", operation, old=before, new=new.item)
        if before != new.item:
            # DynamoDB writes no stream record for a write that changes nothing.
            self.stream.append(old, new)


def _open(item: Item) -> bool:
    return "status" in item and item["status"].get("S") not in _ENDED


def _as_read(present: Job, before: Job) -> bool:
    return (present.status, present.fence, rows.job_wsk(present)) == (
        *(before.status, before.fence, rows.job_wsk(before)),
    )


def _changed(present: Item, before: Item, after: Item) -> Item:
    """The row with what differs between `before` and `after`; older names of fields give way to the present ones."""
    again = ("status", table.WAITING_PK, *rows.FIELD_ALIASES)
    gone = {*(name for name in before if name not in after), *rows.FIELD_ALIASES.values()}
    written = {name: value for name, value in after.items() if name in again or before.get(name) != value}
    return {name: value for name, value in present.items() if name not in gone} | written


def _place(item: Item) -> Place | None:
    if table.WAITING_PK not in item or table.WAITING_SK not in item:
        return None
    return item[table.WAITING_PK]["S"], item[table.WAITING_SK]["S"]


def _index_item(pk: str, wpk: str, wsk: str) -> Item:
    return {table.PK: {"S": pk}, table.WAITING_PK: {"S": wpk}, table.WAITING_SK: {"S": wsk}}


@lru_cache(maxsize=1 << 16)
def _entry(pk: str, wpk: str, wsk: str) -> WaitingEntry | None:
    try:
        return rows.waiting_entry(_index_item(pk, wpk, wsk))
    except UnreadableRow:
        # As in DynamoDB: passed over.
        return None
