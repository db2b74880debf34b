"""Count what waits: a level for the dashboard, of bounded cost."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from shared.adapters.memory.telemetry import MemoryTelemetry
from shared.contract import metrics
from shared.usecases.count_waiting import AT_MOST, count_waiting
from tests.builders import a_job, a_lane, an_account
from tests.unit.usecases.desk import Desk


@pytest.mark.req("X9")
def test_what_waits_is_counted_whenever_its_time_is() -> None:
    """Due, deferred and far away alike; what is in the queue or ended does not wait."""
    desk = Desk(account=an_account())
    now = desk.clock.now()
    for n, wait_s in enumerate((-60, 0, 30, 10**8)):
        at = now + timedelta(seconds=wait_s)
        desk.put(a_job(key=f"{n}", due=at, not_before_at=at, priority=n))
    desk.put(a_job(key="in-the-queue"))
    telemetry = MemoryTelemetry()
    count_waiting(desk.lanes.values(), jobs=desk.jobs, clock=desk.clock, telemetry=telemetry)
    assert telemetry.counts == {(metrics.WAITING, "support"): 4}


def test_a_lane_without_an_account_is_not_asked() -> None:
    """Nor one whose jobs are found by its ring; and no look is longer than its bound."""
    asked: list[int] = []

    class Jobs:
        def waiting(self, lane: object, *, due_before: object, limit: int) -> list[Any]:
            asked.append(limit)
            return []

    lanes = [a_lane(), a_lane(name="mail", accounts=("desk_account",), admission="fair"), a_lane(accounts=("a",))]
    jobs: Any = Jobs()
    count_waiting(lanes, jobs=jobs, clock=Desk().clock, telemetry=MemoryTelemetry())
    assert asked == [AT_MOST]
