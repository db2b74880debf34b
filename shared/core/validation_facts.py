"""What is gathered about a lane after an incident, and the form of a verdict on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from shared.core.effects import EffectRow, Lookup, LookupAnswer
from shared.core.history import HistoryEvent
from shared.core.incident import Incident
from shared.core.job import Job
from shared.core.lane import LaneSpec
from shared.core.personal import Kind
from shared.core.plan import Plan, Progress


class Verdict(StrEnum):
    """What a check, or the whole report, came to."""

    PASS = "pass"
    FAIL = "fail"
    INCOMPLETE = "not checked"

    @property
    def whole(self) -> str:
        """How it is said of a whole report."""
        return "incomplete" if self is Verdict.INCOMPLETE else self.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """One thing that must not be: what, where, and what to do about it."""

    code: str
    where: str
    what: str
    todo: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One question and its answer. `unchecked` says what could not be looked at, and why."""

    name: str
    title: str
    violations: tuple[Violation, ...] = ()
    unchecked: tuple[str, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """A violation counts before what could not be looked at."""
        if self.violations:
            return Verdict.FAIL
        return Verdict.INCOMPLETE if self.unchecked else Verdict.PASS


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """One effect of a job, and what its vendor says of it; None: nobody asked."""

    row: EffectRow
    job: Job
    answer: LookupAnswer | None = None
    lookup: Lookup = Lookup.NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """Something personal in a log: where, never what."""

    group: str
    stream: str
    at: datetime
    offset: int
    kind: Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Something a person changed by hand."""

    at: datetime
    by: str
    what: str
    why: str
    subject: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """One plan, and how far it came."""

    plan: Plan
    progress: Progress
    manifest: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Everything that was gathered about a lane between two moments. `gaps` names what could not be, by check."""

    lane: LaneSpec
    since: datetime
    until: datetime
    at: datetime
    """When it was gathered: the rows and the vendors' records are as of then."""
    jobs: tuple[Job, ...] = ()
    effects: tuple[Looked, ...] = ()
    sampled_from: int | None = None
    """Effects of which only some were looked up at their vendor; None: all were."""
    seen: tuple[Seen, ...] = ()
    lines: Mapping[str, int] = field(default_factory=dict)
    """Lines read, by log group."""
    incidents: tuple[Incident, ...] = ()
    changes: tuple[Change, ...] = ()
    decisions: tuple[HistoryEvent, ...] = ()
    switches: tuple[HistoryEvent, ...] = ()
    redrives: tuple[HistoryEvent, ...] = ()
    replays: Mapping[str, Replay] = field(default_factory=dict)
    faults: tuple[tuple[str, str, str], ...] = ()
    """Jobs that are not as they should be: id, what is wrong, what repairs it."""
    gaps: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
