"""A redrive whose executor dies, stands still or is refused at any call: each job is released once, and it ends."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache

import pytest

from shared.adapters.memory.faults import Boundary, Fault, Injection, Scripted
from shared.adapters.memory.vendor import MemoryVendor, Says
from shared.core.cohort import Chosen
from shared.core.job import Status
from shared.core.plan import Ending, Plan, Progress
from shared.core.ports import Clock
from shared.core.switches import Switches
from shared.usecases.approve_redrive import approve_redrive
from shared.usecases.plan_redrive import plan_redrive
from shared.usecases.start_redrive import start_redrive
from tests.builders import FREELY_NAMED
from tests.crash.explore import FREEZE_S, READS, every_fault
from tests.crash.report import PROPERTY
from tests.judge import illegal_steps
from tests.vendors_and_tasks import VendorKind, a_vendor
from tests.world import World

pytestmark = pytest.mark.crash

Note = Callable[[str, object], None]
JOBS = 3
LONG_S = 6 * 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Redriven:
    """How one redrive ended."""

    trace: list[Boundary]
    problems: list[str]
    ending: Ending | None


def redrive(kind: VendorKind, faults: Mapping[Boundary, Injection]) -> Redriven:
    """Three jobs fail, their plan is approved and started; from then on things go wrong as told."""

    def vendor(clock: Clock) -> MemoryVendor:
        return a_vendor(kind, clock, script=[Says.REFUSE_PERMANENT] * JOBS)

    world = World(vendor=vendor, plan=Scripted(faults))
    everything = world.jobs.stream.reader()
    ids = [world.enqueue(key=f"event-{n}") for n in range(JOBS)]
    assert world.run_until_quiet(max_virtual=LONG_S)
    assert {world.job(job_id).status for job_id in ids} == {Status.FAILED}
    plan = _started(world)
    world.faults.trace.clear()
    quiet = world.run_until_quiet(max_virtual=LONG_S)
    verdict = world.verdict()
    progress = Progress(steps=world.plans.steps(plan.plan_id))
    ending = progress.ended.ending if progress.ended is not None else None
    problems = [*illegal_steps(everything.read(10_000))]
    if verdict.duplicates:
        problems.append(f"sent twice: {verdict.duplicates}")
    if verdict.lost or not quiet:
        problems.append(f"lost: {verdict.lost}")
    if ending is None:
        problems.append("the plan did not end")
    for job_id in ids:
        job = world.job(job_id)
        if job.replay_count > 1:
            problems.append(f"{job_id} was released {job.replay_count} times")
        if ending is Ending.FINISHED and (job.replay_count, job.status) != (1, Status.COMPLETED):
            problems.append(f"finished, but {job_id} is {job.status}")
        if job.replay_count and job_id not in progress.fates and ending is Ending.FINISHED:
            problems.append(f"what became of {job_id} is not written down")
    if kind is VendorKind.DEDUPES and ending is not Ending.FINISHED:
        problems.append(f"ended {ending}")
    trace = world.faults.trace
    world.close()
    return Redriven(trace=trace, problems=problems, ending=ending)


def _started(world: World) -> Plan:
    parts = {"plans": world.plans, "history": world.history, "clock": world.clock}
    chosen = Chosen(lane=world.lane.name)
    planned = plan_redrive(
        chosen,
        cause="the endpoint had moved; its address is right again",
        by="ada",
        jobs=world.jobs,
        effects=world.effects,
        **parts,  # type: ignore[arg-type]
    )
    approve_redrive(planned.plan.plan_id, by="bob", people=FREELY_NAMED, **parts)  # type: ignore[arg-type]
    return start_redrive(
        planned.plan.plan_id,
        by="ada",
        lane=world.lane,
        switches=Switches(),
        jobs=world.jobs,
        effects=world.effects,
        **parts,  # type: ignore[arg-type]
    )


@cache
def _recorded(kind: VendorKind) -> tuple[Boundary, ...]:
    run = redrive(kind, {})
    assert run.problems == []
    assert run.ending is Ending.FINISHED
    return tuple(run.trace)


def _places(kind: VendorKind) -> Iterator[tuple[Boundary, Injection]]:
    for boundary in _recorded(kind):
        # The others' calls are explored by themselves; here, those that make or see a release.
        if boundary.worker.startswith(("redriver", "stream", "w")):
            for injection in every_fault(boundary):
                yield boundary, injection


@dataclass(slots=True)
class Tally:
    """What an exploration saw, in the form of the closing table."""

    title: str
    ends: Counter[tuple[str, str]] = field(default_factory=Counter)
    by_fault: Counter[tuple[str, str]] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def take(self, kind: VendorKind, faults: Mapping[Boundary, Injection]) -> Redriven:
        """Run one redrive and count it."""
        run = redrive(kind, faults)
        end = str(run.ending)
        self.ends[kind.value, end] += 1
        self.by_fault.update({(one.fault.value, end): 1 for one in faults.values()})
        where = ", ".join(f"{one.fault} at {boundary}" for boundary, one in faults.items())
        self.wrong += [f"{where}: {problem}" for problem in run.problems]
        return run

    def tell(self, note: Note) -> None:
        """For the report; nothing may be wrong."""
        count = self.ends.total()
        document = {"title": self.title, "executions": count, "runs": count, "slowest_s": 0.0}
        document |= {"duplicates": sum("twice" in one for one in self.wrong)}
        document |= {"lost": sum("lost" in one for one in self.wrong)}
        document |= {"ends": [[*key, many] for key, many in sorted(self.ends.items())]}
        document |= {"by_fault": [[*key, many] for key, many in sorted(self.by_fault.items())]}
        note(PROPERTY, json.dumps(document))
        assert count > 100
        assert not self.wrong, f"{len(self.wrong)} executions, the first:\n" + "\n".join(self.wrong[:5])


@pytest.mark.req("C9")
@pytest.mark.fault("F2")
@pytest.mark.fault("F7")
@pytest.mark.parametrize("kind", [VendorKind.DEDUPES, VendorKind.NEITHER], ids=str)
def test_one_fault_anywhere_releases_nobody_twice(kind: VendorKind, record_property: Note) -> None:
    """One fault at any call of executor, stream consumer or worker: each job released once, sent once, and an end."""
    tally = Tally("a redrive, one fault")
    for boundary, injection in _places(kind):
        tally.take(kind, {boundary: injection})
    tally.tell(record_property)


@pytest.mark.slow
@pytest.mark.fault("F2")
def test_an_executor_that_stands_still_and_one_that_dies(record_property: Note) -> None:
    """The first stands still at any call while a second one goes on, which dies at any of its own."""
    tally = Tally("a redrive, two executors")
    kind = VendorKind.DEDUPES
    for boundary in [one for one in _recorded(kind) if one.worker.startswith("redriver")]:
        frozen = {boundary: Injection(Fault.FREEZE, FREEZE_S)}
        alone = tally.take(kind, frozen)
        for second in [one for one in alone.trace if one.worker == "redriver2" and one.method not in READS]:
            for fault in (Fault.CRASH_BEFORE, Fault.CRASH_AFTER, Fault.APPLIED_BUT_ERROR):
                tally.take(kind, {**frozen, second: Injection(fault)})
    tally.tell(record_property)
