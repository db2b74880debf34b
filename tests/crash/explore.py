"""Exploration: every boundary of a recorded run, with every fault there, one at a time or in pairs.

Nothing is listed by hand: a fault-free run is recorded, its boundaries are the places where a fault can fall;
the second fault of a pair falls on a boundary of the run that the first fault left behind.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from shared.adapters.memory.faults import Boundary, Fault, Injection, Scripted
from tests.crash.walks import Walk
from tests.judge import Verdict
from tests.processes import LOOK_AHEAD_S, PERIODS
from tests.strange.operators import Operators
from tests.vendors_and_tasks import VendorKind
from tests.world import LANE

FREEZE_S = 125.0
"""Longer than the lane's visibility: a second worker takes over, and the first one's call goes out after it."""
STALL_S = 10.0
"""Shorter than a claim lasts: a worker thawed meanwhile runs in the middle of this one."""
BOUND_S = 2 * LANE.claim_timeout_s + 2 * LANE.visibility_s + LANE.lookup_grace_s + 2 * LOOK_AHEAD_S
"""Two claim timeouts, and what the lane itself lets a job wait: two visibilities, the grace of look-ups, two
dispatcher periods. Whatever has not ended so long after the last fault is lost."""
AUDIT_S = 2 * PERIODS["auditor"]
"""Two audits more, for what only the auditor can find."""

READS = frozenset(
    {"get", "switches", "capacity", "depth", "of_job", "look_up", "waiting", "scan", "read", "runs", "of"}
)
"""Calls that change nothing: dying after one is dying before it, and a lost answer is a refusal."""
WINDOW = frozenset(
    {
        ("effects", "intend"),
        ("vendor", "perform"),
        ("effects", "record"),
        ("effects", "accept"),
        ("effects", "take_over"),
        ("vendor", "look_up"),
    }
)
"""Between INTENT and RECORD."""

KINDS = tuple(VendorKind)
Place = tuple[Boundary, Injection]


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
    asked: bool
    """Whether anything in it depended on what the vendor can do."""

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
    quiet = world.run_until_quiet(max_virtual=8 * BOUND_S + AUDIT_S)
    took_s = (world.clock.now() - world.last_fault_at).total_seconds()
    if walk.replayed_after_s is not None:
        world.run_for(walk.replayed_after_s)
        Operators(world, random.Random(0), lambda what: None).replay_all()
        quiet = quiet and world.run_until_quiet(max_virtual=8 * BOUND_S + AUDIT_S)
    verdict = world.verdict()
    world.close()
    return Execution(
        walk=walk,
        kind=kind,
        faults=faults,
        fired=tuple(world.faults.fired),
        trace=world.faults.trace,
        verdict=verdict,
        quiet=quiet,
        took_s=took_s,
        asked=bool(getattr(world.vendor, "asked", True)),
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


def for_kinds(
    walk: Walk, kinds: Sequence[VendorKind], faults: Mapping[Boundary, Injection], **options: Any
) -> list[Execution]:
    """One execution for each kind of vendor.

    A run in which nobody asked what the vendor can do is the same with every kind: it is run once and judged
    for each. `pairs` relies on the list's order and on such executions sharing one trace.
    """
    first = execute(walk, kinds[0], faults, **options)
    if not first.asked:
        return [first, *(replace(first, kind=kind) for kind in kinds[1:])]
    return [first, *(execute(walk, kind, faults, **options) for kind in kinds[1:])]


def singles(walk: Walk, kinds: Sequence[VendorKind] = KINDS, **options: Any) -> Iterator[Execution]:
    """The fault-free run, then each boundary with each fault."""
    for recorded, same in _by_trace(for_kinds(walk, kinds, {}, **options)):
        yield from recorded
        for boundary in recorded[0].trace:
            for injection in every_fault(boundary):
                yield from for_kinds(walk, same, {boundary: injection}, **options)


def pairs(
    walk: Walk, kinds: Sequence[VendorKind] = KINDS, *, part: int = 0, parts: int = 1, **options: Any
) -> Iterator[Execution]:
    """Ordered pairs on the send path: the second fault falls where the first one's run went.

    `part` of `parts` divides the first faults, so that several processes can share the work.
    """
    for recorded, same in _by_trace(for_kinds(walk, kinds, {}, **options)):
        for first, injection in list(_places(recorded[0].trace))[part::parts]:
            alone = for_kinds(walk, same, {first: injection}, **options)
            yield from alone
            for group, group_kinds in _by_trace(alone):
                yield from _second(walk, group_kinds, group[0].trace, first, injection, **options)


def _second(
    walk: Walk,
    kinds: Sequence[VendorKind],
    trace: list[Boundary],
    first: Boundary,
    injection: Injection,
    **options: Any,
) -> Iterator[Execution]:
    for second, next_injection in _places(trace, trace.index(first) + 1):
        yield from for_kinds(walk, kinds, {first: injection, second: next_injection}, **options)
        if injection.fault is Fault.FREEZE and next_injection.fault is Fault.FREEZE:
            stall = Injection(Fault.FREEZE, STALL_S)
            yield from for_kinds(walk, kinds, {first: injection, second: stall}, **options)


def _by_trace(executions: list[Execution]) -> Iterator[tuple[list[Execution], list[VendorKind]]]:
    """Executions grouped by the run they came from."""
    groups: dict[int, list[Execution]] = {}
    for execution in executions:
        groups.setdefault(id(execution.trace), []).append(execution)
    for group in groups.values():
        yield group, [execution.kind for execution in group]


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
    runs: int = 0
    ends: Counter[tuple[str, str]] = field(default_factory=Counter)
    by_fault: Counter[tuple[str, str]] = field(default_factory=Counter)
    duplicates: int = 0
    lost: int = 0
    slowest_s: float = 0.0
    wrong: list[str] = field(default_factory=list)

    def take(self, execution: Execution, problems: Iterable[str]) -> None:
        """Count one execution."""
        self.executions += 1
        self.runs += execution.asked or execution.kind is KINDS[0]
        self.ends[execution.kind, execution.end] += 1
        for fault in {str(fault) for _, fault in execution.fired} or {"none"}:
            self.by_fault[fault, execution.end] += 1
        self.duplicates += bool(execution.verdict.duplicates)
        self.lost += bool(execution.verdict.lost)
        self.slowest_s = max(self.slowest_s, execution.took_s)
        self.wrong += [f"{problem}: {execution}" for problem in problems]

    def document(self) -> dict[str, Any]:
        """For the report."""
        return {
            "executions": self.executions,
            "runs": self.runs,
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
    if execution.took_s > BOUND_S + (AUDIT_S if execution.walk.message_lost else 0) + execution.walk.waits_s:
        yield f"took {execution.took_s:g} s after the last fault"
    if verdict.false_ends:
        yield "ended although an effect is open"
    if verdict.without_letter:
        yield "failed without a dead letter"
    if execution.walk.completes:
        if kind is VendorKind.DEDUPES and execution.end != "completed":
            yield "not completed although the vendor deduplicates"
        if kind is VendorKind.EXACT and verdict.all_accepted and execution.end != "completed":
            yield "not completed although the look-up is exact and the send was accepted"
        if execution.end not in ("completed", "failed:outcome_unknown"):
            yield "ended as nothing allows"
    between = execution.walk.vendor_loses_answers or any(
        (where.port, where.method) in WINDOW for where, _ in execution.fired
    )
    # A vendor that refuses a re-send for good says nothing of the first request.
    settles = kind is VendorKind.DEDUPES and execution.walk.completes
    if verdict.unknown and (settles or not between):
        yield "unknown although no fault fell between intent and record"
