"""Every store a world in memory needs, by name."""

from __future__ import annotations

from shared.adapters.memory.jobs import MemoryJobStore
from shared.adapters.memory.records import (
    MemoryContentStore,
    MemoryControlStore,
    MemoryEffectStore,
    MemoryHistory,
    MemoryLedger,
)
from shared.adapters.memory.signals import MemorySignalLedger

__all__ = [
    "MemoryContentStore",
    "MemoryControlStore",
    "MemoryEffectStore",
    "MemoryHistory",
    "MemoryJobStore",
    "MemoryLedger",
    "MemorySignalLedger",
]
