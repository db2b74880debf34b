"""DynamoDB's clock, read from the `Date` of its answers: how far this machine's clock is ahead of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from typing import Any

SLOW_S = 1.0
"""An answer that took longer says little: it may have been on its way for that time."""
_ASKED = "penstock_asked_s"


def skew_of(date_s: float, local_s: float) -> float:
    """Seconds by which the local clock is ahead of a server that wrote `date_s`. The date is cut to the second, so
    a clock between half a second before it and a second and a half after it counts as right."""
    ahead_s = local_s - date_s
    return 0.0 if -0.5 <= ahead_s <= 1.5 else ahead_s - 0.5


def date_of(headers: Mapping[str, str]) -> float | None:
    """The moment a `Date` header names, in seconds since 1970; None for none and for nonsense."""
    try:
        return parsedate_to_datetime(headers["date"]).timestamp()
    except (KeyError, TypeError, ValueError, OverflowError, OSError):
        return None


class ServerClock:
    """What the newest answer told. Callers correct small differences, and take no permits above two seconds."""

    def __init__(self, now_s: Callable[[], float] = time.time) -> None:
        self._now_s = now_s
        self._skew_s: float | None = None

    def skew_s(self) -> float | None:
        """Seconds by which this machine's clock is ahead of DynamoDB's; None while nothing is known."""
        return self._skew_s

    def watch(self, client: Any) -> None:
        """Listen to the answers of a client."""
        client.meta.events.register("before-call.dynamodb", self.asked)
        client.meta.events.register("after-call.dynamodb", self.answered)

    def asked(self, context: dict[str, Any], **_: Any) -> None:
        """A request leaves."""
        context[_ASKED] = self._now_s()

    def answered(self, parsed: Mapping[str, Any], context: Mapping[str, Any], **_: Any) -> None:
        """Its answer is here, an error's as well."""
        now_s = self._now_s()
        date_s = date_of(parsed.get("ResponseMetadata", {}).get("HTTPHeaders", {}))
        if date_s is not None and 0 <= now_s - context.get(_ASKED, 0.0) <= SLOW_S:
            self._skew_s = skew_of(date_s, now_s)
