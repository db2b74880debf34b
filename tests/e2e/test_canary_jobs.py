"""A canary in every lane of the local stack: the sweeper gives one, and it goes the whole way like any other job."""

from __future__ import annotations

from shared.core.job import CANARY, ENGINE_TENANT, Job, Status
from tests.e2e.paths import LocalStage


def test_a_canary_comes_through_every_lane(stage: LocalStage) -> None:
    """Enqueued by the sweeper's run, ended by the lane's worker, with no effect and nothing in the content store."""
    stage.run("sweeper")
    lanes = sorted(name for name, lane in stage.lanes.items() if lane.has_canaries)
    canaries = [_newest(stage, lane) for lane in lanes]
    for job in stage.ended(*(job.job_id for job in canaries)):
        assert (job.status, job.result, job.payload_ref) == (Status.COMPLETED, CANARY, None)
        assert stage.effects.of_job(job.job_id) == []


def _newest(stage: LocalStage, lane: str) -> Job:
    mine = [job for job in stage.rows() if (job.lane, job.task, job.tenant) == (lane, CANARY, ENGINE_TENANT)]
    return max(mine, key=lambda job: job.created_at)
