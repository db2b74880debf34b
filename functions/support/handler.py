"""Worker of lane `support`."""

from __future__ import annotations

from functions.support.tasks import TASKS
from shared.runtime.worker_door import worker_door

handler = worker_door(TASKS)
