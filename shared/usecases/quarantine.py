"""Quarantine: what cannot be read is kept, in the content store, with a failed row an operator finds."""

from __future__ import annotations

import hashlib

from shared.contract import metrics
from shared.core import lifecycle
from shared.core.job import NAMESPACE, Category, Job, Move, Status, derived_id
from shared.core.lane import LaneSpec
from shared.core.ports import Clock, ContentStore, JobStore, Telemetry
from shared.usecases.persist import persist

TENANT = "quarantine"
TASK = "unreadable"


def quarantine(
    body: str,
    problem: str,
    *,
    lane: LaneSpec,
    jobs: JobStore,
    content: ContentStore,
    clock: Clock,
    telemetry: Telemetry,
) -> Job:
    """Keep `body` and write its row; the same bytes twice are one row. `problem` is a code, not text."""
    data = body.encode(errors="surrogatepass")
    digest = hashlib.sha256(data).hexdigest()[:32]
    ref = f"quarantine/{lane.name}/{digest}"
    persist(lambda: content.put(ref, data), clock)
    now = clock.now()
    job = Job(
        job_id=str(derived_id(NAMESPACE, TENANT, lane.name, digest)),
        lane=lane.name,
        tenant=TENANT,
        task=TASK,
        key=digest,
        created_at=now,
        updated_at=now,
        payload_ref=ref,
        payload_hash=digest,
        moves=(Move(at=now, to=Status.QUEUED, reason="quarantined"),),
    )
    kept = lifecycle.failed_unclaimed(job, lane, now, Category.MALFORMED, problem)
    existing = persist(lambda: jobs.put(kept), clock)
    telemetry.event("quarantined", job_id=kept.job_id, lane=lane.name, problem=problem)
    telemetry.count(metrics.QUARANTINED, lane=lane.name)
    return existing or kept
