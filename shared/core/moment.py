"""How a moment is written: UTC, milliseconds, `Z`; text order is time order."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def iso(moment: datetime) -> str:
    """`2026-01-01T00:00:00.000Z`, always 24 characters."""
    # Brought to UTC before it is looked for: the two moments of an hour that comes twice are equal in their zone.
    return _written(moment if moment.tzinfo is UTC else moment.astimezone(UTC))


@lru_cache(maxsize=4096)
def _written(moment: datetime) -> str:
    """A row tells its times again on every write, so the same few are asked for over and over."""
    return moment.isoformat(timespec="milliseconds")[:-6] + "Z"


@lru_cache(maxsize=4096)
def parse(text: str) -> datetime:
    """The moment a text of ours says; anything else is a ValueError that does not repeat it."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError("is not an ISO 8601 time") from None
    if moment.tzinfo is None:
        raise ValueError("has no time zone")
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise ValueError("is out of range") from None


def whole_ms(moment: datetime) -> datetime:
    """`moment` cut to milliseconds: what a row can hold."""
    over = moment.microsecond % 1000
    return moment.replace(microsecond=moment.microsecond - over) if over else moment


def epoch_s(moment: datetime) -> int:
    """Seconds since 1970, as DynamoDB's expiry wants them."""
    return int(moment.timestamp())


def from_epoch_s(seconds: int) -> datetime:
    """The moment of an expiry."""
    return datetime.fromtimestamp(seconds, tz=UTC)
