"""How often Python looks for cycles: seldom, because a world frees itself when it is closed, and imports stay."""

from __future__ import annotations

import gc

YOUNG = 50_000
"""So many objects more than were freed, before the young ones are looked through."""


def look_seldom() -> None:
    """From here on: what is loaded by now is never looked through again, and what is new far less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, 20, 50)
