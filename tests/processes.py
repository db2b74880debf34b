"""The processes of a world: what each role does with its ports. Every call goes through the fault machinery."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from shared.adapters.memory.faults import Worker as Life
from shared.adapters.memory.queues import Received
from shared.adapters.memory.strand import Strand
from shared.adapters.memory.stream import StreamRecord
from shared.contract import table
from shared.core.errors import UnreadableRow
from shared.core.job import Job
from shared.core.ports import Clock
from shared.usecases.admit import Admitted, admit
from shared.usecases.audit import Auditor
from shared.usecases.budgets import Budgets
from shared.usecases.deadline import HANDLER_MARGIN_S, Deadline
from shared.usecases.dispatch import dispatch
from shared.usecases.enqueue import Enqueue, enqueue
from shared.usecases.restore_letters import LetterKeeper
from shared.usecases.run_attempt import Worker
from shared.usecases.run_redrive import Redriver
from shared.usecases.run_slot import run_slot
from shared.usecases.sweep import sweep
from shared.usecases.switchboard import SwitchBoard
from shared.usecases.triage import Triage
from shared.usecases.view import Viewer

if TYPE_CHECKING:
    from tests.world import World

PERIODS = {"dispatcher": 60, "triage": 60, "sweeper": 300, "auditor": 3600, "redriver": 60}
TIME_LIMITS_S = {"dispatcher": 50, "triage": 50, "sweeper": 120, "auditor": 600, "redriver": 55}
LOOK_AHEAD_S = 75
TRIAGE_ANYWAY_S = 600
STREAM_BATCH = 10


class Process:
    """One process: its name, its idea of the time, its ports, and what it holds in memory until it dies."""

    def __init__(self, world: World, role: str, name: str, skew_s: float = 0) -> None:
        self.world, self.role, self.life = world, role, Life(name)
        self.clock: Clock = world.clock.skewed(skew_s)
        self.skew_s = skew_s
        self.busy = False
        self.dies_at: datetime | None = None
        self.strand: Strand | None = None
        self.resume_at: datetime | None = None
        self.holding: list[Received] = []
        self.twin: Callable[[], None] | None = None
        self.memory: dict[str, Any] = {}
        self._ports: dict[str, Any] = {}

    @property
    def name(self) -> str:
        """Its name in every trace."""
        return self.life.name

    def port(self, name: str) -> Any:
        """A port as this process reaches it: every call is a boundary."""
        found = self._ports.get(name)
        if found is None:
            found = self._ports[name] = self.world.faults.wrap(self.world.ports[name], name, self.life)
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

    # ---------------------------------------------------------------------------------------- producers
    def enqueue(self, request: Enqueue) -> str:
        """A caller's side: the job's id, once it was told."""
        world = self.world
        return enqueue(
            request, jobs=self.port("jobs"), content=self.port("content"), lanes=world.lanes, clock=self.clock
        ).job_id

    # ---------------------------------------------------------------------------------- stream consumer
    def consume(self) -> Admitted:
        """One batch of the stream."""
        reader = self.port("stream")
        records: list[StreamRecord] = reader.read(STREAM_BATCH)
        done = admit(
            images_of(records),
            jobs=self.port("jobs"),
            queues=self.port("queues"),
            dead_letters=self.port("dead_letters"),
            viewer=self._viewer(),
            clock=self.clock,
            telemetry=self.world.telemetry,
        )
        reader.commit(records)
        return done

    # ------------------------------------------------------------------------------------------ workers
    def work(self, given: Sequence[Received] = ()) -> None:
        """One invocation of a worker: what was given, or what the queue has; then the acknowledgements."""
        world, lane, queues = self.world, self.world.lane, self.port("queues")
        received = list(given) or queues.receive(lane.name, limit=lane.batch_size)
        if not received:
            return
        self.holding = received
        left_s = lane.function_timeout_s - min(HANDLER_MARGIN_S, lane.function_timeout_s / 5)
        returned = world.engine(self)(
            [one.delivery for one in received],
            self.keep("machine", self.machine),
            invocation=world.next_id(self.name),
            deadline=Deadline(at=self.clock.now() + timedelta(seconds=left_s), clock=self.clock),
        )
        for one in received:
            if one.delivery.message_id not in returned:
                queues.delete(lane.name, one.receipt)

    def machine(self) -> Worker:
        """What a worker works with."""
        world = self.world
        return Worker(
            lane=world.lane,
            tasks=world.tasks,
            jobs=self.port("jobs"),
            effects=self.port("effects"),
            content=self.port("content"),
            vendors={
                **{name: self.port("vendor") for name in (world.vendor.name, *world.lane.vendors)},
                **{one.name: self.port(name) for name, one in world.vendors.items()},
            },
            board=self._board(),
            clock=self.clock,
            telemetry=world.telemetry,
            budgets=Budgets.of(
                world.accounts.values(),
                ledger=self.port("budgets"),
                clock=self.clock,
                telemetry=world.telemetry,
                owner=self.name,
                # What the table's answers tell of this machine's clock.
                skew_s=lambda: self.skew_s,
                chance=lambda: 0.5,
            ),
        )

    # --------------------------------------------------------------------------------------- scheduled
    def scheduled(self) -> None:
        """One run of this process's schedule, once per slot."""
        run_slot(
            self.role,
            period_s=PERIODS[self.role],
            time_limit_s=TIME_LIMITS_S[self.role],
            run_id=self.world.next_id(self.name),
            work=getattr(self, f"_run_{self.role}"),
            ledger=self.port("ledger"),
            clock=self.clock,
            telemetry=self.world.telemetry,
        )

    def _run_dispatcher(self) -> Mapping[str, int]:
        return dispatch(
            self.world.lane,
            look_ahead_s=LOOK_AHEAD_S,
            horizon_s=LOOK_AHEAD_S,
            limit=100,
            stop_at=self.clock.now() + timedelta(seconds=50),
            jobs=self.port("jobs"),
            queues=self.port("queues"),
            viewer=self._viewer(),
            clock=self.clock,
            telemetry=self.world.telemetry,
        ).counts()

    def _run_triage(self) -> Mapping[str, int]:
        world = self.world
        anyway = int(self.clock.now().timestamp()) % TRIAGE_ANYWAY_S < PERIODS["triage"]
        desk = Triage(
            jobs=self.port("jobs"),
            effects=self.port("effects"),
            content=self.port("content"),
            dead_letters=self.port("dead_letters"),
            clock=self.clock,
            telemetry=world.telemetry,
        )
        done = desk.run(world.lane, last_depth=None if anyway else world.triaged_depth)
        world.triaged_depth = done.depth
        return done.counts(world.lane.name)

    def _run_sweeper(self) -> Mapping[str, int]:
        lane = self.world.lane
        ports = {"jobs": self.port("jobs"), "clock": self.clock, "telemetry": self.world.telemetry}
        counts = sweep(lane, effects=self.port("effects"), **ports).counts(lane.name)
        keeper = LetterKeeper(dead_letters=self.port("dead_letters"), **ports)
        return counts | keeper.run([lane])

    def _run_redriver(self) -> Mapping[str, int]:
        desk = Redriver(
            jobs=self.port("jobs"),
            plans=self.port("plans"),
            history=self.port("history"),
            queues=self.port("queues"),
            dead_letters=self.port("dead_letters"),
            viewer=self._viewer(),
            clock=self.clock,
            telemetry=self.world.telemetry,
            moves=self.port("moves"),
        )
        # One look a run: between two of them everybody else goes on.
        return desk.run(self.world.lane, stop_at=self.clock.now())

    def _run_auditor(self) -> Mapping[str, int]:
        return self.auditor().run(repair=True).counts()

    def auditor(self) -> Auditor:
        """An auditor on this process's ports."""
        return Auditor(
            lanes=self.world.lanes,
            jobs=self.port("jobs"),
            effects=self.port("effects"),
            queues=self.port("queues"),
            dead_letters=self.port("dead_letters"),
            clock=self.clock,
            telemetry=self.world.telemetry,
        )

    def _board(self) -> SwitchBoard:
        board: SwitchBoard = self.keep("board", lambda: SwitchBoard(control=self.port("control"), clock=self.clock))
        return board

    def _viewer(self) -> Viewer:
        viewer: Viewer = self.keep(
            "viewer",
            lambda: Viewer(
                lanes=self.world.lanes,
                board=self._board(),
                control=self.port("control"),
                queues=self.port("queues"),
                clock=self.clock,
                accounts=self.world.accounts,
                budgets=self.port("budgets"),
            ),
        )
        return viewer


def passes(record: StreamRecord) -> bool:
    """What reaches admission: new rows and changes of state, to queued in no index or to failed.

    A queued row that stays queued (held, handed off, given another time) is somebody else's work already.
    """
    if record.new is None:
        return False
    status = record.new.item["status"].get("S")
    if record.old is not None and record.old.item["status"].get("S") == status:
        return False
    return status == "failed" or (status == "queued" and table.WAITING_PK not in record.new.item)


def images_of(records: Sequence[StreamRecord]) -> list[Job | UnreadableRow]:
    """New images as the stream consumer's handler reads them."""
    images: list[Job | UnreadableRow] = []
    for record in records:
        if record.new is None or not passes(record):
            continue
        try:
            images.append(record.new.job)
        except UnreadableRow as exc:
            images.append(exc)
    return images
