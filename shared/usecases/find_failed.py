"""Find failed jobs: the dead letters of a lane, from their rows."""

from __future__ import annotations

from dataclasses import dataclass

from shared.core.cohort import Chosen
from shared.core.errors import UnreadableRow
from shared.core.job import Job
from shared.core.ports import JobStore


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedJobs:
    """What was found, oldest failure first, and how many rows nobody can judge."""

    jobs: tuple[Job, ...]
    unreadable: int = 0


def find_failed(chosen: Chosen, jobs: JobStore) -> FailedJobs:
    """Every failed job that is meant. One is read by its key; more are found by reading the table."""
    if chosen.job_id is not None:
        job = jobs.get(chosen.job_id)
        return FailedJobs(jobs=(job,) if job is not None and chosen.holds(job) else ())
    found: list[Job] = []
    unreadable = 0
    for row in jobs.scan():
        if isinstance(row, UnreadableRow):
            unreadable += 1
        elif chosen.holds(row):
            found.append(row)
    found.sort(key=lambda job: (job.updated_at, job.job_id))
    return FailedJobs(jobs=tuple(found), unreadable=unreadable)
