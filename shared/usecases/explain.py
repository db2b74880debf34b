"""Explain: why has this job not run, when will it, and where does it stand? The same admission, asked aloud."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from shared.core import lifecycle
from shared.core.admission import Verdict, View, admit
from shared.core.effects import EffectRow
from shared.core.job import Job, Status
from shared.core.message import QueueDepth
from shared.core.moment import iso


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Everything `penstock jobs why` says."""

    job: Job
    standing: str
    """One of waiting, in_queue, claimed, effect_open, ended."""
    since: datetime
    sentence: str
    verdict: Verdict
    earliest: datetime | None
    """When it can run at the earliest; None when that depends on a person or is over."""


def explain(job: Job, view: View, effects: list[EffectRow], depth: QueueDepth, now: datetime) -> Explanation:
    """Where the job stands and what every gate says."""
    verdict = admit(job, view, now)
    standing, since, sentence = _standing(job, view, effects, depth, now)
    blocked = verdict.blocked
    earliest: datetime | None = None
    if job.status is Status.QUEUED:
        if blocked is None:
            earliest = max(now, job.runnable_at)
        elif not blocked.stuck:
            earliest = blocked.retry_at
    return Explanation(job=job, standing=standing, since=since, sentence=sentence, verdict=verdict, earliest=earliest)


def _standing(
    job: Job, view: View, effects: list[EffectRow], depth: QueueDepth, now: datetime
) -> tuple[str, datetime, str]:
    open_rows = [row for row in effects if row.open]
    if job.status.ended:
        detail = f"{job.category}: {job.last_error}" if job.status is Status.FAILED else job.result or ""
        return (
            "ended",
            job.updated_at,
            f"ended {job.status} at {iso(job.updated_at)} ({detail})".replace(" ()", ""),
        )
    if open_rows:
        row = open_rows[0]
        return (
            "effect_open",
            row.intent_at,
            f"effect {row.name!r} is open at {row.vendor} since {iso(row.intent_at)}: its outcome is not yet known",
        )
    if job.status is Status.PROCESSING:
        return "claimed", *_claimed(job, view, now)
    if job.status is Status.BATCH_SUBMITTED:
        return "claimed", job.updated_at, f"in a provider's batch since {iso(job.updated_at)}"
    if job.waits:
        return "waiting", job.updated_at, f"waiting in the table ({job.blocked_by or _until(job, now)})"
    return (
        "in_queue",
        job.updated_at,
        f"in the queue since {iso(job.updated_at)}, about {depth.visible} ahead of it or beside it",
    )


def _until(job: Job, now: datetime) -> str:
    return f"not before {iso(job.runnable_at)}" if job.runnable_at > now else "due"


def _claimed(job: Job, view: View, now: datetime) -> tuple[datetime, str]:
    since = job.claimed_at or job.updated_at
    if lifecycle.is_stale(job, view.lane, now):
        return since, f"claimed since {iso(since)} by a worker that died; its message brings it back"
    return since, f"claimed since {iso(since)} by {job.claimed_by}"
