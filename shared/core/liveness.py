"""Liveness: since when a claim stands, and until when a worker may be at work under it."""

from __future__ import annotations

from datetime import datetime, timedelta

from shared.core.job import KEPT_MOVES, Job, Status
from shared.core.lane import LaneSpec


def is_stale(job: Job, lane: LaneSpec, now: datetime) -> bool:
    """True when the claim is so old that its worker cannot be running any more."""
    return job.status is Status.PROCESSING and claimed_since(job) + timedelta(seconds=lane.claim_timeout_s) <= now


def claimed_since(job: Job) -> datetime:
    """When the present claim was made; a row from before that was noted was last written by its claim."""
    return job.claimed_at or job.updated_at


def workers_gone_at(job: Job, lane: LaneSpec) -> datetime | None:
    """When every worker that may have had the job is certainly gone; until then one may still begin to send.

    None: only the one that has it now may be at work, or nobody. A worker writes the end of its claim itself, or is
    dead; only who was taken back from by a person may still run. A history that has lost its beginning may have lost
    such a step.
    """
    lasts = timedelta(seconds=lane.claim_timeout_s)
    gone = job.moves[0].at + lasts if len(job.moves) >= KEPT_MOVES else None
    claimed = None
    for step in job.moves:
        if step.reason == "claim":
            claimed = step.at
        elif step.reason == "reset":
            gone = (claimed or step.at) + lasts
    if job.status is Status.PROCESSING:
        gone = claimed_since(job) + lasts
    return gone
