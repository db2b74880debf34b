"""The change feed on EventBridge: one entry a change, on the stage's own bus."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from shared.adapters.aws.errors import ask
from shared.adapters.meter import UNMETERED, Meter
from shared.contract import names
from shared.core.errors import Unavailable
from shared.core.feed import StateChange

PORT = "feed"
BATCH = 10
"""PutEvents takes at most this many entries a call; ten of ours are far below its limit of bytes."""


class EventBridgeChangeFeed:
    """`ChangeFeed` on EventBridge."""

    def __init__(self, *, client: Any, bus: str, meter: Meter = UNMETERED) -> None:
        self._client, self._bus, self._meter = client, bus, meter

    def publish(self, changes: Sequence[StateChange]) -> list[StateChange]:
        """Publish in order; returns those that were not taken, in their order.

        A call without an answer took all of it, or nothing: said to be not taken, it is made again, and its changes
        keep their ids. Only when no call at all was answered is nothing known, and Unavailable raised.
        """
        refused: list[StateChange] = []
        lost: Unavailable | None = None
        answered = False
        for start in range(0, len(changes), BATCH):
            batch = changes[start : start + BATCH]
            self._meter.call(PORT, "publish")
            try:
                refused += self._put(batch)
                answered = True
            except Unavailable as unavailable:
                refused += batch
                lost = unavailable
        if lost is not None and not answered:
            raise lost
        return refused

    def _put(self, batch: Sequence[StateChange]) -> list[StateChange]:
        """One call; a call that succeeds may still have taken only some. Answers stand in the order of the entries."""
        entries = [self._entry(change) for change in batch]
        answer = ask(PORT, lambda: self._client.put_events(Entries=entries))
        if not answer.get("FailedEntryCount"):
            return []
        return [change for change, told in zip(batch, answer["Entries"], strict=True) if not told.get("EventId")]

    def _entry(self, change: StateChange) -> dict[str, Any]:
        # No `Time`: a row that says the year 1 must not become an entry that is refused for ever.
        return {
            "EventBusName": self._bus,
            "Source": names.FEED_SOURCE,
            "DetailType": names.FEED_DETAIL_TYPE,
            "Detail": json.dumps(change.detail(), separators=(",", ":")),
        }
