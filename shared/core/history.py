"""What was decided, by whom and when."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEvent:
    """Something a person or the engine decided; append-only."""

    subject: str
    event_id: str
    at: datetime
    kind: str
    by: str
    detail: Mapping[str, Any] = field(default_factory=dict)
