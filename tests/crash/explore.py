"""Exploration: every boundary of a recorded run, with every fault there, one at a time or in pairs.

Nothing is listed by hand: a fault-free run is recorded, its boundaries are the places where a fault can fall;
the second fault of a pair falls on a boundary of the run that the first fault left behind.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from shared.adapters.memory.faults import Boundary, Fault, Injection, Scripted
from shared.adapters.memory.vendor import MemoryVendor, Says
from shared.core.ports import Clock
from tests.vendors_and_tasks import VendorKind, a_vendor
from tests.world import Verdict, World

FREEZE_S = 125.0
"""Longer than the lane's visibility: a second worker takes over, and the first one's call goes out after it."""
STALL_S = 10.0
"""Shorter than a claim lasts: a worker thawed meanwhile runs in the middle of this one."""
BOUND_S = 2 * 50 + 2 * 120 + 240 + 2 * 75 + 75
"""Two claim timeouts, and what the lane itself lets a job wait: two visibilities, the grace of look-ups, two
dispatcher periods with their look-ahead, the backoffs. Whatever has not ended by then is lost."""

READS = frozenset({"get", "switches", "cap", "depth", "of_job", "look_up", "waiting", "scan", "read", "runs"})
"""Calls that change nothing: dying after one is dying before it, and a lost answer is a refusal."""
WINDOW = frozenset({("effects", "intend"), ("vendor", "perform"), ("effects", "record"), ("effects", "take_over"),
                    ("vendor", "look_up")})
"""Between INTENT and RECORD."""

Place = tuple[Boundary, Injection]


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """One way through the system that is recorded and then disturbed."""

    name: str
    task: str = "reply"
    says: tuple[Says, ...] = ()
    calls_say: tuple[Says, ...] = ()
    throttled_receives: int = 0
    """Receives that reach no worker, as under a throttle: at the tenth the message is dead."""
    from_message: bool = False
    """Begin with the message already in the queue: the send path alone."""
    ends: str = "completed"
    """The end without any fault."""

    def world(self, kind: VendorKind, plan: Scripted, **options: Any) -> World:
        """The world of this walk, ready to run."""

        def vendor(clock: Clock) -> MemoryVendor:
            made = a_vendor(kind, clock, script=self.says)
            made.call_script.extend(self.calls_say)
            return made

        world = World(vendor=vendor, plan=plan, **options)
        world.enqueue(self.task)
        if self.from_message:
            world.run_until_sent()
        elif self.throttled_receives:
            world.run_until_sent()
            for _ in range(self.throttled_receives):
                world.queues.receive(world.lane.name)
                world.clock.advance(world.lane.visibility_s)
            world.queues.receive(world.lane.name)
        world.last_fault_at = world.clock.now()
        return world


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """One run, with what went wrong in it and how it ended."""

    walk: Walk
    kind: VendorKind
    faults: Mapping[Boundary, Injection]
    fired: tuple[tuple[Boundary, Fault], ...]
    trace: list[Boundary]
    verdict: Verdict
    quiet: bool
    took_s: float
    letters_missing: int

    @property
    def end(self) -> str:
        """The one job's end."""
        return next(iter(self.verdict.states), "absent")

    def __str__(self) -> str:
        where = ", ".join(f"{one.fault}({one.seconds:g}) at {boundary}" for boundary, one in self.faults.items())
        return f"{self.walk.name} with a vendor that {self.kind}: {where or 'no fault'} → {self.end} {self.verdict}"


def execute(walk: Walk, kind: VendorKind, faults: Mapping[Boundary, Injection], **options: Any) -> Execution:
    """Run one world to its end."""
    world = walk.world(kind, Scripted(faults), **options)
    quiet = world.run_until_quiet(max_virtual=8 * BOUND_S)
    took_s = (world.clock.now() - world.last_fault_at).total_seconds()
    verdict = world.verdict()
    world.close()
    failed = sum(count for state, count in verdict.states.items() if state.startswith("failed"))
    return Execution(
        walk=walk,
        kind=kind,
        faults=faults,
        fired=tuple(world.faults.fired),
        trace=world.faults.trace,
        verdict=verdict,
        quiet=quiet,
        took_s=took_s,
        letters_missing=max(0, failed - len(set(world.dead_letters.job_ids(world.lane.name)))),
    )


def every_fault(boundary: Boundary) -> Iterator[Injection]:
    """All that can go wrong at a boundary."""
    for fault in Fault:
        yield Injection(fault, FREEZE_S if fault is Fault.FREEZE else 0.0)


def distinct_faults(boundary: Boundary, before: Boundary | None) -> Iterator[Injection]:
    """The same without those that end in the same state: used for pairs, where they would be squared.

    A read changes nothing, so dying before or after it, and losing its answer or being refused, are the same;
    dying before a call is dying after the one before it. Outages are explored singly.
    """
    reads = boundary.method in READS
    for one in every_fault(boundary):
        match one.fault:
            case Fault.OUTAGE:
                continue
            case Fault.CRASH_BEFORE if before is not None:
                continue
            case Fault.CRASH_AFTER | Fault.APPLIED_BUT_ERROR if reads:
                continue
        yield one


def singles(walk: Walk, kind: VendorKind, **options: Any) -> Iterator[Execution]:
    """The fault-free run, then each boundary with each fault."""
    recorded = execute(walk, kind, {}, **options)
    yield recorded
    for boundary in recorded.trace:
        for injection in every_fault(boundary):
            yield execute(walk, kind, {boundary: injection}, **options)


def pairs(walk: Walk, kind: VendorKind, **options: Any) -> Iterator[Execution]:
    """Ordered pairs on the send path: the second fault falls where the first one's run went."""
    recorded = execute(walk, kind, {}, **options)
    for first, injection in _places(recorded.trace):
        alone = execute(walk, kind, {first: injection}, **options)
        yield alone
        after = alone.trace.index(first) + 1
        for second, next_injection in _places(alone.trace, after):
            yield execute(walk, kind, {first: injection, second: next_injection}, **options)
            if injection.fault is Fault.FREEZE and next_injection.fault is Fault.FREEZE:
                stall = Injection(Fault.FREEZE, STALL_S)
                yield execute(walk, kind, {first: injection, second: stall}, **options)


def _places(trace: list[Boundary], start: int = 0) -> Iterator[Place]:
    before: dict[str, Boundary] = {boundary.worker: boundary for boundary in trace[:start]}
    for boundary in trace[start:]:
        if boundary.worker.startswith("w"):
            for injection in distinct_faults(boundary, before.get(boundary.worker)):
                yield boundary, injection
        before[boundary.worker] = boundary


@dataclass(slots=True)
class Tally:
    """What an exploration saw, and everything that was not as it must be."""

    executions: int = 0
    ends: Counter[tuple[str, str]] = field(default_factory=Counter)
    by_fault: Counter[tuple[str, str]] = field(default_factory=Counter)
    duplicates: int = 0
    lost: int = 0
    slowest_s: float = 0.0
    wrong: list[str] = field(default_factory=list)

    def take(self, execution: Execution, problems: Iterable[str]) -> None:
        """Count one execution."""
        self.executions += 1
        self.ends[execution.kind, execution.end] += 1
        for fault in {fault for _, fault in execution.fired} or {"none"}:
            self.by_fault[str(fault), execution.end] += 1
        self.duplicates += bool(execution.verdict.duplicates)
        self.lost += bool(execution.verdict.lost)
        self.slowest_s = max(self.slowest_s, execution.took_s)
        self.wrong += [f"{problem}: {execution}" for problem in problems]

    def document(self) -> dict[str, Any]:
        """For the report."""
        return {
            "executions": self.executions,
            "duplicates": self.duplicates,
            "lost": self.lost,
            "slowest_s": self.slowest_s,
            "ends": [[*key, count] for key, count in sorted(self.ends.items())],
            "by_fault": [[*key, count] for key, count in sorted(self.by_fault.items())],
        }


Rule = Callable[[Execution], Iterable[str]]


def explore(executions: Iterable[Execution], rule: Rule) -> Tally:
    """Run them all and judge each."""
    tally = Tally()
    for execution in executions:
        tally.take(execution, rule(execution))
    return tally


def must_hold(execution: Execution) -> Iterator[str]:
    """The promises of the send path."""
    verdict, kind = execution.verdict, execution.kind
    if verdict.duplicates:
        yield "sent twice"
    if verdict.lost or not execution.quiet:
        yield "lost"
    if execution.took_s > BOUND_S:
        yield f"took {execution.took_s:g} s after the last fault"
    if execution.letters_missing:
        yield "failed without a dead letter"
    if execution.walk.ends == "completed":
        if kind is VendorKind.DEDUPES and execution.end != "completed":
            yield "not completed although the vendor deduplicates"
        if kind is VendorKind.EXACT and verdict.all_accepted and execution.end != "completed":
            yield "not completed although the look-up is exact and the send was accepted"
        if execution.end not in ("completed", "failed:outcome_unknown"):
            yield "ended as nothing allows"
    if verdict.unknown and (
        kind is VendorKind.DEDUPES
        or not any((where.port, where.method) in WINDOW for where, _ in execution.fired)
    ):
        yield "unknown although no fault fell between intent and record"
