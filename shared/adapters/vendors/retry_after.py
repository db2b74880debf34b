"""`Retry-After`, as vendors really send it: seconds, a date, nothing, or nonsense."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

DEFAULT_S = 30.0
_SECONDS = re.compile(r"\d{1,9}(\.\d{1,6})?", re.ASCII)


def retry_after_s(header: str | None, now: datetime) -> float:
    """Seconds to wait; what cannot be read counts as half a minute, the past as nothing."""
    if header is None:
        return DEFAULT_S
    text = header.strip()
    if _SECONDS.fullmatch(text):
        return float(text)
    try:
        at = parsedate_to_datetime(text)
        if at.tzinfo is None:
            at = at.replace(tzinfo=UTC)
        return max(0.0, (at - now).total_seconds())
    except (ValueError, TypeError, OverflowError):
        return DEFAULT_S
