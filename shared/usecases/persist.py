"""Asking a store again when it did not answer. Every write is re-runnable, so asking twice is safe."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from shared.core.errors import Unavailable
from shared.core.ports import Clock

T = TypeVar("T")

TRIES = 4
FIRST_WAIT_S = 0.05


def persist(write: Callable[[], T], clock: Clock, tries: int = TRIES) -> T:
    """The result of `write`, tried up to `tries` times while the store is unavailable."""
    for attempt in range(1, tries + 1):
        try:
            return write()
        except Unavailable:
            if attempt == tries:
                raise
            clock.sleep(FIRST_WAIT_S * 2 ** (attempt - 1))
    raise AssertionError("unreachable")
