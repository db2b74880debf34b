"""A whole system out of memory adapters and the real use cases, on a virtual clock, one step at a time.

Every call of every process goes through the fault machinery. Processes that may stand still run in a thread of
their own, but only one runs at a time, so a world replays identically.
"""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from shared.adapters.memory.clock import START, VirtualClock
from shared.adapters.memory.faults import Boundary, Crashed, Fault, Faults, Plan
from shared.adapters.memory.faults import Worker as Life
from shared.adapters.memory.queues import MemoryDeadLetterQueues, MemoryLaneQueues, Received
from shared.adapters.memory.stores import (
    MemoryContentStore,
    MemoryControlStore,
    MemoryEffectStore,
    MemoryJobStore,
    MemoryLedger,
)
from shared.adapters.memory.strand import Strand
from shared.adapters.memory.stream import StreamRecord
from shared.adapters.memory.telemetry import MemoryTelemetry
from shared.adapters.memory.vendor import MemoryVendor
from shared.core.errors import PenstockError, UnreadableRow
from shared.core.job import Job, Status, job_id_of
from shared.core.lane import LaneSpec
from shared.core.ports import Clock, Delivery
from shared.usecases.admit import admit
from shared.usecases.audit import Auditor
from shared.usecases.context import Task
from shared.usecases.deadline import HANDLER_MARGIN_S, Deadline
from shared.usecases.dispatch import dispatch
from shared.usecases.enqueue import Enqueue, enqueue
from shared.usecases.run_attempt import Worker
from shared.usecases.run_batch import run_batch
from shared.usecases.run_slot import run_slot
from shared.usecases.sweep import sweep
from shared.usecases.switchboard import SwitchBoard
from shared.usecases.triage import Triage
from shared.usecases.view import Viewer
from tests.builders import a_lane
from tests.vendors_and_tasks import TASKS, VendorKind, a_vendor, targets_of

PERIODS = {"dispatcher": 60, "triage": 60, "sweeper": 300, "auditor": 3600}
LOOK_AHEAD_S = 75
TRIAGE_ANYWAY_S = 600
ROLES = {"client": 2, "stream": 2, "dispatcher": 2, "triage": 2, "sweeper": 1, "auditor": 1}

RunBatch = Callable[..., list[str]]


class Actor:
    """One process: its name, its idea of the time, its ports, and what it holds in memory."""

    def __init__(self, world: World, role: str, name: str, skew_s: float = 0) -> None:
        self.world, self.role, self.life = world, role, Life(name)
        self.clock: Clock = world.clock.skewed(skew_s)
        self.busy = False
        self.strand: Strand | None = None
        self.resume_at: datetime | None = None
        self.holding: list[Received] = []
        self.twin: Callable[[], None] | None = None
        self._ports: dict[str, Any] = {}
        self.memory: dict[str, Any] = {}

    def port(self, name: str) -> Any:
        """A port as this process reaches it: every call is a boundary."""
        found = self._ports.get(name)
        if found is None:
            target = self.world.ports[name]
            found = self._ports[name] = self.world.faults.wrap(target, name, self.life)
        return found

    def keep(self, name: str, make: Callable[[], Any]) -> Any:
        """What a process builds once and loses when it dies."""
        if name not in self.memory:
            self.memory[name] = make()
        return self.memory[name]

    def forget(self) -> None:
        """Let go of everything that leads back to the world."""
        self._ports.clear()
        self.memory.clear()
        self.twin = self.strand = None

    @property
    def board(self) -> SwitchBoard:
        """Its cached switches."""
        board: SwitchBoard = self.keep("board", lambda: SwitchBoard(control=self.port("control"), clock=self.clock))
        return board

    @property
    def viewer(self) -> Viewer:
        """Its view of queues and switches."""
        viewer: Viewer = self.keep(
            "viewer",
            lambda: Viewer(
                lanes=self.world.lanes,
                board=self.board,
                control=self.port("control"),
                queues=self.port("queues"),
                clock=self.clock,
            ),
        )
        return viewer


@dataclass(slots=True)
class Verdict:
    """What the vendor's record and the table say in the end."""

    duplicates: dict[str, int] = field(default_factory=dict)
    lost: list[str] = field(default_factory=list)
    states: Counter[str] = field(default_factory=Counter)
    accepted: int = 0
    wanted: int = 0

    @property
    def all_accepted(self) -> bool:
        """Everything the jobs were to send stands at the vendor."""
        return self.accepted >= self.wanted

    @property
    def unknown(self) -> int:
        """Jobs an operator must decide on."""
        return self.states["failed:outcome_unknown"]


class World:
    """One lane or several, one vendor, and every process of the system. `plan` says what goes wrong."""

    def __init__(
        self,
        *,
        lane: LaneSpec | None = None,
        vendor: VendorKind | Callable[[Clock], MemoryVendor] = VendorKind.DEDUPES,
        seed: int | None = None,
        plan: Plan | None = None,
        tasks: Mapping[str, Task] = TASKS,
        workers: int = 3,
        skew_s: Mapping[str, float] | None = None,
        index_lag_s: float | Callable[[], float] = 0,
        duplicate_p: float = 0.0,
        refuse_p: float = 0.0,
        engine: RunBatch = run_batch,
    ) -> None:
        self.lane = lane or a_lane(tasks=tuple(sorted(tasks)))
        self.lanes = {self.lane.name: self.lane}
        self.rng = random.Random(seed) if seed is not None else None
        self.clock = VirtualClock()
        self.telemetry = MemoryTelemetry()
        self.faults = Faults(plan)
        self.faults.on_freeze, self.faults.on_duplicate = self._freeze, self._duplicate
        self.faults.on_fault = self._note_fault
        self._threaded = self.faults.plan.threaded
        self.last_fault_at = self.clock.now()
        self.vendor = a_vendor(vendor, self.clock) if isinstance(vendor, VendorKind) else vendor(self.clock)
        self.jobs = MemoryJobStore(lanes=self.lanes, clock=self.clock, index_lag_s=index_lag_s)
        self.effects, self.control = MemoryEffectStore(), MemoryControlStore()
        self.content, self.ledger = MemoryContentStore(), MemoryLedger()
        self.dead_letters = MemoryDeadLetterQueues(clock=self.clock)
        self.queues = MemoryLaneQueues(
            clock=self.clock,
            lanes=self.lanes,
            dead_letters=self.dead_letters,
            rng=self.rng,
            duplicate_p=duplicate_p,
            refuse_p=refuse_p,
        )
        self.reader = self.jobs.stream.reader()
        self.ports: dict[str, Any] = {
            "jobs": self.jobs,
            "effects": self.effects,
            "control": self.control,
            "content": self.content,
            "ledger": self.ledger,
            "queues": self.queues,
            "dead_letters": self.dead_letters,
            "stream": self.reader,
            "vendor": self.vendor,
        }
        self._tasks, self._engine = tasks, engine
        self._skew_s, self._sizes = skew_s or {}, {**ROLES, "worker": workers}
        self._pools: dict[str, list[Actor]] = {role: [] for role in self._sizes}
        self._by_name: dict[str, Actor] = {}
        self._frozen: list[Actor] = []
        self._later: list[tuple[datetime, int, Callable[[], None]]] = []
        self._ticks = {name: START + timedelta(seconds=period) for name, period in PERIODS.items()}
        self._triaged_depth = -1
        self._runs = 0
        self._requests: dict[str, Enqueue] = {}
        self.stream_on = self.workers_on = True
        self.crashes = 0
        self.invocation_errors: Counter[str] = Counter()

    # ------------------------------------------------------------------------------------- from outside
    def enqueue(
        self, task: str = "reply", *, tenant: str = "tenant-1", key: str = "event-1", at_s: float = 0, **more: Any
    ) -> str:
        """Ask for a job `at_s` from now; a caller that gets no answer asks again. Returns the job's id."""
        payload = more.pop("payload", {"conversation_id": key})
        lane = more.pop("lane", self.lane.name)
        request = Enqueue(lane=lane, task=task, tenant=tenant, key=key, payload=payload, **more)
        job_id = job_id_of(lane, tenant, task, key)
        self._requests[job_id] = request
        self.later(at_s, lambda: self._ask(request))
        return job_id

    def later(self, seconds: float, act: Callable[[], None]) -> None:
        """Do something `seconds` from now."""
        self._runs += 1
        self._later.append((self.clock.now() + timedelta(seconds=seconds), self._runs, act))

    def job(self, job_id: str) -> Job:
        """A job as its row says, past all faults."""
        job = self.jobs.get(job_id)
        assert job is not None, "no such job"
        return job

    # ---------------------------------------------------------------------------------------- the clock
    def run_until_quiet(self, *, max_virtual: float = 6 * 3600) -> bool:
        """Run until nothing is left to do, at most `max_virtual` seconds. True when it became quiet."""
        return self._run_until(self.clock.now() + timedelta(seconds=max_virtual))

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

    def run_until_sent(self) -> None:
        """Only until the first message stands in the queue; what happened on the way is not traced."""
        while not self.queues.depth(self.lane.name).total:
            assert self._step(), "nothing was sent"
        self.faults.trace.clear()

    def close(self) -> None:
        """Let no thread outlive the world: whoever still stands is dead. Frees the world without the collector."""
        for actor in list(self._frozen):
            actor.life.dead = True
            self._resume(actor)
        for actor in self._by_name.values():
            actor.forget()
        self._by_name.clear()
        self._pools.clear()
        self._later.clear()
        self.faults.on_freeze = self.faults.on_duplicate = self.faults.on_fault = None  # type: ignore[assignment]

    def _step(self) -> bool:
        """One thing that can be done now; False when nothing can."""
        now = self.clock.now()
        if self._frozen:
            for actor in self._frozen:
                if actor.resume_at is not None and actor.resume_at <= now:
                    self._resume(actor)
                    return True
        if self._later:
            due = min(self._later)
            if due[0] <= now:
                self._later.remove(due)
                due[2]()
                return True
        choices = [self._stream_step, self._worker_step]
        if self.rng is not None:
            self.rng.shuffle(choices)
        if any(choice() for choice in choices):
            return True
        return any(self._tick(name, now) for name in PERIODS)

    def _next_time(self) -> datetime | None:
        now = self.clock.now()
        times = [actor.resume_at for actor in self._frozen if actor.resume_at is not None]
        times += [at for at, _, _ in self._later]
        if self.workers_on and self._idle("worker") is not None:
            visible = self.queues.next_at()
            times += [visible] if visible is not None else []
        times += [at for name in PERIODS if (at := self._useful_at(name)) is not None]
        return max(now, min(times)) if times else None

    # ------------------------------------------------------------------------------------ who does what
    def _stream_step(self) -> bool:
        if not self.stream_on or self.reader.behind == 0:
            return False
        actor = self._idle("stream")
        if actor is None:
            return False
        records = self.reader.read(10)
        if not any(_passes(record) for record in records):
            # The event source's filter: nobody is called for these.
            self.reader.commit(records)
            return True
        self._invoke(actor, lambda: self._consume(actor))
        return True

    def _consume(self, actor: Actor) -> None:
        reader = actor.port("stream")
        records = reader.read(10)
        images: list[Job | UnreadableRow] = []
        for record in records:
            if not _passes(record) or record.new is None:
                continue
            try:
                images.append(record.new.job)
            except UnreadableRow as exc:
                images.append(exc)
        admit(
            images,
            jobs=actor.port("jobs"),
            queues=actor.port("queues"),
            dead_letters=actor.port("dead_letters"),
            viewer=actor.viewer,
            clock=actor.clock,
            telemetry=self.telemetry,
        )
        reader.commit(records)

    def _worker_step(self) -> bool:
        if not self.workers_on or self.queues.depth(self.lane.name).visible == 0:
            return False
        actor = self._idle("worker")
        if actor is None:
            return False
        self._invoke(actor, lambda: self._work(actor, ()))
        return True

    def _work(self, actor: Actor, given: Sequence[Received]) -> None:
        queues = actor.port("queues")
        received = list(given) or queues.receive(self.lane.name, limit=self.lane.batch_size)
        if not received:
            return
        actor.holding = received
        self._runs += 1
        left_s = self.lane.function_timeout_s - min(HANDLER_MARGIN_S, self.lane.function_timeout_s / 5)
        deadline = Deadline(at=actor.clock.now() + timedelta(seconds=left_s), clock=actor.clock)
        deliveries: list[Delivery] = [one.delivery for one in received]
        machine = actor.keep("machine", lambda: self._machine(actor))
        returned = self._engine(deliveries, machine, invocation=f"{actor.life.name}.{self._runs}", deadline=deadline)
        for one in received:
            if one.delivery.message_id not in returned:
                queues.delete(self.lane.name, one.receipt)

    def _machine(self, actor: Actor) -> Worker:
        return Worker(
            lane=self.lane,
            tasks=self._tasks,
            jobs=actor.port("jobs"),
            effects=actor.port("effects"),
            content=actor.port("content"),
            vendors={self.vendor.name: actor.port("vendor")},
            board=actor.board,
            clock=actor.clock,
            telemetry=self.telemetry,
        )

    def _ask(self, request: Enqueue) -> None:
        actor = self._idle("client")
        if actor is None:
            self.later(1, lambda: self._ask(request))
            return
        answered: list[str] = []
        self._invoke(actor, lambda: answered.append(self._enqueue(actor, request)))
        if not answered and not actor.busy:
            self.later(1, lambda: self._ask(request))

    def _enqueue(self, actor: Actor, request: Enqueue) -> str:
        actor.twin = lambda: self._ask(request)
        ref = enqueue(
            request, jobs=actor.port("jobs"), content=actor.port("content"), lanes=self.lanes, clock=actor.clock
        )
        return ref.job_id

    # ---------------------------------------------------------------------------------------- schedules
    def _tick(self, name: str, now: datetime) -> bool:
        if self._ticks[name] > now:
            return False
        period = PERIODS[name]
        gone = int((now - START).total_seconds() // period)
        useful = self._useful_at(name) is not None
        self._ticks[name] = START + timedelta(seconds=(gone + 1) * period)
        actor = self._idle(name)
        if not useful or actor is None:
            return False
        self._invoke(actor, lambda: self._scheduled(actor, name))
        return True

    def _useful_at(self, name: str) -> datetime | None:
        """The first tick at which a schedule would find something; its empty runs are left out."""
        tick = self._ticks[name]
        if name == "dispatcher":
            due = self.jobs.next_due()
            if due is None:
                return None
            early = due - timedelta(seconds=LOOK_AHEAD_S)
            if early <= tick:
                return tick
            return tick + timedelta(seconds=-(-(early - tick).total_seconds() // PERIODS[name]) * PERIODS[name])
        if name == "triage":
            depth = self.dead_letters.depth(self.lane.name).total
            if depth != self._triaged_depth and (depth or self._triaged_depth > 0):
                return tick
            anyway = depth > 0 and self._open_jobs()
            rest = -(tick - START).total_seconds() % TRIAGE_ANYWAY_S
            return tick + timedelta(seconds=rest) if anyway else None
        return tick if self._open_jobs() else None

    def _scheduled(self, actor: Actor, name: str) -> None:
        self._runs += 1
        run_slot(
            name,
            period_s=PERIODS[name],
            run_id=f"{actor.life.name}.{self._runs}",
            work=lambda: getattr(self, f"_run_{name}")(actor),
            ledger=actor.port("ledger"),
            clock=actor.clock,
            telemetry=self.telemetry,
        )

    def _run_dispatcher(self, actor: Actor) -> Mapping[str, int]:
        return dispatch(
            self.lane,
            look_ahead_s=LOOK_AHEAD_S,
            limit=100,
            stop_at=actor.clock.now() + timedelta(seconds=50),
            jobs=actor.port("jobs"),
            queues=actor.port("queues"),
            viewer=actor.viewer,
            clock=actor.clock,
            telemetry=self.telemetry,
        ).counts()

    def _run_triage(self, actor: Actor) -> Mapping[str, int]:
        anyway = int(self.clock.now().timestamp()) % TRIAGE_ANYWAY_S < PERIODS["triage"]
        desk = Triage(
            jobs=actor.port("jobs"),
            effects=actor.port("effects"),
            content=actor.port("content"),
            dead_letters=actor.port("dead_letters"),
            clock=actor.clock,
            telemetry=self.telemetry,
        )
        done = desk.run(self.lane, last_depth=None if anyway else self._triaged_depth)
        self._triaged_depth = done.depth
        return done.counts(self.lane.name)

    def _run_sweeper(self, actor: Actor) -> Mapping[str, int]:
        swept = sweep(
            self.lane,
            jobs=actor.port("jobs"),
            effects=actor.port("effects"),
            clock=actor.clock,
            telemetry=self.telemetry,
        )
        return swept.counts(self.lane.name)

    def _run_auditor(self, actor: Actor) -> Mapping[str, int]:
        return self.auditor(actor).run(repair=True).counts()

    def auditor(self, actor: Actor) -> Auditor:
        """An auditor on one process's ports."""
        return Auditor(
            lanes=self.lanes,
            jobs=actor.port("jobs"),
            effects=actor.port("effects"),
            queues=actor.port("queues"),
            dead_letters=actor.port("dead_letters"),
            clock=actor.clock,
            telemetry=self.telemetry,
        )

    # --------------------------------------------------------------------------- dying and standing still
    def _invoke(self, actor: Actor, work: Callable[[], object]) -> None:
        actor.life.revive()
        actor.busy, actor.holding = True, []
        actor.twin = lambda: self._twin(actor, work)

        def guarded() -> None:
            try:
                work()
            except Crashed:
                self.crashes += 1
                actor.memory.clear()
            except PenstockError as exc:
                # The platform's answer to a failed invocation: what it held comes again.
                self.invocation_errors[f"{actor.role}:{exc.code}"] += 1
            finally:
                actor.busy = False

        actor.strand = None
        if actor.life.name in self._threaded:
            actor.strand = Strand(actor.life.name, guarded)
            actor.strand.begin()
        else:
            guarded()

    def _note_fault(self, boundary: Boundary, fault: Fault) -> None:
        self.last_fault_at = self.clock.now()

    def _freeze(self, life: Life, seconds: float) -> None:
        """Stand still. Without a thread of its own, the world goes on above the frozen call: then whoever
        freezes later must thaw first, and this one stands a little longer if it has to."""
        actor = self._by_name[life.name]
        resume_at = self.clock.now() + timedelta(seconds=seconds)
        if actor.strand is None:
            self._run_until(resume_at)
            self.clock.advance_to(resume_at)
            self.last_fault_at = self.clock.now()
            return
        actor.resume_at = resume_at
        self._frozen.append(actor)
        actor.strand.hold()

    def _resume(self, actor: Actor) -> None:
        self._frozen.remove(actor)
        actor.resume_at = None
        self.last_fault_at = self.clock.now()
        assert actor.strand is not None
        actor.strand.resume()

    def _duplicate(self, life: Life) -> None:
        actor = self._by_name[life.name]
        if actor.role != "worker":
            if actor.twin is not None:
                actor.twin()
            return
        second = self._idle("worker")
        again = [self.queues.again(self.lane.name, one.delivery.message_id) for one in actor.holding]
        given = [one for one in again if one is not None]
        if second is not None and given:
            self._invoke(second, lambda: self._work(second, given))

    def _twin(self, actor: Actor, work: Callable[[], object]) -> None:
        """A second process of the same role does the same thing now."""
        second = self._idle(actor.role)
        if second is None:
            return
        if actor.role == "stream":
            self._invoke(second, lambda: self._consume(second))
        elif actor.role in PERIODS:
            self._invoke(second, lambda: self._scheduled(second, actor.role))

    def _idle(self, role: str) -> Actor | None:
        """A process that can take something on: one that stands idle, or a new one while there may be more."""
        pool = self._pools[role]
        for actor in pool:
            if not actor.busy:
                return actor
        if len(pool) == self._sizes[role]:
            return None
        name = f"w{len(pool) + 1}" if role == "worker" else f"{role}{len(pool) + 1}"
        actor = self._by_name[name] = Actor(self, role, name, self._skew_s.get(name, 0))
        pool.append(actor)
        return actor

    # ---------------------------------------------------------------------------------------- the judge
    def _open_jobs(self) -> bool:
        return any(isinstance(job, Job) and not job.status.ended for job in self.jobs.scan())

    def verdict(self) -> Verdict:
        """Duplicates by the vendor's record; lost: in no end state, or completed without an accept."""
        verdict = Verdict()
        targets = Counter(f"{accept.action}:{accept.target}" for accept in self.vendor.accepts)
        verdict.duplicates = {target: count for target, count in targets.items() if count > 1}
        verdict.accepted = len(targets)
        for job_id, request in self._requests.items():
            verdict.wanted += len(targets_of(request))
            job = self.jobs.get(job_id)
            if job is None:
                verdict.lost.append(f"{job_id}: never stored")
                continue
            verdict.states[f"failed:{job.category}" if job.status is Status.FAILED else job.status.value] += 1
            if not job.status.ended:
                verdict.lost.append(f"{job_id}: still {job.status}")
            elif job.status is Status.COMPLETED and job.result != "withheld":
                missing = [target for target in targets_of(request) if target not in targets]
                verdict.lost += [f"{job_id}: completed without {target}" for target in missing]
        return verdict

    def trace_hash(self) -> str:
        """A fingerprint of everything that happened: the same seed gives the same."""
        seen = hashlib.sha256()
        for boundary in self.faults.trace:
            seen.update(str(boundary).encode())
        for accept in self.vendor.accepts:
            seen.update(repr(accept).encode())
        for job_id in self._requests:
            seen.update(repr(self.jobs.item(job_id)).encode())
        return seen.hexdigest()[:16]


def _passes(record: StreamRecord) -> bool:
    """The event source's filter: rows that are queued or failed; removals never."""
    return record.new is not None and record.new.item["status"].get("S") in ("queued", "pending", "failed")
