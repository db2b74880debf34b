"""One seed: a random system, random work, random trouble; and what must hold whatever happens.

Run one again: `python -m tests.simulation.seeds 4711`.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from shared.adapters.memory.vendor import MemoryVendor, Says
from shared.core.account import AccountSpec
from shared.core.job import Category, Job, Status
from shared.core.ports import Clock
from shared.core.switches import Level, Switch
from tests.builders import a_lane, an_account
from tests.judge import Verdict, illegal_steps
from tests.simulation.chance import Chance, drawn_odds
from tests.strange.operators import Operators
from tests.vendors_and_tasks import TASKS, VendorKind, a_vendor
from tests.world import ROLES, World

TROUBLE_S = 900.0
"""Work arrives and things go wrong for so long; then everything works and the system is given time to end."""
CALM_S = 6 * 3600.0
WORKERS = 4
FAMILIAR = 1000
"""Seeds below it are as they always were. From here on vendors forget our key within the trouble, answer in every way
there is, and what failed is replayed a day later."""
A_DAY_S = 86_400.0


@dataclass(slots=True)
class Outcome:
    """How a seed ended."""

    seed: int
    verdict: Verdict
    trace_hash: str
    problems: list[str]
    faults: Counter[str] = field(default_factory=Counter)
    jobs: int = 0


def run_seed(seed: int, *, fingerprint: bool = False) -> Outcome:
    """Build the world of a seed, let it run through its trouble and into the calm, and judge it."""
    rng = random.Random(seed)
    plan = Chance(random.Random(rng.random()), drawn_odds(rng))
    kind = rng.choice(tuple(VendorKind))
    lag = rng.choice((0.0, 0.0, 5.0, 60.0))
    lag_rng = random.Random(rng.random())
    names = [f"w{n + 1}" for n in range(WORKERS)] + [f"{role}{n + 1}" for role in ROLES for n in range(ROLES[role])]
    skew = rng.choice((0, 0, 30))
    vendor_rng = random.Random(rng.random())
    skews = {name: rng.uniform(-skew, skew) for name in names}
    account = _account(random.Random(f"account of {seed}"))
    if account is not None:
        # A worker whose clock is wrong takes no permits, so somebody's must be right.
        skews["w1"] = 0.0
    world = World(
        lane=a_lane(
            tasks=tuple(sorted(TASKS)),
            batch_size=rng.choice((1, 3, 10)),
            shards=rng.choice((1, 3)),
            # One message at a time is already a full queue in some seeds: the capacity gate holds the rest.
            queue_window_s=rng.choice((1, 120)),
        ),
        vendor=lambda clock: _vendor(kind, clock, vendor_rng, None if seed < FAMILIAR else random.Random(f"v{seed}")),
        seed=rng.randrange(2**32),
        plan=plan,
        workers=rng.randint(2, WORKERS),
        skew_s=skews,
        index_lag_s=(lambda: lag_rng.uniform(0, lag)) if lag else 0,
        duplicate_p=rng.choice((0.0, 0.0, 0.05, 0.2)),
        refuse_p=rng.choice((0.0, 0.0, 0.1)),
        account=account,
    )
    _work(world, rng)
    _steering(world, rng)
    world.later(TROUBLE_S, lambda: _calm(world, plan))
    world.run_until_quiet(max_virtual=TROUBLE_S + CALM_S)
    if seed >= FAMILIAR:
        world.run_for(A_DAY_S)
        Operators(world, rng, lambda what: None).replay_all()
        world.run_until_quiet(max_virtual=CALM_S)
    verdict = world.verdict()
    found = list(problems(world, verdict))
    outcome = Outcome(seed, verdict, world.trace_hash() if fingerprint else "", found, jobs=len(world.requests))
    outcome.faults.update(str(fault) for _, fault in world.faults.fired)
    world.close()
    return outcome


def _account(rng: random.Random) -> AccountSpec | None:
    """In two seeds of five the vendor's calls are paid from an account, sometimes a narrow one."""
    if rng.random() < 0.6:
        return None
    return an_account(
        requests_per_minute=rng.choice((30, 60, 600)),
        concurrency=rng.choice((None, None, 2)),
        requests_per_day=rng.choice((None, None, 10_000)),
    )


def _vendor(kind: VendorKind, clock: Clock, rng: random.Random, strange: random.Random | None) -> MemoryVendor:
    weights = {
        Says.ACCEPT: 1.0,
        Says.REFUSE_RATE: rng.choice((0.0, 0.1, 0.5)),
        Says.UNKNOWN: rng.choice((0.0, 0.05)),
        Says.ACCEPTED_BUT_UNKNOWN: rng.choice((0.0, 0.05)),
        Says.REFUSE_PERMANENT: rng.choice((0.0, 0.02)),
    }
    answers = rng.choices(tuple(weights), tuple(weights.values()), k=60)
    retry_s, more = rng.choice((None, 1.0, 45.0)), {}
    if strange is not None:
        kinds = [says for says in Says if says not in weights]
        answers = [strange.choice(kinds) if strange.random() < 0.2 else says for says in answers]
        if kind is VendorKind.DEDUPES:
            more["dedupes_by_key"] = timedelta(seconds=strange.choice((360, 600, 3600)))
    return a_vendor(kind, clock, script=answers, rate_retry_s=retry_s, **more)


def _work(world: World, rng: random.Random) -> None:
    """A dozen causes, in one seed of twenty a few dozen, in bursts, of a few tenants; some are told twice."""
    bursts = [rng.randint(0, 300) for _ in range(3)]
    tenants = [f"tenant-{n}" for n in range(rng.randint(1, 6))]
    for number in range(rng.randint(5, 11) if rng.random() < 0.95 else rng.randint(24, 60)):
        order: dict[str, Any] = {
            "tenant": rng.choice(tenants),
            "key": f"event-{number}",
            "priority": rng.randrange(4),
        }
        if rng.random() < 0.15:
            order["not_before"] = world.clock.now() + timedelta(seconds=rng.randint(0, 700))
        task = rng.choices(("reply", "reply_and_tag", "ask_and_reply"), (6, 2, 2))[0]
        for _ in range(rng.choice((1, 1, 1, 1, 2, 3))):
            world.enqueue(task, at_s=rng.choice(bursts), **order)


def _steering(world: World, rng: random.Random) -> None:
    """Switches are set and reset, the stream consumer or the workers are away for a while."""
    scopes = ["all", "lane/support", "vendor/helpdesk", "tenant/support/tenant-0", "task/support/reply"]
    for _ in range(rng.choice((0, 0, 1, 3))):
        level = rng.choice(tuple(Level))
        world.later(rng.uniform(0, 600), _setting(world, rng.choice(scopes), level))
    for switch in ("stream_on", "workers_on"):
        if rng.random() < 0.2:
            away = rng.uniform(0, 400)
            world.later(away, lambda name=switch: setattr(world, name, False))  # type: ignore[misc]
            world.later(away + rng.uniform(10, 400), lambda name=switch: setattr(world, name, True))  # type: ignore[misc]


def _setting(world: World, scope: str, level: Level) -> Callable[[], None]:
    return lambda: world.control.set_switch(
        Switch(scope=scope, level=level, by="operator", why="simulation", at=world.clock.now())
    )


def _calm(world: World, plan: Chance) -> None:
    plan.on, world.stream_on, world.workers_on = False, True, True
    world.queues.calm()
    for scope in list(world.control.switches().entries):
        _setting(world, scope, Level.NORMAL)()


def problems(world: World, verdict: Verdict) -> Iterator[str]:
    """Everything that must hold and does not."""
    for target, count in verdict.duplicates.items():
        yield f"sent {count} times: {target}"
    yield from (f"lost: {what}" for what in verdict.lost)
    yield from (f"failed without a dead letter: {job_id}" for job_id in verdict.without_letter)
    if not world.faults.fired and world.queues.undisturbed and world.queues.most_receives > 1:
        # Deferrals, retries, holds and early messages are acknowledged: none of them uses a receive.
        yield f"a message was received {world.queues.most_receives} times although nothing went wrong"
    yield from illegal_steps(world.jobs.stream.since(0, 10**9))
    for job in world.jobs.scan():
        if isinstance(job, Job):
            yield from _unsound(job, world)


def _unsound(job: Job, world: World) -> Iterator[str]:
    rows = world.effects.of_job(job.job_id)
    unknown = [row.name for row in rows if row.open]
    if job.status is Status.COMPLETED and unknown:
        yield f"{job.job_id}: completed although the outcome of {unknown} is unknown"
    if job.status is Status.FAILED and unknown and job.category is not Category.OUTCOME_UNKNOWN:
        yield f"{job.job_id}: failed as {job.category} although the outcome of {unknown} is unknown"
    for row in rows:
        if row.state == "accepted" and not world.vendor.accepted(row.effect_id):
            yield f"{job.job_id}: {row.name} is recorded as accepted, the vendor does not know it"


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        found = run_seed(int(argument), fingerprint=True)
        print(found.seed, found.trace_hash, dict(found.verdict.states), dict(found.faults))
        for problem in found.problems:
            print("  ", problem)
