"""How much time is left. A worker never begins what it cannot finish."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from shared.core.ports import Clock

HANDLER_MARGIN_S = 10.0
"""Kept free at the end of an invocation for settling and the answer to SQS."""
RECORD_MARGIN_S = 1.0
"""Kept free after a vendor's time-out for writing the record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deadline:
    """A moment by which work must have ended."""

    at: datetime
    clock: Clock

    @property
    def remaining_s(self) -> float:
        """Seconds left; negative when it is over."""
        return (self.at - self.clock.now()).total_seconds()

    def within(self, seconds: float) -> Deadline:
        """The nearer of this deadline and `seconds` from now."""
        return Deadline(at=min(self.at, self.clock.now() + timedelta(seconds=seconds)), clock=self.clock)
