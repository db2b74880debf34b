"""When a failed attempt may be tried again. Deterministic: the same job and clock give the same time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from shared.core.errors import BadInput


@dataclass(frozen=True, slots=True)
class RetryAt:
    """Try again, not before `at`; `attempt_count` is the count to store."""

    at: datetime
    attempt_count: int


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Every try is used."""

    attempt_count: int


def decide_retry(attempt_count: int, max_attempts: int, backoff_s: Sequence[int], now: datetime) -> RetryAt | GiveUp:
    """The answer to one more failed try: `backoff_s[n - 1]` after the n-th, or give up at `max_attempts`."""
    used = attempt_count + 1
    if used >= max_attempts:
        return GiveUp(attempt_count=used)
    # A job keeps the tries it was enqueued with; the lane's list may have become shorter since.
    wait_s = backoff_s[min(used, len(backoff_s)) - 1] if backoff_s else 0
    return RetryAt(at=now + timedelta(seconds=wait_s), attempt_count=used)


def check_backoff(max_attempts: int, backoff_s: Sequence[Any]) -> tuple[int, ...]:
    """A list with a wait for every retry there can be; anything else is refused by name."""
    if max_attempts < 1:
        raise BadInput("max_attempts", "must be at least 1: it counts every try, the first included")
    if len(backoff_s) < max_attempts - 1:
        raise BadInput(
            "retry_backoff_s",
            f"has {len(backoff_s)} waits, but {max_attempts} attempts need {max_attempts - 1}",
        )
    if any(isinstance(wait, bool) or not isinstance(wait, int) or wait < 0 for wait in backoff_s):
        raise BadInput("retry_backoff_s", "must hold whole seconds, none negative")
    return tuple(backoff_s)
