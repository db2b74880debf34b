"""Run a redrive: release the jobs of an approved plan, a few at a time, and watch what becomes of them.

A job is released by one conditional write, failed → queued, which raises its fence: whatever dies and is started again,
nobody is released twice. The stream sends it on like any other job; there is no second sender.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from shared.core import lifecycle
from shared.core.errors import PenstockError, RowMoved, UnreadableRow
from shared.core.history import HistoryEvent
from shared.core.job import NATIVE, Job
from shared.core.lane import LaneSpec
from shared.core.message import QueueDepth
from shared.core.native import Begin
from shared.core.plan import Ending, Entry, Fate, Plan, PlanState, Progress, Step, fate_of, manifest_hash
from shared.core.plan_ports import MoveTasks, PlanStore
from shared.core.ports import Clock, DeadLetterQueues, History, JobStore, LaneQueues, Telemetry
from shared.core.redrive import LOOK_S, Decision, Finish, Look, Release, Room, Stop, Wait, decide, room
from shared.usecases.persist import persist
from shared.usecases.plan_redrive import subject_of
from shared.usecases.view import Viewer


@dataclass(frozen=True, slots=True, kw_only=True)
class Redriver:
    """What the executor works with."""

    jobs: JobStore
    plans: PlanStore
    history: History
    queues: LaneQueues
    dead_letters: DeadLetterQueues
    viewer: Viewer
    clock: Clock
    telemetry: Telemetry
    moves: MoveTasks | None = None
    """Needed by a native plan alone."""

    def run_all(self, lanes: Mapping[str, LaneSpec], *, stop_at: datetime) -> dict[str, int]:
        """Every lane that a plan has, each on its own: a plan that cannot be read keeps no other waiting."""
        counts: dict[str, int] = {}
        running = [lane for lane in lanes.values() if self._holder(lane, counts) is not None]
        for left, lane in zip(range(len(running), 0, -1), running, strict=True):
            # What a lane does not use is left for the next one.
            now = self.clock.now()
            share = max(timedelta(0), stop_at - now) / left
            try:
                counts |= self.run(lane, stop_at=now + share)
            except PenstockError as exc:
                self._lost(lane, exc, counts)
        return counts

    def _holder(self, lane: LaneSpec, counts: dict[str, int]) -> str | None:
        try:
            return persist(lambda: self.plans.plan_of(lane.name), self.clock)
        except PenstockError as exc:
            self._lost(lane, exc, counts)
            return None

    def _lost(self, lane: LaneSpec, exc: PenstockError, counts: dict[str, int]) -> None:
        """Nothing more is released; what is told of the plan stands as it stood, for an operator."""
        self.telemetry.error("plan_not_run", exc, lane=lane.name)
        counts[f"{lane.name}.lost"] = 1

    def run(self, lane: LaneSpec, *, stop_at: datetime, look_s: float = LOOK_S) -> dict[str, int]:
        """Go on with the plan that has the lane, until `stop_at` at the latest; the counts of this run."""
        plan_id = persist(lambda: self.plans.plan_of(lane.name), self.clock)
        plan = None if plan_id is None else persist(lambda: self.plans.get(plan_id), self.clock)
        if plan is None or plan.state not in (PlanState.RUNNING, PlanState.ABORTED):
            return {}
        if (plan.plan_id, plan.lane) != (plan_id, lane.name):
            raise UnreadableRow(plan_id or "", "does not name itself, or is the plan of another lane")
        progress = Progress(steps=persist(lambda: self.plans.steps(plan.plan_id), self.clock))
        if progress.ended is not None:
            return {}
        run = self._run_of(plan)(with_=self, lane=lane, plan=plan, progress=progress, look_s=look_s)
        run.go(stop_at)
        return {f"{lane.name}.released": run.released, f"{lane.name}.ended": run.counts.total() - len(progress.fates)}

    def _run_of(self, plan: Plan) -> type[Run]:
        if plan.rate is None:
            return Run
        from shared.usecases.run_native import NativeRun

        return NativeRun


@dataclass(slots=True, kw_only=True)
class Run:
    """One run of one plan: what it knows, and what it has found out."""

    with_: Redriver
    lane: LaneSpec
    plan: Plan
    progress: Progress
    look_s: float
    manifest: tuple[Entry, ...] = ()
    tried: int = 0
    open: dict[str, Entry] = field(default_factory=dict)
    seen: dict[str, Fate] = field(default_factory=dict)
    counts: Counter[Fate] = field(default_factory=Counter)
    letters: int | None = None
    quiet: int = 0
    released: int = 0
    begun: bool = False
    stopping: str = ""

    def go(self, stop_at: datetime) -> None:
        """Look, decide, do; again until the plan is over or the time is."""
        clock = self.with_.clock
        self._take_up()
        if manifest_hash(self.manifest) != self.plan.hash:
            self._do(Stop("manifest: it is not the one that was approved"), stop_at)
            return
        while True:
            decision = self._look()
            if self._do(decision, stop_at):
                return
            if clock.now() + timedelta(seconds=self.look_s) >= stop_at or self._until_a_run(decision):
                break
            clock.sleep(self._pause_s(decision))
        self._collect()
        self._step(decision.reason if isinstance(decision, Wait) else "")

    def _do(self, decision: Decision | Begin, stop_at: datetime) -> bool:
        """Act on a decision; True when the run is over."""
        match decision:
            case Finish():
                self._end(Ending.FINISHED, "")
                return True
            case Stop(reason=reason):
                self._end(Ending.ABORTED if reason == ABORTED else Ending.STOPPED, reason)
                return True
            case Release(count=count):
                self._release(count)
        return False

    def _pause_s(self, decision: Decision | Begin) -> float:
        return self.look_s

    def _until_a_run(self, decision: Decision | Begin) -> bool:
        """True when only a run of the lane can change anything, which may be an hour away: one look a minute will do,
        and the next run of the executor has it."""
        return self.lane.run is not None and isinstance(decision, Wait)

    def _take_up(self) -> None:
        """Where the runs before ended, and what the last one did without having been able to say so."""
        steps = self.progress.steps
        self.manifest = persist(lambda: self.with_.plans.manifest(self.plan.plan_id), self.with_.clock)
        self.tried, fates = self.progress.tried, self.progress.fates
        self.counts.update(fates.values())
        self.letters = steps[-1].letters if steps else None
        self.quiet = steps[-1].quiet if steps else 0
        self.open = {one.job_id: one for one in self.manifest[: self.tried] if one.job_id not in fates}
        while self.tried < len(self.manifest):
            entry = self.manifest[self.tried]
            job = self._row(entry)
            if job is None or job.plan_id != self.plan.plan_id:
                break
            self.open[entry.job_id] = entry
            self.tried += 1

    def _look(self) -> Decision | Begin:
        clock, dead_letters = self.with_.clock, self.with_.dead_letters
        plan = persist(lambda: self.with_.plans.get(self.plan.plan_id), clock)
        self._collect()
        if plan is None or plan.state is not PlanState.RUNNING:
            return Stop(ABORTED)
        depth = persist(lambda: dead_letters.depth(self.lane.name), clock)
        self.letters = depth.total if self.letters is None else min(self.letters, depth.total)
        space = self._room()
        self.quiet = self.quiet + 1 if space.quiet else 0
        look = Look(
            left=len(self.manifest) - self.tried,
            open=len(self.open),
            fates=self.counts,
            letters=depth.total,
            fewest_letters=self.letters,
            quiet_looks=self.quiet,
            room=space.count,
            held_by=space.held_by,
            shut=space.shut,
        )
        return self._decide(look, depth)

    def _decide(self, look: Look, depth: QueueDepth) -> Decision | Begin:
        return decide(look)

    def _room(self) -> Room:
        """What fits now, for the next job of the manifest."""
        if self.tried >= len(self.manifest):
            return Room(count=0)
        job = self._row(self.manifest[self.tried])
        if job is None or not self.manifest[self.tried].holds(job):
            # It takes no room: its turn only writes down that it changed.
            return Room(count=1)
        now, viewer = self.with_.clock.now(), self.with_.viewer
        return room(
            lifecycle.replayed(job, self.plan.plan_id, now),
            viewer.of(self.lane.name, job.task),
            now,
            self.look_s,
            backlog=viewer.backlog(self.lane, job.task),
            busy=self._busy(),
            under_way=len(self.open),
        )

    def _busy(self) -> int:
        """Jobs that run or wait for a worker; a lane with runs has no queue to ask."""
        if self.lane.run is not None:
            return len(self.open)
        depth = persist(lambda: self.with_.queues.depth(self.lane.name), self.with_.clock)
        # What was released a moment ago may not have reached the queue yet.
        return max(depth.total, len(self.open))

    def _release(self, count: int) -> None:
        """Let the next `count` jobs go. One that is not any more as it was planned is left alone."""
        while count and self.tried < len(self.manifest):
            entry = self.manifest[self.tried]
            fate = self._let_go(entry)
            if fate is None:
                self.open[entry.job_id] = entry
                count -= 1
            else:
                self._note(entry, fate)
            self.tried += 1

    def _let_go(self, entry: Entry) -> Fate | None:
        """None: the job is released, by this write or by one before it."""
        job = self._row(entry)
        if job is None:
            return Fate.GONE
        if job.plan_id == self.plan.plan_id:
            return None
        if not entry.holds(job):
            return Fate.CHANGED
        route = None if self.plan.rate is None else NATIVE
        after = lifecycle.replayed(job, self.plan.plan_id, self.with_.clock.now(), route=route)
        try:
            persist(lambda: self.with_.jobs.move(job, after), self.with_.clock)
        except RowMoved as moved:
            mine = moved.current is not None and moved.current.plan_id == self.plan.plan_id
            return None if mine else Fate.CHANGED
        self.released += 1
        self.with_.telemetry.event("redrive_released", job_id=entry.job_id, plan_id=self.plan.plan_id)
        return None

    def _collect(self) -> None:
        """See who has ended."""
        for entry in list(self.open.values()):
            fate = fate_of(entry, self._row(entry), self.plan.plan_id)
            if fate is not None:
                del self.open[entry.job_id]
                self._note(entry, fate)

    def _note(self, entry: Entry, fate: Fate) -> None:
        self.seen[entry.job_id] = fate
        self.counts[fate] += 1

    def _row(self, entry: Entry) -> Job | None:
        try:
            return persist(lambda: self.with_.jobs.get(entry.job_id), self.with_.clock)
        except UnreadableRow as exc:
            self.with_.telemetry.error("row_unreadable", exc, job_id=entry.job_id)
            return None

    def _end(self, ending: Ending, reason: str) -> None:
        if not self._step(reason, ending):
            return
        plan, now = self.plan, self.with_.clock.now()
        counts: Mapping[str, object] = {fate.value: count for fate, count in sorted(self.counts.items())}
        detail = {"plan": plan.plan_id, "reason": reason, "under_way": len(self.open), **counts}
        event = HistoryEvent(
            subject=subject_of(plan.lane),
            event_id=uuid.uuid5(uuid.NAMESPACE_OID, f"{plan.plan_id}:ended").hex,
            at=now,
            kind=ending.value,
            by="redriver",
            detail=detail,
        )
        persist(lambda: self.with_.history.append(event), self.with_.clock)
        self.with_.telemetry.event(
            "redrive_ended", plan_id=plan.plan_id, lane=plan.lane, ending=ending, reason=reason.partition(":")[0]
        )

    def _step(self, waits_for: str, ending: Ending | None = None) -> bool:
        """Write down how far it came; False when another run was there first, which then has the say."""
        last = self.progress.steps[-1] if self.progress.steps else None
        step = Step(
            number=0 if last is None else last.number + 1,
            at=self.with_.clock.now(),
            tried=self.tried,
            fates=self.seen,
            letters=self.letters or 0,
            quiet=self.quiet,
            waits_for=waits_for,
            begun=self.begun,
            stopping=self.stopping,
            ending=ending,
        )
        same = last is not None and _standing(last) == _standing(step)
        if same and not step.fates and ending is None:
            return True
        written = persist(lambda: self.with_.plans.add_step(self.plan.plan_id, step), self.with_.clock)
        if written:
            self.progress, self.seen = Progress(steps=(*self.progress.steps, step)), {}
        return written


ABORTED = "aborted: an operator withdrew it"


def _standing(step: Step) -> tuple[object, ...]:
    return step.tried, step.quiet, step.waits_for, step.begun, step.stopping
