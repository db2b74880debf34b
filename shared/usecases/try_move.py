"""Try to move a job on: no row ends the work on its neighbours."""

from __future__ import annotations

from shared.core.errors import RowMoved, UnreadableRow
from shared.core.job import Job
from shared.core.ports import Clock, JobStore, Telemetry
from shared.usecases.persist import persist


def try_move(before: Job, after: Job, *, jobs: JobStore, clock: Clock, telemetry: Telemetry) -> bool:
    """False, and nothing written, when somebody else moved the job first, who has taken care of it. A row that nobody
    moved and that still cannot be written is as good as one that cannot be read: it is told, and left alone."""
    try:
        persist(lambda: jobs.move(before, after), clock)
    except RowMoved as moved:
        if moved.current == before:
            telemetry.error("row_unreadable", moved, job_id=before.job_id)
        return False
    except UnreadableRow as exc:
        telemetry.error("row_unreadable", exc, job_id=before.job_id)
        return False
    return True
