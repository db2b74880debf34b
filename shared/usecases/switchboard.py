"""The switches as a function sees them: read at most every few seconds, trusted for a minute, then not at all."""

from __future__ import annotations

from datetime import datetime, timedelta

from shared.core.errors import ControlUnreadable, Unavailable, UnreadableSwitches
from shared.core.ports import Clock, ControlStore
from shared.core.switches import CACHED_S, TRUSTED_S, Switches


class SwitchBoard:
    """Cached switches. A change is felt within `CACHED_S`; an unreadable table stops sends after `TRUSTED_S`."""

    def __init__(self, *, control: ControlStore, clock: Clock) -> None:
        self._control, self._clock = control, clock
        self._seen: Switches | None = None
        self._seen_at: datetime | None = None

    def read(self) -> Switches:
        """The switches that hold now. Raises ControlUnreadable; an open state is never assumed."""
        now = self._clock.now()
        if self._seen is not None and self._age(now) < timedelta(seconds=CACHED_S):
            return self._seen
        try:
            self._seen = self._control.switches()
        except (Unavailable, UnreadableSwitches) as exc:
            if self._seen is None or self._age(now) > timedelta(seconds=TRUSTED_S):
                raise ControlUnreadable("control", exc.code) from None
            # What somebody closes beside an entry that nobody can read is closed, now.
            return self._seen if isinstance(exc, Unavailable) else self._seen.tightened(exc.readable)
        self._seen_at = now
        return self._seen

    def _age(self, now: datetime) -> timedelta:
        return timedelta.max if self._seen_at is None else now - self._seen_at
