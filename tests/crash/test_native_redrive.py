"""A native redrive whose executor dies, stands still or is refused at any call: each job replayed once, none lost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from functools import cache
from typing import Any

import pytest

from shared.adapters.memory.faults import Boundary, Injection, Scripted
from shared.adapters.memory.vendor import MemoryVendor, Says
from shared.core.capacity import CapacityState, Pin
from shared.core.cohort import Chosen
from shared.core.job import Status
from shared.core.plan import Ending, Plan, Progress
from shared.core.ports import Clock
from shared.core.switches import Switches
from shared.usecases.approve_redrive import approve_redrive
from shared.usecases.native_redrive import NativeDesk
from shared.usecases.plan_redrive import plan_redrive
from shared.usecases.start_redrive import abort_redrive, start_redrive
from tests.builders import FREELY_NAMED
from tests.crash.explore import every_fault
from tests.crash.test_redrive import LONG_S, Note, Redriven, Tally
from tests.judge import illegal_steps
from tests.vendors_and_tasks import VendorKind, a_vendor
from tests.world import World

pytestmark = pytest.mark.crash

JOBS = 2
SLOWNESS = 40.0
"""One letter in so many seconds where the plan is aborted: the executor's next look falls into the move."""
POLL_S = 5.0


def redrive(faults: Mapping[Boundary, Injection], *, aborted: bool) -> Redriven:
    """Two jobs fail beside one whose replay is the canary; the rest are moved by SQS. From then on things go wrong."""

    def vendor(clock: Clock) -> MemoryVendor:
        return a_vendor(VendorKind.DEDUPES, clock, script=[Says.REFUSE_PERMANENT] * (JOBS + 1))

    world = World(vendor=vendor, plan=Scripted(faults))
    everything = world.jobs.stream.reader()
    ids = [world.enqueue(key=f"event-{n}") for n in range(JOBS + 1)]
    assert world.run_until_quiet(max_virtual=LONG_S)
    canary, *ids = ids
    _started(world, {"job_id": canary}, native=False)
    assert world.run_until_quiet(max_virtual=LONG_S)
    assert world.job(canary).status is Status.COMPLETED
    _without_letter(world, canary)
    plan = _started(world, {}, native=True)
    world.faults.trace.clear()
    if aborted:
        world.moves.slowness = SLOWNESS
        world.later(POLL_S, lambda: _abort(world, plan))
    quiet = world.run_until_quiet(max_virtual=LONG_S)
    verdict = world.verdict()
    progress = Progress(steps=world.plans.steps(plan.plan_id))
    ending = progress.ended.ending if progress.ended is not None else None
    problems = [*illegal_steps(everything.read(10_000))]
    if verdict.duplicates:
        problems.append(f"sent twice: {verdict.duplicates}")
    if verdict.lost or not quiet:
        problems.append(f"lost: {verdict.lost}")
    if verdict.without_letter:
        problems.append(f"lost letters: {verdict.without_letter}")
    if ending is None:
        problems.append("the plan did not end")
    if ending is Ending.STOPPED or (ending is Ending.ABORTED and not aborted):
        problems.append(f"ended {ending}")
    for job_id in ids:
        job = world.job(job_id)
        if job.replay_count > 1:
            problems.append(f"{job_id} was released {job.replay_count} times")
        if job.status not in (Status.COMPLETED, Status.FAILED):
            problems.append(f"lost: {job_id} is {job.status}")
        if ending is Ending.FINISHED and (job.replay_count, job.status) != (1, Status.COMPLETED):
            problems.append(f"finished, but {job_id} is {job.status}")
    trace = world.faults.trace
    world.close()
    return Redriven(trace=trace, problems=problems, ending=ending)


def _started(world: World, choice: dict[str, Any], *, native: bool) -> Plan:
    parts: dict[str, Any] = {"plans": world.plans, "history": world.history, "clock": world.clock}
    desk = NativeDesk(lane=world.lane, dead_letters=world.dead_letters, control=world.control, **parts)
    if native:
        pin = Pin(cap=world.lane.baseline, until=world.clock.now() + timedelta(hours=1), by="ada", why="a redrive")
        assert world.control.set_capacity(world.lane.name, None, CapacityState(cap=pin.cap, version=1, pin=pin))
    planned = plan_redrive(
        Chosen(lane=world.lane.name, **choice),
        cause="the endpoint had moved; its address is right again",
        by="ada",
        jobs=world.jobs,
        effects=world.effects,
        native=(lambda planned: desk.planned(planned, 1)) if native else None,
        **parts,
    )
    approve_redrive(planned.plan.plan_id, by="bob", people=FREELY_NAMED, **parts)
    world.clock.advance(30)
    return start_redrive(
        planned.plan.plan_id,
        by="ada",
        lane=world.lane,
        switches=Switches(),
        jobs=world.jobs,
        effects=world.effects,
        native=desk,
        **parts,
    )


def _without_letter(world: World, job_id: str) -> None:
    """What triage does within ten minutes; a world leaves out the runs that would find nothing new."""
    for message in world.dead_letters.receive(world.lane.name, limit=100, hide_s=0):
        if message.job_id == job_id:
            world.dead_letters.delete(world.lane.name, message.receipt)


def _abort(world: World, plan: Plan) -> None:
    """As soon as the first letter has been moved."""
    if Progress(steps=world.plans.steps(plan.plan_id)).ended is not None:
        return
    if not any(task.moved for task in world.moves.of(plan.lane)):
        world.later(POLL_S, lambda: _abort(world, plan))
        return
    abort_redrive(plan.plan_id, by="bob", why="wrong", plans=world.plans, history=world.history, clock=world.clock)


@cache
def _recorded(aborted: bool) -> tuple[Boundary, ...]:
    run = redrive({}, aborted=aborted)
    assert run.problems == []
    assert run.ending is (Ending.ABORTED if aborted else Ending.FINISHED)
    return tuple(run.trace)


def _places(aborted: bool) -> Iterator[tuple[Boundary, Injection]]:
    for boundary in _recorded(aborted):
        if boundary.worker.startswith(("redriver", "stream", "w", "triage")):
            for injection in every_fault(boundary):
                yield boundary, injection


@pytest.mark.req("C10")
@pytest.mark.fault("F2")
@pytest.mark.fault("F7")
@pytest.mark.parametrize("aborted", [False, True], ids=["to its end", "aborted"])
def test_one_fault_anywhere_loses_no_letter_and_replays_nobody_twice(aborted: bool, record_property: Note) -> None:
    """One fault at any call of executor, stream consumer, worker or triage: released once at most, sent once, each job
    completed or failed with its letter, and the plan ends."""
    tally = Tally("a native redrive, one fault")
    for boundary, injection in _places(aborted):
        run = redrive({boundary: injection}, aborted=aborted)
        end = str(run.ending)
        tally.ends["aborted" if aborted else "native", end] += 1
        tally.by_fault.update({(injection.fault.value, end): 1})
        tally.wrong += [f"{injection.fault} at {boundary}: {problem}" for problem in run.problems]
    tally.tell(record_property)
