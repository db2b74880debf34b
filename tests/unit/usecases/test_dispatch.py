"""Dispatch: waiting jobs come back at their second, in turn, and no tick sends twice."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.core import lifecycle
from shared.core.job import Job, Status
from shared.core.message import Message
from shared.core.ports import WaitingEntry
from shared.core.switches import Level
from shared.usecases.dispatch import AGING_S, MAX_DELAY_S, in_turn
from tests.builders import NOW, a_job
from tests.unit.core.strategies import few
from tests.unit.usecases.desk import Desk, Flaky


@pytest.fixture
def desk() -> Desk:
    return Desk()


def waiting(desk: Desk, key: str = "event-1", *, in_s: float = 0, **more: object) -> Job:
    """A job that stands in the index, due `in_s` from now."""
    at = desk.clock.now() + timedelta(seconds=in_s)
    return desk.put(a_job(key=key, not_before_at=at, due=at, blocked_by="backoff", **more))


def delays(desk: Desk) -> dict[str, float]:
    """Job → seconds until its message can be received, by trying."""
    started, found = desk.clock.now(), {}
    while (at := desk.queues.next_at()) is not None:
        desk.clock.advance_to(at)
        for one in desk.queues.receive("support", limit=10):
            found[one.delivery.job_id or ""] = (desk.clock.now() - started).total_seconds()
            desk.queues.delete("support", one.receipt)
    return found


def test_a_due_job_is_handed_off_and_sent(desk: Desk) -> None:
    """Its message goes out, once, and it leaves the index."""
    job = waiting(desk)
    done = desk.dispatch()
    after = desk.job(job.job_id)
    assert (done.nominated, done.sent) == (1, 1)
    assert desk.queued_messages() == [job.job_id]
    assert not after.waits
    assert (after.status, after.blocked_by, after.moves) == (Status.QUEUED, None, job.moves)


@pytest.mark.fault("B7", "B8")
def test_a_crash_between_send_and_hand_off_sends_once_more_and_loses_nothing(desk: Desk) -> None:
    """The message goes first: a job whose hand-off was not written is nominated again, not stranded."""
    job = waiting(desk)

    class Dying(Flaky):
        def move(self, before: Job, after: Job) -> None:
            raise SystemExit

    whole = desk.jobs
    desk.jobs = Dying(desk.jobs)  # type: ignore[assignment]
    with pytest.raises(SystemExit):
        desk.dispatch()
    desk.jobs = whole
    assert desk.queued_messages() == [job.job_id]
    assert desk.job(job.job_id).waits
    assert desk.dispatch().sent == 1
    for _ in range(3):
        desk.clock.advance(10)
        assert desk.dispatch().sent == 0


@pytest.mark.fault("B8")
def test_a_message_lost_after_the_hand_off_is_found_by_the_audit(desk: Desk) -> None:
    """It stands in no index, is due and untouched: within the audit's period it is sent again."""
    job = waiting(desk)
    desk.dispatch()
    for one in desk.queues.receive("support"):
        desk.queues.delete("support", one.receipt)  # Lost on the way.
    desk.clock.advance(3600)
    assert desk.auditor().run(repair=True).counts()["repaired"] == 1
    assert desk.queued_messages() == [job.job_id]


@pytest.mark.fault("B6")
def test_a_refused_message_keeps_its_place(desk: Desk) -> None:
    """SQS took the others: they leave the index; this one stays and is nominated again."""
    first, second = waiting(desk, "a"), waiting(desk, "b")

    class Refusing(Flaky):
        def send(self, messages: Sequence[Message]) -> list[Message]:
            queues.send([message for message in messages if message.job_id != first.job_id])
            return [message for message in messages if message.job_id == first.job_id]

    queues = desk.queues
    desk.queues = Refusing(queues)  # type: ignore[assignment]
    assert desk.dispatch().sent == 1
    assert (desk.job(first.job_id).waits, desk.job(second.job_id).waits) == (True, False)
    desk.queues = queues
    assert desk.dispatch().sent == 1


@pytest.mark.req("R8")
@given(in_s=st.integers(1, 75))
def test_a_message_is_delayed_to_the_jobs_own_second(in_s: int) -> None:
    """A run looks past its own next tick, so a one-minute schedule does not make retries minute-coarse."""
    desk = Desk()
    job = waiting(desk, in_s=in_s)
    assert desk.dispatch(look_ahead_s=75).sent == 1
    assert delays(desk) == {job.job_id: in_s}
    claimed = desk.jobs.claim(job.job_id, by="w", now=desk.clock.now())
    assert claimed.job is not None
    assert claimed.job.status is Status.PROCESSING


def test_what_is_due_after_the_next_tick_is_left(desk: Desk) -> None:
    """It is not even read."""
    waiting(desk, in_s=76)
    assert desk.dispatch(look_ahead_s=75).nominated == 0


def test_no_delay_is_longer_than_sqs_allows(desk: Desk) -> None:
    """However far a run looks."""
    waiting(desk, in_s=2000)
    desk.dispatch(look_ahead_s=5000)
    assert list(delays(desk).values()) == [MAX_DELAY_S]


entries = st.lists(
    st.builds(
        WaitingEntry,
        job_id=st.uuids().map(str),
        due=st.integers(-1000, 100).map(lambda s: NOW + timedelta(seconds=s)),
        priority=st.integers(0, 3),
    ),
    max_size=12,
)


@given(found=entries)
def test_turns_are_by_priority_with_aging(found: list[WaitingEntry]) -> None:
    """Among jobs due together the urgent come first; a job one minute older per step goes before them."""
    turns = in_turn(found, NOW)
    assert sorted(turns, key=repr) == sorted(found, key=repr)
    for before, after in pairwise(turns):
        waited = [max(0.0, (NOW - one.due).total_seconds()) / AGING_S for one in (before, after)]
        assert before.priority - waited[0] <= after.priority - waited[1]


@given(behind=st.integers(1, 3), found=entries)
def test_nobody_is_starved(behind: int, found: list[WaitingEntry]) -> None:
    """However many urgent jobs arrive, one that has waited long enough is ahead of every new one."""
    old = WaitingEntry(job_id="old", due=NOW - timedelta(seconds=AGING_S * behind + 1), created=NOW, priority=behind)
    fresh = [WaitingEntry(job_id=one.job_id, due=NOW, created=NOW, priority=0) for one in found]
    assert in_turn([*fresh, old], NOW)[0] is old


@pytest.mark.req("X1")
@given(found=entries)
def test_jobs_of_one_priority_keep_the_order_of_the_index(found: list[WaitingEntry]) -> None:
    """Whatever else waits: due, then created, then id, as the index has it."""
    # Many due together: only the index knows which is older.
    lines = {p: [replace(one, due=NOW, priority=p) for one in found if one.priority == p] for p in range(4)}
    turns = in_turn([one for priority in lines.values() for one in priority], NOW)
    for priority, line in lines.items():
        assert [one for one in turns if one.priority == priority] == line


@pytest.mark.req("X9")
@few
@given(inflow=st.integers(1, 12), limit=st.integers(1, 10), patient=st.integers(1, 6))
def test_the_patient_go_within_a_bound_however_long_the_urgent_come(inflow: int, limit: int, patient: int) -> None:
    """With `inflow` jobs of priority 0 every minute for ever, each of priority 3 is sent within a bound.

    Only what was due less than three steps of aging after them can go before: three minutes' worth of urgent
    jobs. Each run sends `limit` of these and of the patient ones, so so many runs are enough.
    """
    runs = math.ceil((3 * inflow + patient) / limit)
    desk = Desk(baseline=50, ceiling=50)
    waits = {waiting(desk, f"patient-{n}", in_s=0, priority=3).job_id for n in range(patient)}
    for minute in range(runs):
        for n in range(inflow):
            waiting(desk, f"urgent-{minute}-{n}", priority=0)
        desk.dispatch(look_ahead_s=0, limit=limit)
        for received in desk.queues.receive("support", limit=limit):
            waits.discard(received.delivery.job_id or "")
            desk.queues.delete("support", received.receipt)
        desk.clock.advance(60)
    assert waits == set()


@pytest.mark.req("X9")
def test_the_limit_takes_those_whose_turn_it_is(desk: Desk) -> None:
    """Urgent before ordinary, oldest first, and no more than asked for."""
    order = [("late", 2, -1), ("old", 2, -50), ("urgent", 0, -1)]
    made = {key: waiting(desk, key, in_s=s, priority=p) for key, p, s in order}
    assert desk.dispatch(limit=2).sent == 2
    assert desk.queued_messages() == [made["urgent"].job_id, made["old"].job_id]


@pytest.mark.fault("C4")
@pytest.mark.parametrize("happened", ["claimed", "completed", "rescheduled", "gone", "handed off"])
def test_a_nomination_that_is_out_of_date_is_passed_over(happened: str) -> None:
    """The index lags; the row decides. Nothing is sent and nothing is written."""
    desk = Desk()
    job = waiting(desk)
    nominated = desk.jobs.waiting(desk.lane, due_before=NOW, limit=5)
    match happened:
        case "claimed":
            desk.jobs.claim(job.job_id, by="w", now=NOW)
        case "completed":
            claimed = desk.jobs.claim(job.job_id, by="w", now=NOW).job
            assert claimed is not None
            desk.jobs.move(claimed, lifecycle.settled(claimed, lifecycle.Done("ok"), desk.lane, NOW))
        case "rescheduled":
            desk.jobs.move(job, lifecycle.rescheduled(job, NOW + timedelta(hours=1), "x", NOW))
        case "handed off":
            desk.jobs.move(job, lifecycle.handed_off(job, NOW))
        case "gone":
            desk.jobs.expire(job.job_id)
    before = desk.jobs.item(job.job_id)
    stale = Flaky(desk.jobs)
    stale.waiting = lambda lane, *, line, **_: nominated if line == lane.name else []  # type: ignore[method-assign]
    desk.jobs = stale  # type: ignore[assignment]
    done = desk.dispatch()
    assert (done.stale_nominations, done.sent) == (1, 0)
    assert desk.queued_messages() == []
    assert desk.jobs.item(job.job_id) == before


@pytest.mark.fault("C4")
def test_a_job_that_moves_between_read_and_hand_off_is_left_as_it_is(desk: Desk) -> None:
    """The hand-off is conditional: who moved the row since has the last word; one message more is harmless."""
    job = waiting(desk)

    class Racing(Flaky):
        def get(self, job_id: str) -> Job | None:
            seen = desk_jobs.get(job_id)
            assert seen is not None
            desk_jobs.move(seen, lifecycle.rescheduled(seen, NOW + timedelta(seconds=99), "operator", NOW))
            return seen

    desk_jobs = desk.jobs
    desk.jobs = Racing(desk.jobs)  # type: ignore[assignment]
    done = desk.dispatch()
    assert done.sent == 1
    assert desk_jobs.get(job.job_id).due == NOW + timedelta(seconds=99)  # type: ignore[union-attr]


@pytest.mark.req("F9")
def test_a_closed_gate_keeps_it_waiting_and_writes_the_reason_once(desk: Desk) -> None:
    """The reason is stored when it changes, not on every tick."""
    desk.close("all", Level.NO_NEW_STARTS)
    job = waiting(desk)
    assert desk.dispatch().held == 1
    held = desk.job(job.job_id)
    assert (held.blocked_by, held.due) == ("switches:all", job.due)
    before = desk.jobs.item(job.job_id)
    desk.clock.advance(60)
    assert desk.dispatch().held == 1
    assert desk.jobs.item(job.job_id) == before
    desk.open()
    assert desk.dispatch().sent == 1


def test_a_full_window_is_emptied_as_workers_take_from_it() -> None:
    """The dispatcher releases what the capacity gate held, no more than fits."""
    desk = Desk(baseline=2, parallel=1, queue_window_s=5, expected_job_s=2.0)
    for n in range(8):
        waiting(desk, f"event-{n}")
    assert (desk.dispatch().sent, desk.dispatch().sent) == (5, 0)
    for one in desk.queues.receive("support", limit=3):
        desk.queues.delete("support", one.receipt)
    desk.clock.advance(3)
    assert desk.dispatch().sent == 3


def test_behind_a_full_window_nobody_is_read() -> None:
    """The queue is full for every job of the lane: one look says so, and a backlog costs no read each."""
    desk = Desk(baseline=2, parallel=1, queue_window_s=5, expected_job_s=2.0)
    for n in range(50):
        waiting(desk, f"event-{n}")
    first, second = desk.dispatch(), desk.dispatch()
    assert (first.sent, first.nominated) == (5, 6)
    assert (second.sent, second.nominated) == (0, 1)


def test_a_run_ends_before_its_function_does(desk: Desk) -> None:
    """Past its time nothing more is begun; the rest is the next run's."""
    for n in range(5):
        waiting(desk, f"event-{n}")
    assert desk.dispatch(run_s=0).nominated == 0
    assert desk.dispatch().sent == 5


@pytest.mark.fault("K1")
def test_an_unreadable_row_is_left_alone_and_its_neighbours_go(desk: Desk) -> None:
    """A newer version's row is not ours to touch."""
    strange, good = waiting(desk, "a"), waiting(desk, "b")
    item = desk.jobs.item(strange.job_id)
    assert item is not None
    desk.jobs.plant({**item, "status": {"S": "hibernating"}})
    assert (desk.dispatch().sent, desk.dispatch().stale_nominations) == (1, 1)
    assert desk.queued_messages() == [good.job_id]
    assert desk.jobs.item(strange.job_id) == {**item, "status": {"S": "hibernating"}}
    assert {event.name for event in desk.telemetry.events if event.error} == {"row_unreadable"}


def test_times_are_never_naive(desk: Desk) -> None:
    """What is written can be read back as it was."""
    job = waiting(desk, in_s=5)
    desk.dispatch()
    at = desk.job(job.job_id).not_before_at
    assert isinstance(at, datetime)
    assert at.tzinfo is not None
