"""What an account may use per minute, and how a refusal is put into headers."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

from ops.vendors.config import VendorConfig
from ops.vendors.limits import MINUTE_S, MinuteLimit


class Allowance:
    """The limits of one account: both must have room, and a refused call charges both or neither."""

    def __init__(self) -> None:
        self._requests: MinuteLimit | None = None
        self._tokens: MinuteLimit | None = None
        self._longest_wait_s = MINUTE_S

    def adopt(self, config: VendorConfig) -> None:
        """Follow a changed configuration; what was let through in the last minute still counts."""
        minute_s = self._longest_wait_s = config.minute_s
        self._requests = _limit(config.requests_per_minute, config.burst_requests, minute_s, self._requests)
        self._tokens = _limit(config.tokens_per_minute, config.burst_tokens, minute_s, self._tokens)

    def take(self, *, tokens: int, now: datetime, charge_refused: bool) -> float:
        """0 and charged when the call fits, else the seconds after which it would."""
        wait_s = max(
            self._requests.wait_s(1, now) if self._requests else 0.0,
            self._tokens.wait_s(tokens, now) if self._tokens else 0.0,
        )
        if wait_s == 0 or charge_refused:
            if self._requests:
                self._requests.charge(1, now)
            if self._tokens:
                self._tokens.charge(tokens, now)
        return min(wait_s, self._longest_wait_s)

    def headers(self, now: datetime) -> dict[str, str]:
        """The x-ratelimit headers, for the limits that exist."""
        found: dict[str, str] = {}
        for name, limit in (("requests", self._requests), ("tokens", self._tokens)):
            if limit is not None:
                found[f"x-ratelimit-limit-{name}"] = str(limit.limit)
                found[f"x-ratelimit-remaining-{name}"] = str(limit.remaining(now))
                found[f"x-ratelimit-reset-{name}"] = duration_text(limit.reset_s(now))
        return found


def retry_after_headers(config: VendorConfig, wait_s: float, now: datetime) -> dict[str, str]:
    """Retry-After in the form the vendor uses. Seconds and dates are rounded up: obeying is enough."""
    match config.retry_after:
        case "seconds":
            return {"retry-after": str(max(1, math.ceil(wait_s)))}
        case "date":
            due = now.astimezone(UTC) + timedelta(seconds=wait_s)
            if due.microsecond:
                due = due.replace(microsecond=0) + timedelta(seconds=1)
            return {"retry-after": format_datetime(due, usegmt=True)}
        case "garbage":
            return {"retry-after": "in a little while"}
    return {}


def duration_text(seconds: float) -> str:
    """A duration the way the inference vendor writes it: 120ms, 6s, 1m30.5s."""
    if seconds < 1:
        return f"{math.ceil(seconds * 1000)}ms"
    minutes, rest = divmod(seconds, 60)
    rest_text = f"{math.ceil(rest * 1000) / 1000:g}s"
    return f"{int(minutes)}m{rest_text}" if minutes else rest_text


def _limit(limit: int | None, burst: int | None, minute_s: float, before: MinuteLimit | None) -> MinuteLimit | None:
    if limit is None:
        return None
    if before is not None and (before.limit, before.burst, before.minute_s) == (limit, burst, minute_s):
        return before
    return MinuteLimit(limit=limit, burst=burst, minute_s=minute_s, before=before)
