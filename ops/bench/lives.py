"""The lives a job can have, walked step by step through the real use cases, for whoever counts what they cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from ops.bench.workload import LANE as LANE_OF_SUPPORT
from ops.bench.workload import TENANT, TEXT, Invocation
from shared.adapters import rows
from shared.adapters.attributes import Item
from shared.adapters.memory.clock import VirtualClock
from shared.adapters.memory.stores import MemoryContentStore, MemoryControlStore, MemorySignalLedger
from shared.adapters.memory.telemetry import MemoryTelemetry
from shared.adapters.memory.vendor import MemoryVendor, Says
from shared.adapters.meter import Meter, Usage, item_size
from shared.adapters.vendors import helpdesk
from shared.contract import envelope
from shared.core.effects import Call
from shared.core.job import Job, Status
from shared.core.lane import LaneSpec
from shared.core.message import DeadLetter, DeadMessage, Message, QueueDepth
from shared.core.outcome import Done, Outcome
from shared.core.ports import Delivery, EffectStore, JobStore
from shared.core.sensitive import Sensitive
from shared.core.switches import Level, Switch
from shared.usecases.admit import admit
from shared.usecases.context import Context, Task
from shared.usecases.deadline import Deadline
from shared.usecases.dispatch import dispatch
from shared.usecases.enqueue import Enqueue, enqueue
from shared.usecases.run_attempt import Worker
from shared.usecases.run_batch import run_batch
from shared.usecases.switchboard import SwitchBoard
from shared.usecases.view import Viewer

COUNTED = ("jobs", "effects")
"""The tables a job is written to. Switches are read every few seconds by an environment, not by a job."""
OF_A_BATCH = ("signals",)
"""What a batch writes once, whatever its size: counted apart, since a job shares it with its batch."""
CACHES_S = 15
"""Longer than anything an environment keeps in memory."""


def route(job: Job, ctx: Context) -> Outcome:
    """Read the text; nothing is sent."""
    ctx.payload.reveal()
    return Done("routed:specialists")


def reply(job: Job, ctx: Context) -> Outcome:
    """Read the text, send one reply."""
    ctx.payload.reveal()
    ctx.effect("reply", helpdesk.reply(f"c-{job.key}", Sensitive("Thank you.")))
    return Done("replied")


def ask(job: Job, ctx: Context) -> Outcome:
    """Ask the vendor something that may be asked again."""
    ctx.call(Call(vendor="helpdesk", action="classify", body=Sensitive({}), paid=False))
    return Done("asked")


def stumble(job: Job, ctx: Context) -> Outcome:
    """Fail in passing on the first try."""
    if job.attempt_count == 0:
        raise TimeoutError
    return Done("done")


TASKS: Mapping[str, Task] = {"route": route, "reply": reply, "ask": ask, "stumble": stumble}
LANE = LaneSpec.from_mapping("support", {**LANE_OF_SUPPORT.to_mapping(), "tasks": sorted(TASKS)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """Where a job is written, and who counts it."""

    jobs: JobStore
    effects: EffectStore
    meter: Meter
    row: Callable[[str], Item | None]
    """A job's row past the Meter."""


class Queue:
    """The lane's queue and its dead letters: what was sent, and as many messages waiting as a life needs."""

    def __init__(self) -> None:
        self.sent: list[Message] = []
        self.waiting = 0

    def send(self, messages: Sequence[Message]) -> list[Message]:
        """Everything is taken."""
        self.sent += messages
        return []

    def depth(self, lane: str) -> QueueDepth:
        """As told."""
        return QueueDepth(visible=self.waiting, in_flight=0)


class NoDeadLetters:
    """None of these lives ends badly."""

    def send(self, letters: Sequence[DeadLetter]) -> list[DeadLetter]:
        """Refuses."""
        raise AssertionError("a measured job failed")

    def receive(self, lane: str, *, limit: int, hide_s: int) -> list[DeadMessage]:
        """Empty."""
        return []

    def delete(self, lane: str, receipt: str) -> None:
        """Nothing to delete."""

    def depth(self, lane: str) -> QueueDepth:
        """Empty."""
        return QueueDepth(visible=0, in_flight=0)


class Walk:
    """One job, from enqueue on. Each method is one process doing its part, with nothing left in its memory."""

    def __init__(self, tables: Tables, key: str | Sequence[str]) -> None:
        self._tables, self._key, self.job_id = tables, key, ""
        self.clock, self.queue, self.control = VirtualClock(), Queue(), MemoryControlStore()
        self.vendor = MemoryVendor(clock=self.clock, name="helpdesk")
        self._content, self._telemetry, self._messages = MemoryContentStore(), MemoryTelemetry(), 0
        self._lanes = {LANE.name: LANE}
        self.largest_row = 0

    def enqueue(self, task: str, *, in_s: int | None = None) -> None:
        """The producer, and the stream consumer for what it wrote."""
        now = self.clock.now()
        request = Enqueue(
            lane=LANE.name,
            task=task,
            tenant=TENANT,
            key=self._key,
            payload={"conversation_id": "c-1", "text": TEXT},
            not_before=None if in_s is None else now + timedelta(seconds=in_s),
        )
        ref = enqueue(request, jobs=self._tables.jobs, content=self._content, lanes=self._lanes, clock=self.clock)
        self.job_id = ref.job_id
        self._seen()
        self.admit()

    def admit(self) -> None:
        """The stream consumer, given the row as it stands."""
        admit(
            [self.job()],
            jobs=self._tables.jobs,
            queues=self.queue,
            dead_letters=NoDeadLetters(),
            viewer=self._viewer(),
            clock=self.clock,
            telemetry=self._telemetry,
        )
        self._seen()

    def dispatch(self) -> None:
        """One run of the dispatcher."""
        dispatch(
            LANE,
            look_ahead_s=75,
            limit=100,
            stop_at=self.clock.now() + timedelta(seconds=50),
            jobs=self._tables.jobs,
            queues=self.queue,
            viewer=self._viewer(),
            clock=self.clock,
            telemetry=self._telemetry,
        )
        self._seen()

    def work(self) -> None:
        """A worker with the job's next message; when its job goes back to the table, the stream consumer sees it."""
        if not self.queue.sent:
            raise AssertionError("no message was sent")
        self._messages += 1
        delivery = Delivery(
            message_id=f"{self._messages:08x}-9d1c-4f0e-8a52-7c1b0e3d5f68",
            job_id=self.job_id,
            lane=LANE.name,
            receive_count=1,
            body=envelope.encode_ticket(self.job_id, LANE.name),
        )
        deadline = Deadline(at=self.clock.now() + timedelta(seconds=50), clock=self.clock)
        returned = run_batch([delivery], self._worker(), invocation=Invocation.aws_request_id, deadline=deadline)
        if returned:
            raise AssertionError("the message was returned to the queue")
        self._seen()
        if self.job().status is Status.QUEUED:
            self.admit()

    def wait(self, seconds: float = CACHES_S) -> None:
        """Time passes."""
        self.clock.sleep(seconds)

    def switch(self, level: Level) -> None:
        """An operator sets the lane's switch."""
        self.control.set_switch(
            Switch(scope=f"lane/{LANE.name}", level=level, by="operator", why="bench", at=self.clock.now())
        )

    def job(self) -> Job:
        """As its row says."""
        item = self._tables.row(self.job_id)
        assert item is not None
        return rows.job_from_item(item)

    def _seen(self) -> None:
        item = self._tables.row(self.job_id)
        assert item is not None
        self.largest_row = max(self.largest_row, item_size(item))

    def _viewer(self) -> Viewer:
        return Viewer(
            lanes=self._lanes,
            board=SwitchBoard(control=self.control, clock=self.clock),
            control=self.control,
            queues=self.queue,
            clock=self.clock,
        )

    def _worker(self) -> Worker:
        return Worker(
            lane=LANE,
            tasks=TASKS,
            jobs=self._tables.jobs,
            effects=self._tables.effects,
            content=self._content,
            vendors={"helpdesk": self.vendor},
            board=SwitchBoard(control=self.control, clock=self.clock),
            clock=self.clock,
            telemetry=self._telemetry,
            signals=MemorySignalLedger(meter=self._tables.meter),
        )


def open_path(walk: Walk) -> None:
    """Every gate open."""
    walk.enqueue("route")
    walk.work()


def one_effect(walk: Walk) -> None:
    """Every gate open, one reply sent."""
    walk.enqueue("reply")
    walk.work()


def future_time(walk: Walk) -> None:
    """Enqueued for later."""
    walk.enqueue("route", in_s=300)
    walk.wait(290)
    walk.dispatch()
    walk.wait(10)
    walk.work()


def held_by_capacity(walk: Walk) -> None:
    """Its lane's queue is full when it comes."""
    walk.queue.waiting = LANE.queue_limit
    walk.enqueue("route")
    walk.queue.waiting = 0
    walk.wait()
    walk.dispatch()
    walk.work()


def held_by_switch(walk: Walk) -> None:
    """Its lane's switch is closed when it comes."""
    walk.switch(Level.NO_NEW_STARTS)
    walk.enqueue("route")
    walk.switch(Level.NORMAL)
    walk.wait()
    walk.dispatch()
    walk.work()


def deferred(walk: Walk) -> None:
    """The vendor of a call answers 429 the first time."""
    walk.vendor.call_script.append(Says.REFUSE_RATE)
    walk.enqueue("ask")
    _twice(walk)


def deferred_effect(walk: Walk) -> None:
    """The vendor of an effect answers 429 the first time."""
    walk.vendor.script.append(Says.REFUSE_RATE)
    walk.enqueue("reply")
    _twice(walk)


def retried(walk: Walk) -> None:
    """The task fails in passing the first time."""
    walk.enqueue("stumble")
    _twice(walk)


def _twice(walk: Walk) -> None:
    walk.work()
    walk.wait(LANE.retry_backoff_s[0])
    walk.dispatch()
    walk.work()


LIVES: Mapping[str, Callable[[Walk], None]] = {
    life.__name__: life
    for life in (
        open_path,
        one_effect,
        future_time,
        held_by_capacity,
        held_by_switch,
        deferred,
        deferred_effect,
        retried,
    )
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What one life used, and the largest its row ever was."""

    usage: Usage
    row_bytes: int
    duplicate: Usage
    """One more delivery of its message, after its end."""
    batches: Usage
    """What its batches wrote of themselves, each of one message here."""


def cost_of(life: str, tables: Tables, key: str | Sequence[str] = "") -> Cost:
    """Walk a life to its end, `completed`, and deliver its message once more."""
    walk = Walk(tables, key or f"evt_{life}_01J9ZQ4W7K")
    before = tables.meter.snapshot()
    LIVES[life](walk)
    ended = tables.meter.snapshot()
    if walk.job().status is not Status.COMPLETED:
        raise AssertionError(f"{life} did not end completed")
    life_delta = tables.meter.delta(before)
    walk.work()
    return Cost(
        usage=_sum(life_delta),
        row_bytes=walk.largest_row,
        duplicate=_sum(tables.meter.delta(ended)),
        batches=_sum(life_delta, OF_A_BATCH),
    )


def _sum(delta: Mapping[tuple[str, str], Usage], ports: Sequence[str] = COUNTED) -> Usage:
    return sum((usage for (port, _), usage in delta.items() if port in ports), Usage())
