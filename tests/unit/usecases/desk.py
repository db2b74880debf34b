"""One lane on memory adapters and a virtual clock, with every use case one call away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from shared.adapters.memory.budgets import MemoryBudgetLedger
from shared.adapters.memory.clock import VirtualClock
from shared.adapters.memory.move_tasks import MemoryMoveTasks
from shared.adapters.memory.plans import MemoryPlanStore, MemoryResolutionStore
from shared.adapters.memory.queues import MemoryDeadLetterQueues, MemoryLaneQueues
from shared.adapters.memory.stores import (
    MemoryContentStore,
    MemoryControlStore,
    MemoryEffectStore,
    MemoryHistory,
    MemoryJobStore,
    MemoryLedger,
    MemorySignalLedger,
)
from shared.adapters.memory.telemetry import MemoryTelemetry
from shared.adapters.memory.vendor import MemoryVendor
from shared.core.account import AccountSpec
from shared.core.effects import EffectRow
from shared.core.errors import Unavailable, UnreadableRow
from shared.core.job import Job
from shared.core.lane import LaneSpec
from shared.core.people import People
from shared.core.ports import Delivery
from shared.core.switches import Level, Switches
from shared.usecases.admit import Admitted, admit
from shared.usecases.audit import Auditor
from shared.usecases.budgets import Budgets
from shared.usecases.context import Task
from shared.usecases.deadline import Deadline
from shared.usecases.dispatch import Dispatched, Run, dispatch
from shared.usecases.enqueue import Enqueue, JobRef, enqueue
from shared.usecases.resolve_unknown import Resolver
from shared.usecases.restore_letters import LetterKeeper
from shared.usecases.run_attempt import Answer, Worker, run_attempt
from shared.usecases.run_batch import run_batch
from shared.usecases.run_redrive import Redriver
from shared.usecases.sweep import Swept, sweep
from shared.usecases.switchboard import SwitchBoard
from shared.usecases.triage import Triage
from shared.usecases.view import Viewer
from tests.builders import a_lane, a_switch, a_ticket
from tests.vendors_and_tasks import TASKS, VendorKind, a_vendor


class Flaky:
    """A port with an outage: while `down`, every named method raises Unavailable."""

    def __init__(self, target: Any, *methods: str) -> None:
        self._target, self._methods = target, methods
        self.down = False
        self.calls = 0

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._target, name)
        if name not in self._methods:
            return attribute

        def guarded(*args: Any, **kwargs: Any) -> Any:
            self.calls += 1
            if self.down:
                raise Unavailable(name, "throttled")
            return attribute(*args, **kwargs)

        return guarded


class Desk:
    """Everything a use case needs, with the lane `support` and a vendor of the kind asked for."""

    def __init__(
        self,
        *,
        kind: VendorKind = VendorKind.NEITHER,
        tasks: Mapping[str, Task] = TASKS,
        index_lag_s: float = 0,
        account: AccountSpec | None = None,
        **lane: Any,
    ) -> None:
        self.accounts = {} if account is None else {account.name: account}
        self.lane: LaneSpec = a_lane(tasks=tuple(tasks), accounts=tuple(self.accounts), **lane)
        self.lanes = {self.lane.name: self.lane}
        self.tasks = tasks
        self.clock = VirtualClock()
        self.telemetry = MemoryTelemetry()
        self.jobs = MemoryJobStore(lanes=self.lanes, clock=self.clock, index_lag_s=index_lag_s)
        self.effects, self.content, self.ledger = MemoryEffectStore(), MemoryContentStore(), MemoryLedger()
        self.history = MemoryHistory()
        self.people = People(roles=frozenset({"penstock-dev-approver", "penstock-dev-operator"}))
        self.plans, self.resolutions = MemoryPlanStore(), MemoryResolutionStore()
        self.signals = Flaky(MemorySignalLedger(), "add", "minutes")
        self.control = Flaky(MemoryControlStore(), "switches")
        self.dead_letters = MemoryDeadLetterQueues(clock=self.clock)
        self.queues = MemoryLaneQueues(clock=self.clock, lanes=self.lanes, dead_letters=self.dead_letters)
        self.moves = MemoryMoveTasks(clock=self.clock, queues=self.queues, dead_letters=self.dead_letters)
        self.vendor: MemoryVendor = a_vendor(kind, self.clock)
        self.more_vendors: dict[str, MemoryVendor] = {}
        self.board = SwitchBoard(control=self.control, clock=self.clock)
        self.budget_ledger = MemoryBudgetLedger()
        self.viewer = self.a_viewer()
        self.budgets = self.an_environment("env-1")

    def a_viewer(self) -> Viewer:
        """What one process sees; each has its own."""
        return Viewer(
            lanes=self.lanes,
            board=self.board,
            control=self.control,
            queues=self.queues,
            clock=self.clock,
            accounts=self.accounts,
            budgets=self.budget_ledger,
            telemetry=self.telemetry,
        )

    def add_lane(self, lane: LaneSpec) -> None:
        """Another lane of the same stage."""
        self.lanes[lane.name] = lane
        self.jobs = MemoryJobStore(lanes=self.lanes, clock=self.clock)
        self.queues = MemoryLaneQueues(clock=self.clock, lanes=self.lanes, dead_letters=self.dead_letters)
        self.viewer = self.a_viewer()

    def an_environment(self, owner: str) -> Budgets:
        """What one worker's environment holds of the accounts; each has its own."""
        return Budgets.of(
            self.accounts.values(),
            ledger=self.budget_ledger,
            clock=self.clock,
            telemetry=self.telemetry,
            owner=owner,
            chance=lambda: 0.5,
        )

    # ------------------------------------------------------------------------------------------- verbs
    def enqueue(self, task: str = "reply", *, tenant: str = "tenant-1", key: Any = "event-1", **more: Any) -> JobRef:
        values: dict[str, Any] = {"lane": self.lane.name, "payload": {"text": "hello"}, **more}
        request = Enqueue(task=task, tenant=tenant, key=key, **values)
        return enqueue(request, jobs=self.jobs, content=self.content, lanes=self.lanes, clock=self.clock)

    def admit(self, *images: Job | UnreadableRow) -> Admitted:
        return admit(
            images,
            jobs=self.jobs,
            queues=self.queues,
            dead_letters=self.dead_letters,
            viewer=self.viewer,
            clock=self.clock,
            telemetry=self.telemetry,
        )

    def dispatch(
        self,
        *,
        look_ahead_s: int = 75,
        limit: int = 100,
        run_s: float = 50,
        horizon_s: float = 4,
        run: Run | None = None,
    ) -> Dispatched:
        return dispatch(
            self.lane,
            look_ahead_s=look_ahead_s,
            horizon_s=horizon_s,
            limit=limit,
            run=run,
            stop_at=self.clock.now() + timedelta(seconds=run_s),
            jobs=self.jobs,
            queues=self.queues,
            viewer=self.viewer,
            clock=self.clock,
            telemetry=self.telemetry,
        )

    def work(self, job: Job | str | Delivery, *, by: str = "w1/00000001", left_s: float = 16) -> Answer:
        """One attempt on one message."""
        delivery = job if isinstance(job, Delivery) else a_ticket(job if isinstance(job, Job) else self.job(job))
        return run_attempt(delivery, self.worker(), by=by, deadline=self.deadline(left_s))

    def batch(self, *deliveries: Delivery, left_s: float = 16) -> list[str]:
        return run_batch(deliveries, self.worker(), invocation="invocation-1", deadline=self.deadline(left_s))

    def deadline(self, left_s: float) -> Deadline:
        return Deadline(at=self.clock.now() + timedelta(seconds=left_s), clock=self.clock)

    def worker(self) -> Worker:
        return Worker(
            lane=self.lane,
            tasks=self.tasks,
            jobs=self.jobs,
            effects=self.effects,
            content=self.content,
            vendors={self.vendor.name: self.vendor, **self.more_vendors},
            board=self.board,
            clock=self.clock,
            telemetry=self.telemetry,
            budgets=self.budgets,
            accounts=tuple(self.accounts.values()),
            signals=self.signals,
        )

    def triage(self) -> Triage:
        return Triage(
            jobs=self.jobs,
            effects=self.effects,
            content=self.content,
            dead_letters=self.dead_letters,
            clock=self.clock,
            telemetry=self.telemetry,
        )

    def sweep(self) -> Swept:
        return sweep(
            self.lane,
            jobs=self.jobs,
            effects=self.effects,
            clock=self.clock,
            telemetry=self.telemetry,
        )

    def restore_letters(self, *, left_s: float = 120) -> int:
        """Letters sent again, by a sweep that has so much time left."""
        keeper = LetterKeeper(
            jobs=self.jobs,
            dead_letters=self.dead_letters,
            clock=self.clock,
            telemetry=self.telemetry,
        )
        return sum(keeper.run(self.lanes.values(), self.deadline(left_s)).values())

    def redriver(self) -> Redriver:
        return Redriver(
            jobs=self.jobs,
            plans=self.plans,
            history=self.history,
            queues=self.queues,
            dead_letters=self.dead_letters,
            viewer=self.viewer,
            clock=self.clock,
            telemetry=self.telemetry,
            moves=self.moves,
        )

    def resolver(self) -> Resolver:
        return Resolver(
            jobs=self.jobs,
            effects=self.effects,
            resolutions=self.resolutions,
            history=self.history,
            lanes=self.lanes,
            people=self.people,
            clock=self.clock,
        )

    def auditor(self) -> Auditor:
        return Auditor(
            lanes=self.lanes,
            jobs=self.jobs,
            effects=self.effects,
            queues=self.queues,
            dead_letters=self.dead_letters,
            clock=self.clock,
            telemetry=self.telemetry,
        )

    def stores(self) -> dict[str, Any]:
        """What a settle writes to and tells."""
        return {"jobs": self.jobs, "effects": self.effects, "clock": self.clock, "telemetry": self.telemetry}

    def another_vendor(self, name: str, kind: VendorKind = VendorKind.NEITHER) -> MemoryVendor:
        """A second vendor that the worker knows."""
        self.more_vendors[name] = a_vendor(kind, self.clock, name=name)
        return self.more_vendors[name]

    # ------------------------------------------------------------------------------------------ looking
    def put(self, job: Job) -> Job:
        """A job as if it had come there by itself."""
        assert self.jobs.put(job) is None
        return job

    def job(self, job_id: str) -> Job:
        job = self.jobs.get(job_id)
        assert job is not None
        return job

    def queued_messages(self) -> Sequence[str]:
        """The jobs with a message in the lane's queue."""
        return self.queues.job_ids(self.lane.name)

    def rows(self, job_id: str) -> list[EffectRow]:
        return self.effects.of_job(job_id)

    def close(self, scope: str = "all", level: Level = Level.HALT, **more: Any) -> None:
        """Set a switch, and let the board forget what it knew."""
        self.control.set_switch(a_switch(scope, level, **more))
        self.clock.advance(10)

    def open(self, scope: str = "all") -> None:
        self.close(scope, Level.NORMAL)

    @property
    def switches(self) -> Switches:
        return self.board.read()
