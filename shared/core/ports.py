"""What the engine needs of the world, in its own words. Each port has one contract suite in `tests/contract`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    # Named by the ports and made by their users: a function that uses a port does not pay for its neighbours.
    from shared.core.account import AccountSpec
    from shared.core.capacity import CapacityState, EventSource
    from shared.core.effects import Answer, Call, Effect, EffectRow, Lookup, LookupAnswer
    from shared.core.errors import UnreadableRow
    from shared.core.feed import StateChange
    from shared.core.history import HistoryEvent
    from shared.core.job import Job
    from shared.core.lane import LaneSpec
    from shared.core.message import DeadLetter, DeadMessage, Message, QueueDepth
    from shared.core.rate import Arrivals, Budget, Refusal, Taken, Terms, Want
    from shared.core.schedule import RunRecord
    from shared.core.signals import Counts, Minute
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
    created: datetime
    priority: int
    timed: bool = False
    """It was given a time of its own, perhaps a promised turn; else it is due since it was created."""


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

    def claim_in_run(
        self, lane: LaneSpec, entry: WaitingEntry, *, by: str, now: datetime, early: bool = False
    ) -> Claimed | NotClaimed:
        """As `claim`, by a run that works without messages: until it is settled, the job stands among the claims of
        runs. `early`: also before its time."""
        ...

    def move(self, before: Job, after: Job) -> None:
        """Write `after` if the row still has `before`'s status, fence and place in the index.

        Being applied already counts as success. Otherwise raises RowMoved with the row as it stands.
        """
        ...

    def waiting(
        self,
        lane: LaneSpec,
        *,
        due_before: datetime,
        limit: int,
        due_after: datetime | None = None,
        line: str | None = None,
    ) -> list[WaitingEntry]:
        """Jobs in the index whose due time has come, oldest due first within each priority; at most `limit` each.
        With `due_after`, only those that were not due before it; with `line`, of that one of the lane's lines alone."""
        ...

    def claimed_by_runs(self, lane: LaneSpec, *, before: datetime, limit: int) -> list[WaitingEntry]:
        """Jobs claimed by a scheduled run before `before`: they have no message, so the sweeper reads them here."""
        ...

    def letters_missing(self, lane: LaneSpec, *, before: datetime, limit: int) -> list[WaitingEntry]:
        """Failed jobs whose dead letter was moved without a plan before `before`: the sweeper sends it again."""
        ...

    def failed(self, lane: LaneSpec, *, before: datetime, limit: int) -> list[WaitingEntry]:
        """Jobs that failed before `before` and ask for no letter, oldest failure first; a job that a version without
        this list has written enters it with its next move, or by the auditor."""
        ...

    def scan(self, *, segment: int = 0, segments: int = 1) -> Iterator[Job | UnreadableRow]:
        """Every job of one segment; slow, for the auditor and for listings."""
        ...


class EffectStore(Protocol):
    """The effects table: what was tried and what the vendor said. No method deletes."""

    def intend(self, row: EffectRow) -> EffectRow | None:
        """Write the intent if there is no row, or a refused one of the same vendor and fingerprint. None: it is yours
        (also when this very intent, same fence and time, was applied before). A row: what stands there instead."""
        ...

    def take_over(self, row: EffectRow, *, fence: int, now: datetime) -> EffectRow:
        """Put `fence` on an open intent, if it is still as read, and return it, marked as taken over: `now` is its new
        intent time, its first one stays. Being applied already counts as success. Raises EffectMoved."""
        ...

    def record(self, row: EffectRow, result: EffectRow) -> None:
        """Write the result if the row has `row`'s fence and no result yet; applied already counts as success.

        Raises EffectMoved."""
        ...

    def accept(self, acceptance: EffectRow) -> EffectRow:
        """Write that the vendor took it, whoever holds the intent and whatever stands there: see
        `effects.with_acceptance`. The row as it stands then. Raises EffectMoved when there is none."""
        ...

    def of_job(self, job_id: str) -> list[EffectRow]:
        """Every effect of a job (a consistent read)."""
        ...


class LaneQueues(Protocol):
    """The lanes' SQS queues, for the two senders: the stream consumer and the dispatcher."""

    def send(self, messages: Sequence[Message]) -> list[Message]:
        """Send; returns those that were not taken. Raises Unavailable when nothing is known."""
        ...

    def depth(self, lane: str) -> QueueDepth:
        """How much waits."""
        ...


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


class ChangeFeed(Protocol):
    """Where subscribers are told that jobs changed their state."""

    def publish(self, changes: Sequence[StateChange]) -> list[StateChange]:
        """Publish in order; returns those not taken, in order. Raises Unavailable when nothing is known."""
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
        """Every switch, read now. Raises Unavailable, or UnreadableSwitches with what can be read of them."""
        ...

    def set_switch(self, switch: Switch) -> None:
        """Set one scope, whatever stands there of it. Raises UnreadableRow where the row cannot keep it."""
        ...

    def reset_switches(self, *switches: Switch) -> None:
        """Begin the row anew with these alone, whatever stands there."""
        ...

    def open_switch(self, switch: Switch, seen: Switch) -> bool:
        """Set a scope whose entry still is `seen`; False, and nothing written, when somebody changed it meanwhile."""
        ...

    def trip(self, switch: Switch) -> bool:
        """Close a scope that is open; False, and nothing written, when a person has closed or changed it meanwhile."""
        ...

    def capacity(self, lane: str) -> CapacityState | None:
        """All that is kept of a lane's capacity, None when nobody wrote any; read now. Raises UnreadableRow."""
        ...

    def set_capacity(self, lane: str, seen: CapacityState | None, after: CapacityState) -> bool:
        """Write `after` if the row still has `seen`'s version; False when somebody else was faster.

        Being applied already counts as success."""
        ...

    def reset_capacity(self, lane: str, state: CapacityState) -> None:
        """Begin the row anew, whatever stands there."""
        ...


class Actuator(Protocol):
    """The event sources that feed the lanes' workers."""

    def source(self, lane: str) -> EventSource:
        """As it stands now. Raises Unavailable, also when the lane has none."""
        ...

    def assert_cap(self, lane: str, cap: int) -> bool:
        """Ask for a cap; 0 disables the source. False: it is being changed, and nothing was done."""
        ...


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


class SignalLedger(Protocol):
    """What a lane was seen to do, minute by minute; kept for two days."""

    def add(self, lane: str, at: datetime, counts: Counts, *, minute_s: int = 60) -> None:
        """Add what happened to the minute `at` is in: one write. A lost reply may have counted it; ask once.
        A lane's minutes are all of one length, `minute_s`."""
        ...

    def minutes(self, lane: str, *, since: datetime) -> list[Minute]:
        """The minutes from `since` on of which anything is known, oldest first (a consistent read)."""
        ...


class BudgetLedger(Protocol):
    """Vendor accounts: one item each, one conditional write a step, two at most. What goes wrong costs permits, never
    grants them: a take or a return whose reply was lost is not asked for again."""

    def read(self, spec: AccountSpec) -> Budget:
        """The account as it stands now (a consistent read); one nobody has used yet is empty. Raises UnreadableRow."""
        ...

    def take(
        self,
        spec: AccountSpec,
        want: Want,
        *,
        least: Want,
        now_us: int,
        hold: str = "",
        hold_s: float = 0,
        told_us: Arrivals | None = None,
        ahead_us: int = 0,
        used_tokens: int = 0,
    ) -> Taken | Refusal:
        """Take `want`, now or, if only the pace holds it back, for its moment within `ahead_us`; if that does not fit,
        the most that does, down to `least`; else the refusal with its time.

        `hold` names the holder of slots and batch tokens. Asking again under the same name does not hold twice.
        `told_us` are arrivals that the vendor's own count tells: the account is spent at least so far. `used_tokens` is
        what the caller's newest call used: of such the account keeps the mean.
        """
        ...

    def give_back(self, spec: AccountSpec, want: Want, *, now_us: int, hold: str = "") -> None:
        """Return what was not used (negative: what was used beyond the estimate), and all that `hold` holds."""
        ...

    def reserve(self, spec: AccountSpec, span_us: int, *, not_before_us: int, backlog_us: int = 0) -> int:
        """Promise `span_us` of the account's time, at or after a moment and behind every earlier promise; its start.
        `backlog_us`: until then a backlog is paced, and newcomers belong behind it."""
        ...

    def change(self, spec: AccountSpec, seen: Terms, after: Terms) -> Budget:
        """Write `after` if the terms still have `seen`'s version; either way the account as it stands then."""
        ...

    def reset(self, spec: AccountSpec, terms: Terms) -> Budget:
        """Put an account with nothing but these terms in the place of whatever stands there, readable or not."""
        ...


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


Value = str | int | float | bool | None
"""What a log line may carry: ids, codes and numbers."""


class Telemetry(Protocol):
    """Events with ids, and counts with closed dimensions; nothing else is ever written."""

    def event(self, name: str, **ids: Value | Mapping[str, Value]) -> None:
        """One log line: an event name and ids, or a small table of them."""
        ...

    def count(self, metric: str, value: float = 1, *, lane: str = "all", account: str = "") -> None:
        """One metric value; with `account`, of what that vendor account was asked for."""
        ...

    def error(self, name: str, exc: BaseException, **ids: Value) -> None:
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
