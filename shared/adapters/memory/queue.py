"""One queue that behaves as SQS does: at least once, in roughly any order.

A received message is hidden for its visibility time-out and comes back unless it was deleted. With an `rng`,
deliveries are reordered and some are doubled, as a standard queue may do on its own.
"""

from __future__ import annotations

import heapq
import random
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from shared.core.message import QueueDepth
from shared.core.ports import Clock


@dataclass(slots=True)
class Kept:
    """One message as the queue keeps it."""

    message_id: str
    body: str
    group: str
    sent_at: datetime
    receives: int = 0
    receipt: str = ""


class MemoryQueue:
    """One queue. Not thread-safe by itself: the two adapters below hold the lock."""

    def __init__(self, name: str, clock: Clock, rng: random.Random | None, duplicate_p: float) -> None:
        self.name = name
        self._clock, self._rng, self._duplicate_p = clock, rng, duplicate_p
        self._kept: dict[str, Kept] = {}
        self._ready: dict[str, None] = {}
        self._hidden: list[tuple[datetime, int, str, str]] = []
        self._delayed: set[str] = set()
        self._made = 0

    def add(self, body: str, group: str, delay_s: int = 0) -> Kept:
        """Take a message."""
        self._made += 1
        message = Kept(f"{self._made:08x}-{self.name}", body, group, self._clock.now())
        self._kept[message.message_id] = message
        if delay_s > 0:
            self._delayed.add(message.message_id)
            self._hide(message, delay_s)
        else:
            self._ready[message.message_id] = None
        return message

    def take(self, limit: int, hide_s: float, max_receives: int | None = None) -> tuple[list[Kept], list[Kept]]:
        """Up to `limit` messages, hidden for `hide_s`; and those that were received too often already."""
        self._reveal()
        taken: list[Kept] = []
        dead: list[Kept] = []
        while self._ready and len(taken) < limit:
            message_id = self._next()
            del self._ready[message_id]
            message = self._kept[message_id]
            if max_receives is not None and message.receives >= max_receives:
                dead.append(self._kept.pop(message_id))
                continue
            message.receives += 1
            self._made += 1
            message.receipt = f"{message_id}/{self._made}"
            taken.append(replace(message))
            if self._rng is not None and self._duplicate_p and self._rng.random() < self._duplicate_p:
                # A standard queue may deliver again although the visibility time-out has not passed.
                self._ready[message_id] = None
            else:
                self._hide(message, hide_s)
        return taken, dead

    def drop(self, receipt: str) -> None:
        """Delete by receipt. Deleting twice, or with the receipt of an older delivery, is no error."""
        message_id = receipt.rsplit("/", 1)[0]
        self._kept.pop(message_id, None)
        self._ready.pop(message_id, None)
        self._delayed.discard(message_id)

    def show(self, receipt: str, after_s: float = 0) -> None:
        """Change one message's visibility: the newest receipt's holder gives it back."""
        message = self._kept.get(receipt.rsplit("/", 1)[0])
        if message is not None and message.receipt == receipt:
            self._made += 1
            message.receipt = f"{message.message_id}/{self._made}"
            self._hide(message, after_s)

    def again(self, message_id: str) -> Kept | None:
        """A second delivery of one message, whoever has it; its place in the queue does not change."""
        message = self._kept.get(message_id)
        if message is None:
            return None
        message.receives += 1
        self._made += 1
        return replace(message, receipt=f"{message_id}/{self._made}")

    @property
    def visible(self) -> bool:
        """True when it has something to give now."""
        self._reveal()
        return bool(self._ready)

    @property
    def total(self) -> int:
        """Every message it keeps, delivered or not."""
        return len(self._kept)

    def depth(self) -> QueueDepth:
        """What stands there."""
        self._reveal()
        visible, delayed = len(self._ready), len(self._delayed)
        return QueueDepth(visible=visible, delayed=delayed, in_flight=len(self._kept) - visible - delayed)

    def next_at(self) -> datetime | None:
        """When the queue next has something to give: now, later, or never."""
        self._reveal()
        if self._ready:
            return self._clock.now()
        while self._hidden and not self._current(self._hidden[0]):
            heapq.heappop(self._hidden)
        return self._hidden[0][0] if self._hidden else None

    def messages(self) -> list[Kept]:
        """Every message, delivered or not; for judges."""
        return [replace(message) for message in self._kept.values()]

    def _next(self) -> str:
        if self._rng is None or len(self._ready) == 1:
            return next(iter(self._ready))
        return self._rng.choice(list(self._ready))

    def _hide(self, message: Kept, seconds: float) -> None:
        self._made += 1
        at = self._clock.now() + timedelta(seconds=seconds)
        heapq.heappush(self._hidden, (at, self._made, message.message_id, message.receipt))

    def _current(self, entry: tuple[datetime, int, str, str]) -> bool:
        # An entry of a delivery that was deleted or superseded is only dust.
        message = self._kept.get(entry[2])
        return message is not None and message.receipt == entry[3] and entry[2] not in self._ready

    def _reveal(self) -> None:
        now = self._clock.now()
        while self._hidden and self._hidden[0][0] <= now:
            entry = heapq.heappop(self._hidden)
            if self._current(entry):
                self._delayed.discard(entry[2])
                self._ready[entry[2]] = None
