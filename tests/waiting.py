"""Waiting for a state, however fast the machine is."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE_S = 600.0
"""Far beyond what any of it takes: it tells what never comes from what comes late."""


def until(true: Callable[[], bool], what: str) -> None:
    """Look again and again until it holds."""
    deadline = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < deadline, f"gave up waiting for {what} after {PATIENCE_S:.0f} s"
        time.sleep(0.05)
