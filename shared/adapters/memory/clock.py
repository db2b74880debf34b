"""Time that moves only when told to: a day of a system's life takes as long as the calls in it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from shared.core.moment import whole_ms
from shared.core.ports import Clock

_ALMOST_A_MS = timedelta(microseconds=999)
START = datetime(2026, 1, 1, tzinfo=UTC)


class VirtualClock:
    """A clock for a whole world. `sleep` moves it, unless a scheduler has asked to be handed the wait."""

    def __init__(self, start: datetime = START) -> None:
        if start.tzinfo is None:
            raise ValueError("start has no time zone")
        self._now = whole_ms(start.astimezone(UTC))
        self._lock = threading.Lock()
        self.on_sleep: Callable[[float], None] | None = None
        """Set by a scheduler that wants others to run while somebody waits."""

    def now(self) -> datetime:
        """The present moment of this world."""
        return self._now

    def sleep(self, seconds: float) -> None:
        """Wait: hand over to the scheduler if there is one, else move the time on."""
        if self.on_sleep is not None:
            self.on_sleep(seconds)
        else:
            self.advance(seconds)

    def advance(self, seconds: float) -> None:
        """Move the time on. It never goes back."""
        if seconds > 0:
            with self._lock:
                self._now = whole_ms(self._now + timedelta(seconds=seconds))

    def advance_to(self, moment: datetime) -> None:
        """Move the time on to `moment`, never short of it; a moment that has passed changes nothing."""
        with self._lock:
            self._now = max(self._now, whole_ms(moment + _ALMOST_A_MS))

    def skewed(self, seconds: float) -> Clock:
        """The same time as a machine whose clock is wrong by `seconds` sees it."""
        return SkewedClock(self, seconds) if seconds else self


class SkewedClock:
    """One machine's wrong idea of the time."""

    def __init__(self, clock: VirtualClock, seconds: float) -> None:
        self._clock, self._skew = clock, timedelta(milliseconds=round(seconds * 1000))

    def now(self) -> datetime:
        """What this machine believes."""
        return self._clock.now() + self._skew

    def sleep(self, seconds: float) -> None:
        """Waiting is the same everywhere."""
        self._clock.sleep(seconds)
