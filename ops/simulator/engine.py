"""Penstock in memory: the real use cases on the memory adapters, every process beside the others on virtual time."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta

from ops.simulator.hub import Hub
from ops.simulator.vendor import LimitedVendor
from shared.adapters.attributes import Item
from shared.adapters.memory.budgets import MemoryBudgetLedger
from shared.adapters.memory.event_sources import MemoryActuator
from shared.adapters.memory.queues import MemoryDeadLetterQueues, MemoryLaneQueues, Received
from shared.adapters.memory.signals import MemorySignalLedger
from shared.adapters.memory.stores import MemoryContentStore, MemoryControlStore, MemoryEffectStore, MemoryJobStore
from shared.adapters.memory.stream import StreamReader
from shared.adapters.memory.telemetry import MemoryTelemetry
from shared.adapters.meter import Meter
from shared.contract import table
from shared.core.account import AccountSpec
from shared.core.effects import Call
from shared.core.job import Job, Status
from shared.core.lane import LaneSpec
from shared.core.outcome import Done, Outcome
from shared.core.ports import Clock, Delivery, Vendor
from shared.core.sensitive import Sensitive
from shared.usecases.admit import admit
from shared.usecases.budgets import Budgets
from shared.usecases.context import Context, Task
from shared.usecases.deadline import HANDLER_MARGIN_S, Deadline
from shared.usecases.enqueue import Enqueue, enqueue
from shared.usecases.run_attempt import Answer, Worker
from shared.usecases.run_batch import Side, run_batch
from shared.usecases.run_dispatch import run_dispatch
from shared.usecases.switchboard import SwitchBoard
from shared.usecases.view import Viewer

STREAM_BATCH, STREAM_S = 100, 0.1
"""A stream consumer's batch and how long it takes."""
SOURCE_S = (0.02, 0.1)
"""Between two looks of an event source into its queue."""
DISPATCH_EVERY_S, DISPATCH_RUNS_S = 60, 55
COLD_S, CALLS_S = 0.3, (0.005, 0.05)
"""What a new environment's first batch waits for, and what a batch's calls to tables take."""


def ask(job: Job, ctx: Context) -> Outcome:
    """One call to the model, then done."""
    ctx.call(Call(vendor=LimitedVendor.name, action="complete", body=Sensitive({})))
    return Done("asked")


class CallMeter(Meter):
    """Counts calls and refuses to weigh: sizes are `make bench`'s affair, and take most of a simulation's time."""

    counts = False

    def __init__(self) -> None:
        super().__init__()
        self.writes: Counter[tuple[str, str]] = Counter()
        self.reads: Counter[tuple[str, str]] = Counter()

    def call(self, port: str, operation: str) -> None:
        """Not counted."""

    def read(self, port: str, operation: str, items: Iterable[Item | None], *, consistent: bool) -> None:
        """One read."""
        self.reads[port, operation] += 1

    def write(self, port: str, operation: str, *, old: Item | None, new: Item | None) -> None:
        """One write."""
        self.writes[port, operation] += 1

    def refused(self, port: str, operation: str, *, old: Item | None) -> None:
        """A refused write is paid for, too."""
        self.writes[port, operation] += 1


class SlotClock:
    """A worker's clock, which counts what its slots slept: a vendor's own time passes on the vendor's clock."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.slept_s = 0.0

    def now(self) -> datetime:
        """What this machine believes."""
        return self._clock.now()

    def sleep(self, seconds: float) -> None:
        """The slot stays taken, and others go on."""
        self.slept_s += max(0.0, seconds)
        self._clock.sleep(seconds)


class Engine:
    """One lane with its stream consumer, dispatcher, queue and worker environments."""

    def __init__(
        self,
        hub: Hub,
        *,
        lane: LaneSpec,
        accounts: Sequence[AccountSpec],
        vendors: Sequence[Vendor],
        task: Task = ask,
        seed: int = 1,
        skew: Callable[[], float] = lambda: 0.0,
    ) -> None:
        """`task` is what all tasks of the lane do; `skew` tells each process how many seconds its clock is wrong by."""
        self.hub, self.lane, self._task, self._skew = hub, lane, task, skew
        self._vendors = {vendor.name: vendor for vendor in vendors}
        self._rng = random.Random(seed)
        self.clock = hub.clock
        self.meter, self.telemetry = CallMeter(), MemoryTelemetry()
        self.lanes, self.accounts = {lane.name: lane}, {account.name: account for account in accounts}
        self.jobs = MemoryJobStore(lanes=self.lanes, clock=self.clock, meter=self.meter)
        self.budgets = MemoryBudgetLedger()
        self.effects, self.content = MemoryEffectStore(meter=self.meter), MemoryContentStore()
        self.control, self.signals = MemoryControlStore(), MemorySignalLedger()
        self.actuator = MemoryActuator([lane.name])
        self.set_cap(lane.ceiling)
        self.dead_letters = MemoryDeadLetterQueues(clock=self.clock)
        self.queues = MemoryLaneQueues(clock=self.clock, lanes=self.lanes, dead_letters=self.dead_letters)
        self._idle: list[Worker] = []
        self._environments = 0
        self._invocations = 0
        self.most_at_once = 0
        """Invocations that ran at one moment."""
        self.slot_s = 0.0
        """How long jobs had a slot, all together."""
        self._slot_clocks: list[SlotClock] = []
        self.job_ids: list[str] = []
        self.ended = 0
        self.deferrals: dict[str, int] = {}
        """How often each job was put back into the table, by admission or by a worker."""

    def set_cap(self, cap: int) -> None:
        """So many invocations at once, as a governor's row and the event source say."""
        self.control.set_cap(self.lane.name, cap)
        self.actuator.assert_cap(self.lane.name, cap)

    @property
    def cap(self) -> int:
        """What the event source has now."""
        source = self.actuator.source(self.lane.name)
        return source.cap or 0 if source.enabled else 0

    @property
    def slept_s(self) -> float:
        """How long jobs slept in their slots, all together."""
        return sum(clock.slept_s for clock in self._slot_clocks)

    def enqueue(self, count: int) -> None:
        """So many jobs of the lane's first task, all at once."""
        self.enqueue_tasks([self.lane.tasks[0]] * count)

    def enqueue_tasks(self, tasks: Sequence[str]) -> None:
        """A job for each of these, all at once."""
        for number, task in enumerate(tasks, len(self.job_ids)):
            request = Enqueue(lane=self.lane.name, task=task, tenant=f"t-{number % 12}", key=f"k-{number}")
            ref = enqueue(request, jobs=self.jobs, content=self.content, lanes=self.lanes, clock=self.clock)
            self.job_ids.append(ref.job_id)

    def ends(self) -> Counter[str]:
        """How many jobs stand in which state."""
        return Counter(job.status.value for job in self.jobs.scan() if isinstance(job, Job))

    def start(self, until_ended: int | None = None, *, behind: bool = True) -> None:
        """Begin to work; everything stops when so many jobs have ended. With `behind` the stream consumer begins with
        what was enqueued before."""
        self._wanted = until_ended
        reader = self.jobs.stream.reader()
        if not behind:
            reader.commit(reader.read(self.jobs.stream.last))
        self.hub.spawn(lambda: self._consume(reader))
        self.hub.spawn(self._source)
        self.hub.spawn(self._schedule, after_s=1)

    # -------------------------------------------------------------------------------------- the processes
    def _consume(self, reader: StreamReader) -> None:
        """The stream consumer; it also counts what the stream tells of ends and deferrals."""
        clock = self._a_clock()
        viewer = self.viewer(clock)
        while not self.hub.stopped:
            records = reader.read(STREAM_BATCH)
            if not records:
                self.hub.idle(STREAM_S)
                continue
            images = []
            for record in records:
                assert record.new is not None
                job, before = record.new.job, None if record.old is None else record.old.job
                if job.status is Status.QUEUED and job.waits and not (before is not None and before.waits):
                    self.deferrals[job.job_id] = self.deferrals.get(job.job_id, 0) + 1
                if before is not None and before.status is job.status:
                    continue
                self.ended += job.status.ended
                if job.status is Status.FAILED or (
                    job.status is Status.QUEUED and table.WAITING_PK not in record.new.item
                ):
                    images.append(job)
            admit(
                images,
                jobs=self.jobs,
                queues=self.queues,
                dead_letters=self.dead_letters,
                viewer=viewer,
                clock=clock,
                telemetry=self.telemetry,
            )
            reader.commit(records)
            if self._wanted is not None and self.ended >= self._wanted:
                self.hub.stop()
            self.clock.sleep(STREAM_S)

    def _schedule(self) -> None:
        """The dispatcher, every minute."""
        clock = self._a_clock()
        viewer = self.viewer(clock)
        while not self.hub.stopped:
            began = clock.now()
            run_dispatch(
                self.lanes,
                period_s=DISPATCH_EVERY_S,
                stop_at=began + timedelta(seconds=DISPATCH_RUNS_S),
                jobs=self.jobs,
                queues=self.queues,
                viewer=viewer,
                clock=clock,
                telemetry=self.telemetry,
            )
            clock.sleep(DISPATCH_EVERY_S - (clock.now() - began).total_seconds())

    def _source(self) -> None:
        """The event source: hands what is visible to environments, at most as many at once as its cap. A cap that is
        lowered ends no invocation; the next begins when fewer run."""
        while not self.hub.stopped:
            while (running := self._environments - len(self._idle)) < self.cap:
                received = self.queues.receive(self.lane.name, limit=self.lane.batch_size)
                if not received:
                    break
                fresh = not self._idle
                worker = self._environment() if fresh else self._idle.pop()
                self.most_at_once = max(self.most_at_once, running + 1)
                self.hub.spawn(
                    lambda worker=worker, received=received: self._invoke(worker, received),  # type: ignore[misc]
                    after_s=COLD_S if fresh else 0,
                )
            full = self._environments - len(self._idle) >= self.cap
            # Where all that may run do, only somebody's end changes anything.
            self.hub.idle(round(self._rng.uniform(*SOURCE_S), 3), None if full else self.queues.next_at())

    def _invoke(self, worker: Worker, received: list[Received]) -> None:
        self._invocations += 1
        left_s = self.lane.function_timeout_s - min(HANDLER_MARGIN_S, self.lane.function_timeout_s / 5)
        self._pause(CALLS_S)
        returned = run_batch(
            [one.delivery for one in received],
            worker,
            invocation=f"i-{self._invocations}",
            deadline=Deadline(at=worker.clock.now() + timedelta(seconds=left_s), clock=worker.clock),
            spread=self._spread,
        )
        self._pause(CALLS_S)
        for one in received:
            if one.delivery.message_id not in returned:
                self.queues.delete(self.lane.name, one.receipt)
        self._idle.append(worker)

    def _spread(self, one: Side, deliveries: Sequence[Delivery], parallel: int) -> list[Answer]:
        def timed(numbered: tuple[int, Delivery]) -> Answer:
            began = self.clock.now()
            answer = one(numbered)
            self.slot_s += (self.clock.now() - began).total_seconds()
            return answer

        return self.hub.each(timed, list(enumerate(deliveries)))

    def _pause(self, between_s: tuple[float, float]) -> None:
        self.clock.sleep(round(self._rng.uniform(*between_s), 3))

    # ----------------------------------------------------------------------------------------- the wiring
    def _a_clock(self) -> Clock:
        """The clock of one more process."""
        return self.clock.skewed(self._skew())

    def _environment(self) -> Worker:
        self._environments += 1
        clock = SlotClock(self._a_clock())
        self._slot_clocks.append(clock)
        return Worker(
            lane=self.lane,
            tasks=dict.fromkeys(self.lane.tasks, self._task),
            jobs=self.jobs,
            effects=self.effects,
            content=self.content,
            vendors=self._vendors,
            board=SwitchBoard(control=self.control, clock=clock),
            clock=clock,
            telemetry=self.telemetry,
            signals=self.signals,
            budgets=Budgets.of(
                self.accounts.values(),
                ledger=self.budgets,
                clock=clock,
                telemetry=self.telemetry,
                owner=f"e-{self._environments}",
                chance=lambda: 0.5,
            ),
        )

    def viewer(self, clock: Clock | None = None) -> Viewer:
        """A process's own view of lane, queue and accounts."""
        return Viewer(
            lanes=self.lanes,
            board=SwitchBoard(control=self.control, clock=clock or self.clock),
            control=self.control,
            queues=self.queues,
            clock=clock or self.clock,
            accounts=self.accounts,
            budgets=self.budgets,
        )
