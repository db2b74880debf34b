"""A native redrive beside live traffic, on virtual time: at its rate, each dead letter replayed once, others served."""

from __future__ import annotations

import pytest

from shared.core.job import Status
from shared.core.native import MoveState
from tests.simulation.test_redrive import JOB_S, Traffic
from tests.unit.usecases.native import Native

DEAD, RATE = 600, 5


class NativeTraffic(Traffic, Native):
    """Twenty slots, eight live jobs a second, and SQS moving dead letters beside them."""

    def live(self, seconds: float) -> None:
        self.moves.catch_up()
        Traffic.live(self, seconds)
        self.moves.catch_up()


@pytest.mark.req("C10")
@pytest.mark.fault("F5")
def test_live_traffic_goes_on_beside_a_native_redrive() -> None:
    """Six hundred letters at five a second on a lane that is 40 % busy: each job replayed once, none left behind, and
    the p99 of the live jobs' wait is two jobs' time at most."""
    traffic = NativeTraffic(7)
    first, *ids = traffic.plant(DEAD + 1)
    traffic.live(5)
    traffic.pin()
    canary = traffic.started(job_id=first)
    while traffic.progress(canary).ended is None:
        traffic.tick()
    for _ in range(20):
        traffic.triage().run(traffic.lane, limit=1000)
        traffic.clock.advance(60)
    plan, began = traffic.started_native(rate=RATE), traffic.clock.now()
    # Those who would have come while people planned are left out: the redrive is measured, not their burst.
    traffic.next_at, before = began, len(traffic.waits)
    while traffic.progress(plan).ended is None:
        traffic.tick(run_s=50)
        assert (traffic.clock.now() - began).total_seconds() < 4 * DEAD / RATE
    assert traffic.ending(plan) == ("finished", "")
    assert {(traffic.job(one).status, traffic.job(one).replay_count) for one in ids} == {(Status.COMPLETED, 1)}
    waits = sorted(traffic.waits[before:])
    assert waits[int(len(waits) * 0.99)] <= 2 * JOB_S
    (task,) = traffic.moves.of("support")
    assert (task.state, task.moved) == (MoveState.COMPLETED, DEAD)
    assert traffic.dead_letters.depth("support").total == 0
