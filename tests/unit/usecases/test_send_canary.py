"""A canary: one job a slot and lane, through the whole walk, and told when it does not come through."""

from __future__ import annotations

from datetime import timedelta

import pytest

from shared.contract import metrics
from shared.core import lifecycle
from shared.core.errors import BadInput
from shared.core.job import CANARY, ENGINE_TENANT, Category, Status
from shared.core.switches import Level
from shared.usecases.send_canary import send_canary
from tests.builders import a_lane
from tests.unit.usecases.redriving import RedriveDesk

PERIOD_S = 300


def send(desk: RedriveDesk) -> str | None:
    return send_canary(desk.lane, period_s=PERIOD_S, jobs=desk.jobs, clock=desk.clock, telemetry=desk.telemetry)


def metered(desk: RedriveDesk) -> tuple[float, float]:
    """Age and missed, as they were metered since the last time."""
    counts = desk.telemetry.counts
    return counts.pop((metrics.CANARY_AGE, "support"), -1), counts.pop((metrics.CANARY_MISSED, "support"), -1)


def test_a_canary_goes_the_way_of_every_job() -> None:
    """Stream, admission, queue, worker, end; no effect, no payload, and its row is kept for a day."""
    desk = RedriveDesk()
    job_id = send(desk)
    assert job_id is not None
    assert send(desk) == job_id
    assert metered(desk) == (0, 0)
    desk.go_on()
    job = desk.job(job_id)
    assert (job.status, job.result, job.task, job.tenant) == (Status.COMPLETED, CANARY, CANARY, ENGINE_TENANT)
    assert (job.payload_ref, desk.rows(job_id), desk.vendor.accepts) == (None, [], [])
    assert job.expires_at == job.completed_at + timedelta(days=1)  # type: ignore[operator]
    desk.clock.advance(PERIOD_S)
    second = send(desk)
    assert second not in (None, job_id)
    assert metered(desk) == (0, 0)


def test_a_late_canary_is_told_and_no_other_is_sent() -> None:
    """Its age grows with every look; when it has ended the next one goes."""
    desk = RedriveDesk()
    job_id = send(desk)
    metered(desk)
    for looks in (1, 2):
        desk.clock.advance(PERIOD_S)
        assert send(desk) is None
        assert metered(desk) == (looks * PERIOD_S, 1)
    desk.go_on()
    desk.clock.advance(PERIOD_S)
    assert send(desk) not in (None, job_id)
    assert metered(desk) == (2 * PERIOD_S, 0)


def test_a_canary_that_is_stuck_stays_late() -> None:
    """For hours: its age grows on, and no new one makes the lane look well."""
    desk = RedriveDesk()
    send(desk)
    metered(desk)
    for looks in range(1, 40):
        desk.clock.advance(PERIOD_S)
        assert send(desk) is None
        assert metered(desk) == (looks * PERIOD_S, 1)


def test_a_failed_canary_is_missed() -> None:
    """It is a dead letter like any other, and the next one goes."""
    desk = RedriveDesk()
    job = desk.job(send(desk) or "")
    metered(desk)
    died = lifecycle.failed_unclaimed(job, desk.lane, desk.clock.now(), Category.INFRASTRUCTURE, "receives")
    desk.jobs.move(job, died)
    desk.clock.advance(PERIOD_S)
    assert send(desk) is not None
    assert metered(desk) == (0, 1)


def test_a_canary_that_a_switch_holds_is_not_late() -> None:
    """It waits with everybody else, and that is told as held."""
    desk = RedriveDesk()
    desk.close(level=Level.NO_NEW_STARTS)
    send(desk)
    metered(desk)
    desk.go_on()
    desk.clock.advance(PERIOD_S)
    assert send(desk) is None
    assert metered(desk) == (0, 0)
    assert desk.telemetry.named("canary_held")


def test_the_canarys_name_is_the_engines() -> None:
    """No lane lists it, no producer asks for it; lanes that are run by the clock send none."""
    with pytest.raises(BadInput, match="names canary, which every lane has already"):
        a_lane(tasks=("canary",))
    desk = RedriveDesk()
    with pytest.raises(BadInput, match="is not one of lane support's"):
        desk.enqueue(task=CANARY)
    assert desk.lane.has_canaries
