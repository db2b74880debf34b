"""What goes through the queues: a job's ticket, its dead letter, and how much waits. A worker needs none of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from shared.core.job import Job
from shared.core.outcome import is_code


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A job's ticket to a worker: ids only."""

    job_id: str
    lane: str
    tenant: str
    delay_s: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueDepth:
    """What a queue says of itself (approximate by nature)."""

    visible: int
    in_flight: int
    delayed: int = 0

    @property
    def total(self) -> int:
        """Everything not yet deleted."""
        return self.visible + self.in_flight + self.delayed


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """A failed job's entry in the dead-letter queue: ids and codes only."""

    job_id: str
    lane: str
    tenant: str
    category: str
    signature: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadMessage:
    """A message received from a dead-letter queue: a ticket that died, a dead letter, or unreadable bytes."""

    receipt: str
    message_id: str
    body: str
    job_id: str | None
    """None when the body is not ours or cannot be read."""
    receive_count: int = 1


def message_of(job: Job, delay_s: int = 0) -> Message:
    """The ticket of a job."""
    return Message(job_id=job.job_id, lane=job.lane, tenant=job.tenant, delay_s=delay_s)


def dead_letter_of(job: Job) -> DeadLetter:
    """The dead letter of a failed job."""
    return DeadLetter(
        job_id=job.job_id,
        lane=job.lane,
        tenant=job.tenant,
        category=job.category.value if job.category else "",
        # A row written by another hand may hold anything; a letter holds codes.
        signature=job.signature if job.signature and is_code(job.signature) else "",
        at=job.updated_at,
    )


def by_lane(messages: Iterable[Message]) -> dict[str, list[Message]]:
    """Messages sorted by the queue they go to, order kept."""
    sorted_by_lane: dict[str, list[Message]] = {}
    for message in messages:
        sorted_by_lane.setdefault(message.lane, []).append(message)
    return sorted_by_lane
