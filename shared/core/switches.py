"""The ladder of switches: from `normal` to `halt`, per scope, the strictest counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import IntEnum

from shared.core.errors import BadInput
from shared.core.job import MAX_TENANT, Job, identifier, name_of

CACHED_S = 5
"""A worker looks at the switches at most this often: a change is felt within ten seconds."""
WAY_OUT = (
    "`penstock control set SCOPE halt --why …` always works, and writes that scope's entry anew;"
    " `penstock control set all halt --reset --why …` begins all of them anew"
)
"""What to do about an entry that cannot be read."""
TRUSTED_S = 60
"""How long the last value read still counts when the table cannot be read; after that, sends stop."""


class Level(IntEnum):
    """Each rung closes what the one above it closed, and one thing more."""

    NORMAL = 0
    ROUTE_ONLY = 1
    NO_NEW_STARTS = 2
    DRAIN = 3
    HALT = 4

    @property
    def word(self) -> str:
        """How people write it."""
        return self.name.lower()

    @property
    def closes(self) -> str:
        """What this rung adds, in a sentence."""
        return {
            Level.NORMAL: "nothing is closed",
            Level.ROUTE_ONLY: "customer-visible effects are withheld",
            Level.NO_NEW_STARTS: "nothing new is admitted",
            Level.DRAIN: "nothing is claimed; what is claimed finishes",
            Level.HALT: "nothing is sent; look-ups and records stay open",
        }[self]


def level_of(word: str) -> Level:
    """The rung a word means."""
    try:
        return Level[word.upper()]
    except KeyError:
        raise BadInput("level", f"must be one of {', '.join(level.word for level in Level)}") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """One scope's setting, with who set it, when and why."""

    scope: str
    level: Level = Level.NORMAL
    automation_enabled: bool = True
    by: str
    why: str
    at: datetime


def loosens(present: Switch | None, level: Level, automation_enabled: bool) -> bool:
    """True when this setting lets anything through that `present` holds back. A halt never does."""
    was, paid = (Level.NORMAL, True) if present is None else (present.level, present.automation_enabled)
    return level is not Level.HALT and (level < was or (automation_enabled and not paid))


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What holds for one job: the strictest of every scope it is in, and which scope that is."""

    level: Level = Level.NORMAL
    scope: str = "all"
    paid_calls_closed_by: str | None = None

    @property
    def rung(self) -> Level:
        """As one rung: automation that is off withholds what `route_only` does, and more."""
        return self.level if self.paid_calls_closed_by is None else max(self.level, Level.ROUTE_ONLY)

    @property
    def withholds_effects(self) -> bool:
        """Customer-visible effects are not made."""
        return self.level >= Level.ROUTE_ONLY or self.paid_calls_closed_by is not None

    @property
    def closes_admission(self) -> bool:
        """No job is let through."""
        return self.level >= Level.NO_NEW_STARTS

    @property
    def closes_claims(self) -> bool:
        """No job is started."""
        return self.level >= Level.DRAIN

    @property
    def closes_intent(self) -> bool:
        """No effect of any kind is begun."""
        return self.level >= Level.HALT


@dataclass(frozen=True, slots=True, kw_only=True)
class Switches:
    """Every switch that is not at its default."""

    entries: Mapping[str, Switch] = field(default_factory=dict)

    def standing(self, scopes: Iterable[str]) -> Standing:
        """The strictest setting among `scopes`."""
        level, scope, unpaid = Level.NORMAL, "all", None
        for name in scopes:
            switch = self.entries.get(name)
            if switch is None:
                continue
            if switch.level > level:
                level, scope = switch.level, name
            if not switch.automation_enabled and unpaid is None:
                unpaid = name
        return Standing(level=level, scope=scope, paid_calls_closed_by=unpaid)

    def tightened(self, by: Switches) -> Switches:
        """These, and wherever `by` closes more, as closed as there."""
        entries = dict(self.entries)
        for scope, other in by.entries.items():
            mine = entries.get(scope, other)
            entries[scope] = replace(
                other,
                level=max(mine.level, other.level),
                automation_enabled=mine.automation_enabled and other.automation_enabled,
            )
        return Switches(entries=entries)

    def for_job(self, job: Job, vendors: Iterable[str] = ()) -> Standing:
        """What holds for a job that may call `vendors`."""
        return self.standing(scopes_of(job, vendors))


def scopes_of(job: Job, vendors: Iterable[str] = ()) -> tuple[str, ...]:
    """Every scope a job is in, widest first."""
    return (
        "all",
        *(f"vendor/{vendor}" for vendor in vendors),
        f"lane/{job.lane}",
        f"task/{job.lane}/{job.task}",
        f"tenant/{job.lane}/{job.tenant}",
    )


def lane_scopes(lane: str, vendors: Iterable[str] = ()) -> tuple[str, ...]:
    """Every scope that all jobs of a lane are in."""
    return ("all", f"lane/{lane}", *(f"vendor/{vendor}" for vendor in vendors))


def task_scopes(lane: str, tasks: Iterable[str]) -> tuple[str, ...]:
    """The scope of each task of a lane."""
    return tuple(f"task/{lane}/{task}" for task in tasks)


def check_scope(scope: str) -> str:
    """A well-formed scope, or a sentence that lists the forms."""
    parts = scope.split("/", 2)
    match parts:
        case ["all"]:
            return scope
        case ["vendor" | "lane", name]:
            name_of("scope", name)
            return scope
        case ["task", lane, task]:
            name_of("scope", lane), name_of("scope", task)
            return scope
        case ["tenant", lane, tenant]:
            name_of("scope", lane), identifier("scope", tenant, MAX_TENANT)
            return scope
    raise BadInput("scope", "must be all, vendor/NAME, lane/NAME, task/LANE/TASK or tenant/LANE/TENANT")
