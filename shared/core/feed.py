"""The change feed's law: which writes of a job's row are told to subscribers, and what is told of them.

Ids and closed words only. A job's key, its result, its errors and where its texts are stay in the row: they are words
that a producer or a task chose.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from shared.core import moment
from shared.core.errors import UnreadableRow
from shared.core.job import NAMESPACE, Category, Job, Status, derived_id

VERSION = 1
"""Of the shape of an event. New fields may come without a new number; a field never changes its meaning."""

_RANK: Mapping[Status, int] = {
    Status.PROCESSING: 0,
    Status.BATCH_SUBMITTED: 1,
    Status.QUEUED: 2,
    Status.FAILED: 3,
    Status.COMPLETED: 4,
    Status.CANCELED: 5,
}
"""How states follow one another under one fence: every move of the lifecycle goes up here, or raises the fence."""
_STEPS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class StateChange:
    """One job went from one state to another."""

    job_id: str
    lane: str
    tenant: str
    task: str
    status: Status
    previous: Status | None
    """None: the job is new."""
    at: datetime
    created_at: datetime
    fence: int
    attempt_count: int
    category: Category | None = None
    """Why it failed; of a failed job only."""

    @property
    def sequence(self) -> int:
        """Rises with every change of one row, whatever the clocks say; gaps mean nothing."""
        return self.fence * _STEPS + _RANK[self.status]

    @property
    def change_id(self) -> str:
        """The same for the same change, however often it is published.

        A job enqueued again after its row had expired has another row, with changes of its own.
        """
        return str(derived_id(NAMESPACE, self.job_id, moment.iso(self.created_at), str(self.sequence)))

    def detail(self) -> dict[str, str | int]:
        """What a subscriber reads; what does not apply is absent."""
        told: dict[str, str | int] = {
            "version": VERSION,
            "change_id": self.change_id,
            "job_id": self.job_id,
            "lane": self.lane,
            "tenant": self.tenant,
            "task": self.task,
            "status": self.status.value,
            "at": moment.iso(self.at),
            "created_at": moment.iso(self.created_at),
            "sequence": self.sequence,
            "attempt_count": self.attempt_count,
        }
        if self.previous is not None:
            told["previous"] = self.previous.value
        if self.category is not None:
            told["category"] = self.category.value
        return told


def change_of(job: Job, previous: Status | None) -> StateChange | None:
    """What is told of a row that now says `job` and was in `previous` before (None: there was no row).

    None: it stayed in its state, which is nobody's news. Raises UnreadableRow where the key holds no job id: whoever
    wrote that row may have put anything there.
    """
    if previous is job.status:
        return None
    if not _is_id(job.job_id):
        raise UnreadableRow("JOB#?", "the key holds no job id")
    return StateChange(
        job_id=job.job_id,
        lane=job.lane,
        tenant=job.tenant,
        task=job.task,
        status=job.status,
        previous=previous,
        at=job.updated_at,
        created_at=job.created_at,
        fence=job.fence,
        attempt_count=job.attempt_count,
        category=job.category if job.status is Status.FAILED else None,
    )


def _is_id(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text
    except ValueError:
        return False
