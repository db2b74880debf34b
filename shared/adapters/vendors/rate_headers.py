"""What an answer's headers tell of its account, as vendors really send them.

Two families are known: `x-ratelimit-limit-requests` with a duration until the reset (OpenAI and those shaped like it)
and `anthropic-ratelimit-requests-limit` with a time. Each field that cannot be read or cannot be true is left out,
and nothing else is. Where both families tell a limit, the lower one counts: too slow costs time, too fast costs 429s.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from shared.adapters.vendors.retry_after import told_s
from shared.core.account import MOST, Limit
from shared.core.feedback import NOTHING, Report
from shared.core.moment import parse

LONGEST_RESET_S = 31 * 86_400.0
"""No limit takes longer to be whole again; a time beyond it is a mistake."""
_WHOLE = re.compile(r"\d{1,13}", re.ASCII)
_SECONDS = re.compile(r"\d{1,9}(\.\d{1,9})?", re.ASCII)
_DURATION = re.compile(
    r"(?:(\d{1,6})d)?(?:(\d{1,6})h)?(?:(\d{1,6})m(?!s))?(?:(\d{1,9}(?:\.\d{1,9})?)s)?(?:(\d{1,9}(?:\.\d{1,9})?)ms)?",
    re.ASCII,
)
_UNITS_S = (86_400.0, 3600.0, 60.0, 1.0, 0.001)


@dataclass(frozen=True, slots=True)
class _Told:
    """One family's three fields of one limit."""

    limit: int | None
    remaining: int | None
    reset_s: float | None


def report_of(headers: Mapping[str, str], now: datetime) -> Report:
    """Limits, what is left of them, when they are whole again, and how long to wait. Never raises."""
    found = {name.lower(): value for name, value in headers.items() if _is_text(name) and _is_text(value)}
    told = {
        Limit.REQUESTS: _lower(_x_ratelimit(found, "requests"), _anthropic(found, now, "requests")),
        # Where tokens are limited apart for what goes in and what comes out, what goes in is what we estimate.
        Limit.TOKENS: _lower(_x_ratelimit(found, "tokens"), _anthropic(found, now, "tokens", "input-tokens")),
    }
    report = Report(
        limits={limit: each.limit for limit, each in told.items() if each.limit is not None},
        remaining={limit: each.remaining for limit, each in told.items() if each.remaining is not None},
        reset_s={limit: each.reset_s for limit, each in told.items() if each.reset_s is not None},
        retry_after_s=_retry_after_s(found, now),
    )
    return NOTHING if report == NOTHING else report


def duration_s(text: str | None) -> float | None:
    """Seconds of `1s`, `6m0s`, `250ms`, `1h2m3.5s`, or a bare number of them; None for anything else."""
    if text is None:
        return None
    text = text.strip()
    if _SECONDS.fullmatch(text):
        seconds = float(text)
    else:
        parts = _DURATION.fullmatch(text)
        if parts is None or not any(parts.groups()):
            return None
        seconds = sum(float(part) * unit for part, unit in zip(parts.groups(), _UNITS_S, strict=True) if part)
    return seconds if seconds <= LONGEST_RESET_S else None


def _x_ratelimit(found: Mapping[str, str], name: str) -> _Told:
    return _Told(
        limit=_whole(found.get(f"x-ratelimit-limit-{name}"), least=1),
        remaining=_whole(found.get(f"x-ratelimit-remaining-{name}"), least=0),
        reset_s=duration_s(found.get(f"x-ratelimit-reset-{name}")),
    )


def _anthropic(found: Mapping[str, str], now: datetime, *names: str) -> _Told:
    """The first of these names whose limit is told."""
    for name in names:
        told = _Told(
            limit=_whole(found.get(f"anthropic-ratelimit-{name}-limit"), least=1),
            remaining=_whole(found.get(f"anthropic-ratelimit-{name}-remaining"), least=0),
            reset_s=_until_s(found.get(f"anthropic-ratelimit-{name}-reset"), now),
        )
        if told.limit is not None:
            return told
    return _Told(None, None, None)


def _lower(one: _Told, other: _Told) -> _Told:
    """The family that counts for a limit. More left than there is: that family is not believed about it."""
    believed = [told for told in (one, other) if told.limit is None or (told.remaining or 0) <= told.limit]
    telling = [told for told in believed if told.limit is not None]
    if telling:
        return min(telling, key=lambda told: told.limit or 0)
    return believed[0] if believed else _Told(None, None, None)


def _retry_after_s(found: Mapping[str, str], now: datetime) -> float | None:
    """Milliseconds, where they are told: they are the same wait, not rounded up."""
    milliseconds = found.get("retry-after-ms", "").strip()
    if _SECONDS.fullmatch(milliseconds):
        return float(milliseconds) / 1000
    return told_s(found.get("retry-after"), now)


def _until_s(text: str | None, now: datetime) -> float | None:
    """Seconds until a time; the past is now."""
    try:
        seconds = (parse((text or "").strip()) - now).total_seconds()
    except (ValueError, OverflowError):
        return None
    return max(0.0, seconds) if seconds <= LONGEST_RESET_S else None


def _whole(text: str | None, *, least: int) -> int | None:
    text = (text or "").strip()
    return int(text) if _WHOLE.fullmatch(text) and least <= int(text) <= MOST else None


def _is_text(value: object) -> bool:
    return isinstance(value, str)
