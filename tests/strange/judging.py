"""What must never be, judged by the vendors' records and the rows, whatever the engine says of itself."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from shared.adapters.memory.stream import StreamRecord
from shared.core.effects import EffectState, Sent, effect_id_of
from shared.core.job import Category, Job, Status
from shared.usecases.conclude import ACTED_BEFORE
from tests.judge import illegal_steps
from tests.strange.scripts import Cast
from tests.strange.vendors import StrangeVendor
from tests.world import World


def findings(world: World, cast: Cast, records: list[StreamRecord]) -> Iterator[str]:
    """Everything that is wrong at the end."""
    yield from illegal_steps(records)
    letters = set(world.dead_letters.job_ids(world.lane.name))
    for job_id, request in world.requests.items():
        job = world.jobs.get(job_id)
        if job is None:
            yield f"lost: {job_id} was never stored"
            continue
        if not job.status.ended:
            yield f"lost: {job_id} is still {job.status}"
        if job.status is Status.FAILED and job_id not in letters:
            yield f"lost: {job_id} failed without a dead letter"
        yield from _left_out(job, cast, world)
        yield from _doubled(job, cast, world)
        yield from _false_end(job, world)
        yield from _false_word(job, cast, world, str(request.key))
        yield from _half_told(job, cast, world, str(request.key))


def _left_out(job: Job, cast: Cast, world: World) -> Iterator[str]:
    """A task that says it made everything, whatever was raised at it: what one of its variants wants must stand."""
    if job.status is not Status.COMPLETED or job.result not in ("made", "already_done") or job.withheld:
        return
    stand = {row.name for row in world.effects.of_job(job.job_id) if row.state is EffectState.ACCEPTED}
    if not any({step.name for step in variant.steps} <= stand for variant in cast.scripts[job.key].variants):
        yield f"lost: {job.key} is completed ({job.result}), and only {sorted(stand)} stand"


def _accepts(world: World, key: str) -> int:
    """How often the vendors, all together, accepted something under a key."""
    return sum(len(vendor.accepted(key)) for vendor in _vendors(world))


def _vendors(world: World) -> list[StrangeVendor]:
    return [vendor for vendor in world.vendors.values() if isinstance(vendor, StrangeVendor)]


def _doubled(job: Job, cast: Cast, world: World) -> Iterator[str]:
    """One effect accepted twice; or two effects that stand at one point, where a customer sees the same thing twice."""
    at_points: dict[int, Counter[str]] = defaultdict(Counter)
    for name, point in cast.scripts[job.key].points.items():
        at_points[point][name] += _accepts(world, effect_id_of(job.job_id, name))
    for point, names in at_points.items():
        accepted = {name: count for name, count in names.items() if count}
        if sum(accepted.values()) > 1:
            what = "twice" if len(accepted) == 1 else "twice under two names"
            yield f"accepted {what}: {job.key} point {point}, {accepted}"


def _false_end(job: Job, world: World) -> Iterator[str]:
    """An end that says more than anybody knows."""
    rows = world.effects.of_job(job.job_id)
    open_ = [row.name for row in rows if row.open]
    if job.status is Status.COMPLETED and open_:
        yield f"false end: {job.key} is completed ({job.result}), {open_} is open"
    if job.status is Status.FAILED and open_ and job.category is not Category.OUTCOME_UNKNOWN:
        yield f"false end: {job.key} failed as {job.category} ({job.last_error}), {open_} is open"
    if job.status is Status.CANCELED and job.moves[-1].reason.startswith("cancel"):
        accepted = [row.name for row in rows if _accepts(world, row.effect_id)]
        if accepted or open_:
            yield f"false end: {job.key} is canceled, {accepted} accepted, {open_} open"
    elif job.status is Status.CANCELED and open_:
        yield f"false end: {job.key} is dismissed, {open_} is open"


def _half_told(job: Job, cast: Cast, world: World, key: str) -> Iterator[str]:
    """A result that is the last attempt's alone, although another one has acted."""
    if job.status is not Status.COMPLETED or not job.moves[-1].reason.startswith("done"):
        return
    passed = {told.step.name for told in cast.told if told.key == key and told.fence == job.fence}
    rows = world.effects.of_job(job.job_id)
    before = [row.name for row in rows if row.state is EffectState.ACCEPTED and row.name not in passed]
    if before and not str(job.result).startswith(ACTED_BEFORE):
        yield f"half told: {key} is completed ({job.result}), {before} was done before"


def _false_word(job: Job, cast: Cast, world: World, key: str) -> Iterator[str]:
    """A row, or what the task was told, against what the vendors have."""
    for row in world.effects.of_job(job.job_id):
        there = _accepts(world, row.effect_id)
        if row.state is EffectState.ACCEPTED and not there:
            yield f"false word: {key} {row.name} is recorded as accepted, no vendor has it"
        if row.state is EffectState.REFUSED and there:
            yield f"false word: {key} {row.name} is recorded as not there ({row.reason}), a vendor has it"
    for told in cast.told:
        sent = told.key == key and isinstance(told.made, Sent)
        if sent and not _accepts(world, effect_id_of(job.job_id, told.step.name)):
            yield f"false word: {key} was told that {told.step.name} is sent, no vendor has it"
