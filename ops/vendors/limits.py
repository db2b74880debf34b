"""Limits per minute, exact in whole microseconds: whoever waits as long as told is served.

The minute can be set shorter, for a test that waits in real time.
"""

from __future__ import annotations

from collections import deque
from datetime import UTC, datetime, timedelta

MINUTE_S = 60.0
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NEVER_S = float("inf")


class MinuteLimit:
    """At most `limit` units in any sliding minute, and at most `burst` of them at one moment.

    Both hold at once: the log of the last minute is the hard promise, the burst is a bucket that fills at
    the limit's rate (a bucket alone would let limit + burst through in one minute).
    """

    def __init__(
        self,
        *,
        limit: int,
        burst: int | None = None,
        minute_s: float = MINUTE_S,
        before: MinuteLimit | None = None,
    ) -> None:
        self.limit = limit
        self.burst = burst
        self.minute_s = minute_s
        self._minute_us = round(minute_s * 1_000_000)
        # A limit that is changed remembers what the one before it let through.
        self._log: deque[tuple[int, int]] = deque(before._log) if before else deque()
        self._used = sum(units for _, units in self._log)
        # The moment at which the bucket is full again, times the limit, so that it stays a whole number.
        self._full_at = 0

    def wait_s(self, units: int, now: datetime) -> float:
        """0 when that many units fit now, else how long until they would; infinite when they never fit."""
        if units <= 0:
            return 0.0
        now_us = _microseconds(now)
        self._forget(now_us)
        if units > self.limit or (self.burst is not None and units > self.burst):
            return NEVER_S
        return max(self._window_wait_us(units, now_us), self._burst_wait_us(units, now_us)) / 1_000_000

    def charge(self, units: int, now: datetime) -> None:
        """Count the units, whether they fitted or not."""
        if units <= 0:
            return
        now_us = _microseconds(now)
        self._forget(now_us)
        self._log.append((now_us, units))
        self._used += units
        # Refused calls may count too. The newest `limit` units decide everything, so older ones can go.
        while self._used - self._log[0][1] >= self.limit:
            self._used -= self._log.popleft()[1]
        if self.burst is not None:
            empty = now_us * self.limit + self.burst * self._minute_us
            self._full_at = min(empty, max(self._full_at, now_us * self.limit) + units * self._minute_us)

    def remaining(self, now: datetime) -> int:
        """How many units would be served at this moment."""
        now_us = _microseconds(now)
        self._forget(now_us)
        left = self.limit - self._used
        if self.burst is not None:
            taken = max(0, self._full_at - now_us * self.limit)
            left = min(left, self.burst + -taken // self._minute_us)
        return max(0, left)

    def reset_s(self, now: datetime) -> float:
        """How long until nothing is counted any more."""
        now_us = _microseconds(now)
        self._forget(now_us)
        return (self._log[-1][0] + self._minute_us - now_us) / 1_000_000 if self._log else 0.0

    def _forget(self, now_us: int) -> None:
        while self._log and self._log[0][0] <= now_us - self._minute_us:
            self._used -= self._log.popleft()[1]

    def _window_wait_us(self, units: int, now_us: int) -> int:
        excess = self._used + units - self.limit
        for at_us, taken in self._log:
            if excess <= 0:
                return 0
            excess -= taken
            if excess <= 0:
                return at_us + self._minute_us - now_us
        return 0

    def _burst_wait_us(self, units: int, now_us: int) -> int:
        if self.burst is None:
            return 0
        short = self._full_at + (units - self.burst) * self._minute_us - now_us * self.limit
        return max(0, -(-short // self.limit))


def _microseconds(now: datetime) -> int:
    return (now - _EPOCH) // timedelta(microseconds=1)
