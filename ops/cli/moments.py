"""Times and lengths of time as an operator writes them."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from shared.core import moment
from shared.core.errors import BadInput

WHEN = "A time with its zone, or how long ago: 2026-05-01T21:00Z, 3h"
"""What every option takes that says since when."""
_SPAN = re.compile(r"(\d{1,7})\s*(s|m|min|h|d)")
MOST_DAYS = 3650
_UNIT = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400}


def moment_of(field: str, text: object) -> datetime:
    """An ISO 8601 time with its zone: `2026-05-01T09:00Z`."""
    if not isinstance(text, str):
        raise BadInput(field, "must be a time such as 2026-05-01T09:00Z")
    try:
        return moment.parse(text)
    except ValueError as exc:
        raise BadInput(field, f"{exc}; write it as 2026-05-01T09:00Z") from None


def back_to(field: str, text: str, now: datetime) -> datetime:
    """A time in the past: the time itself, or how long ago it was."""
    if _SPAN.fullmatch(text.strip().lower()) is not None:
        return now - span_of(field, text)
    try:
        return moment_of(field, text)
    except BadInput:
        raise BadInput(field, f"must be {WHEN[0].lower()}{WHEN[1:]}") from None


def between(since: str | None, until: str | None, now: datetime) -> tuple[datetime | None, datetime | None]:
    """The time that is looked at, open where nothing was said; one that nothing can lie in is refused."""
    begins = None if since is None else back_to("since", since, now)
    ends = None if until is None else back_to("until", until, now)
    if begins is not None and begins >= (now if ends is None else min(ends, now)):
        raise BadInput("since", "must lie before the end of the time that is looked at")
    return begins, ends


def span_of(field: str, text: str) -> timedelta:
    """A length of time: `90s`, `5m`, `2h`, `1d`."""
    found = _SPAN.fullmatch(text.strip().lower())
    if found is None:
        raise BadInput(field, "must be a length of time such as 90s, 5m, 2h or 1d")
    seconds = int(found[1]) * _UNIT[found[2]]
    if seconds > MOST_DAYS * _UNIT["d"]:
        raise BadInput(field, f"must be at most {MOST_DAYS}d")
    return timedelta(seconds=seconds)
