"""One strange execution: a drawn system, drawn jobs, drawn trouble, and what was wrong in the end."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, partial

from shared.adapters.memory.stream import RETENTION_S, StreamRecord
from shared.core.lane import LaneSpec
from shared.core.moment import iso
from tests.builders import a_lane
from tests.strange.judging import findings
from tests.strange.operators import Act, Operators
from tests.strange.scripts import MODEL, TASK, VENDORS, Cast, drawn_script
from tests.strange.tangle import Tangle, drawn_tangle
from tests.strange.vendors import StrangeVendor, drawn_nature
from tests.world import World

WORKERS = 3
TROUBLE_S = (60.0, 400.0, 1200.0)
CALM_S = 30 * 3600.0
LATER_S = (0.0, 1800.0, 90_000.0)
"""How long after the trouble what failed is resolved and replayed: before any window ends, after most, after all."""


@dataclass(slots=True)
class Executed:
    """How an execution ended."""

    seed: int
    problems: list[str]
    seen: Counter[str]
    ends: Counter[str]
    story: list[str] = field(default_factory=list)


@cache
def _lane(max_attempts: int, max_wait_s: int, batch: int) -> LaneSpec:
    return a_lane(
        tasks=(TASK,),
        vendors=(*VENDORS, MODEL),
        max_attempts=max_attempts,
        max_wait_s=max_wait_s,
        batch_size=batch,
    )


def execute(seed: int, *, tell: bool = False) -> Executed:
    """Run a seed to its end. `tell` keeps its story."""
    rng = random.Random(seed)
    seen: Counter[str] = Counter()
    story: list[str] = []
    note_seen = _counting(seen)
    tangle = drawn_tangle(random.Random(rng.random()), note_seen)
    cast = Cast()
    natures = {name: drawn_nature(rng) for name in VENDORS}
    natures[MODEL] = natures[VENDORS[0]]
    made = [
        partial(StrangeVendor, name, natures[name], random.Random(rng.random()), seen if name != MODEL else Counter())
        for name in (*VENDORS, MODEL)
    ]
    world = World(
        lane=_lane(rng.choice((2, 3, 5)), rng.choice((300, 1800)), rng.choice((1, 1, 3))),
        vendor=made[0],
        more_vendors=made[1:],
        tasks=cast.tasks(),
        seed=rng.randrange(2**32),
        plan=tangle,
        workers=WORKERS,
        index_lag_s=rng.choice((0, 0, 0, 20.0)),
        duplicate_p=rng.choice((0.0, 0.0, 0.1)),
        time_out_kills=True,
    )
    written = Written(world)
    operators = Operators(world, random.Random(rng.random()), note_seen)
    tangle.world, tangle.operators = world, operators
    if tell:
        _listen(world, cast, operators, tangle, story)
    _enqueue(world, cast, rng, seen)
    for _ in range(rng.choice((0, 0, 1, 3))):
        act = rng.choice(tuple(Act))
        world.later(rng.uniform(0, 300), partial(_act, tangle, operators, act))
    world.later(rng.choice(TROUBLE_S), partial(_calm, world, tangle, operators))
    world.run_until_quiet(max_virtual=CALM_S)
    written.read_on()
    _aftermath(world, tangle, operators, rng, written)
    problems = list(findings(world, cast, written.records))
    ends = Counter(_end(world, job_id) for job_id in world.requests)
    if tell:
        story += [f"{job_id[:8]} {key}: {_end(world, job_id)}" for job_id, key in _keys(world)]
    world.close()
    tangle.world = tangle.operators = None
    return Executed(seed=seed, problems=problems, seen=seen, ends=ends, story=story)


def _counting(seen: Counter[str]) -> Callable[[str], None]:
    def count(what: str) -> None:
        seen[what] += 1

    return count


def _enqueue(world: World, cast: Cast, rng: random.Random, seen: Counter[str]) -> None:
    for number in range(rng.choice((1, 1, 1, 2))):
        key = f"event-{number}"
        script = cast.scripts[key] = drawn_script(rng)
        seen.update(f"strange:{one}" for one in script.strange)
        seen[f"decider:{script.decider}"] += 1
        seen[f"keeping:{script.keeping}"] += 1
        seen[f"temper:{script.temper}"] += 1
        seen.update(f"end:{variant.end}" for variant in script.variants)
        world.enqueue(TASK, key=key, at_s=rng.choice((0, 0, 5, 45, 55)))


def _act(tangle: Tangle, operators: Operators, act: Act) -> None:
    if tangle.on:
        operators.act(act)


def _calm(world: World, tangle: Tangle, operators: Operators) -> None:
    tangle.on = False
    operators.open_everything()
    for vendor in world.vendors.values():
        assert isinstance(vendor, StrangeVendor)
        vendor.calm = True
    world.queues.calm()


class Written:
    """Every write of jobs, read on before the stream forgets it."""

    def __init__(self, world: World) -> None:
        self._reader = world.jobs.stream.reader(max_age_s=RETENTION_S)
        self.records: list[StreamRecord] = []

    def read_on(self) -> None:
        """What was written since the last time."""
        more = self._reader.read(10**6)
        self._reader.commit(more)
        self.records += more


def _aftermath(world: World, tangle: Tangle, operators: Operators, rng: random.Random, written: Written) -> None:
    """What failed is resolved by two people and replayed, twice, the first time now and then in trouble again."""
    for troubled in (True, False) if rng.random() < 0.4 else (False,):
        world.run_for(rng.choice(LATER_S))
        failed = [job_id for job_id in world.requests if world.job(job_id).status == "failed"]
        if not failed:
            return
        for job_id in failed:
            world.run_for(world.lane.visibility_s)
            if operators.act(Act.RESOLVE, job_id):
                operators.act(Act.CONFIRM, job_id)
        begun = any(world.effects.of_job(job_id) for job_id in failed)
        # Where nothing was begun, a replay is a first try.
        if not begun or not operators.replay_all():
            return
        if troubled:
            tangle.on = True
            for vendor in world.vendors.values():
                assert isinstance(vendor, StrangeVendor)
                vendor.calm = False
            world.later(600, partial(_calm, world, tangle, operators))
        world.run_until_quiet(max_virtual=CALM_S)
        written.read_on()


def _end(world: World, job_id: str) -> str:
    job = world.jobs.get(job_id)
    if job is None:
        return "absent"
    return f"{job.status}:{job.category or job.result or ''}" if job.status != "canceled" else "canceled"


def _keys(world: World) -> list[tuple[str, str]]:
    return [(job_id, str(request.key)) for job_id, request in world.requests.items()]


def _listen(world: World, cast: Cast, operators: Operators, tangle: Tangle, story: list[str]) -> None:
    """Everybody tells what happens; the time stands in front."""

    def note(text: str) -> None:
        story.append(f"{iso(world.clock.now())[11:23]} {text}")

    cast.note = operators.note = note
    tangle.note = note
    for vendor in world.vendors.values():
        assert isinstance(vendor, StrangeVendor)
        vendor.note = note
