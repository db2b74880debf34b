"""Waiting for a state, however fast the machine is."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE_S = 600.0
"""Far beyond what any of it takes: it tells what never comes from what comes late."""


LIMITS_S = (1.6, 6.4, 25.6, 102.4)


def until(true: Callable[[], bool], what: str) -> None:
    """Look again and again until it holds."""
    deadline = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < deadline, f"gave up waiting for {what} after {PATIENCE_S:.0f} s"
        time.sleep(0.05)


def with_time_enough(ask: Callable[[float], object], too_slow: object) -> object:
    """The answer under a time limit that this machine can keep: one that was too slow to come so far is given more."""
    for limit_s in LIMITS_S:
        said = ask(limit_s)
        if said != too_slow:
            break
    return said
