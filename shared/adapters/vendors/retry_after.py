"""`Retry-After`, as vendors really send it: seconds, a date, nothing, or nonsense."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

DEFAULT_S = 30.0
_SECONDS = re.compile(r"\d{1,9}(\.\d{1,6})?", re.ASCII)


def retry_after_s(header: str | None, now: datetime) -> float:
    """Seconds to wait; what cannot be read counts as half a minute, the past as nothing."""
    told = told_s(header, now)
    return DEFAULT_S if told is None else told


def told_s(header: str | None, now: datetime) -> float | None:
    """Seconds to wait as the vendor tells them, the past as nothing; None where it tells none that can be read."""
    if header is None:
        return None
    text = header.strip()
    if _SECONDS.fullmatch(text):
        return float(text)
    try:
        at = parsedate_to_datetime(text)
        if at.tzinfo is None:
            at = at.replace(tzinfo=UTC)
        return max(0.0, (at - now).total_seconds())
    except (ValueError, TypeError, OverflowError):
        return None
