"""Dismiss: an operator closes a failed job for good, with a reason."""

from __future__ import annotations

from collections.abc import Mapping

from shared.core import lifecycle
from shared.core.errors import BadInput, RowMoved, UnknownLane
from shared.core.job import Job, Status
from shared.core.lane import LaneSpec
from shared.core.ports import Clock, EffectStore, History, JobStore
from shared.usecases.persist import persist
from shared.usecases.steer import check_gone, note, reason_of


def dismiss(
    job_id: str,
    *,
    by: str,
    why: str,
    jobs: JobStore,
    effects: EffectStore,
    history: History,
    lanes: Mapping[str, LaneSpec],
    clock: Clock,
) -> Job:
    """Failed → canceled. Any other job is refused, and one whose outcome nobody knows must be resolved first."""
    reason = reason_of(why)
    job = persist(lambda: jobs.get(job_id), clock)
    if job is None:
        raise BadInput("job", f"{job_id} does not exist in this stage")
    if job.status is not Status.FAILED:
        raise BadInput("job", f"{job_id} is {job.status}; only a failed job can be dismissed")
    lane = lanes.get(job.lane)
    if lane is None:
        raise UnknownLane(job.lane, tuple(sorted(lanes)))
    check_gone(job, lane, clock.now())
    if any(row.open for row in persist(lambda: effects.of_job(job_id), clock)):
        raise BadInput("job", f"{job_id} has an effect nobody knows the end of: use `penstock jobs resolve` first")
    after = lifecycle.canceled(job, lane, by, clock.now())
    try:
        persist(lambda: jobs.move(job, after), clock)
    except RowMoved:
        raise BadInput("job", f"{job_id} changed meanwhile; look at it again") from None
    detail = {"was": job.category.value if job.category else "", "signature": job.signature or "", "why": reason}
    note(f"job/{job_id}", "dismiss", by, detail, history, clock)
    return after
