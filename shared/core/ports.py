"""What the engine needs of the world, in its own words. Each port has one contract suite in `tests/contract`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Protocol

from shared.core.effects import Answer, Call, Effect, EffectRow, Lookup, LookupAnswer
from shared.core.errors import UnreadableRow
from shared.core.job import Job
from shared.core.lane import LaneSpec
from shared.core.outcome import is_code
from shared.core.switches import Switch, Switches


class Clock(Protocol):
    """Time comes in from outside; tests bring their own."""

    def now(self) -> datetime:
        """The present moment, aware, UTC, in whole milliseconds (what a row can hold)."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    """The claim is yours (or already was)."""

    job: Job


@dataclass(frozen=True, slots=True, kw_only=True)
class NotClaimed:
    """The row as it stands instead; None when there is no row."""

    job: Job | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingEntry:
    """What the waiting index nominates; it may be out of date, so act only on a fresh read and a condition."""

    job_id: str
    due: datetime
    priority: int


class JobStore(Protocol):
    """The jobs table: the truth about every job."""

    def put(self, job: Job) -> Job | None:
        """Write a new job. None: written (or this very write was applied before). A job: it already exists."""
        ...

    def get(self, job_id: str) -> Job | None:
        """The row as it stands now (a consistent read). Raises UnreadableRow."""
        ...

    def claim(self, job_id: str, *, by: str, now: datetime) -> Claimed | NotClaimed:
        """Take a queued, due job: processing, fence + 1, out of the index. Asking again with the same `by` is safe."""
        ...

    def move(self, before: Job, after: Job) -> None:
        """Write `after` if the row still has `before`'s status, fence and place in the index.

        Being applied already counts as success. Otherwise raises RowMoved with the row as it stands.
        """
        ...

    def waiting(self, lane: LaneSpec, *, due_before: datetime, limit: int) -> list[WaitingEntry]:
        """Jobs in the index whose due time has come, oldest due first within each priority; at most `limit` each."""
        ...

    def claimed_by_runs(self, lane: LaneSpec, *, before: datetime, limit: int) -> list[WaitingEntry]:
        """Jobs claimed by a scheduled run before `before`: they have no message, so the sweeper reads them here."""
        ...

    def scan(self, *, segment: int = 0, segments: int = 1) -> Iterator[Job | UnreadableRow]:
        """Every job of one segment; slow, for the auditor and for listings."""
        ...


class EffectStore(Protocol):
    """The effects table: what was tried and what the vendor said. No method deletes."""

    def intend(self, row: EffectRow) -> EffectRow | None:
        """Write the intent if there is no row or it was refused. None: it is yours (also when this very
        intent, same fence and time, was applied before). A row: what stands there instead."""
        ...

    def take_over(self, row: EffectRow, *, fence: int, now: datetime) -> EffectRow:
        """Put `fence` on an open intent, if it is still as read, and return it: `now` is its new intent time,
        its first one stays. Being applied already counts as success. Raises EffectMoved."""
        ...

    def record(self, row: EffectRow, result: EffectRow) -> None:
        """Write the result if the row has `row`'s fence and no result yet; applied already counts as success.

        Raises EffectMoved."""
        ...

    def of_job(self, job_id: str) -> list[EffectRow]:
        """Every effect of a job (a consistent read)."""
        ...


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


class LaneQueues(Protocol):
    """The lanes' SQS queues, for the two senders: the stream consumer and the dispatcher."""

    def send(self, messages: Sequence[Message]) -> list[Message]:
        """Send; returns those that were not taken. Raises Unavailable when nothing is known."""
        ...

    def depth(self, lane: str) -> QueueDepth:
        """How much waits."""
        ...


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


class DeadLetterQueues(Protocol):
    """The lanes' dead-letter queues."""

    def send(self, letters: Sequence[DeadLetter]) -> list[DeadLetter]:
        """Send; returns those that were not taken."""
        ...

    def receive(self, lane: str, *, limit: int, hide_s: int) -> list[DeadMessage]:
        """Up to `limit` messages, hidden for `hide_s`, not deleted."""
        ...

    def delete(self, lane: str, receipt: str) -> None:
        """Remove one message for good."""
        ...

    def depth(self, lane: str) -> QueueDepth:
        """How much stands there."""
        ...


class ContentStore(Protocol):
    """The one place for text a customer wrote. Encrypted; by id."""

    def put(self, ref: str, data: bytes) -> None:
        """Store; the same ref and bytes may be stored again."""
        ...

    def get(self, ref: str) -> bytes | None:
        """Read; None when it is not there."""
        ...

    def delete(self, ref: str) -> None:
        """Remove."""
        ...


class ControlStore(Protocol):
    """Switches and wanted caps."""

    def switches(self) -> Switches:
        """Every switch, read now. Raises Unavailable."""
        ...

    def set_switch(self, switch: Switch) -> None:
        """Set one scope."""
        ...

    def cap(self, lane: str) -> int | None:
        """The lane's wanted cap, None when nobody set one."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """One invocation of a scheduled function, kept by (schedule, slot)."""

    schedule: str
    slot: str
    run_id: str
    started_at: datetime
    finished_at: datetime | None = None
    counts: Mapping[str, int] = field(default_factory=dict)


class Ledger(Protocol):
    """Who ran when: one row per schedule and slot."""

    def open_run(self, run: RunRecord) -> bool:
        """True for the first to open this slot (asking again with the same run_id is still True)."""
        ...

    def close_run(self, run: RunRecord) -> None:
        """Write the counts of a run this caller opened."""
        ...

    def runs(self, schedule: str, *, limit: int) -> list[RunRecord]:
        """The newest runs first."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEvent:
    """Something a person or the engine decided; append-only."""

    subject: str
    event_id: str
    at: datetime
    kind: str
    by: str
    detail: Mapping[str, Any] = field(default_factory=dict)


class History(Protocol):
    """Decisions, switches, repairs: written once, never changed."""

    def append(self, event: HistoryEvent) -> None:
        """Write once; the same event (subject, time and id) again is a no-op."""
        ...

    def of(self, subject: str, *, limit: int) -> list[HistoryEvent]:
        """The newest first."""
        ...


class Vendor(Protocol):
    """An outside service, spoken to with client retries off."""

    name: str
    dedupes_by_key: timedelta | None
    lookup: Lookup

    def perform(self, request: Effect | Call, *, key: str | None, timeout_s: float) -> Answer:
        """One request, one verdict; never raises for what the vendor does."""
        ...

    def look_up(self, key: str, *, timeout_s: float) -> LookupAnswer:
        """Does the vendor know this key?"""
        ...


class Telemetry(Protocol):
    """Events with ids, and counts with closed dimensions; nothing else is ever written."""

    def event(self, name: str, **ids: str | int | float | bool | None) -> None:
        """One log line: an event name and ids."""
        ...

    def count(self, metric: str, value: float = 1, *, lane: str = "all") -> None:
        """One metric value."""
        ...

    def error(self, name: str, exc: BaseException, **ids: str | int | float | bool | None) -> None:
        """An error as its type, code and place; never its text."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One message in a worker's hands."""

    message_id: str
    job_id: str | None
    lane: str | None
    receive_count: int
    body: str
    problem: str = ""
    """Why the envelope could not be read, when `job_id` is None."""


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
