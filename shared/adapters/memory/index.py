"""The sparse index of waiting jobs: ordered keys per partition, and as late as a real one may be."""

from __future__ import annotations

import bisect
import heapq
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta

from shared.contract import table
from shared.core.ports import Clock

Place = tuple[str, str]
"""Partition and sort key."""
_FAILED = table.failed_wpk("")
_THEN = "\0"
"""Between a sort key and the key of its row: two rows may stand under one sort key."""


class WaitingIndex:
    """Follows the table with a lag: a write is seen here only `lag_s` later. Not locked by itself."""

    def __init__(self, *, clock: Clock, lag_s: float | Callable[[], float]) -> None:
        self._clock, self._lag_s = clock, lag_s
        self._partitions: dict[str, list[str]] = {}
        self._places: dict[str, Place] = {}
        self._coming: list[tuple[datetime, int, str, Place | None]] = []
        self._newest: dict[str, datetime] = {}
        self._made = 0

    def follow(self, pk: str, place: Place | None) -> None:
        """A row was written: it stands at `place`, or nowhere."""
        lag_s = self._lag_s() if callable(self._lag_s) else self._lag_s
        if lag_s <= 0 and not self._coming:
            self._set(pk, place)
            return
        # Changes of one row arrive in order, however late each is.
        at = max(self._clock.now() + timedelta(seconds=lag_s), self._newest.get(pk, self._clock.now()))
        self._newest[pk] = at
        self._made += 1
        heapq.heappush(self._coming, (at, self._made, pk, place))

    def partitions(self, prefix: str) -> list[str]:
        """Every partition that begins so."""
        self._catch_up()
        return sorted(name for name in self._partitions if name.startswith(prefix))

    def query(self, wpk: str, since: str, until: str) -> Iterator[tuple[str, str]]:
        """Key and sort key of each row of one partition whose sort key is between `since` and `until`, in order."""
        self._catch_up()
        keys = self._partitions.get(wpk, [])
        for n in range(bisect.bisect_left(keys, since), bisect.bisect_right(keys, until)):
            wsk, _, pk = keys[n].partition(_THEN)
            yield pk, wsk

    def first_due(self) -> str | None:
        """The earliest due time anywhere, lag or not: when there is next something to look at. Failed jobs that ask for
        nothing are due for nobody."""
        self._catch_up()
        places = [(wpk, keys[0]) for wpk, keys in self._partitions.items() if keys]
        places += [place for _, _, _, place in self._coming if place is not None]
        return min((table.due_from(wsk) for wpk, wsk in places if not wpk.startswith(_FAILED)), default=None)

    def _catch_up(self) -> None:
        now = self._clock.now()
        while self._coming and self._coming[0][0] <= now:
            _, _, pk, place = heapq.heappop(self._coming)
            self._set(pk, place)

    def _set(self, pk: str, place: Place | None) -> None:
        before = self._places.pop(pk, None)
        if before is not None:
            keys = self._partitions[before[0]]
            del keys[bisect.bisect_left(keys, f"{before[1]}{_THEN}{pk}")]
        if place is not None:
            self._places[pk] = place
            bisect.insort(self._partitions.setdefault(place[0], []), f"{place[1]}{_THEN}{pk}")
