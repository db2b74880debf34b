"""The night a vendor broke: 40,000 jobs wait, and in the middle of the drain the vendor is at 25 % for half an hour.

Lane, account, thresholds and policies are production's (`config/`): one job an invocation, baseline 8, ceiling 20, 600
replies a minute. A reply takes 1.5 to 2.5 seconds, so that twenty at once are just below what the account allows. The
backlog has waited for an hour when the drain begins; live jobs go on to arrive, one in ten seconds. From minute 40 to
minute 70 the vendor accepts 150 replies a minute and answers 429 to the rest; calls that it refuses count against its
limit. The run goes on until the backlog is done, the cap is back at the baseline, and every job has ended.

The usual ways beside it work the same backlog without live jobs, at the ceiling's twenty at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import pairwise

from ops.simulator import hindsight, lane_support
from ops.simulator.drain import Crowd, jittered
from ops.simulator.engine import Engine
from ops.simulator.governing import CapLog, Caps, direction_changes, follow, govern
from ops.simulator.hub import Hub
from ops.simulator.vendor import LimitedVendor, Seen, Weather
from shared.core.capacity import CONSERVATIVE, RAMP, Policy
from shared.core.effects import Answer, Refused
from shared.core.job import Job, Status
from shared.core.lane import LaneSpec

JOBS = 40_000
WAITED_S = 3_600
LIVE_EVERY_S = 10.0
PATIENCE = 3.0
"""So many times the hindsight's time a way may take before it is stopped."""
TROUBLE_S = (2_400, 4_200)
QUARTER = 0.25
OURS, UNTOLD = "Penstock, limits in headers", "Penstock, no headers"


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """What happens, whoever works it off."""

    jobs: int = JOBS
    trouble_s: tuple[float, float] = TROUBLE_S

    @property
    def weather(self) -> Weather:
        """The vendor's limit over time."""
        limit = lane_support.account().requests_per_minute or 1
        began, over = self.trouble_s
        return Weather(limits=((0, limit), (began, int(QUARTER * limit)), (over, limit)), takes_s=lane_support.TAKES_S)

    @property
    def policy(self) -> Policy:
        """The step rule that the lane obeys."""
        return lane_support.stage().policies[CONSERVATIVE].of(lane_support.lane())

    @property
    def fastest_caps(self) -> Caps:
        """In hindsight."""
        return hindsight.fastest_caps(self.policy)

    @property
    def fastest_s(self) -> float:
        """In hindsight."""
        return hindsight.drain_s(self.jobs, self.fastest_caps, self.weather)


@dataclass(frozen=True, slots=True, kw_only=True)
class Handled:
    """How one way did."""

    way: str
    seed: int
    jobs: int
    """The backlog."""
    fastest_s: float
    drained_s: float | None
    """When the last job of the backlog was done; None: it was not."""
    seconds: float
    """When the way was over, or was stopped."""
    seen: Seen
    arrived: tuple[float, ...] = ()
    """When live jobs came."""
    caps: Caps
    most_at_once: int
    duplicates: int
    lost: int
    """Jobs, live ones included, that were not replied to when all was over."""

    @property
    def times_fastest(self) -> float | None:
        """How much longer than the fastest schedule in hindsight."""
        return None if self.drained_s is None else self.drained_s / self.fastest_s

    @property
    def calls_per_accept(self) -> float:
        """1 is no call in vain."""
        return self.seen.calls / max(1, len(self.seen.accepted_at))

    @property
    def refused_share(self) -> float:
        """The part of all calls that met a 429."""
        return len(self.seen.refused_at) / max(1, self.seen.calls)

    @property
    def changes(self) -> int:
        """Direction changes of the cap."""
        return direction_changes(self.caps)

    @property
    def rises(self) -> tuple[tuple[float, int], ...]:
        """Each rise of the cap: how long after the change before it, and by how much. The first has none before it."""
        changes = pairwise(self.caps)
        return tuple(
            (math.inf if one[0] == 0 else two[0] - one[0], two[1] - one[1]) for one, two in changes if two[1] > one[1]
        )

    @property
    def peak(self) -> int:
        """The highest cap."""
        return max(cap for _, cap in self.caps)


def ours(
    incident: Incident,
    way: str = OURS,
    *,
    policy: str | None = CONSERVATIVE,
    caps: Caps = (),
    tells: bool = True,
    budgets: bool = True,
    lane: LaneSpec | None = None,
    seed: int = 1,
) -> Handled:
    """Penstock, every use case as it is deployed: under a policy, or with caps that follow a list."""
    hub, spec = Hub(), lane or lane_support.lane()
    spec = spec if policy is None else replace(spec, policy=policy)
    backlog = _Backlog(hub, incident, lane=spec, tells=tells, budgets=budgets, seed=seed)
    stage = lane_support.stage()
    if policy is None:
        log = follow(backlog.engine, caps)
    else:
        log = govern(backlog.engine, thresholds=stage.severity, policies=stage.policies, seed=seed)
    return backlog.handled(way, log)


class _Backlog:
    """An engine with a backlog that has waited, and live jobs that come until all is well again."""

    def __init__(self, hub: Hub, incident: Incident, *, lane: LaneSpec, tells: bool, budgets: bool, seed: int) -> None:
        self.hub, self.incident, self.seed = hub, incident, seed
        # The vendor's time begins with the drain, not with the backlog.
        began = hub.clock.now() + timedelta(seconds=WAITED_S)
        self.vendor = LimitedVendor(
            clock=hub.clock,
            weather=incident.weather,
            tells=tells,
            name=lane_support.VENDOR,
            began=began,
            seed=seed,
        )
        account = replace(lane_support.account(), enforced=budgets)
        self.engine = Engine(
            hub, lane=lane, accounts=(account,), vendors=(self.vendor,), task=lane_support.reply, seed=seed
        )
        self.engine.enqueue(incident.jobs)
        hub.clock.advance_to(began)
        self.arrived: list[float] = []

    def handled(self, way: str, log: CapLog) -> Handled:
        """Run to the end, or until patience is over."""
        fastest_s = self.incident.fastest_s
        self.engine.start()
        self.hub.spawn(lambda: self._live(log))
        self.hub.run(until_s=PATIENCE * fastest_s)
        jobs = [job for job in self.engine.jobs.scan() if isinstance(job, Job)]
        replied = sum(job.status is Status.COMPLETED and job.result == "replied" for job in jobs)
        accepts = self.vendor.seen.keys
        return Handled(
            way=way,
            seed=self.seed,
            jobs=self.incident.jobs,
            fastest_s=fastest_s,
            drained_s=self._drained_s(),
            seconds=self.vendor.seconds,
            seen=self.vendor.seen,
            arrived=tuple(self.arrived),
            caps=tuple(log.caps),
            most_at_once=self.engine.most_at_once,
            duplicates=sum(count - 1 for count in accepts.values()),
            lost=len(self.engine.job_ids) - min(replied, len(accepts)),
        )

    def _live(self, log: CapLog) -> None:
        """Live jobs until the backlog is done and a governed cap is back; then everything ends when all jobs have."""
        engine, baseline = self.engine, self.engine.lane.baseline
        while engine.ended < self.incident.jobs or (log.governed and engine.cap > baseline):
            self.hub.clock.sleep(LIVE_EVERY_S)
            engine.enqueue(1)
            self.arrived.append(self.vendor.seconds)
        while engine.ended < len(engine.job_ids):
            self.hub.clock.sleep(1)
        self.hub.stop()

    def _drained_s(self) -> float | None:
        waited = [self.engine.jobs.get(job_id) for job_id in self.engine.job_ids[: self.incident.jobs]]
        ends = [job.updated_at for job in waited if job is not None and job.status is Status.COMPLETED]
        if len(ends) < len(waited):
            return None
        return (max(ends) - self.vendor.began).total_seconds()


def usual(incident: Incident, way: str, pause_s: Callable[[Crowd, int, Answer], float], *, seed: int = 1) -> Handled:
    """A usual way: so many workers, each with a job until it is done, waiting as told after a failure."""
    slots, fastest_s = lane_support.lane().ceiling, incident.fastest_s
    crowd = Crowd(jobs=incident.jobs, weather=incident.weather, seed=seed, slots=slots)
    crowd.start(lambda failures, answer: pause_s(crowd, failures, answer))
    crowd.hub.run(until_s=PATIENCE * fastest_s)
    done = crowd.done == incident.jobs
    return Handled(
        way=way,
        seed=seed,
        jobs=incident.jobs,
        fastest_s=fastest_s,
        drained_s=crowd.vendor.seconds if done else None,
        seconds=crowd.vendor.seconds,
        seen=crowd.vendor.seen,
        caps=((0.0, slots),),
        most_at_once=slots,
        duplicates=0,
        lost=incident.jobs - crowd.done,
    )


def _as_asked(crowd: Crowd, failures: int, answer: Answer) -> float:
    return max(1.0, answer.retry_after_s or 0) if isinstance(answer, Refused) else 1.0


Way = Callable[[Incident, int], Handled]
WAYS: dict[str, Way] = {
    OURS: lambda incident, seed: ours(incident, seed=seed),
    UNTOLD: lambda incident, seed: ours(incident, UNTOLD, tells=False, seed=seed),
    "policy ramp": lambda incident, seed: ours(incident, "policy ramp", policy=RAMP, seed=seed),
    "budgets alone, cap at the ceiling": lambda incident, seed: ours(
        incident,
        "budgets alone, cap at the ceiling",
        policy=None,
        caps=((0.0, lane_support.lane().ceiling),),
        seed=seed,
    ),
    "hindsight's schedule": lambda incident, seed: ours(
        incident, "hindsight's schedule", policy=None, caps=incident.fastest_caps, seed=seed
    ),
    "fixed concurrency": lambda incident, seed: usual(incident, "fixed concurrency", _as_asked, seed=seed),
    "naive retry": lambda incident, seed: usual(
        incident, "naive retry", lambda crowd, failures, answer: 1.0, seed=seed
    ),
    "backoff, full jitter": lambda incident, seed: usual(
        incident, "backoff, full jitter", lambda crowd, failures, answer: jittered(crowd.rng, failures), seed=seed
    ),
}
