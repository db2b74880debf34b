"""Queues and streams: receives that burn, messages that are lost or doubled, a consumer that is away."""

from __future__ import annotations

from datetime import timedelta

import pytest

from shared.adapters.attributes import Item
from shared.adapters.memory.faults import Fault
from shared.adapters.memory.vendor import Says
from shared.contract import envelope, metrics
from shared.core.job import Category, Status
from shared.core.message import Message
from tests.builders import a_job, a_lane
from tests.simulation.plans import Rule, always, once
from tests.vendors_and_tasks import TASKS, VendorKind, a_vendor
from tests.world import World

pytestmark = pytest.mark.simulation

TASK_NAMES = tuple(sorted(TASKS))


def _throttle(world: World, receives: int) -> None:
    """Receives that reach no worker: the platform had no room for it."""
    for _ in range(receives):
        world.queues.receive(world.lane.name)
        world.clock.advance(world.lane.visibility_s)


@pytest.mark.fault("B2")
def test_a_message_that_died_of_throttling_is_labelled_infrastructure() -> None:
    """Ten receives and no claim: the platform failed, not the job; its dead letter stands for it."""
    world = World()
    job_id = world.enqueue()
    world.run_until_sent()
    _throttle(world, 10)
    assert world.run_until_quiet()
    job = world.job(job_id)
    assert (job.status, job.category, job.attempt_count) == (Status.FAILED, Category.INFRASTRUCTURE, 0)
    assert world.dead_letters.job_ids("support") == [job_id]
    assert world.vendor.requests == 0


@pytest.mark.fault("B2")
def test_receives_burnt_by_throttling_do_not_make_a_job_poison() -> None:
    """Nine receives without a worker, then one: a job that was never claimed did not cause them, so it runs."""
    world = World()
    job_id = world.enqueue()
    world.run_until_sent()
    _throttle(world, 9)
    assert world.run_until_quiet()
    assert world.job(job_id).status is Status.COMPLETED


@pytest.mark.req("R11")
@pytest.mark.fault("B3")
def test_a_thousand_deferrals_burn_no_receive() -> None:
    """A vendor that says 429 a thousand times: every message is received once, none dies, no attempt is used."""
    lane = a_lane(tasks=TASK_NAMES, batch_size=10, max_wait_s=10**7)
    world = World(
        lane=lane,
        vendor=lambda clock: a_vendor(VendorKind.NEITHER, clock, script=[Says.REFUSE_RATE] * 1000, rate_retry_s=50.0),
    )
    jobs = [world.enqueue(key=f"event-{number}") for number in range(40)]
    assert world.run_until_quiet(max_virtual=48 * 3600)
    assert world.vendor.requests == 1000 + len(jobs)
    assert world.queues.most_receives == 1
    assert world.dead_letters.depth("support").total == 0
    assert {world.job(job).status for job in jobs} == {Status.COMPLETED}
    assert {world.job(job).attempt_count for job in jobs} == {0}
    assert not world.verdict().duplicates


@pytest.mark.fault("B6")
def test_the_one_refused_entry_of_a_batch_waits_and_is_sent_again() -> None:
    """Entry three of ten is refused: exactly it stands in the index, and it runs with the next dispatch."""
    world = World(plan=Rule(lambda boundary: None))
    for number in range(10):
        world.enqueue(key=f"event-{number}")
    send = world.queues.send
    refused: list[Message] = []

    def refuse_the_third(messages: list[Message]) -> list[Message]:
        if len(messages) < 10 or refused:
            return send(messages)
        refused.append(messages[2])
        send([*messages[:2], *messages[3:]])
        return [messages[2]]

    world.queues.send = refuse_the_third  # type: ignore[method-assign,assignment]
    world.workers_on = False
    world.run_for(1)
    waiting = [job for job in world.jobs.scan() if not isinstance(job, Exception) and job.waits]
    assert [job.job_id for job in waiting] == [refused[0].job_id]
    assert waiting[0].blocked_by == "send:support"
    world.workers_on = True
    assert world.run_until_quiet()
    assert world.verdict().states == {"completed": 10}


@pytest.mark.fault("B7")
@pytest.mark.parametrize(("sender", "says", "received"), [("stream1", (), 2), ("dispatcher1", (Says.REFUSE_RATE,), 3)])
def test_a_send_that_was_applied_and_not_answered_is_one_message_more_and_no_send_more(
    sender: str, says: tuple[Says, ...], received: int
) -> None:
    """Both senders send again when they hear nothing; the claim meets the second message."""
    world = World(
        vendor=lambda clock: a_vendor(VendorKind.NEITHER, clock, script=says),
        plan=once(Fault.APPLIED_BUT_ERROR, sender, "queues", "send"),
    )
    job_id = world.enqueue()
    assert world.run_until_quiet()
    assert world.job(job_id).status is Status.COMPLETED
    assert len(world.vendor.accepts) == 1
    assert world.queues.receives[job_id] == received


@pytest.mark.req("R14")
@pytest.mark.fault("B8")
@pytest.mark.parametrize("fault", [Fault.CRASH_BEFORE, Fault.OUTAGE])
def test_a_row_whose_message_was_never_sent_is_sent_by_the_stream_again(fault: Fault) -> None:
    """The consumer dies, or SQS is away, before the message: the batch comes again."""
    world = World(plan=once(fault, "stream1", "queues", "send"))
    job_id = world.enqueue()
    assert world.run_until_quiet(max_virtual=60)
    assert world.job(job_id).status is Status.COMPLETED


@pytest.mark.fault("B8")
def test_a_message_that_got_lost_is_found_by_the_auditor() -> None:
    """Nothing but the audit can find it: the job runs within an hour and one audit period."""
    world = World()
    job_id = world.enqueue()
    world.run_until_sent()
    for received in world.queues.receive("support"):
        world.queues.delete("support", received.receipt)
    assert world.run_until_quiet(max_virtual=2 * 3600)
    assert world.job(job_id).status is Status.COMPLETED
    assert world.telemetry.total(metrics.REPAIRED) == 1


@pytest.mark.fault("B8")
@pytest.mark.parametrize("fault", [Fault.CRASH_BEFORE, Fault.CRASH_AFTER])
def test_a_dispatcher_that_dies_around_its_send_strands_no_job(fault: Fault) -> None:
    """The job leaves the index after its message is sent, so the next run brings it back."""
    world = World(plan=once(fault, "dispatcher1", "queues", "send"))
    job_id = world.enqueue(not_before=world.clock.now() + timedelta(seconds=90))
    assert world.run_until_quiet(max_virtual=90 + world.lane.visibility_s + 2 * 75)
    assert world.job(job_id).status is Status.COMPLETED


@pytest.mark.fault("B12")
def test_every_job_runs_although_the_consumer_was_away_for_thirty_hours() -> None:
    """The stream forgets after a day; the auditor reads the table and misses none."""
    world = World(lane=a_lane(tasks=TASK_NAMES, batch_size=10))
    world.stream_on = False
    for number in range(60):
        world.enqueue(key=f"event-{number}", at_s=number * 1800)
    world.later(30 * 3600, lambda: setattr(world, "stream_on", True))
    assert world.run_until_quiet(max_virtual=40 * 3600)
    verdict = world.verdict()
    assert verdict.states == {"completed": 60}
    assert not verdict.duplicates


@pytest.mark.fault("B12")
@pytest.mark.parametrize(
    "poison",
    [
        {"status": {"S": "queued"}},
        {"status": {"S": "queued"}, "lane": {"N": "1"}},
        {"status": {"S": "failed"}, "created_at": {"S": "yesterday"}},
    ],
)
def test_a_poisonous_stream_record_does_not_hold_up_its_neighbours(poison: Item) -> None:
    """A row nobody can read is isolated and counted; the jobs around it run in the same second."""
    world = World()
    before, after = world.enqueue(key="before"), world.enqueue(key="after", at_s=0.001)
    world.later(0.0005, lambda: world.jobs.plant({"pk": {"S": "JOB#odd"}, **poison}))
    world.run_for(1)
    assert world.job(before).status is Status.COMPLETED
    assert world.job(after).status is Status.COMPLETED
    assert world.telemetry.total(metrics.STREAM_ERRORS) == 1


@pytest.mark.fault("B12")
def test_a_job_of_a_lane_that_is_not_configured_is_isolated() -> None:
    """It fails as poison, its neighbours run, and nobody sends it anywhere."""
    world = World()
    stray = a_job(lane="nowhere")
    world.jobs.put(stray)
    job_id = world.enqueue()
    world.run_for(1)
    assert world.job(stray.job_id).category is Category.POISON
    assert world.job(job_id).status is Status.COMPLETED


def test_bytes_of_strangers_end_in_quarantine_and_not_in_the_way() -> None:
    """An unreadable message dies by its receives; triage keeps its bytes and writes a row for an operator."""
    world = World()
    world.queues.add("support", "not json at all")
    job_id = world.enqueue()
    world.run_for(12 * world.lane.visibility_s)
    assert world.job(job_id).status is Status.COMPLETED
    kept = [job for job in world.jobs.scan() if not isinstance(job, Exception) and job.tenant == "quarantine"]
    assert [(job.status, job.category) for job in kept] == [(Status.FAILED, Category.MALFORMED)]
    assert world.content.get(kept[0].payload_ref or "") == b"not json at all"


def test_a_letter_under_triage_is_not_taken_for_a_missing_one() -> None:
    """An audit in the very minute of a triage sees few letters, since triage holds them: it must not write more."""
    world = World(vendor=lambda clock: a_vendor(VendorKind.DEDUPES, clock, script=[Says.REFUSE_PERMANENT] * 3))
    for number in range(3):
        world.enqueue(key=f"event-{number}")
    assert world.run_until_quiet()
    for hour in range(1, 4):
        world.clock.advance_to(world.clock.now().replace(hour=hour, minute=0, second=0))
        for role in ("triage", "auditor"):
            process = world.idle(role)
            assert process is not None
            process.scheduled()
    assert len(world.dead_letters.job_ids("support")) == 3


def test_a_dead_letter_that_got_lost_is_sent_again_by_the_auditor() -> None:
    """A failed job without its letter is found by the next audit and has one again."""
    world = World(vendor=lambda clock: a_vendor(VendorKind.DEDUPES, clock, script=[Says.REFUSE_PERMANENT]))
    job_id = world.enqueue()
    assert world.run_until_quiet()
    for letter in world.dead_letters.receive("support", limit=10, hide_s=0):
        world.dead_letters.delete("support", letter.receipt)
    world.clock.advance(3600)
    process = world.idle("auditor")
    assert process is not None
    process.scheduled()
    assert world.dead_letters.job_ids("support") == [job_id]


@pytest.mark.req("R14")
def test_a_console_redrive_of_a_failed_job_sends_nothing() -> None:
    """A message that comes back for a job that failed is acknowledged: only an approved plan may release it."""
    world = World(vendor=lambda clock: a_vendor(VendorKind.NEITHER, clock, script=[Says.REFUSE_PERMANENT]))
    job_id = world.enqueue()
    assert world.run_until_quiet()
    world.queues.add("support", envelope.encode_ticket(job_id, "support"))
    assert world.run_until_quiet()
    assert world.vendor.requests == 1
    assert world.job(job_id).status is Status.FAILED


def test_a_queue_that_refuses_for_minutes_only_delays() -> None:
    """Sends are throttled for minutes: the consumer's batch comes again, every job is completed once."""
    world = World()
    start = world.clock.now()
    over = start + timedelta(minutes=5)
    world.faults.plan = always(Fault.THROTTLE, "queues", "send", until=lambda: world.clock.now() >= over)
    for number in range(5):
        world.enqueue(key=f"event-{number}")
    assert world.run_until_quiet()
    assert world.verdict().states == {"completed": 5}
