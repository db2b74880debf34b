"""When will it be done? From what waits, what comes, what was done lately, and what caps and budgets allow.

nothing waits ─► cleared
held by a gate that time alone does not open ─► stalled
more comes than can be done ─► will not drain
else ─► clears by a time, between an early and a late one
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from shared.core.errors import BadInput
from shared.core.lane import LaneSpec
from shared.core.schedule import next_run

RECENT = 5
"""Full minutes that say what is done lately; the best and the worst of them are the range."""
LONGEST = timedelta(days=365)
"""A time further away is no answer: it will not drain."""


class Outlook(StrEnum):
    """What becomes of a backlog."""

    CLEARED = "cleared"
    CLEARS = "clears"
    STALLED = "stalled"
    WILL_NOT_DRAIN = "will_not_drain"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A lane as it is seen now."""

    backlog: int
    """Jobs that wait, in the table and in the queue, and those under way."""
    done: Sequence[int] = ()
    """Jobs that ended in each of the last full minutes, the newest first."""
    backlogs: Sequence[tuple[datetime, int]] = ()
    """How many waited at earlier looks, in any order."""
    cap: int
    """Invocations at once."""
    pace_per_s: float | None = None
    """Jobs a second that the lane's accounts let pass; None where none is limited."""
    blocked_by: str | None = None
    """A gate that holds the lane's jobs whatever the time is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """What waits for one kind of run of a lane."""

    waiting: int
    a_run: int
    """Jobs that a run takes at most."""
    period_s: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """The answer, and what it was made from."""

    outlook: Outlook
    backlog: int
    arrivals_per_s: float = 0.0
    service_per_s: float = 0.0
    limited_by: str = ""
    """What keeps the service from being faster: `cap`, `budget`, or what holds the lane."""
    by: datetime | None = None
    earliest: datetime | None = None
    latest: datetime | None = None
    """None while the slowest of the last minutes would not drain it."""


def possible_per_s(lane: LaneSpec, cap: int, pace_per_s: float | None) -> tuple[float, str]:
    """The most that can be done in a second, and what limits it."""
    by_cap = cap * lane.parallel / lane.expected_job_s
    if pace_per_s is not None and pace_per_s < by_cap:
        return pace_per_s, "budget"
    return by_cap, "cap"


WATCHED_S = 30
"""A burst that came a moment ago is no rate."""


def arrivals_per_s(seen: Seen, now: datetime) -> float:
    """Jobs that come in a second: what was done, and what the backlog grew by besides; none while nobody has watched
    for long enough to tell."""
    earlier = [one for one in seen.backlogs if one[0] <= now - timedelta(seconds=WATCHED_S)]
    if not earlier:
        return 0.0
    at, backlog = min(earlier)
    seconds = (now - at).total_seconds()
    done = sum(seen.done[: max(1, round(seconds / 60))])
    return max(0.0, (seen.backlog - backlog + done) / seconds)


def forecast(seen: Seen, lane: LaneSpec, now: datetime, *, cap: int | None = None) -> Forecast:
    """What becomes of the backlog; with `cap`, what would if so many invocations ran at once."""
    if cap is not None and not 2 <= cap <= lane.ceiling:
        raise BadInput("cap", f"must be 2 to {lane.ceiling}, the ceiling of lane {lane.name}")
    comes = arrivals_per_s(seen, now)
    if seen.backlog <= 0:
        return Forecast(outlook=Outlook.CLEARED, backlog=0, arrivals_per_s=comes)
    if seen.blocked_by is not None:
        return Forecast(outlook=Outlook.STALLED, backlog=seen.backlog, arrivals_per_s=comes, limited_by=seen.blocked_by)
    most, limit = possible_per_s(lane, seen.cap if cap is None else cap, seen.pace_per_s)
    slow, usual, fast = _rates(seen, lane, most, cap)

    def when(rate: float) -> datetime | None:
        net = rate - comes
        if net <= 0 or seen.backlog / net > LONGEST.total_seconds():
            return None
        return now + timedelta(seconds=seen.backlog / net)

    by = when(usual)
    return Forecast(
        outlook=Outlook.WILL_NOT_DRAIN if by is None else Outlook.CLEARS,
        backlog=seen.backlog,
        arrivals_per_s=comes,
        service_per_s=usual,
        limited_by=limit,
        by=by,
        earliest=when(fast),
        latest=None if by is None else when(slow),
    )


def forecast_runs(seen: Seen, lines: Sequence[Line], now: datetime) -> Forecast:
    """What becomes of the backlog of a lane with runs: each takes its most, the first of them in the next slot. When
    the last is taken, that is; a provider's batch has its own time then."""
    if seen.backlog <= 0:
        return Forecast(outlook=Outlook.CLEARED, backlog=0)
    if seen.blocked_by is not None:
        return Forecast(outlook=Outlook.STALLED, backlog=seen.backlog, limited_by=seen.blocked_by)
    by = max(
        (
            next_run(now, line.period_s) + timedelta(seconds=(line.waiting - 1) // line.a_run * line.period_s)
            for line in lines
            if line.waiting
        ),
        default=now,
    )
    return Forecast(
        outlook=Outlook.CLEARS,
        backlog=seen.backlog,
        service_per_s=sum(line.a_run / line.period_s for line in lines if line.waiting),
        limited_by="max_jobs_per_run",
        by=by,
        earliest=by,
    )


def _rates(seen: Seen, lane: LaneSpec, most: float, cap: int | None) -> tuple[float, float, float]:
    """Slow, usual and fast: as the last minutes were, scaled to another cap; never more than is possible. Where
    nothing was done lately although nothing holds the lane, what is possible is all there is to go by."""
    recent = [count / 60 for count in seen.done[:RECENT]]
    if not any(recent):
        return most, most, most
    scale = 1.0 if cap is None else cap / max(1, seen.cap)
    rates = [min(most, rate * scale) for rate in (min(recent), sum(recent) / len(recent), max(recent))]
    return rates[0], rates[1], rates[2]
