"""Liveness: since when a claim stands, and until when a worker may be at work under it."""

from __future__ import annotations

from datetime import datetime, timedelta

from shared.core.job import Job, Status
from shared.core.lane import LaneSpec


def is_stale(job: Job, lane: LaneSpec, now: datetime) -> bool:
    """True when the claim is so old that its worker cannot be running any more."""
    return job.status is Status.PROCESSING and claimed_since(job) + timedelta(seconds=lane.claim_timeout_s) <= now


def claimed_since(job: Job) -> datetime:
    """When the present claim was made; a row from before that was noted was last written by its claim."""
    return job.claimed_at or job.updated_at


def others_gone_at(job: Job, lane: LaneSpec) -> datetime | None:
    """When the worker from which a person took the job back is certainly gone; until then it may begin to send, and
    nobody else does anything with the job. Any other worker writes the end of its claim itself, or is dead by then."""
    return None if job.taken_from is None else job.taken_from + timedelta(seconds=lane.claim_timeout_s)


def workers_gone_at(job: Job, lane: LaneSpec) -> datetime | None:
    """When every worker that has or had the job is certainly gone; None: nobody has it."""
    if job.status is Status.PROCESSING:
        return claimed_since(job) + timedelta(seconds=lane.claim_timeout_s)
    return others_gone_at(job, lane)
