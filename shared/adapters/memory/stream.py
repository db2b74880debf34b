"""The jobs table's stream: old and new image of every write, in order, at least once."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass
from datetime import datetime, timedelta

from shared.adapters import rows
from shared.adapters.attributes import Item
from shared.core.job import Job
from shared.core.ports import Clock

RETENTION_S = 24 * 3600
"""DynamoDB trims what is older, read or not."""
MAX_RECORD_AGE_S = 12 * 3600
"""The consumer's setting: an older record goes to the failure queue, which keeps its number only."""


class Row:
    """One stored item and, once somebody asked, the job it says. Neither ever changes."""

    __slots__ = ("_job", "item")

    def __init__(self, item: Item, job: Job | None = None) -> None:
        self.item, self._job = item, job

    @property
    def job(self) -> Job:
        """The job as it is read back. Raises UnreadableRow."""
        if self._job is None:
            self._job = rows.job_from_item(self.item)
        return self._job


@dataclass(frozen=True, slots=True)
class StreamRecord:
    """One write: `old` is None for a new row, `new` is None for a removed one."""

    sequence: int
    at: datetime
    old: Row | None
    new: Row | None

    @property
    def event_name(self) -> str:
        """INSERT, MODIFY or REMOVE."""
        if self.old is None:
            return "INSERT"
        return "MODIFY" if self.new is not None else "REMOVE"


class MemoryStream:
    """All writes of one table; each named reader has its own position."""

    def __init__(self, *, clock: Clock, retention_s: int = RETENTION_S) -> None:
        self._clock, self._retention = clock, timedelta(seconds=retention_s)
        self._records: deque[StreamRecord] = deque()
        self._next = 1
        self._lock = threading.RLock()
        self.trimmed = 0

    def append(self, old: Row | None, new: Row | None) -> None:
        """What the table does on every write that changed something."""
        with self._lock:
            self._records.append(StreamRecord(self._next, self._clock.now(), old, new))
            self._next += 1

    def since(self, sequence: int, limit: int) -> list[StreamRecord]:
        """Up to `limit` records after `sequence` that have not been trimmed."""
        with self._lock:
            self._trim()
            if not self._records or self._records[-1].sequence <= sequence:
                return []
            skip = max(0, sequence + 1 - self._records[0].sequence)
            return [self._records[i] for i in range(skip, min(len(self._records), skip + limit))]

    @property
    def last(self) -> int:
        """The newest sequence number; 0 before the first write."""
        return self._next - 1

    def reader(self, *, max_age_s: int = MAX_RECORD_AGE_S) -> StreamReader:
        """A new reader, from the trim horizon."""
        return StreamReader(self, self._clock, max_age_s)

    def _trim(self) -> None:
        horizon = self._clock.now() - self._retention
        while self._records and self._records[0].at < horizon:
            self._records.popleft()
            self.trimmed += 1


class StreamReader:
    """One reader's place. `read` gives the same records again until `commit` says they were dealt with."""

    def __init__(self, stream: MemoryStream, clock: Clock, max_age_s: int) -> None:
        self._stream, self._clock, self._max_age = stream, clock, timedelta(seconds=max_age_s)
        self._position = 0
        self.discarded: list[int] = []
        """Sequence numbers that grew too old to be read: what the failure queue would hold."""

    def read(self, limit: int = 100) -> list[StreamRecord]:
        """The next records; what is too old is given up on the way."""
        while True:
            records = self._stream.since(self._position, limit)
            oldest = self._clock.now() - self._max_age
            young = [record for record in records if record.at >= oldest]
            if len(young) == len(records):
                return records
            self.discarded += [record.sequence for record in records if record.at < oldest]
            if young:
                return young
            self._position = records[-1].sequence

    def commit(self, records: list[StreamRecord]) -> None:
        """Go on after these."""
        if records:
            self._position = max(self._position, records[-1].sequence)

    @property
    def behind(self) -> int:
        """Writes this reader has not dealt with."""
        return self._stream.last - self._position
