"""The lanes' queues and dead-letter queues, as SQS would keep them: ids only, delivered at least once.

After `max_receive_count` receives a message goes to its lane's dead-letter queue.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from shared.adapters.memory.queue import Kept, MemoryQueue
from shared.contract import envelope
from shared.core.errors import UnknownLane
from shared.core.lane import LaneSpec
from shared.core.message import DeadLetter, DeadMessage, Message, QueueDepth
from shared.core.moment import iso
from shared.core.ports import Clock, Delivery

VISIBILITY_S = 400
MAX_RECEIVES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """A delivery and the receipt it is deleted by."""

    receipt: str
    delivery: Delivery
    sent_at: datetime


class MemoryDeadLetterQueues:
    """The lanes' dead-letter queues."""

    def __init__(
        self, *, clock: Clock, lanes: Mapping[str, LaneSpec] | None = None, rng: random.Random | None = None
    ) -> None:
        self._clock, self._lanes, self._rng = clock, dict(lanes or {}), rng
        self._queues: dict[str, MemoryQueue] = {}
        self._lock = threading.RLock()

    def send(self, letters: Sequence[DeadLetter]) -> list[DeadLetter]:
        """Take every letter."""
        with self._lock:
            for letter in letters:
                body = envelope.encode_dead_letter(
                    job_id=letter.job_id,
                    lane=letter.lane,
                    category=letter.category,
                    signature=letter.signature,
                    at=iso(letter.at),
                )
                self.queue(letter.lane).add(body, letter.tenant)
        return []

    def receive(self, lane: str, *, limit: int, hide_s: int) -> list[DeadMessage]:
        """Up to `limit` messages, hidden for `hide_s`."""
        with self._lock:
            taken, _ = self.queue(lane).take(limit, hide_s)
        return [
            DeadMessage(
                receipt=message.receipt,
                message_id=message.message_id,
                body=message.body,
                job_id=_read(message.body)[0],
                receive_count=message.receives,
            )
            for message in taken
        ]

    def delete(self, lane: str, receipt: str) -> None:
        """Remove one message."""
        with self._lock:
            self.queue(lane).drop(receipt)

    def depth(self, lane: str) -> QueueDepth:
        """What stands there."""
        with self._lock:
            return self.queue(lane).depth()

    def add(self, lane: str, body: str, group: str = "") -> None:
        """What SQS does with a message received too often; also how bytes of others get there."""
        with self._lock:
            self.queue(lane).add(body, group)

    def job_ids(self, lane: str) -> list[str]:
        """Jobs with a message here; for judges."""
        with self._lock:
            read = [_read(message.body)[0] for message in self.queue(lane).messages()]
        return [job_id for job_id in read if job_id is not None]

    def queue(self, lane: str) -> MemoryQueue:
        """One lane's dead-letter queue."""
        found = self._queues.get(lane)
        if found is None:
            if self._lanes and lane not in self._lanes:
                raise UnknownLane(lane, tuple(sorted(self._lanes)))
            found = self._queues[lane] = MemoryQueue(f"{lane}-dlq", self._clock, self._rng, 0.0)
        return found


class MemoryLaneQueues:
    """The lanes' queues: the senders' port, and the side an event source sees."""

    def __init__(
        self,
        *,
        clock: Clock,
        lanes: Mapping[str, LaneSpec] | None = None,
        dead_letters: MemoryDeadLetterQueues | None = None,
        rng: random.Random | None = None,
        duplicate_p: float = 0.0,
        refuse_p: float = 0.0,
    ) -> None:
        self._clock, self._lanes, self._rng = clock, dict(lanes or {}), rng
        self.dead_letters = dead_letters or MemoryDeadLetterQueues(clock=clock, lanes=lanes, rng=rng)
        self._duplicate_p, self._refuse_p = duplicate_p, refuse_p
        self._queues: dict[str, MemoryQueue] = {}
        self._lock = threading.RLock()
        self.receives: dict[str, int] = {}
        """How often each job's messages were received, all messages together."""
        self.most_receives = 0
        """The highest receive count any one message reached."""

    def send(self, messages: Sequence[Message]) -> list[Message]:
        """Take messages; with `refuse_p`, some entries of a batch are refused, as SendMessageBatch may do."""
        refused: list[Message] = []
        with self._lock:
            for message in messages:
                if self._rng is not None and self._refuse_p and self._rng.random() < self._refuse_p:
                    refused.append(message)
                    continue
                body = envelope.encode_ticket(message.job_id, message.lane)
                self.queue(message.lane).add(body, message.tenant, message.delay_s)
        return refused

    def depth(self, lane: str) -> QueueDepth:
        """What stands there."""
        with self._lock:
            return self.queue(lane).depth()

    @property
    def undisturbed(self) -> bool:
        """True when this queue neither doubles nor refuses on its own."""
        return not self._duplicate_p and not self._refuse_p

    def calm(self) -> None:
        """From now on nothing is refused any more."""
        with self._lock:
            self._refuse_p = 0.0

    def receive(self, lane: str, *, limit: int = 10, hide_s: float | None = None) -> list[Received]:
        """What an event source hands to a worker: messages hidden for the lane's visibility time-out."""
        spec = self._lanes.get(lane)
        hidden = hide_s if hide_s is not None else (spec.visibility_s if spec else VISIBILITY_S)
        most = spec.max_receive_count if spec else MAX_RECEIVES
        with self._lock:
            taken, dead = self.queue(lane).take(limit, hidden, most)
            for message in dead:
                self.dead_letters.add(lane, message.body, message.group)
            received = [_received(message) for message in taken]
            for one in received:
                self.most_receives = max(self.most_receives, one.delivery.receive_count)
                if one.delivery.job_id is not None:
                    self.receives[one.delivery.job_id] = self.receives.get(one.delivery.job_id, 0) + 1
        return received

    def delete(self, lane: str, receipt: str) -> None:
        """Acknowledge one message."""
        with self._lock:
            self.queue(lane).drop(receipt)

    def show(self, lane: str, receipt: str, after_s: float = 0) -> None:
        """Let one message be seen again after `after_s`: its visibility time-out is changed."""
        with self._lock:
            self.queue(lane).show(receipt, after_s)

    def again(self, lane: str, message_id: str) -> Received | None:
        """One message delivered once more at this moment, as a standard queue may do; None when it is gone."""
        with self._lock:
            message = self.queue(lane).again(message_id)
        return None if message is None else _received(message)

    def add(self, lane: str, body: str, group: str = "") -> None:
        """Put any bytes in a queue: what a stranger may send."""
        with self._lock:
            self.queue(lane).add(body, group)

    def job_ids(self, lane: str) -> list[str]:
        """Jobs with a message here, delivered or not; for judges."""
        with self._lock:
            read = [_read(message.body)[0] for message in self.queue(lane).messages()]
        return [job_id for job_id in read if job_id is not None]

    def next_at(self) -> datetime | None:
        """When any queue next has something to give."""
        with self._lock:
            times = [at for queue in self._queues.values() if (at := queue.next_at()) is not None]
        return min(times, default=None)

    def queue(self, lane: str) -> MemoryQueue:
        """One lane's queue."""
        found = self._queues.get(lane)
        if found is None:
            if self._lanes and lane not in self._lanes:
                raise UnknownLane(lane, tuple(sorted(self._lanes)))
            found = self._queues[lane] = MemoryQueue(lane, self._clock, self._rng, self._duplicate_p)
        return found


def delivery_of(message_id: str, body: str, receive_count: int) -> Delivery:
    """A message as a worker reads it."""
    job_id, lane, problem = _read(body)
    return Delivery(
        message_id=message_id,
        job_id=job_id,
        lane=lane,
        receive_count=receive_count,
        body=body,
        problem=problem,
    )


def _received(message: Kept) -> Received:
    delivery = delivery_of(message.message_id, message.body, message.receives)
    return Received(receipt=message.receipt, delivery=delivery, sent_at=message.sent_at)


@lru_cache(maxsize=4096)
def _read(body: str) -> tuple[str | None, str | None, str]:
    try:
        ticket = envelope.decode_ticket(body)
    except envelope.BadEnvelope as exc:
        return None, None, str(exc)
    return ticket.job_id, ticket.lane, ""
