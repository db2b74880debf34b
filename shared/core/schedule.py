"""When a schedule runs: its slots, what is made up after a gap, and whether the run before is still going. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from shared.core.errors import BadInput
from shared.core.moment import from_epoch_s

SKEW_S = 5
"""Clocks of two machines may differ by this much: a run counts as dead only so long after its time limit."""
MOST_MADE_UP = 100
_CATCH_UP = re.compile(r"catch_up\((\d{1,3})\)", re.ASCII)


class Overlap(StrEnum):
    """What a run does when the one before is still going."""

    SKIP = "skip"
    ALLOW = "allow"


@dataclass(frozen=True, slots=True, kw_only=True)
class Misfire:
    """How many of the slots that nobody ran are made up by the next run: none, one for all, or up to n."""

    made_up: int = 0

    @classmethod
    def parse(cls, text: object, where: str = "misfire") -> Misfire:
        """`skip`, `run_once` or `catch_up(n)`."""
        if text == "skip":
            return cls(made_up=0)
        if text == "run_once":
            return cls(made_up=1)
        found = _CATCH_UP.fullmatch(text) if isinstance(text, str) else None
        if found is None or not 1 <= int(found[1]) <= MOST_MADE_UP:
            raise BadInput(where, f"must be skip, run_once or catch_up(n) with n from 1 to {MOST_MADE_UP}")
        return cls(made_up=int(found[1]))

    def __str__(self) -> str:
        return {0: "skip", 1: "run_once"}.get(self.made_up, f"catch_up({self.made_up})")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleRule:
    """How one schedule behaves when it fires late or too soon."""

    misfire: Misfire = field(default_factory=Misfire)
    overlap: Overlap = Overlap.SKIP

    @classmethod
    def from_mapping(cls, name: str, values: Mapping[str, Any]) -> ScheduleRule:
        """The rule a configuration entry describes; an unknown setting is named."""
        where = f"schedule_rules.{name}"
        for setting in values:
            if setting not in ("misfire", "overlap"):
                raise BadInput(where, f"has an unknown setting {setting!r}")
        overlap = values.get("overlap", Overlap.SKIP)
        if overlap not in tuple(Overlap):
            raise BadInput(f"{where}.overlap", f"must be one of {', '.join(Overlap)}")
        return cls(misfire=Misfire.parse(values.get("misfire", "skip"), f"{where}.misfire"), overlap=Overlap(overlap))

    def to_mapping(self) -> dict[str, str]:
        """Every setting that is not at its default, as plain values: `from_mapping` gives the same rule back."""
        told = {"misfire": str(self.misfire), "overlap": self.overlap.value}
        return {setting: value for setting, value in told.items() if value != "skip"}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """One invocation of a scheduled function, kept by (schedule, slot)."""

    schedule: str
    slot: str
    run_id: str
    started_at: datetime
    finished_at: datetime | None = None
    counts: Mapping[str, int] = field(default_factory=dict)


def slot_at(moment: datetime, period_s: int) -> datetime:
    """The start of the slot a moment falls in, in UTC: no zone and no summer time moves it."""
    return from_epoch_s(int(moment.timestamp()) // period_s * period_s)


def next_run(after: datetime, period_s: int, last: datetime | None = None) -> datetime:
    """When a schedule fires next, at or after a moment: in step with its last start, or by slots before the first."""
    base = slot_at(after, period_s) if last is None else last
    steps = -((base - after) // timedelta(seconds=period_s))
    return base + max(0, steps) * timedelta(seconds=period_s)


def missed(slot: datetime, last: datetime | None, period_s: int) -> int:
    """Slots between the last that was opened and this one; none before the first run there ever was."""
    return 0 if last is None else max(0, int((slot - last).total_seconds()) // period_s - 1)


def made_up(slot: datetime, last: datetime | None, period_s: int, misfire: Misfire) -> list[datetime]:
    """The missed slots that are run now, oldest first: the newest ones, as many as the rule allows."""
    count = min(missed(slot, last, period_s), misfire.made_up)
    return [slot - timedelta(seconds=period_s * back) for back in range(count, 0, -1)]


def is_going(started_at: datetime, finished_at: datetime | None, now: datetime, time_limit_s: float) -> bool:
    """True while a run may still be at work; one that never ended and is past its time limit has died."""
    return finished_at is None and now < started_at + timedelta(seconds=time_limit_s + SKEW_S)


def slots_in_sight(period_s: int, time_limit_s: float) -> int:
    """How many of the newest slots can hold a run that is still going, this one included."""
    return int(time_limit_s + SKEW_S) // period_s + 2
