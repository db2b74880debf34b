"""What a lane is seen to do: counts by the minute, which workers write once a batch, and how old its oldest job is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from shared.core.moment import from_epoch_s

MINUTE_S = 60
MINUTE = timedelta(seconds=MINUTE_S)
"""Of the clock. A lane may count by shorter ones (its `minute_s`), where everything is to be seen in fast time."""
KEPT = timedelta(days=2)
"""How long a minute's counts are kept."""
EXACT_AGE_S, MINUTES_UNTIL_S = 300, 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class VendorCounts:
    """What one vendor was asked and answered. Calls and tokens are also what a bill is made of."""

    calls: int = 0
    limited: int = 0
    """Answered 429."""
    errors: int = 0
    """No answer, a 5xx, nobody there, or refused credentials. A refusal of one request is the job's own trouble."""
    tokens: int = 0

    def __add__(self, other: VendorCounts) -> VendorCounts:
        return VendorCounts(
            calls=self.calls + other.calls,
            limited=self.limited + other.limited,
            errors=self.errors + other.errors,
            tokens=self.tokens + other.tokens,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """What happened in one batch, one minute or several. Adding two loses nothing."""

    claims: int = 0
    completed: int = 0
    failed: int = 0
    """Jobs that became `failed`; a dead letter that is put back is none."""
    errors: int = 0
    """Attempts that ended in a retry or a failure, and messages whose worker broke."""
    oldest_age_s: int = 0
    """The longest that a job which was started had been due."""
    vendors: Mapping[str, VendorCounts] = field(default_factory=dict)

    def __add__(self, other: Counts) -> Counts:
        vendors, none = self.vendors, VendorCounts()
        if other.vendors:
            names = sorted({*self.vendors, *other.vendors})
            vendors = {name: self.vendors.get(name, none) + other.vendors.get(name, none) for name in names}
        return Counts(
            claims=self.claims + other.claims,
            completed=self.completed + other.completed,
            failed=self.failed + other.failed,
            errors=self.errors + other.errors,
            oldest_age_s=max(self.oldest_age_s, other.oldest_age_s),
            vendors=vendors,
        )

    @property
    def nothing(self) -> bool:
        """True when nothing happened: there is nothing to write."""
        return self == Counts()


@dataclass(frozen=True, slots=True, kw_only=True)
class Minute:
    """The counts of the minute that began at `at`."""

    at: datetime
    counts: Counts


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """When the lane's queue was last seen to move or to be empty, and how old its oldest job was then."""

    at: datetime
    age_s: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Signals:
    """All that is known of a lane at `at`."""

    at: datetime
    minutes: tuple[Minute, ...] = ()
    """The minutes of which anything is known, in any order; the one that has just begun may be among them."""
    visible: int = 0
    """Messages in the lane's queue that nobody holds."""
    in_flight: int = 0
    dead_letters: int = 0
    oldest_due_at: datetime | None = None
    """The oldest due time in the waiting index that has come."""
    moved: Moved | None = None
    """As it was before this look."""
    shut: frozenset[str] = frozenset()
    """Vendors whose breaker is open."""
    minute_s: int = MINUTE_S
    """How long the minutes are by which the lane counts."""

    def minute(self, back: int) -> Counts:
        """The minute that began so many minutes before this one: 1 is the last full one."""
        wanted = minute_of(self.at, self.minute_s) - timedelta(seconds=back * self.minute_s)
        return total(one.counts for one in self.minutes if one.at == wanted)

    def over(self, seconds: float) -> Counts:
        """So many seconds of full minutes, and the one that has begun."""
        since = minute_of(self.at, self.minute_s) - timedelta(seconds=seconds)
        return total(one.counts for one in self.minutes if since <= one.at <= self.at)

    @property
    def recent(self) -> Counts:
        """The last full minute and the one that has begun: a look at its first second must not see a standstill."""
        return self.minute(1) + self.minute(0)

    @property
    def moves(self) -> bool:
        """True when jobs are started, or there is none to start."""
        return self.recent.claims > 0 or self.visible == 0


def queue_age_s(signals: Signals) -> int:
    """The age of the oldest job that is due and has not started, wherever it stands.

    In the table that is the oldest due key. In the queue it is what workers saw; where nothing is started although
    messages are visible, it grows from the last time that the queue moved or was empty.
    """
    in_table = 0 if signals.oldest_due_at is None else _seconds(signals.oldest_due_at, signals.at)
    return max(in_table, moved_now(signals).age_s if signals.moves else _standing_s(signals))


def moved_now(signals: Signals) -> Moved:
    """What to remember for the next look."""
    if not signals.moves:
        return signals.moved or Moved(at=signals.at)
    return Moved(at=signals.at, age_s=signals.recent.oldest_age_s if signals.recent.claims else 0)


def _standing_s(signals: Signals) -> int:
    last = signals.moved
    return 0 if last is None else last.age_s + _seconds(last.at, signals.at)


def _seconds(since: datetime, until: datetime) -> int:
    return max(0, int((until - since).total_seconds()))


def minute_of(moment: datetime, minute_s: int = MINUTE_S) -> datetime:
    """The minute a moment is in."""
    return from_epoch_s(int(moment.timestamp()) // minute_s * minute_s)


def total(counts: Iterable[Counts]) -> Counts:
    """All of them together."""
    return sum(counts, Counts())


def coarse_age_s(age_s: float) -> int:
    """An age as it is kept: in whole seconds up to five minutes, then in minutes, after an hour in hours, rounded up.

    A minute's ages are kept as a set, since the largest of several is not a sum; so the set stays small.
    """
    whole = max(0, -int(-age_s // 1))
    step = 1 if whole <= EXACT_AGE_S else 60 if whole <= MINUTES_UNTIL_S else 3600
    return -(-whole // step) * step
