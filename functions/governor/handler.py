"""The governor: one run per slot."""

from __future__ import annotations

from shared.runtime.governor import governor
from shared.runtime.scheduled_door import scheduled_door

handler = scheduled_door("governor", governor)
