"""What a lane's calls cost by the hour: counted calls and tokens times what its vendors charge. AWS's bill is apart."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from typing import Any

from shared.core.errors import BadInput
from shared.core.job import name_of
from shared.core.lane import LaneSpec
from shared.core.signals import Signals, VendorCounts, minute_of, total

HOUR_S, QUARTER_S = 3600, 900


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """What one vendor charges. Both are said, also when one is 0: what is not said is not known."""

    per_call: float
    per_1000_tokens: float

    def of(self, counts: VendorCounts) -> float:
        """What these calls and tokens cost."""
        return counts.calls * self.per_call + counts.tokens * self.per_1000_tokens / 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """The price table, as configured under `prices`. A vendor without an entry has no price, which is not 0."""

    currency: str = "USD"
    vendors: Mapping[str, Price] = field(default_factory=dict)

    def __post_init__(self) -> None:
        code: object = self.currency
        if not (isinstance(code, str) and len(code) == 3 and code.isascii() and code.isupper()):
            raise BadInput("prices.currency", "must be a currency's code, such as USD")

    def to_mapping(self) -> dict[str, Any]:
        """Everything, as plain values; nothing where there is no price at all."""
        if self == Prices():
            return {}
        return {"currency": self.currency, "vendors": {name: asdict(price) for name, price in self.vendors.items()}}

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> Prices:
        """The table a configuration entry describes; what is unknown, missing or no price is named."""
        for setting in values:
            if setting not in cls.__dataclass_fields__:
                raise BadInput("prices", f"has an unknown setting {setting!r}: currency and vendors stand here")
        entries = values.get("vendors") or {}
        if not isinstance(entries, Mapping):
            raise BadInput("prices.vendors", "must be a table of vendors")
        priced = {name_of("prices.vendors", name): _price(name, entry) for name, entry in entries.items()}
        return cls(currency=values.get("currency", "USD"), vendors=priced)


@dataclass(frozen=True, slots=True, kw_only=True)
class VendorCost:
    """One vendor's part: None where it was called and has no price."""

    vendor: str
    per_hour: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneCost:
    """What a lane costs an hour at its present pace, vendor by vendor."""

    currency: str
    vendors: tuple[VendorCost, ...] = ()

    @property
    def per_hour(self) -> float:
        """What is known of it: all of it, where `unpriced` is empty."""
        return round(sum(one.per_hour or 0.0 for one in self.vendors), 6)

    @property
    def unpriced(self) -> tuple[str, ...]:
        """Vendors that were called and have no price."""
        return tuple(one.vendor for one in self.vendors if one.per_hour is None)

    @property
    def words(self) -> str:
        """For people: `2.40 USD`, `at least 2.40 USD; no price: crm`, `no price: crm`; never 0 for the unknown."""
        known = f"{self.per_hour:,.2f} {self.currency}"
        if not self.unpriced:
            return known
        lacking = f"no price: {', '.join(self.unpriced)}"
        return lacking if len(self.unpriced) == len(self.vendors) else f"at least {known}; {lacking}"

    def spikes(self, lane: LaneSpec) -> bool:
        """True above the lane's `cost_spike_per_hour`; a lane without one never does."""
        return lane.cost_spike_per_hour is not None and self.per_hour > lane.cost_spike_per_hour


def cost_of(signals: Signals, prices: Prices) -> LaneCost:
    """The dearer of two readings: what the last hour cost, and four times what its last quarter did.

    The hour alone would show a loop that burns ten times the threshold after six minutes; with the quarter it shows in
    two, and it stays in sight for the hour after it ended. Full minutes only: the one that has begun would make a
    steady lane look dearer than it is.
    """
    hour, quarter = (_spent(signals, seconds) for seconds in (HOUR_S, QUARTER_S))
    readings = [
        LaneCost(
            currency=prices.currency,
            vendors=tuple(_cost(vendor, spent.get(vendor), prices, times) for vendor in sorted(hour)),
        )
        for spent, times in ((hour, 1), (quarter, HOUR_S // QUARTER_S))
    ]
    return max(readings, key=lambda cost: cost.per_hour)


def check_priced(lane: LaneSpec, prices: Prices) -> None:
    """A threshold on a cost that cannot be known would never ring: refuse it."""
    for vendor in lane.vendors if lane.cost_spike_per_hour is not None else ():
        if vendor not in prices.vendors:
            raise BadInput(
                f"lanes.{lane.name}.cost_spike_per_hour",
                f"needs the price of vendor {vendor}: add prices.vendors.{vendor}"
                " with per_call and per_1000_tokens (0 where it charges nothing), or set this to null",
            )


def _spent(signals: Signals, seconds: int) -> dict[str, VendorCounts]:
    """What each vendor was asked for in so many seconds of full minutes."""
    until = minute_of(signals.at, signals.minute_s)
    since = until - timedelta(seconds=seconds)
    vendors = total(one.counts for one in signals.minutes if since <= one.at < until).vendors
    return {name: one for name, one in vendors.items() if one.calls or one.tokens}


def _cost(vendor: str, spent: VendorCounts | None, prices: Prices, times: int) -> VendorCost:
    price = prices.vendors.get(vendor)
    per_hour = None if price is None else times * price.of(spent or VendorCounts())
    return VendorCost(vendor=vendor, per_hour=per_hour)


def _price(vendor: str, entry: object) -> Price:
    where = f"prices.vendors.{vendor}"
    if not isinstance(entry, Mapping) or set(entry) != set(Price.__dataclass_fields__):
        raise BadInput(where, "must say per_call and per_1000_tokens, and nothing else; 0 where it charges nothing")
    for setting, amount in entry.items():
        number = isinstance(amount, int | float) and not isinstance(amount, bool)
        if not number or not math.isfinite(amount) or amount < 0:
            raise BadInput(f"{where}.{setting}", "must be an amount of money, or 0")
    return Price(**{name: float(amount) for name, amount in entry.items()})
