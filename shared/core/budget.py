"""The values of a vendor budget: what is asked, what holds, what is held, and the account itself.

Times in here are whole microseconds since 1970: a pace of a thousand requests a second has no rounding to hide in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from shared.core.account import Limit

SECOND = 1_000_000
MINUTE = 60 * SECOND
DAY = 86_400 * SECOND

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def us_of(moment: datetime) -> int:
    """Microseconds since 1970."""
    return (moment - _EPOCH) // timedelta(microseconds=1)


def at_us(us: int) -> datetime:
    """The first whole millisecond that is not before `us`: what a row can hold, never early."""
    return _EPOCH + timedelta(milliseconds=-(-us // 1000))


def day_of(now_us: int) -> int:
    """Days since 1970, UTC."""
    return now_us // DAY


@dataclass(frozen=True, slots=True, kw_only=True)
class Want:
    """What is asked of an account in one go."""

    requests: int = 1
    tokens: int = 0
    slots: int = 0
    """Calls that may run at once."""
    batch_tokens: int = 0

    def of(self, limit: Limit) -> int:
        """How much of one limit this is."""
        match limit:
            case Limit.REQUESTS | Limit.REQUESTS_PER_DAY:
                return self.requests
            case Limit.TOKENS | Limit.TOKENS_PER_DAY:
                return self.tokens
            case Limit.CONCURRENCY:
                return self.slots
            case Limit.BATCH_TOKENS:
                return self.batch_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Shut:
    """The account takes no calls but one probe at a time: an outage, or credentials that are refused."""

    reason: str
    since_us: int
    probe_us: int
    """When the next probe may go."""
    probe_every_s: float
    probe_by: str = ""
    """Who has the probe's turn: two who ask in one millisecond do not both believe it is theirs."""
    held_until_us: int = 0
    """A probe is under way and nobody else probes before it is answered, or before this."""

    @property
    def turn_us(self) -> int:
        """When a probe may be made at the earliest."""
        return max(self.probe_us, self.held_until_us)


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """Where the limit was last met by an account whose vendor tells none: the pace grows again from there."""

    base: float
    """The part of the configured limits that it began with after the last refusal."""
    top: float
    """The part that the vendor was found to allow."""
    since_us: int
    unit_s: float
    """How fast it grows: so long after it was back at `top`, it has doubled."""
    spent_us: int
    """What the account had spent when the vendor refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What holds for an account besides its configuration. Every change has a new version; a take names the
    version it was made under, so nobody spends under terms that no longer hold."""

    version: int = 0
    told: Mapping[Limit, int] = field(default_factory=dict)
    """Limits as the vendor's answers tell them."""
    pinned: Mapping[Limit, int] = field(default_factory=dict)
    """Limits an operator set: never passed, whatever the vendor tells."""
    refused_us: tuple[int, ...] = ()
    """When the vendor refused lately under limits that it tells."""
    doubted_until_us: int = 0
    """Until then what the vendor tells is only a bound: it refused too often under it."""
    search: Search | None = None
    shut: Shut | None = None
    quiet_until_us: int = 0
    """After a 429 nobody calls before this."""
    changed_us: int = 0
    """When the terms last changed: an answer to a call sent before that says nothing about them."""
    enforced: bool | None = None
    """An operator's flag; None: as configured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """What one holder has of the limits that are held, until it gives it back or its time is over."""

    slots: int
    batch_tokens: int
    until_us: int

    def of(self, limit: Limit) -> int:
        """How much of one limit."""
        return self.slots if limit is Limit.CONCURRENCY else self.batch_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The state of one account: one item, changed by one conditional write at a time."""

    terms: Terms = field(default_factory=Terms)
    arrival_us: Mapping[Limit, int] = field(default_factory=dict)
    day: int = 0
    """Days since 1970 of the daily counts."""
    used: Mapping[Limit, int] = field(default_factory=dict)
    holds: Mapping[str, Hold] = field(default_factory=dict)
    line_us: int = 0
    """Starts are promised up to here: whoever comes new stands behind."""
    backlog_us: int = 0
    """Until then somebody paces a backlog: whoever comes new goes to the table, behind it."""
    spent_us: int = 0
    """What was ever taken, in time of the configured limits: between two looks, the pace that was really used."""
    usual_tokens: int = 0
    """What a call used of late; 0 while nobody has told it."""

    def held(self, limit: Limit) -> int:
        """The sum over all holders; in the item it is kept beside them, changed by the same writes."""
        return sum(hold.of(limit) for hold in self.holds.values())

    def expired(self, now_us: int) -> tuple[str, ...]:
        """Holders whose time is over: they died, and what they had is free."""
        return tuple(sorted(name for name, hold in self.holds.items() if hold.until_us <= now_us))


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Not now: which limit, how much is missing, and the first moment at which the same request fits."""

    limit: str
    deficit: int
    retry_us: int
    probe: bool = False
    """The account is shut and its probe is due: whoever takes that turn may call."""
    budget: Budget = field(default_factory=lambda: Budget())
    """The account as it stood."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What fitted, and the account after it."""

    want: Want
    budget: Budget
    at_us: int
    """The moment by which all of it may be spent; of several calls each has its own, one after the other."""
