"""Admit: each change on its own; sent, held with a reason, or its dead letter written."""

from __future__ import annotations

from datetime import timedelta

import pytest

from shared.adapters.memory.queues import MemoryLaneQueues
from shared.contract import metrics
from shared.core.errors import Unavailable, UnreadableRow
from shared.core.job import Category, Job, Status
from shared.core.message import Message
from shared.core.switches import Level
from tests.builders import NOW, a_job
from tests.unit.usecases.desk import Desk, Flaky


@pytest.fixture
def desk() -> Desk:
    return Desk()


def jobs(count: int) -> list[Job]:
    return [a_job(key=f"event-{n}") for n in range(count)]


def test_a_job_whose_gates_are_open_is_sent(desk: Desk) -> None:
    """One message; the row is not touched, so the open path costs no write here."""
    job = desk.put(a_job())
    before = desk.jobs.item(job.job_id)
    done = desk.admit(job)
    assert (done.sent, done.held) == (1, 0)
    assert desk.queued_messages() == [job.job_id]
    assert desk.jobs.item(job.job_id) == before
    assert desk.telemetry.counts[metrics.ADMITTED, "support"] == 1


@pytest.mark.req("F9")
@pytest.mark.parametrize("level", [Level.NO_NEW_STARTS, Level.DRAIN, Level.HALT])
def test_a_closed_switch_holds_with_its_reason(desk: Desk, level: Level) -> None:
    """Held in the waiting index under the switch's scope; nothing is sent, nothing is dropped."""
    desk.close("lane/support", level)
    job = desk.put(a_job())
    done = desk.admit(job)
    after = desk.job(job.job_id)
    assert (done.sent, done.held, desk.queued_messages()) == (0, 1, [])
    assert (after.status, after.blocked_by, after.due) == (Status.QUEUED, "switches:lane/support", NOW)
    assert after.attempt_count == 0


def test_route_only_does_not_hold(desk: Desk) -> None:
    """A job that may not reply is still routed."""
    desk.close("all", Level.ROUTE_ONLY)
    assert desk.admit(desk.put(a_job())).sent == 1


@pytest.mark.req("F9")
def test_what_is_over_the_window_waits_in_the_table() -> None:
    """The queue is filled to its window and no further, within one batch too; the rest says capacity."""
    desk = Desk(baseline=2, parallel=1, queue_window_s=5, expected_job_s=2.0)
    assert desk.lane.queue_limit == 5
    for job in jobs(8):
        desk.put(job)
    done = desk.admit(*jobs(8))
    assert (done.sent, done.held) == (5, 3)
    held = [desk.job(job.job_id) for job in jobs(8)[5:]]
    assert {(job.blocked_by, job.waits) for job in held} == {("capacity:support", True)}


def test_a_job_that_waits_already_is_passed_over(desk: Desk) -> None:
    """The dispatcher brings it when it is due; one sender per job and time."""
    waiting = desk.put(a_job(due=NOW + timedelta(hours=1), not_before_at=NOW + timedelta(hours=1)))
    assert desk.admit(waiting).skipped == 1
    assert desk.queued_messages() == []


@pytest.mark.parametrize(
    "status", [Status.PROCESSING, Status.COMPLETED, Status.CANCELED, Status.BATCH_SUBMITTED], ids=str
)
def test_other_states_are_none_of_admissions_business(desk: Desk, status: Status) -> None:
    """Only queued and failed jobs need anything."""
    assert desk.admit(desk.put(a_job(status=status))).skipped == 1
    assert desk.queued_messages() == []


@pytest.mark.req("C8")
@pytest.mark.parametrize("category", list(Category))
def test_a_failed_job_gets_its_dead_letter(desk: Desk, category: Category) -> None:
    """Whoever failed it only wrote the row; the letter carries id, category, signature and time."""
    job = desk.put(a_job(status=Status.FAILED, category=category, signature="x#"))
    done = desk.admit(job)
    (letter,) = desk.dead_letters.receive("support", limit=10, hide_s=1)
    assert (done.dead_letters, letter.job_id) == (1, job.job_id)
    assert f'"category":"{category}"' in letter.body
    assert '"signature":"x#"' in letter.body


@pytest.mark.fault("B12")
def test_a_bad_record_never_holds_up_its_neighbours(desk: Desk) -> None:
    """An unreadable row, a job of an unknown lane and a failed one in the middle: the others pass."""
    first, second = desk.put(a_job(key="a")), desk.put(a_job(key="b"))
    stranger = desk.put(a_job(lane="mail"))
    failed = desk.put(a_job(key="c", status=Status.FAILED))
    unreadable = UnreadableRow("JOB#1", "status is not one this version knows")
    done = desk.admit(first, unreadable, stranger, failed, second)
    assert (done.sent, done.isolated, done.dead_letters) == (2, 2, 1)
    assert desk.queued_messages() == [first.job_id, second.job_id]
    assert desk.telemetry.total(metrics.STREAM_ERRORS) == 1


@pytest.mark.fault("B12")
def test_a_job_of_an_unknown_lane_ends_where_an_operator_finds_it(desk: Desk) -> None:
    """Failed as poison with the reason; no lane's queue is asked for it."""
    stranger = desk.put(a_job(lane="mail"))
    desk.admit(stranger)
    after = desk.job(stranger.job_id)
    assert (after.status, after.category, after.last_error) == (Status.FAILED, Category.POISON, "unknown_lane")
    assert desk.queued_messages() == []


@pytest.mark.fault("C4", "B7")
def test_an_old_image_changes_nothing(desk: Desk) -> None:
    """The row has moved on since the image was taken: a hold is not written over it."""
    desk.close()
    image = desk.put(a_job())
    desk.jobs.claim(image.job_id, by="w1/1", now=desk.clock.now())
    claimed = desk.jobs.item(image.job_id)
    assert desk.admit(image).held == 1
    assert desk.jobs.item(image.job_id) == claimed


def test_doing_it_twice_is_harmless(desk: Desk) -> None:
    """The batch comes again after a crash: another message of the same job, met by its claim."""
    job = desk.put(a_job())
    desk.admit(job)
    desk.admit(job)
    assert desk.queued_messages() == [job.job_id, job.job_id]


class Refusing(MemoryLaneQueues):
    """Takes no message of these jobs, as SendMessageBatch may say of single entries."""

    refused: frozenset[str] = frozenset()

    def send(self, messages: list[Message]) -> list[Message]:  # type: ignore[override]
        super().send([message for message in messages if message.job_id not in self.refused])
        return [message for message in messages if message.job_id in self.refused]


@pytest.mark.fault("B6")
def test_a_refused_entry_of_a_batch_stays_and_the_others_go(desk: Desk) -> None:
    """Exactly the refused one is put in the waiting index, with the reason; the dispatcher sends it later."""
    desk.queues = Refusing(clock=desk.clock, lanes=desk.lanes)
    batch = [desk.put(job) for job in jobs(10)]
    desk.queues.refused = frozenset({batch[2].job_id})
    done = desk.admit(*batch)
    assert (done.sent, done.held) == (9, 1)
    assert desk.job(batch[2].job_id).blocked_by == "send:support"
    assert [job.job_id for job in batch if desk.job(job.job_id).waits] == [batch[2].job_id]


@pytest.mark.fault("B12")
def test_only_an_outage_is_raised(desk: Desk) -> None:
    """SQS down: the batch must come again, so the caller is told; a passing throttle is not even noticed."""
    flaky = Flaky(desk.queues, "send")
    desk.queues = flaky  # type: ignore[assignment]
    job = desk.put(a_job())
    flaky.down = True
    with pytest.raises(Unavailable):
        desk.admit(job)
    assert flaky.calls == 4
    flaky.down = False
    assert desk.admit(job).sent == 1
