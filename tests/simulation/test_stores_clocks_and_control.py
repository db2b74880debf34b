"""Stores that throttle and lag, clocks that disagree, switches that close, rows of another version."""

from __future__ import annotations

import random
from datetime import timedelta

import pytest

from shared.adapters import rows
from shared.adapters.memory.faults import Boundary, Fault, Injection
from shared.adapters.memory.vendor import Says
from shared.core.job import Category, Status
from shared.core.message import message_of
from shared.core.switches import Level
from tests.builders import a_job, a_lane, a_switch
from tests.crash.explore import every_fault, execute
from tests.crash.walks import SEND_PATHS
from tests.judge import illegal_steps
from tests.simulation.chance import Chance
from tests.simulation.plans import Rule, always, every_write_loses_its_answer, once
from tests.vendors_and_tasks import TASKS, VendorKind, a_vendor
from tests.world import World

pytestmark = pytest.mark.simulation

TASK_NAMES = tuple(sorted(TASKS))


@pytest.mark.fault("C1")
@pytest.mark.parametrize("kind", list(VendorKind))
def test_stores_that_refuse_every_other_call_only_delay(kind: VendorKind) -> None:
    """Every call fails with probability one half for ten minutes: nothing twice, everything ends."""
    plan = Chance(random.Random(1), {Fault.THROTTLE: 0.5})
    world = World(vendor=kind, plan=plan)
    for number in range(12):
        world.enqueue(key=f"event-{number}")
    world.later(600, lambda: setattr(plan, "on", False))
    assert world.run_until_quiet()
    verdict = world.verdict()
    assert not verdict.duplicates
    assert not verdict.lost
    if kind is VendorKind.DEDUPES:
        assert verdict.states == {"completed": 12}


@pytest.mark.fault("C3")
@pytest.mark.parametrize("says", [(), (Says.REFUSE_RATE,), (Says.REFUSE_PERMANENT,)])
def test_the_end_is_the_same_when_every_write_loses_its_answer(says: tuple[Says, ...]) -> None:
    """Every write of every process is applied and not answered, and asked for again: the same row in the end."""
    ends = []
    for plan in (None, every_write_loses_its_answer()):
        world = World(vendor=lambda clock: a_vendor(VendorKind.NEITHER, clock, script=says), plan=plan)
        job_id = world.enqueue()
        assert world.run_until_quiet()
        job = world.job(job_id)
        steps = [(move.to, move.reason) for move in job.moves]
        ends.append((job.status, job.category, job.attempt_count, job.fence, steps, len(world.vendor.accepts)))
    assert ends[0] == ends[1]


@pytest.mark.fault("C4")
@pytest.mark.parametrize("lag_s", [20, 60, 90])
def test_an_index_that_lags_makes_no_wrong_move(lag_s: int) -> None:
    """The dispatcher is nominated jobs that have moved on: it looks again, and sends none of them twice."""
    world = World(
        lane=a_lane(tasks=TASK_NAMES, batch_size=10),
        vendor=lambda clock: a_vendor(VendorKind.NEITHER, clock, script=[Says.REFUSE_RATE] * 40, rate_retry_s=5.0),
        index_lag_s=lag_s,
    )
    for number in range(20):
        world.enqueue(key=f"event-{number}")
    assert world.run_until_quiet()
    assert world.verdict().states == {"completed": 20}
    assert not world.verdict().duplicates
    assert list(illegal_steps(world.jobs.stream.since(0, 10**6))) == []
    stale = sum(int(event.ids["stale_nominations"] or 0) for event in world.telemetry.named("dispatched"))
    assert stale or lag_s < 90, "no stale nomination was met: the test proves nothing"


@pytest.mark.fault("D4")
@pytest.mark.parametrize("skew_s", [30, -30])
def test_clocks_that_disagree_by_a_minute_double_nothing(skew_s: int) -> None:
    """One worker half a minute early, the next half a minute late, and any fault on the way: at most one send."""
    skew = {"w1": skew_s, "w2": -skew_s, "w3": skew_s}
    for kind in VendorKind:
        recorded = execute(SEND_PATHS[0], kind, {}, skew_s=skew)
        for boundary in recorded.trace:
            for injection in every_fault(boundary):
                execution = execute(SEND_PATHS[0], kind, {boundary: injection}, skew_s=skew)
                assert not execution.verdict.duplicates, str(execution)
                assert not execution.verdict.lost, str(execution)


@pytest.mark.req("C2")
@pytest.mark.fault("E6")
@pytest.mark.parametrize("scope", ["all", "lane/support", "vendor/helpdesk", "tenant/support/tenant-1"])
def test_a_switch_that_closes_between_claim_and_intent_is_seen(scope: str) -> None:
    """Halted while the task reads its text: nothing is begun, the job is held with its reason, opened it is sent."""
    lane = a_lane(tasks=TASK_NAMES, function_timeout_s=60, visibility_s=400, job_timeout_s=30)
    world = World(lane=lane, vendor=VendorKind.NEITHER, plan=once(Fault.FREEZE, "w1", "content", "get", seconds=10))
    job_id = world.enqueue()
    world.later(3, lambda: world.control.set_switch(a_switch(scope, Level.HALT)))
    world.run_for(1800)
    assert world.vendor.requests == 0
    assert world.effects.of_job(job_id) == []
    job = world.job(job_id)
    assert (job.status, job.blocked_by, job.attempt_count) == (Status.QUEUED, f"switches:{scope}", 0)
    world.control.set_switch(a_switch(scope, Level.NORMAL))
    assert world.run_until_quiet()
    assert world.job(job_id).status is Status.COMPLETED


@pytest.mark.req("C2")
@pytest.mark.parametrize("level", [Level.NO_NEW_STARTS, Level.DRAIN, Level.HALT])
def test_a_closed_switch_holds_and_never_drops(level: Level) -> None:
    """Closed before, during or after enqueue: nothing is sent meanwhile, everything once it opens."""
    world = World(vendor=VendorKind.NEITHER)
    world.later(30, lambda: world.control.set_switch(a_switch("all", level)))
    for number in range(10):
        world.enqueue(key=f"event-{number}", at_s=number * 10)
    world.run_for(3600)
    sent = len(world.vendor.accepts)
    assert sent <= 5
    assert world.dead_letters.depth("support").total == 0
    world.control.set_switch(a_switch("all", Level.NORMAL))
    assert world.run_until_quiet()
    assert world.verdict().states == {"completed": 10}
    assert not world.verdict().duplicates


@pytest.mark.req("C2")
def test_route_only_withholds_what_customers_see_and_nothing_else() -> None:
    """The job ends, marked as withheld; its effect was not made and is not made later."""
    world = World(vendor=VendorKind.NEITHER)
    world.control.set_switch(a_switch("all", Level.ROUTE_ONLY))
    job_id = world.enqueue()
    assert world.run_until_quiet()
    assert world.job(job_id).result == "withheld"
    world.control.set_switch(a_switch("all", Level.NORMAL))
    assert world.run_until_quiet()
    assert world.vendor.requests == 0


@pytest.mark.fault("E3")
def test_an_unreadable_control_table_stops_sends_and_fails_nothing() -> None:
    """A cached value counts for a minute; then no send for the rest of ten minutes, no death, no attempt used."""
    lane = a_lane(tasks=TASK_NAMES, visibility_s=400)
    world = World(lane=lane, vendor=VendorKind.NEITHER)
    start = world.clock.now()
    dark, light = start + timedelta(seconds=5), start + timedelta(seconds=605)
    world.faults.plan = always(
        Fault.THROTTLE, "control", "switches", until=lambda: not dark <= world.clock.now() < light
    )
    for number in range(60):
        world.enqueue(key=f"event-{number}", at_s=number * 10)
    assert world.run_until_quiet()
    during = [accept for accept in world.vendor.accepts if dark + timedelta(seconds=60) < accept.at < light]
    assert during == []
    assert world.dead_letters.depth("support").total == 0
    verdict = world.verdict()
    assert verdict.states == {"completed": 60}
    assert not verdict.duplicates
    assert {world.job(job_id).attempt_count for job_id in world.requests} == {0}


@pytest.mark.fault("K1")
def test_a_row_of_another_version_is_left_alone() -> None:
    """A status this version does not know: not claimed, not moved, not failed, its message kept, the audit says so."""
    world = World(vendor=VendorKind.NEITHER)
    known = a_job(due=world.clock.now(), not_before_at=world.clock.now())
    item = rows.job_item(known, rows.lane_wpk(known, world.lane)) | {"status": {"S": "paused"}}
    world.jobs.plant(item)
    neighbour = world.enqueue(key="neighbour")
    world.queues.send([message_of(known)])
    world.run_for(14 * world.lane.visibility_s)
    assert world.jobs.item(known.job_id) == item
    assert world.job(neighbour).status is Status.COMPLETED
    assert world.vendor.requests == 1
    assert world.dead_letters.job_ids("support") == [known.job_id]
    process = world.idle("auditor")
    assert process is not None
    found = [finding.fault.name for finding in process.auditor().run(repair=True).findings]
    assert found == ["UNREADABLE"]
    assert world.jobs.item(known.job_id) == item


@pytest.mark.fault("K1")
def test_a_move_keeps_what_it_does_not_know() -> None:
    """An attribute a newer version wrote is still there after this version has run the job."""
    world = World(vendor=VendorKind.NEITHER)
    job = a_job()
    world.jobs.plant(rows.job_item(job) | {"colour": {"S": "blue"}})
    assert world.run_until_quiet()
    assert world.job(job.job_id).status is Status.COMPLETED
    assert (world.jobs.item(job.job_id) or {})["colour"] == {"S": "blue"}


@pytest.mark.req("R11")
def test_a_job_deferred_for_longer_than_the_lane_allows_fails() -> None:
    """A vendor that says 429 for a whole day: the job ends as exhausted, without an attempt, without a send."""
    lane = a_lane(tasks=TASK_NAMES, max_wait_s=3600)
    world = World(
        lane=lane,
        vendor=lambda clock: a_vendor(VendorKind.NEITHER, clock, script=[Says.REFUSE_RATE] * 500, rate_retry_s=60.0),
    )
    job_id = world.enqueue()
    assert world.run_until_quiet()
    job = world.job(job_id)
    assert (job.status, job.category, job.attempt_count) == (Status.FAILED, Category.RETRIES_EXHAUSTED, 0)
    assert world.vendor.accepts == []


def test_a_crashed_process_runs_no_further_line() -> None:
    """A crash passes every handler, and a dead process reaches no port, not even from a `finally`."""
    world = World(plan=Rule(lambda boundary: _crash(boundary)))
    world.enqueue()
    assert world.run_until_quiet()
    after = world.faults.trace.index(Boundary("w1", "vendor", "perform", 1))
    following = [boundary for boundary in world.faults.trace[after + 1 :] if boundary.worker == "w1"]
    assert following[0].method == "receive"


def _crash(boundary: Boundary) -> Injection | None:
    return Injection(Fault.CRASH_BEFORE) if boundary == Boundary("w1", "vendor", "perform", 1) else None
