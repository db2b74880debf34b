"""The machine's clock."""

from __future__ import annotations

import time
from datetime import UTC, datetime

from shared.core.moment import whole_ms


class SystemClock:
    """Real time, cut to the milliseconds a row can hold."""

    def now(self) -> datetime:
        """The present moment."""
        return whole_ms(datetime.now(UTC))

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)
