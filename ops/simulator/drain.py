"""A backlog against a vendor whose limit is halved, raised again and lost in an outage: ours beside the usual ways."""

from __future__ import annotations

import bisect
import random
from collections.abc import Callable
from dataclasses import dataclass

from ops.simulator.engine import Engine
from ops.simulator.hub import Hub
from ops.simulator.vendor import Counting, LimitedVendor, Seen, Weather, ideal_s
from shared.core.account import AccountSpec
from shared.core.effects import Accepted, Answer, Call, Refused
from shared.core.lane import LaneSpec
from shared.core.sensitive import Sensitive

JOBS = 50_000
CONFIGURED = 3_000
"""Requests per minute, as everybody believes at the start."""
WEATHER = Weather(limits=((0, CONFIGURED), (240, CONFIGURED // 2), (480, CONFIGURED)), outage=(600, 660))
SLOTS = 100
"""Jobs at once in the usual ways; about four times what the limit needs."""
PATIENCE = 4.0
"""So many times the ideal a way may take before it is stopped."""
MOST_CALLS = 8
"""So many calls a job, on average, before a way is stopped: a storm shows itself sooner."""

ACCOUNT = AccountSpec(name="model", vendor=LimitedVendor.name, requests_per_minute=CONFIGURED)
LANE = LaneSpec(
    name="model",
    tasks=("ask",),
    vendors=(LimitedVendor.name,),
    accounts=(ACCOUNT.name,),
    baseline=20,
    ceiling=20,
    expected_job_s=1.0,
)
CALL = Call(vendor=LimitedVendor.name, action="complete", body=Sensitive({}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Drained:
    """How one way did."""

    way: str
    jobs: int
    ideal_s: float
    completed: int
    failed: int = 0
    seconds: float
    """When the last job was done, or when the way was stopped."""
    seen: Seen
    outage: tuple[float, float]
    limit_after: int
    deferrals: tuple[int, ...] = ()
    """Of each job, in ascending order; empty where the way does not defer."""
    writes: int | None = None
    """To tables, the accounts' included."""

    @property
    def drained(self) -> bool:
        """True when every job was done."""
        return self.completed == self.jobs

    @property
    def times_ideal(self) -> float:
        """How much longer than the ideal it took."""
        return self.seconds / self.ideal_s

    @property
    def refused_share(self) -> float:
        """The part of all calls that met a 429."""
        return len(self.seen.refused_at) / max(1, self.seen.calls)

    @property
    def wasted(self) -> int:
        """Calls into the outage."""
        return len(self.seen.failed_at)

    @property
    def recovery_s(self) -> float | None:
        """After the outage, until the first second begins in which nine tenths of the limit pass."""
        passed = [at for at in self.seen.accepted_at if at >= self.outage[1]]
        enough = 0.9 * self.limit_after / 60
        for number, at in enumerate(passed):
            first = bisect.bisect_left(passed, at - 1, hi=number)
            if number - first + 1 >= enough:
                return max(0.0, at - 1 - self.outage[1])
        return None

    @property
    def mean_deferrals(self) -> float:
        """A job's, on average."""
        return sum(self.deferrals) / max(1, len(self.deferrals))

    @property
    def p99_deferrals(self) -> int:
        """Ninety-nine of a hundred jobs had no more."""
        return self.deferrals[int(0.99 * len(self.deferrals))] if self.deferrals else 0


def ours(
    *, jobs: int = JOBS, weather: Weather = WEATHER, tells: bool, counting: Counting = Counting.BUCKET, seed: int = 1
) -> Drained:
    """Penstock: every use case as it is deployed, on memory adapters."""
    hub = Hub()
    vendor = LimitedVendor(clock=hub.clock, weather=weather, tells=tells, counting=counting, seed=seed)
    engine = Engine(hub, lane=LANE, accounts=(ACCOUNT,), vendors=(vendor,), seed=seed)
    engine.enqueue(jobs)
    engine.start(until_ended=jobs)
    ideal = ideal_s(weather, jobs, counting)
    hub.run(until_s=PATIENCE * ideal)
    ended = engine.ends()
    told = "limits in headers" if tells else "no headers"
    return Drained(
        way=f"Penstock, {told}" + (", sliding minute" if counting is Counting.SLIDING else ""),
        jobs=jobs,
        ideal_s=ideal,
        completed=ended["completed"],
        failed=ended["failed"],
        seconds=vendor.seconds,
        seen=vendor.seen,
        outage=weather.outage,
        limit_after=weather.limit_at(weather.outage[1]),
        deferrals=tuple(sorted(engine.deferrals.get(job_id, 0) for job_id in engine.job_ids)),
        writes=engine.meter.writes.total() + engine.budgets.writes,
    )


Ask = Callable[[], Answer]


class Crowd:
    """The usual ways: workers that hold a job until it is done, each with a slot."""

    def __init__(self, *, jobs: int, weather: Weather, seed: int, slots: int = SLOTS) -> None:
        self.hub, self.rng = Hub(), random.Random(seed)
        self.vendor = LimitedVendor(clock=self.hub.clock, weather=weather, tells=False, seed=seed)
        self.left, self.done, self.jobs = jobs, 0, jobs
        self.cap = slots
        self.running = 0

    def call(self) -> Answer:
        """One call; stops everything when a storm is plain."""
        if self.vendor.seen.calls >= MOST_CALLS * self.jobs:
            self.hub.stop()
        return self.vendor.perform(CALL, key=None, timeout_s=30)

    def until_done(self, pause_s: Callable[[int, Answer], float]) -> None:
        """Work job after job; after each failure wait as told: how often it failed, and the answer."""
        while self.left and self.running < self.cap and not self.hub.stopped:
            self.running += 1
            self.left -= 1
            failures = 0
            while not isinstance(answer := self.call(), Accepted) and not self.hub.stopped:
                failures += 1
                self.hub.clock.sleep(pause_s(failures, answer))
            self.running -= 1
            self.done += isinstance(answer, Accepted)
            if self.done == self.jobs:
                self.hub.stop()

    def start(self, pause_s: Callable[[int, Answer], float]) -> None:
        """As many workers as there are free slots."""
        for _ in range(self.cap - self.running):
            self.hub.spawn(lambda: self.until_done(pause_s), after_s=round(self.rng.random(), 3))

    def drained(self, way: str, weather: Weather) -> Drained:
        """Run to the end, or until patience is over."""
        ideal = ideal_s(weather, self.jobs)
        self.hub.run(until_s=PATIENCE * ideal)
        return Drained(
            way=way,
            jobs=self.jobs,
            ideal_s=ideal,
            completed=self.done,
            seconds=self.vendor.seconds,
            seen=self.vendor.seen,
            outage=weather.outage,
            limit_after=weather.limit_at(weather.outage[1]),
        )


def naive_retry(*, jobs: int = JOBS, weather: Weather = WEATHER, seed: int = 1) -> Drained:
    """Fails: again after a second."""
    crowd = Crowd(jobs=jobs, weather=weather, seed=seed)
    crowd.start(lambda failures, answer: 1.0)
    return crowd.drained("naive retry", weather)


def full_jitter(*, jobs: int = JOBS, weather: Weather = WEATHER, seed: int = 1) -> Drained:
    """Exponential backoff from one second to a minute, with full jitter."""
    crowd = Crowd(jobs=jobs, weather=weather, seed=seed)
    crowd.start(lambda failures, answer: jittered(crowd.rng, failures))
    return crowd.drained("backoff, full jitter", weather)


def static_bucket(*, jobs: int = JOBS, weather: Weather = WEATHER, seed: int = 1) -> Drained:
    """One bucket for all workers at the configured limit, which hears nothing; backoff with full jitter besides."""
    crowd = Crowd(jobs=jobs, weather=weather, seed=seed)
    asked, next_s = crowd.call, 0.0

    def in_turn() -> Answer:
        nonlocal next_s
        now_s = crowd.vendor.seconds
        turn_s = max(now_s, next_s)
        next_s = turn_s + 60 / CONFIGURED
        crowd.hub.clock.sleep(turn_s - now_s)
        return asked()

    crowd.call = in_turn  # type: ignore[method-assign]
    crowd.start(lambda failures, answer: jittered(crowd.rng, failures))
    return crowd.drained("static shared bucket", weather)


def two_more_each_ten_minutes(*, jobs: int = JOBS, weather: Weather = WEATHER, seed: int = 1) -> Drained:
    """Concurrency alone: two more every ten minutes, none more while the vendor refuses."""
    crowd = Crowd(jobs=jobs, weather=weather, seed=seed)
    crowd.cap = 2

    def rise() -> None:
        while not crowd.hub.stopped:
            before = len(crowd.vendor.seen.refused_at)
            crowd.hub.clock.sleep(600)
            crowd.cap += 2 if len(crowd.vendor.seen.refused_at) == before else 0
            crowd.start(pause)

    def pause(failures: int, answer: Answer) -> float:
        return max(1.0, answer.retry_after_s or 0) if isinstance(answer, Refused) else 1.0

    crowd.start(pause)
    crowd.hub.spawn(rise)
    return crowd.drained("+2 every 10 min", weather)


def jittered(rng: random.Random, failures: int) -> float:
    """How long to wait after so many failures: exponential from one second to a minute, with full jitter."""
    return round(rng.uniform(0, min(60.0, 2.0 ** min(failures, 6))), 3)


Way = Callable[[int], Drained]
WAYS: dict[str, Way] = {
    "Penstock, limits in headers": lambda jobs: ours(jobs=jobs, tells=True),
    "Penstock, no headers": lambda jobs: ours(jobs=jobs, tells=False),
    "Penstock, limits in headers, sliding minute": lambda jobs: ours(jobs=jobs, tells=True, counting=Counting.SLIDING),
    "naive retry": lambda jobs: naive_retry(jobs=jobs),
    "backoff, full jitter": lambda jobs: full_jitter(jobs=jobs),
    "static shared bucket": lambda jobs: static_bucket(jobs=jobs),
    "+2 every 10 min": lambda jobs: two_more_each_ten_minutes(jobs=jobs),
}
