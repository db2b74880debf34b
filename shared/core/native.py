"""The law of a native redrive: SQS itself moves every dead letter of a lane into its queue, at a rate. Pure.

    every row released → one move task → what it left behind goes on by the waiting index

A move task cannot choose and has no canary: it moves all that stands there, so the plan must be all that stands there,
and a plan of one must have shown that each error is gone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from shared.core.account import AccountSpec
from shared.core.errors import BadInput
from shared.core.lane import LaneSpec
from shared.core.redrive import MOST_OPEN, Decision, Finish, Look, Release, Stop, Wait, drain_s, stop_of

MOST_RATE = 500
"""Letters a second: SQS moves no more."""
LONGEST = timedelta(minutes=30)
"""A move takes so long at most: a queued job that nobody touched for an hour is taken for lost, and sent again."""
CANARY_FOR = timedelta(hours=24)
"""So long a replay proves that its error is gone."""
PIN_MARGIN = timedelta(minutes=5)
"""The cap stays down so much longer than the move: the executor's first minute, and the last letters' jobs."""
SKEW = timedelta(minutes=5)


class MoveState(StrEnum):
    """What SQS says of a move task."""

    RUNNING = "RUNNING"
    CANCELLING = "CANCELLING"
    COMPLETED = "COMPLETED"
    CANCELLED = "CANCELLED"
    FAILED = "FAILED"

    @property
    def active(self) -> bool:
        """True while it may still move something: a second one cannot be started beside it."""
        return self in (MoveState.RUNNING, MoveState.CANCELLING)


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveTask:
    """One move task of a lane's dead-letter queue."""

    state: MoveState
    started_at: datetime
    moved: int = 0
    rate: int | None = None
    to_lane: bool = True
    """It moves into the lane's own queue."""
    handle: str | None = None
    """What it is cancelled by; SQS tells it only while the task runs."""


@dataclass(frozen=True, slots=True)
class Begin:
    """Every row is released: let SQS move."""


def decide_native(look: Look, *, in_hand: int, begun: bool, moving: bool) -> Decision | Begin:
    """What the executor does next. `in_hand`: letters that somebody looks at, which a move would leave behind."""
    stop = stop_of(look)
    if stop is not None:
        return stop
    if look.held_by:
        # A moved letter asks no gate: what is closed stops the move itself.
        return Stop(f"closed: {look.held_by} lets nobody start")
    if look.left:
        nobody_yet = not look.open and not any(look.fates.values())
        return Wait("letters in hand") if nobody_yet and in_hand else Release(min(look.left, MOST_OPEN))
    if not look.open:
        return Finish()
    if not begun:
        return Begin()
    return Wait("move task" if moving else "jobs under way")


def rate_of(rate: int | None, count: int, lane: LaneSpec, accounts: Iterable[AccountSpec]) -> int:
    """The rate that was asked for, or the pace that the lane and its accounts have to spare at the baseline cap."""
    spare = max(1, min(MOST_RATE, int(count / max(1.0, drain_s(count, lane, accounts)))))
    wanted = spare if rate is None else rate
    if not 1 <= wanted <= MOST_RATE:
        raise BadInput("rate", f"must be 1 to {MOST_RATE} dead letters a second")
    if moves_for(count, wanted) > LONGEST:
        least = -(-count // int(LONGEST.total_seconds()))
        how = f"give a --rate of {least} or more" if least <= MOST_RATE else "plan one category at a time"
        raise BadInput(
            "rate",
            f"of {wanted} a second moves {count:,} dead letters in more than {LONGEST.total_seconds() / 60:g} minutes:"
            f" {how}, or leave --native out",
        )
    return wanted


def moves_for(count: int, rate: int) -> timedelta:
    """How long a move takes."""
    return timedelta(seconds=count / rate)
