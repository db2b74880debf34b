"""What a vendor account allows: its limits as configured. One account is one budget, whoever spends it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any

from shared.core.errors import BadInput
from shared.core.job import name_of

MOST = 10**12
"""No limit and no estimate is larger; a number beyond it is a mistake."""


class Limit(StrEnum):
    """The limits an account can have, by how each is kept."""

    REQUESTS = "requests"
    """Per minute, paced."""
    TOKENS = "tokens"
    """Per minute, paced."""
    REQUESTS_PER_DAY = "requests_per_day"
    """Counted from midnight UTC."""
    TOKENS_PER_DAY = "tokens_per_day"
    """Counted from midnight UTC."""
    CONCURRENCY = "concurrency"
    """Held while calls run."""
    BATCH_TOKENS = "batch_tokens"
    """Held while a provider's batch is under way."""


PACED = (Limit.REQUESTS, Limit.TOKENS)
DAILY = (Limit.REQUESTS_PER_DAY, Limit.TOKENS_PER_DAY)
HELD = (Limit.CONCURRENCY, Limit.BATCH_TOKENS)
_SETTINGS: Mapping[Limit, str] = {
    Limit.REQUESTS: "requests_per_minute",
    Limit.TOKENS: "tokens_per_minute",
    Limit.REQUESTS_PER_DAY: "requests_per_day",
    Limit.TOKENS_PER_DAY: "tokens_per_day",
    Limit.CONCURRENCY: "concurrency",
    Limit.BATCH_TOKENS: "batch_tokens",
}


def setting_of(limit: Limit) -> str:
    """The word for a limit in a configuration and on the command line."""
    return _SETTINGS[limit]


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountSpec:
    """One account's entry in the configuration. A limit that is not given is not kept."""

    name: str
    vendor: str
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    requests_per_day: int | None = None
    tokens_per_day: int | None = None
    concurrency: int | None = None
    batch_tokens: int | None = None
    minute_s: float = 60.0
    """Seconds in the vendor's minute; only a simulator's is shorter, so that waiting can be watched."""
    burst_s: float = 0.5
    """How much of the limit may be spent ahead of its pace; a vendor's own bucket may hold no more than a second."""
    share: float = 1.0
    """The part of the vendor's own limit that is ours, where others spend the same account."""
    explore: float = 1.0
    """How far above the configured limits the search may go when the vendor tells none."""
    enforced: bool = True
    """False: the account is not kept; its calls pass as if it had no limits."""

    def __post_init__(self) -> None:
        where = f"accounts.{self.name}"
        name_of(where, self.name)
        name_of(f"{where}.vendor", self.vendor)
        for limit, setting in _SETTINGS.items():
            value = self.configured(limit)
            if value is not None and not is_amount(value):
                raise BadInput(f"{where}.{setting}", "must be a whole number above 0, or left out")
        for setting, least, most in (
            *(("minute_s", 1.0, 60.0), ("burst_s", 0.0, 2.0)),
            *(("share", 0.0, 1.0), ("explore", 1.0, 100.0)),
        ):
            number = getattr(self, setting)
            if isinstance(number, bool) or not isinstance(number, int | float) or not least <= number <= most:
                raise BadInput(f"{where}.{setting}", f"must be a number from {least:g} to {most:g}")
        if not self.share:
            raise BadInput(f"{where}.share", "must be above 0; to stop an account, close its vendor's switch")
        if not isinstance(self.enforced, bool):
            raise BadInput(f"{where}.enforced", "must be true or false")

    def to_mapping(self) -> dict[str, Any]:
        """Every setting that is not at its default, as plain values: they make the same account again."""
        return {
            f.name: value for f in fields(self) if f.name != "name" and (value := getattr(self, f.name)) != f.default
        }

    @property
    def largest_call(self) -> int | None:
        """The tokens that one call can use at most, by what is configured; None when the account counts none."""
        most = self.tokens_per_minute
        return None if most is None else int(most * self.share)

    def configured(self, limit: Limit) -> int | None:
        """The limit as configured, None when the account has none of this kind."""
        value: int | None = getattr(self, _SETTINGS[limit])
        return value


def is_amount(value: object) -> bool:
    """True for a whole number that can be a limit."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value <= MOST
