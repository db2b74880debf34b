"""Executing and recording: the ways a send is doubled or forgotten, each with its story."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from shared.adapters.memory.faults import Boundary, Crashed, Fault, Injection
from shared.adapters.memory.strand import Strand
from shared.contract import metrics
from shared.core.effects import EffectState
from shared.core.job import Category, Job, Status
from shared.core.outcome import Outcome
from shared.usecases.context import Context
from tests.builders import a_job, a_lane
from tests.simulation.plans import Rule, always, once
from tests.vendors_and_tasks import TASKS, VendorKind
from tests.world import World

pytestmark = pytest.mark.simulation


@pytest.mark.req("R8")
@pytest.mark.fault("A1")
def test_a_worker_dead_after_the_vendor_accepted_is_not_repeated() -> None:
    """Without a key or a look-up nobody can know: sent once, parked as unknown, said once."""
    world = World(vendor=VendorKind.NEITHER, plan=once(Fault.CRASH_AFTER, "w1", "vendor", "perform"))
    job_id = world.enqueue()
    assert world.run_until_quiet()
    assert len(world.vendor.accepts) == 1
    assert world.vendor.requests == 1
    job = world.job(job_id)
    assert (job.status, job.category) == (Status.FAILED, Category.OUTCOME_UNKNOWN)
    assert world.telemetry.total(metrics.UNKNOWN) == 1


@pytest.mark.fault("A1")
@pytest.mark.parametrize("kind", [VendorKind.DEDUPES, VendorKind.EXACT, VendorKind.EVENTUAL])
def test_a_vendor_that_can_help_makes_it_completed(kind: VendorKind) -> None:
    """With our key or a look-up the same death ends well, and still one send."""
    world = World(vendor=kind, plan=once(Fault.CRASH_AFTER, "w1", "vendor", "perform"))
    job_id = world.enqueue()
    assert world.run_until_quiet()
    assert world.job(job_id).status is Status.COMPLETED
    assert len(world.vendor.accepts) == 1


@pytest.mark.fault("A2")
@pytest.mark.parametrize("kind", [VendorKind.NEITHER, VendorKind.EXACT, VendorKind.EVENTUAL])
def test_a_worker_dead_between_intent_and_send_never_counts_as_sent(kind: VendorKind) -> None:
    """An intent alone looks like a send whose answer was lost: nothing was sent, nothing is sent, it is parked."""
    world = World(vendor=kind, plan=once(Fault.CRASH_BEFORE, "w1", "vendor", "perform"))
    job_id = world.enqueue()
    assert world.run_until_quiet()
    assert world.vendor.requests == 0
    assert world.job(job_id).category is Category.OUTCOME_UNKNOWN
    assert [row.state for row in world.effects.of_job(job_id)] == [EffectState.INTENT]


@pytest.mark.fault("A3")
@pytest.mark.parametrize("kind", [VendorKind.NEITHER, VendorKind.EXACT])
def test_the_same_message_in_two_hands_in_every_order(kind: VendorKind) -> None:
    """Two workers with the same message: in every interleaving of their calls one send, one completed job."""
    seen = 0
    for world, job_id in _interleavings(kind):
        seen += 1
        assert world.run_until_quiet()
        assert len(world.vendor.accepts) == 1
        assert world.job(job_id).status is Status.COMPLETED
        world.close()
    assert seen >= 100


def _interleavings(kind: VendorKind) -> Iterator[tuple[World, str]]:
    """Every order of two workers' calls, depth first: each run follows a prefix and then lets the first go on."""
    prefixes: list[list[int]] = [[]]
    while prefixes:
        prefix = prefixes.pop()
        world, job_id, taken, free = _interleave(kind, prefix)
        prefixes += [[*taken[:at], 1] for at in range(len(prefix), len(taken)) if free[at] and taken[at] == 0]
        yield world, job_id


def _interleave(kind: VendorKind, prefix: list[int]) -> tuple[World, str, list[int], list[bool]]:
    world = World(vendor=kind)
    job_id = world.enqueue()
    world.run_until_sent()
    received = world.queues.receive(world.lane.name)
    again = world.queues.again(world.lane.name, received[0].delivery.message_id)
    assert again is not None
    first, second = world.idle("worker"), None
    assert first is not None
    first.busy = True
    second = world.idle("worker")
    assert second is not None
    strands = {
        first.name: Strand(first.name, lambda: first.work(received)),
        second.name: Strand(second.name, lambda: second.work([again])),
    }
    world.faults.plan = Rule(lambda boundary: Injection(Fault.FREEZE) if boundary.worker in strands else None)
    world.faults.on_freeze = lambda life, seconds: strands[life.name].hold()
    running = list(strands.values())
    for strand in running:
        strand.begin()
    taken: list[int] = []
    free: list[bool] = []
    while any(not strand.over for strand in running):
        alive = [number for number, strand in enumerate(running) if not strand.over]
        wanted = prefix[len(taken)] if len(taken) < len(prefix) else 0
        choice = wanted if wanted in alive else alive[0]
        free.append(len(alive) > 1)
        taken.append(choice)
        running[choice].resume()
    first.busy = second.busy = False
    world.faults.plan = Rule(lambda boundary: None)
    return world, job_id, taken, free


@pytest.mark.req("R9")
@pytest.mark.fault("A4")
@pytest.mark.parametrize("kind", list(VendorKind))
def test_a_worker_frozen_after_its_intent_sends_only_once_with_its_successor(kind: VendorKind) -> None:
    """The claim is recovered while its worker stands still before the vendor: thawed, it adds no second send."""
    world = World(vendor=kind, plan=once(Fault.FREEZE, "w1", "vendor", "perform", seconds=125))
    job_id = world.enqueue()
    assert world.run_until_quiet()
    assert len(world.vendor.accepts) == 1
    job = world.job(job_id)
    assert job.status is Status.COMPLETED
    assert any(move.reason == "stale" for move in job.moves)


@pytest.mark.fault("A6")
@pytest.mark.parametrize("kind", list(VendorKind))
def test_a_record_that_is_always_throttled_is_never_a_second_send(kind: VendorKind) -> None:
    """No record can be written for minutes: one accept; once it can, whoever can know completes the job."""
    world = World(vendor=kind)
    start = world.clock.now()
    world.faults.plan = always(
        Fault.THROTTLE, "effects", "accept", until=lambda: world.clock.now() > start + timedelta(seconds=200)
    )
    job_id = world.enqueue()
    assert world.run_until_quiet()
    assert len(world.vendor.accepts) == 1
    job = world.job(job_id)
    if kind is VendorKind.NEITHER:
        assert job.category is Category.OUTCOME_UNKNOWN
    else:
        assert job.status is Status.COMPLETED


@pytest.mark.fault("A7")
def test_no_intent_is_written_when_too_little_time_is_left() -> None:
    """Four seconds before the end of the invocation nothing is begun; the job comes back and is sent then."""
    lane = a_lane(tasks=tuple(sorted(TASKS)), function_timeout_s=20, job_timeout_s=16, send_budget_s=4)
    # Sixteen seconds may be worked; after twelve of them four are left.
    world = World(lane=lane, vendor=VendorKind.NEITHER, plan=once(Fault.FREEZE, "w1", "content", "get", seconds=12))
    job_id = world.enqueue()
    world.run_for(13)
    assert world.effects.of_job(job_id) == []
    assert world.vendor.requests == 0
    job = world.job(job_id)
    assert (job.status, job.blocked_by, job.attempt_count) == (Status.QUEUED, "time_budget", 0)
    assert world.run_until_quiet()
    assert world.job(job_id).status is Status.COMPLETED


def _bomb(job: Job, ctx: Context) -> Outcome:
    """Kills its process, every time."""
    raise Crashed("bomb")


@pytest.mark.req("R9")
@pytest.mark.fault("A10")
def test_a_message_that_kills_its_worker_fails_as_poison_and_harms_no_neighbour() -> None:
    """Each death uses an attempt; the job is given up before its message is dead, its neighbours complete."""
    tasks = {**TASKS, "bomb": _bomb}
    lane = a_lane(tasks=tuple(sorted(tasks)), batch_size=10)
    world = World(lane=lane, vendor=VendorKind.NEITHER, tasks=tasks)
    bomb = world.enqueue("bomb", key="bomb")
    others = [world.enqueue(key=f"event-{number}") for number in range(4)]
    assert world.run_until_quiet()
    job = world.job(bomb)
    assert (job.status, job.category) == (Status.FAILED, Category.POISON)
    assert world.queues.receives[bomb] <= 8
    assert all(world.job(other).status is Status.COMPLETED for other in others)
    assert not world.verdict().duplicates


@pytest.mark.fault("A11")
@pytest.mark.parametrize(
    ("odd", "error"), [({"task": "zzz"}, "unknown_task"), ({"task_version": 9}, "unknown_task_version")]
)
def test_an_unknown_task_or_version_fails_at_once(odd: dict[str, object], error: str) -> None:
    """One receive, no retry: the job waits for somebody who knows it, as malformed."""
    world = World()
    job = a_job(**odd)
    world.jobs.put(job)
    assert world.run_until_quiet()
    found = world.job(job.job_id)
    assert (found.status, found.category, found.last_error) == (Status.FAILED, Category.MALFORMED, error)
    assert world.queues.receives[job.job_id] == 1
    assert world.dead_letters.job_ids("support") == [job.job_id]


@pytest.mark.fault("K3")
@pytest.mark.parametrize("fault", [Fault.CRASH_BEFORE, Fault.CRASH_AFTER])
@pytest.mark.parametrize("kind", list(VendorKind))
def test_a_deploy_that_kills_every_worker_in_the_middle_doubles_nothing(kind: VendorKind, fault: Fault) -> None:
    """Every worker dies inside its first vendor call; the new ones end each job without a second send."""
    killed: set[str] = set()

    def choose(boundary: Boundary) -> Injection | None:
        if boundary.port != "vendor" or boundary.worker in killed:
            return None
        killed.add(boundary.worker)
        return Injection(fault)

    world = World(vendor=kind, plan=Rule(choose), workers=3)
    for number in range(6):
        world.enqueue(key=f"event-{number}")
    assert world.run_until_quiet()
    verdict = world.verdict()
    assert len(killed) >= 1
    assert not verdict.duplicates
    assert not verdict.lost
    if kind is VendorKind.DEDUPES:
        assert verdict.states == {"completed": 6}
