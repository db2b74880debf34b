"""The redriver: one run per slot."""

from __future__ import annotations

from shared.runtime import wiring
from shared.runtime.scheduled_door import scheduled_door

handler = scheduled_door("redriver", wiring.redriver)
