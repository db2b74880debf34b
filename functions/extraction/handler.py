"""Worker of lane `extraction`."""

from __future__ import annotations

from functions.extraction.tasks import TASKS
from shared.runtime.worker_door import worker_door

handler = worker_door(TASKS)
