"""10,000 dead letters are replayed beside live traffic: what the live jobs notice, and that each is replayed once.

Lane, account and policies are production's (`config/`), a reply takes 1.5 to 2.5 seconds. Live jobs come at random, one
in two and a half seconds: a tenth of what the baseline's eight slots can do. The executor runs for most of each
minute, as deployed, beside the stream consumer, the dispatcher and the workers. A live job's wait is the time from due
to claimed; the run without a redrive has the same live jobs at the same moments.

Replays hold a quarter of the slots at the baseline cap, and only idle ones: the others are for whoever comes next.
"""

from __future__ import annotations

import random
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from ops.simulator import lane_support
from ops.simulator.engine import Engine
from ops.simulator.hub import Hub
from ops.simulator.vendor import LimitedVendor, Weather
from shared.adapters.memory.faults import Boundary, Crashed, Fault, Faults, Injection
from shared.adapters.memory.faults import Worker as Life
from shared.adapters.memory.plans import MemoryPlanStore
from shared.adapters.memory.stores import MemoryHistory
from shared.core import lifecycle
from shared.core.cohort import Chosen
from shared.core.job import Category, Job, Status
from shared.core.message import dead_letter_of
from shared.core.people import People
from shared.core.plan import Ending, Plan, Progress
from shared.core.switches import Switches
from shared.usecases.approve_redrive import approve_redrive
from shared.usecases.plan_redrive import plan_redrive
from shared.usecases.run_redrive import Redriver
from shared.usecases.start_redrive import abort_redrive, start_redrive

DEAD = 10_000
LIVE_EVERY_S = 2.5
TICK_S, RUNS_S = 60, 50
"""The executor's schedule, and how long a run goes on."""
LONGEST_S = 48 * 3600.0


@dataclass(slots=True)
class Dice:
    """Kills whoever calls a port, before or after the call is applied, once in so many calls."""

    rng: random.Random
    one_in: int
    kills: int = 0
    threaded: frozenset[str] = frozenset()

    def at(self, boundary: Boundary) -> Injection | None:
        """What the dice say."""
        if not self.one_in or self.rng.randrange(self.one_in):
            return None
        self.kills += 1
        return Injection(self.rng.choice((Fault.CRASH_BEFORE, Fault.CRASH_AFTER)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Redriven:
    """How one run went."""

    way: str
    dead: int
    seconds: float
    """From the start of the plan to its end; without a redrive, as long as it was told."""
    ending: Ending | None
    waits: tuple[tuple[float, float], ...]
    """Of the live jobs, in the order of their arrival: when they came, and how long they waited."""
    replayed: int
    """Dead letters that were released."""
    twice: int
    """Dead letters that were released more than once."""
    completed: int
    duplicates: int
    """Accepted by the vendor more than once under one key."""
    lost: int
    """Live jobs and released ones that had not ended when all was over."""
    kills: int = 0
    released_after_abort: int = 0
    stops_after_s: float = 0.0
    """From the abort to the last start that came after it, of a job of the plan; 0: none did."""

    def p99_s(self, until_s: float | None = None) -> float:
        """Ninety-nine of a hundred live jobs waited no longer; only of those that came by then."""
        last_s = self.seconds if until_s is None else until_s
        waits = sorted(wait_s for came_s, wait_s in self.waits if came_s <= last_s)
        return waits[int(0.99 * len(waits))] if waits else 0.0


class Night:
    """One lane with dead letters, live jobs and, where it is wanted, an executor."""

    def __init__(self, *, dead: int, cap: int, seed: int, live_every_s: float = LIVE_EVERY_S) -> None:
        self.hub, self.dead, self._seed, self._live_every_s = Hub(), dead, seed, live_every_s
        limit = lane_support.account().requests_per_minute or 1
        self.vendor = LimitedVendor(
            clock=self.hub.clock,
            weather=Weather(limits=((0, limit),), takes_s=lane_support.TAKES_S),
            tells=True,
            name=lane_support.VENDOR,
            seed=seed,
        )
        self.engine = Engine(
            self.hub,
            lane=lane_support.lane(),
            accounts=(lane_support.account(),),
            vendors=(self.vendor,),
            task=lane_support.reply,
            seed=seed,
        )
        self.engine.set_cap(cap)
        self.plans, self.history = MemoryPlanStore(), MemoryHistory()
        self._over = False
        self._aborted_at: datetime | None = None
        self.ended_s = 0.0
        self._dice = Dice(random.Random(seed), 0)
        self._plant()

    def _plant(self) -> None:
        """Jobs that failed for credentials which are right again, each with its letter."""
        engine, now = self.engine, self.hub.clock.now()
        engine.enqueue(self.dead)
        for job_id in engine.job_ids:
            job = engine.jobs.get(job_id)
            assert job is not None
            failed = lifecycle.failed_unclaimed(job, engine.lane, now, Category.AUTH, "vendor_auth:helpdesk")
            engine.jobs.move(job, failed)
            engine.dead_letters.send([dead_letter_of(failed)])

    # ------------------------------------------------------------------------------------------ processes
    def _live(self) -> None:
        chance = random.Random(f"live {self._seed}")
        while not self._over:
            self.hub.clock.sleep(round(chance.expovariate(1 / self._live_every_s), 3))
            self.engine.enqueue(1)

    def _execute(self) -> None:
        """The executor's runs, each in a process of its own: one that dies is followed by the next minute's."""
        plan = self._started()
        faults = Faults(self._dice)
        while Progress(steps=self.plans.steps(plan.plan_id)).ended is None and not self._over:
            began = self.hub.clock.now()
            life = Life("redriver")
            with suppress(Crashed):
                self._redriver(faults, life).run(self.engine.lane, stop_at=began + timedelta(seconds=RUNS_S))
            faults.trace.clear()
            self.hub.clock.sleep(TICK_S - (self.hub.clock.now() - began).total_seconds() % TICK_S)
        self._over = True

    def _redriver(self, faults: Faults, life: Life) -> Redriver:
        engine = self.engine
        return Redriver(
            jobs=faults.wrap(engine.jobs, "jobs", life),
            plans=faults.wrap(self.plans, "plans", life),
            history=faults.wrap(self.history, "history", life),
            queues=faults.wrap(engine.queues, "queues", life),
            dead_letters=faults.wrap(engine.dead_letters, "dead_letters", life),
            viewer=engine.viewer(),
            clock=self.hub.clock,
            telemetry=engine.telemetry,
        )

    def _started(self) -> Plan:
        """Ada plans, Bob approves, Ada starts."""
        engine, parts = self.engine, {"plans": self.plans, "history": self.history, "clock": self.hub.clock}
        chosen, cause = Chosen(lane=engine.lane.name), "the token had expired; it was renewed"
        rows = {"jobs": engine.jobs, "effects": engine.effects}
        plan = plan_redrive(chosen, cause=cause, by="ada", **rows, **parts).plan  # type: ignore[arg-type]
        people = People(free_session_names=True)
        approve_redrive(plan.plan_id, by="bob", people=people, lane=engine.lane, **parts)  # type: ignore[arg-type]
        return start_redrive(
            plan.plan_id,
            by="ada",
            lane=engine.lane,
            switches=Switches(),
            **rows,  # type: ignore[arg-type]
            **parts,  # type: ignore[arg-type]
        )

    # ------------------------------------------------------------------------------------------- the runs
    def quiet(self, way: str, seconds: float) -> Redriven:
        """Nobody replays anything."""
        self.hub.spawn(self._end, after_s=seconds)
        return self._run(way)

    def _end(self) -> None:
        self._over = True

    def redrive(self, way: str, *, kill_one_in: int = 0, abort_after_s: float | None = None) -> Redriven:
        """The whole plan, or until it is aborted."""
        self._dice.one_in = kill_one_in
        self.hub.spawn(self._execute)
        if abort_after_s is not None:
            self.hub.spawn(self._abort, after_s=abort_after_s)
        return self._run(way)

    def _abort(self) -> None:
        plan_id = self.plans.plan_of(self.engine.lane.name)
        assert plan_id is not None
        self._aborted_at = self.hub.clock.now()
        abort_redrive(plan_id, by="bob", why="enough", plans=self.plans, history=self.history, clock=self.hub.clock)

    def _run(self, way: str) -> Redriven:
        self.engine.start(behind=False)
        self.hub.spawn(self._live)
        self.hub.spawn(self._close)
        self.hub.run(until_s=LONGEST_S)
        return self._judged(way)

    def _close(self) -> None:
        """All is over when nobody waits or runs any more."""
        while not self._over:
            self.hub.clock.sleep(1)
        self.ended_s = self.vendor.seconds
        while self.engine.jobs.open_jobs:
            self.hub.clock.sleep(1)
        self.hub.stop()

    def _wait(self, job: Job) -> tuple[float, float]:
        came, started = job.created_at, _moved_at(job, Status.PROCESSING)
        return (came - self.vendor.began).total_seconds(), (started - came).total_seconds()

    def _judged(self, way: str) -> Redriven:
        jobs = [job for job in self.engine.jobs.scan() if isinstance(job, Job)]
        planted = set(self.engine.job_ids[: self.dead])
        dead, live = [j for j in jobs if j.job_id in planted], [j for j in jobs if j.job_id not in planted]
        replayed = [job for job in dead if job.replay_count]
        starts = [_moved_at(job, Status.QUEUED, last=True) for job in replayed]
        plan_id = self.plans.plan_of(self.engine.lane.name)
        ended = None if plan_id is None else Progress(steps=self.plans.steps(plan_id)).ended
        late = [] if self._aborted_at is None else [at for at in starts if at > self._aborted_at]
        after_tick = [at for at in late if self._aborted_at and at > self._aborted_at + timedelta(seconds=TICK_S)]
        stops = max(late, default=self._aborted_at)
        return Redriven(
            way=way,
            dead=self.dead,
            seconds=self.ended_s,
            ending=None if ended is None else ended.ending,
            waits=tuple(map(self._wait, live)),
            replayed=len(replayed),
            twice=sum(job.replay_count > 1 for job in replayed),
            completed=sum(job.status is Status.COMPLETED for job in dead),
            duplicates=sum(count - 1 for count in self.vendor.seen.keys.values()),
            lost=sum(job.status is not Status.COMPLETED for job in (*live, *replayed)),
            kills=self._dice.kills,
            released_after_abort=len(after_tick),
            stops_after_s=0.0
            if stops is None or self._aborted_at is None
            else (stops - self._aborted_at).total_seconds(),
        )


def _moved_at(job: Job, to: Status, *, last: bool = False) -> datetime:
    """When a job first, or last, came to a state."""
    times = [move.at for move in job.moves if move.to is to]
    return times[-1 if last else 0]


BASELINE, NOBODY = "redrive at the baseline cap", "no redrive"
KILLED, ABORTED = "killed again and again", "aborted"
KILL_ONE_IN = 2_000
"""Port calls; the executor makes about fifty for each job."""


def run(way: str, dead: int = DEAD, seed: int = 1) -> Redriven:
    """One way by its name."""
    baseline = lane_support.lane().baseline
    match way:
        case "no redrive":
            # Longer than any of the others: each is compared with the same time of it.
            return Night(dead=0, cap=baseline, seed=seed).quiet(way, 2.5 * dead + 600)
        case "redrive at the baseline cap":
            return Night(dead=dead, cap=baseline, seed=seed).redrive(way)
        case "killed again and again":
            return Night(dead=dead, cap=baseline, seed=seed).redrive(way, kill_one_in=KILL_ONE_IN)
        case _:
            return Night(dead=dead, cap=baseline, seed=seed).redrive(way, abort_after_s=0.5 * dead)


WAYS = (NOBODY, BASELINE, KILLED, ABORTED)
