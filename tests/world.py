"""A whole system out of memory adapters and the real use cases, on a virtual clock, one step at a time.

Only one process runs at a time, whether it has a thread of its own or not, so a world replays identically.
"""

from __future__ import annotations

import hashlib
import heapq
import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from shared.adapters.memory.budgets import MemoryBudgetLedger
from shared.adapters.memory.clock import START, VirtualClock
from shared.adapters.memory.faults import Boundary, Crashed, Fault, Faults, Plan
from shared.adapters.memory.faults import Worker as Life
from shared.adapters.memory.move_tasks import MemoryMoveTasks
from shared.adapters.memory.plans import MemoryPlanStore
from shared.adapters.memory.queues import MemoryDeadLetterQueues, MemoryLaneQueues
from shared.adapters.memory.stores import (
    MemoryContentStore,
    MemoryControlStore,
    MemoryEffectStore,
    MemoryHistory,
    MemoryJobStore,
    MemoryLedger,
)
from shared.adapters.memory.strand import Strand
from shared.adapters.memory.telemetry import MemoryTelemetry
from shared.adapters.memory.vendor import MemoryVendor
from shared.core.account import AccountSpec
from shared.core.errors import PenstockError
from shared.core.job import Job, job_id_of
from shared.core.lane import LaneSpec
from shared.core.plan import Progress
from shared.core.ports import Clock
from shared.usecases.context import Task
from shared.usecases.enqueue import Enqueue
from shared.usecases.run_batch import run_batch
from tests.builders import a_lane
from tests.judge import Verdict, judge
from tests.processes import LOOK_AHEAD_S, PERIODS, STREAM_BATCH, TRIAGE_ANYWAY_S, Process, passes
from tests.vendors_and_tasks import TASKS, VendorKind, a_vendor

ROLES = {"client": 2, "stream": 2, "dispatcher": 2, "triage": 2, "sweeper": 1, "auditor": 1, "redriver": 2}
LANE = a_lane(tasks=tuple(sorted(TASKS)))

RunBatch = Callable[..., list[str]]


class World:
    """One lane, one vendor, and every process of the system. `plan` says what goes wrong."""

    def __init__(
        self,
        *,
        lane: LaneSpec = LANE,
        vendor: VendorKind | Callable[[Clock], MemoryVendor] = VendorKind.DEDUPES,
        seed: int | None = None,
        plan: Plan | None = None,
        tasks: Mapping[str, Task] = TASKS,
        workers: int = 3,
        skew_s: Mapping[str, float] | None = None,
        index_lag_s: float | Callable[[], float] = 0,
        duplicate_p: float = 0.0,
        refuse_p: float = 0.0,
        engine: Callable[[Process], RunBatch] = lambda process: run_batch,
        more_ports: Mapping[str, Any] | None = None,
        account: AccountSpec | None = None,
        more_vendors: Iterable[Callable[[Clock], MemoryVendor]] = (),
        time_out_kills: bool = False,
    ) -> None:
        self.accounts = {} if account is None else {account.name: account}
        lane = lane if account is None else replace(lane, accounts=(account.name,))
        self.lane, self.lanes, self.tasks, self.engine = lane, {lane.name: lane}, tasks, engine
        self.rng = random.Random(seed) if seed is not None else None
        self.clock, self.telemetry = VirtualClock(), MemoryTelemetry()
        self.faults = Faults(plan)
        self.faults.on_freeze, self.faults.on_duplicate = self._freeze, self._duplicate
        self.faults.on_fault = self._note_fault
        self.last_fault_at = self.clock.now()
        self.vendor = a_vendor(vendor, self.clock) if isinstance(vendor, VendorKind) else vendor(self.clock)
        others = [made(self.clock) for made in more_vendors]
        self.vendors = {"vendor": self.vendor, **{one.name: one for one in others}}
        """By the name of their port."""
        self.time_out_kills = time_out_kills
        self.jobs = MemoryJobStore(lanes=self.lanes, clock=self.clock, index_lag_s=index_lag_s)
        self.effects, self.control = MemoryEffectStore(), MemoryControlStore()
        self.content, self.ledger = MemoryContentStore(), MemoryLedger()
        self.budgets = MemoryBudgetLedger()
        self.plans, self.history = MemoryPlanStore(), MemoryHistory()
        self.dead_letters = MemoryDeadLetterQueues(clock=self.clock)
        self.queues = MemoryLaneQueues(
            clock=self.clock,
            lanes=self.lanes,
            dead_letters=self.dead_letters,
            rng=self.rng,
            duplicate_p=duplicate_p,
            refuse_p=refuse_p,
        )
        self.moves = MemoryMoveTasks(clock=self.clock, queues=self.queues, dead_letters=self.dead_letters)
        self.reader = self.jobs.stream.reader()
        self.ports: dict[str, Any] = {
            "jobs": self.jobs,
            "effects": self.effects,
            "control": self.control,
            "content": self.content,
            "ledger": self.ledger,
            "budgets": self.budgets,
            "plans": self.plans,
            "history": self.history,
            "queues": self.queues,
            "dead_letters": self.dead_letters,
            "moves": self.moves,
            "stream": self.reader,
            **self.vendors,
            **(more_ports or {}),
        }
        self.requests: dict[str, Enqueue] = {}
        self.triaged_depth = -1
        self.stream_on = self.workers_on = True
        self.crashes = 0
        self.invocation_errors: Counter[str] = Counter()
        self._skew_s, self._sizes = skew_s or {}, {**ROLES, "worker": workers}
        self._pools: dict[str, list[Process]] = {role: [] for role in self._sizes}
        self._by_name: dict[str, Process] = {}
        self._threaded = self.faults.plan.threaded
        self._frozen: list[Process] = []
        self._later: list[tuple[datetime, int, Callable[[], None]]] = []
        self._ticks = {name: START + timedelta(seconds=period) for name, period in PERIODS.items()}
        self._first_tick = min(self._ticks.values())
        self._plans_over: set[str | None] = {None}
        self._ids = 0
        self._stream_again_at = START

    # ------------------------------------------------------------------------------------- from outside
    def enqueue(
        self, task: str = "reply", *, tenant: str = "tenant-1", key: str = "event-1", at_s: float = 0, **more: Any
    ) -> str:
        """Ask for a job `at_s` from now; a caller that gets no answer asks again. Returns the job's id."""
        more.setdefault("payload", {"conversation_id": key})
        request = Enqueue(lane=self.lane.name, task=task, tenant=tenant, key=key, **more)
        job_id = job_id_of(self.lane.name, tenant, task, key)
        self.requests[job_id] = request
        self.later(at_s, lambda: self._ask(request))
        return job_id

    def later(self, seconds: float, act: Callable[[], None]) -> None:
        """Do something `seconds` from now."""
        self._ids += 1
        heapq.heappush(self._later, (self.clock.now() + timedelta(seconds=seconds), self._ids, act))

    def next_id(self, prefix: str) -> str:
        """An id nobody had before, the same in every replay."""
        self._ids += 1
        return f"{prefix}.{self._ids}"

    def job(self, job_id: str) -> Job:
        """A job as its row says, past all faults."""
        job = self.jobs.get(job_id)
        assert job is not None, "no such job"
        return job

    def idle(self, role: str) -> Process | None:
        """A process that can take something on: one that stands idle, or a new one while there may be more."""
        pool = self._pools[role]
        for process in pool:
            if not process.busy:
                return process
        if len(pool) == self._sizes[role]:
            return None
        name = f"w{len(pool) + 1}" if role == "worker" else f"{role}{len(pool) + 1}"
        process = self._by_name[name] = Process(self, role, name, self._skew_s.get(name, 0))
        pool.append(process)
        return process

    def process(self, name: str) -> Process:
        """A process by its name."""
        return self._by_name[name]

    def verdict(self) -> Verdict:
        """How it ended."""
        return judge(self)

    def trace_hash(self) -> str:
        """A fingerprint of everything that happened: the same seed gives the same."""
        seen = hashlib.sha256()
        for boundary in self.faults.trace:
            seen.update(str(boundary).encode())
        for accept in self.vendor.accepts:
            seen.update(repr(accept).encode())
        for job_id in self.requests:
            seen.update(repr(self.jobs.item(job_id)).encode())
        return seen.hexdigest()[:16]

    # ---------------------------------------------------------------------------------------- the clock
    def run_until_quiet(self, *, max_virtual: float = 6 * 3600) -> bool:
        """Run until nothing is left to do, at most `max_virtual` seconds. True when it became quiet."""
        return self._run_until(self.clock.now() + timedelta(seconds=max_virtual))

    def run_for(self, seconds: float) -> None:
        """Run on for so long, whether there is something to do or not."""
        end = self.clock.now() + timedelta(seconds=seconds)
        self._run_until(end)
        self.clock.advance_to(end)

    def run_until_sent(self) -> None:
        """Only until the first message stands in the queue; what happened on the way is not traced."""
        while not self.queues.depth(self.lane.name).total:
            assert self._step(), "nothing was sent"
        self.faults.trace.clear()

    def close(self) -> None:
        """Let no thread outlive the world: whoever still stands is dead. Frees the world without the collector."""
        for process in list(self._frozen):
            process.life.dead = True
            self._resume(process)
        for process in self._by_name.values():
            process.forget()
        self._by_name.clear()
        self._pools.clear()
        self._later.clear()
        # Bound methods lead back here, too.
        self.faults.on_freeze, self.faults.on_duplicate, self.faults.on_fault = _nothing, _nothing, None

    def _run_until(self, end: datetime) -> bool:
        while True:
            if self.clock.now() < end and self._step():
                continue
            at = self._next_time()
            if at is None:
                return True
            if at >= end:
                self.clock.advance_to(end)
                return False
            self.clock.advance_to(at)

    def _step(self) -> bool:
        """One thing that can be done now; False when nothing can."""
        now = self.clock.now()
        self.moves.catch_up()
        for process in self._frozen:
            if process.resume_at is not None and process.resume_at <= now:
                self._resume(process)
                return True
        if self._later and self._later[0][0] <= now:
            heapq.heappop(self._later)[2]()
            return True
        if self.rng is not None and self.rng.random() < 0.5:
            done = self._worker_step() or self._stream_step()
        else:
            done = self._stream_step() or self._worker_step()
        return done or (self._first_tick <= now and any(self._tick(name, now) for name in PERIODS))

    def _next_time(self) -> datetime | None:
        times = [process.resume_at for process in self._frozen if process.resume_at is not None]
        times += [at for at, _, _ in self._later[:1]]
        if self.stream_on and self.reader.behind and self.idle("stream") is not None:
            times.append(self._stream_again_at)
        if self.workers_on and self.idle("worker") is not None:
            visible = self.queues.next_at()
            times += [visible] if visible is not None else []
        moved_at = self.moves.next_at()
        times += [moved_at] if moved_at is not None else []
        first = min(times, default=None)
        for name, tick in self._ticks.items():
            # What finds something to do at its tick at the earliest need not be asked about later.
            if (first is None or tick < first) and (at := self._useful_at(name)) is not None:
                first = at if first is None else min(first, at)
        return None if first is None else max(self.clock.now(), first)

    # ------------------------------------------------------------------------------------ who does what
    def _stream_step(self) -> bool:
        if not self.stream_on or self.reader.behind == 0 or self.clock.now() < self._stream_again_at:
            return False
        process = self.idle("stream")
        if process is None:
            return False
        records = self.reader.read(STREAM_BATCH)
        if not any(passes(record) for record in records):
            # The event source's filter: nobody is called for these.
            self.reader.commit(records)
            return True
        self._invoke(process, process.consume)
        return True

    def _worker_step(self) -> bool:
        if not self.workers_on or not self.queues.queue(self.lane.name).visible:
            return False
        process = self.idle("worker")
        if process is None:
            return False
        self._invoke(process, process.work)
        return True

    def _ask(self, request: Enqueue) -> None:
        process = self.idle("client")
        if process is None:
            self.later(1, lambda: self._ask(request))
            return
        answered: list[str] = []
        self._invoke(process, lambda: answered.append(process.enqueue(request)), lambda: self._ask(request))
        if not answered and not process.busy:
            self.later(1, lambda: self._ask(request))

    def _tick(self, name: str, now: datetime) -> bool:
        if self._ticks[name] > now:
            return False
        useful = self._useful_at(name) is not None
        gone = int((now - START).total_seconds() // PERIODS[name])
        self._ticks[name] = START + timedelta(seconds=(gone + 1) * PERIODS[name])
        self._first_tick = min(self._ticks.values())
        process = self.idle(name)
        if not useful or process is None:
            return False
        self._invoke(process, process.scheduled)
        return True

    def _useful_at(self, name: str) -> datetime | None:
        """The first tick at which a schedule would find something; its empty runs are left out."""
        tick = self._ticks[name]
        if name == "dispatcher":
            due = self.jobs.next_due()
            if due is None:
                return None
            wait_s = (due - tick).total_seconds() - LOOK_AHEAD_S
            return tick + timedelta(seconds=max(0, -(-wait_s // PERIODS[name])) * PERIODS[name])
        if name == "triage":
            depth = self.dead_letters.queue(self.lane.name).total
            if depth != self.triaged_depth and (depth or self.triaged_depth > 0):
                return tick
            if not depth or not self.jobs.open_jobs:
                return None
            return tick + timedelta(seconds=-(tick - START).total_seconds() % TRIAGE_ANYWAY_S)
        if name == "redriver":
            plan_id = self.plans.plan_of(self.lane.name)
            if plan_id in self._plans_over:
                return None
            if Progress(steps=self.plans.steps(plan_id or "")).ended is None:
                return tick
            self._plans_over.add(plan_id)
            return None
        # Failed jobs that ask for their letter stand in the index, too.
        asked = name == "sweeper" and self.jobs.next_due() is not None
        return tick if self.jobs.open_jobs or asked else None

    # --------------------------------------------------------------------------- dying and standing still
    def _invoke(self, process: Process, work: Callable[[], object], twin: Callable[[], None] | None = None) -> None:
        process.life.revive()
        process.dies_at = self._dies_at(process)
        process.busy, process.holding, process.twin, process.strand = True, [], twin, None

        def guarded() -> None:
            try:
                work()
            except Crashed:
                self.crashes += 1
                process.memory.clear()
                self._rest(process)
            except PenstockError as exc:
                # The platform's answer to a failed invocation: what it held comes again.
                self.invocation_errors[f"{process.role}:{exc.code}"] += 1
                self._rest(process)
            finally:
                process.busy = False

        if process.name in self._threaded:
            process.strand = Strand(process.name, guarded)
            process.strand.begin()
        else:
            guarded()

    def _rest(self, process: Process) -> None:
        """An event source that reads a stream waits a little before it tries a failed batch again."""
        if process.role == "stream":
            self._stream_again_at = self.clock.now() + timedelta(seconds=1)

    def _note_fault(self, boundary: Boundary, fault: Fault) -> None:
        self.last_fault_at = self.clock.now()

    def _freeze(self, life: Life, seconds: float) -> None:
        """Stand still. Without a thread of its own, the world goes on above the frozen call: whoever freezes
        later must then thaw first, and this one stands a little longer if it has to."""
        process = self._by_name[life.name]
        resume_at = self.clock.now() + timedelta(seconds=seconds)
        if process.strand is not None:
            process.resume_at = resume_at
            self._frozen.append(process)
            process.strand.hold()
        else:
            self._run_until(resume_at)
            self.clock.advance_to(resume_at)
            self.last_fault_at = self.clock.now()
        if self.timed_out(process):
            process.life.dead = True

    def timed_out(self, process: Process) -> bool:
        """True for a worker whose function has run for longer than it may, in a world where that kills."""
        return process.dies_at is not None and self.clock.now() >= process.dies_at

    def _dies_at(self, process: Process) -> datetime | None:
        if not self.time_out_kills or process.role != "worker":
            return None
        return self.clock.now() + timedelta(seconds=self.lane.function_timeout_s)

    def _resume(self, process: Process) -> None:
        self._frozen.remove(process)
        process.resume_at, self.last_fault_at = None, self.clock.now()
        assert process.strand is not None
        process.strand.resume()

    def _duplicate(self, life: Life) -> None:
        """What this process works on is given to a second one of its role, at this moment."""
        process = self._by_name[life.name]
        if process.twin is not None:
            process.twin()
            return
        second = self.idle(process.role)
        if second is None:
            return
        if process.role == "worker":
            again = [self.queues.again(self.lane.name, one.delivery.message_id) for one in process.holding]
            given = [one for one in again if one is not None]
            if given:
                self._invoke(second, lambda: second.work(given))
        elif process.role == "stream":
            self._invoke(second, second.consume)
        else:
            self._invoke(second, second.scheduled)


def _nothing(*_: object) -> None:
    return
