"""Run a native redrive: release every row of the plan, let SQS move the dead letters, and watch what becomes of them.

Rows first, then the move task: a letter that is moved meets a job which may run, and a run that dies in between leaves
rows for the next one to start the task for. A second task does no harm: what it moves beside the plan asks for itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice

from shared.core import lifecycle
from shared.core.cohort import NO_SIGNATURE
from shared.core.job import NATIVE, Category, Job
from shared.core.message import QueueDepth
from shared.core.native import SKEW, Begin, MoveState, MoveTask, decide_native
from shared.core.plan import Ending, Entry, Fate, fate_of
from shared.core.plan_ports import MoveTasks
from shared.core.redrive import MOST_OPEN, Decision, Look, Release, Room, Stop, room
from shared.core.switches import scopes_of
from shared.usecases.persist import persist
from shared.usecases.run_redrive import ABORTED, Run
from shared.usecases.try_move import try_move

LOOKED_AT = 200
"""Jobs under way that are looked at each time: thousands may be, and all of them have their turn."""
FATES_A_STEP = 2000
"""An item has room for so many and to spare."""


@dataclass(slots=True, kw_only=True)
class NativeRun(Run):
    """One run of one native plan."""

    over: bool = False
    """The move task has ended: what it left behind goes on by the waiting index."""
    scopes: set[str] = field(default_factory=set)
    """Every scope that a job of the plan was seen in."""

    def _take_up(self) -> None:
        Run._take_up(self)
        steps = self.progress.steps
        self.begun = any(step.begun for step in steps)
        self.stopping = steps[-1].stopping if steps else ""

    def _look(self) -> Decision | Begin:
        if self.stopping:
            return Stop(self.stopping)
        self.over = self.begun and self._ended()
        return Run._look(self)

    def _decide(self, look: Look, depth: QueueDepth) -> Decision | Begin:
        return decide_native(look, in_hand=depth.in_flight, begun=self.begun, moving=not self.over)

    def _do(self, decision: Decision | Begin, stop_at: datetime) -> bool:
        match decision:
            case Begin():
                return self._begin()
            case Stop(reason=reason):
                return self._stop(reason, stop_at)
        return Run._do(self, decision, stop_at)

    def _pause_s(self, decision: Decision | Begin) -> float:
        return 0 if isinstance(decision, Release) else self.look_s

    def _room(self) -> Room:
        """The move is paced by its rate. A switch that closes admission counts, whichever of its jobs it is over; of
        the accounts only those that are shut or quiet."""
        job, view = self._row(self.manifest[0]), self.with_.viewer.of(self.lane.name)
        standing = view.switches.standing(self.scopes)
        if standing.closes_admission:
            return Room(count=0, held_by=f"switches:{standing.scope}")
        if job is None:
            return Room(count=MOST_OPEN)
        found = room(job, view, self.with_.clock.now(), self.look_s, backlog=False, busy=0)
        return Room(count=MOST_OPEN, shut=found.shut, quiet=found.quiet)

    def _row(self, entry: Entry) -> Job | None:
        job = Run._row(self, entry)
        if job is not None:
            self.scopes.update(scopes_of(job, self.lane.vendors_of(job.task)))
        return job

    # ------------------------------------------------------------------------------------- the move task
    @property
    def _moves(self) -> MoveTasks:
        moves = self.with_.moves
        assert moves is not None, "a native plan needs the port of move tasks"
        return moves

    def _newest(self) -> MoveTask | None:
        tasks = persist(lambda: self._moves.of(self.lane.name), self.with_.clock)
        return tasks[0] if tasks else None

    def _begin(self) -> bool:
        """Start the task, or take up the one that a run before this started and could not tell of. Somebody else's
        is waited for."""
        task, rate = self._newest(), self.plan.rate or 1
        if task is not None and task.state.active:
            if not task.to_lane or task.rate != rate:
                return False
        elif not persist(lambda: self._moves.start(self.lane.name, rate=rate), self.with_.clock):
            return False
        self.begun = True
        self.with_.telemetry.event("redrive_moving", plan_id=self.plan.plan_id, lane=self.lane.name, rate=rate)
        return not self._step("move task")

    def _ended(self) -> bool:
        """True once the plan's task has ended. SQS may tell of a new one only after a moment."""
        began = next(step.at for step in self.progress.steps if step.begun)
        task = self._newest()
        return task is not None and not task.state.active and task.started_at >= began - SKEW

    # ---------------------------------------------------------------------------- jobs that are under way
    def _collect(self) -> None:
        """See who has ended, some at a time; who was left behind by an ended task goes on by the waiting index."""
        if not self.begun:
            return
        for entry in list(islice(self.open.values(), LOOKED_AT)):
            del self.open[entry.job_id]
            job = self._row(entry)
            fate = fate_of(entry, job, self.plan.plan_id)
            if fate is not None:
                self._note(entry, fate)
                continue
            self.open[entry.job_id] = entry
            if self.over and job is not None and job.route == NATIVE:
                self._moved(job, lifecycle.held(job, f"send:{self.lane.name}", self.with_.clock.now()))

    def _stop(self, reason: str, stop_at: datetime) -> bool:
        """Say so, cancel the task, and take back what was released and not moved. True when the run is over."""
        if not self.stopping:
            self.stopping = reason
            if not self._step(reason):
                return True
        task = self._newest()
        if task is not None and task.state is MoveState.RUNNING and task.handle is not None:
            handle = task.handle
            persist(lambda: self._moves.cancel(self.lane.name, handle), self.with_.clock)
        for number, entry in enumerate(list(self.open.values())):
            if number >= MOST_OPEN and self.with_.clock.now() >= stop_at:
                return False
            if len(self.seen) >= FATES_A_STEP and not self._step(reason):
                return True
            fate = self._taken_back(entry)
            if fate is not None:
                del self.open[entry.job_id]
                self._note(entry, fate)
        self._end(Ending.ABORTED if reason == ABORTED else Ending.STOPPED, reason)
        return True

    def _taken_back(self, entry: Entry) -> Fate | None:
        """What became of a job, once it is back where it was if nobody has claimed it."""
        job = self._row(entry)
        fate = fate_of(entry, job, self.plan.plan_id)
        if fate is not None or job is None or job.route != NATIVE:
            return fate
        category = Category(entry.category) if entry.category in tuple(Category) else None
        signature = None if entry.signature == NO_SIGNATURE else entry.signature
        after = lifecycle.withdrawn(job, self.lane, category, signature, self.with_.clock.now())
        return Fate.WITHDRAWN if self._moved(job, after) else None

    def _moved(self, job: Job, after: Job) -> bool:
        """False when it was claimed meanwhile: its letter had been moved after all."""
        return try_move(job, after, jobs=self.with_.jobs, clock=self.with_.clock, telemetry=self.with_.telemetry)
