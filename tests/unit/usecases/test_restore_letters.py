"""Letters that are gone stand again after one sweep: told by ids, without a scan, and none is doubled."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.core import lifecycle
from shared.core.job import Category, Job, Status
from shared.core.message import dead_letter_of
from shared.usecases import restore_letters
from shared.usecases.look_for_letters import LATE_S, LOOK_S, PATIENCE_S
from tests.builders import a_job
from tests.unit.usecases.desk import Desk, Flaky
from tests.unit.usecases.test_look_for_letters import HOUR, failed, take


class NoScan(Flaky):
    """Whoever looks at every row is too slow for a sweep."""

    def scan(self, **_: object) -> None:
        raise AssertionError("the table is scanned")


@pytest.mark.req("C8")
@pytest.mark.fault("F9", "F4")
@settings(max_examples=60)
@given(
    fates=st.lists(st.sampled_from(["stands", "hidden", "deleted", "moved, deleted", "moved, back"]), min_size=1),
    strangers=st.integers(0, 6),
    sweeps=st.integers(1, 3),
)
def test_every_deleted_letter_stands_again_and_none_twice(fates: list[str], strangers: int, sweeps: int) -> None:
    """Whatever is deleted, hidden or moved without a plan, and whatever else lies in the queue. While somebody has
    letters in hand, only those that were asked for are sent: theirs may be among the hidden ones."""
    desk = Desk()
    desk.jobs = NoScan(desk.jobs)  # type: ignore[assignment]
    jobs = failed(desk, len(fates))
    for n in range(strangers):
        desk.dead_letters.add("support", f"not a letter {n}")
    of = {fate: {job.job_id for job, told in zip(jobs, fates, strict=True) if told == fate} for fate in set(fates)}
    hidden, deleted = of.get("hidden", set()), of.get("deleted", set())
    asking, asked = of.get("moved, deleted", set()), of.get("moved, back", set())
    for job in jobs:
        if job.job_id in asking | asked:
            desk.jobs.move(job, lifecycle.letter_taken(job, desk.clock.now()))
    take(desk, deleted | asking, delete=True)
    take(desk, hidden, hide_s=24 * HOUR)
    desk.clock.advance(LATE_S)
    sent = [desk.restore_letters() for _ in range(sweeps)]
    assert sent == [len(asking) + (0 if hidden else len(deleted)), *[0] * (sweeps - 1)]
    assert max(Counter(desk.dead_letters.job_ids("support")).values(), default=0) <= 1
    assert {job.job_id for job in jobs} - set(desk.dead_letters.job_ids("support")) == (deleted if hidden else set())
    desk.clock.advance(24 * HOUR)
    desk.restore_letters()
    assert Counter(desk.dead_letters.job_ids("support")) == Counter(job.job_id for job in jobs)
    assert [desk.job(job.job_id) for job in jobs] == jobs


@pytest.mark.fault("F9")
def test_who_has_letters_in_hand_is_waited_for_once_for_all_lanes() -> None:
    """Triage hides what it looks at for less than that; then everything is seen, and a gap is a gap."""
    desk = Desk()
    jobs = failed(desk, 3)
    take(desk, {jobs[1].job_id}, delete=True)
    desk.clock.advance(LATE_S)
    take(desk, {jobs[0].job_id}, hide_s=45)
    began = desk.clock.now()
    assert desk.restore_letters() == 1
    assert (desk.clock.now() - began).total_seconds() == PATIENCE_S
    assert [event.ids["job_id"] for event in desk.telemetry.named("dead_letter_gone")] == [jobs[1].job_id]


def test_nobody_waits_and_nobody_looks_without_need() -> None:
    """Lanes without failed jobs cost one look at the index; where all letters stand, one look is enough."""
    desk = Desk()
    began = desk.clock.now()

    class Untouched(Flaky):
        def receive(self, lane: str, *, limit: int, hide_s: int) -> None:
            raise AssertionError(f"looked through {lane} up to {limit} for {hide_s} s")

    letters = desk.dead_letters
    desk.dead_letters = Untouched(letters)  # type: ignore[assignment]
    assert desk.restore_letters() == 0
    desk.dead_letters = letters
    failed(desk, 3)
    desk.clock.advance(LATE_S)
    began = desk.clock.now()
    assert (desk.restore_letters(), desk.clock.now()) == (0, began)


@pytest.mark.fault("C10")
@pytest.mark.parametrize("lag_s", [0, 2])
def test_failed_jobs_are_due_for_nobody(lag_s: float) -> None:
    """They stand in the index, and nothing is next to be looked at for it; one that asks for its letter is."""
    desk = Desk(index_lag_s=lag_s)
    (job,) = failed(desk, 1)
    asks_at = desk.clock.now()
    assert desk.jobs.next_due() is None
    desk.clock.advance(3)
    assert desk.jobs.next_due() is None
    desk.jobs.move(job, lifecycle.letter_taken(job, asks_at))
    assert desk.jobs.next_due() == asks_at


@pytest.mark.fault("F9")
def test_a_job_that_failed_just_now_has_its_letter_on_the_way() -> None:
    """It is looked for from `LATE_S` on: not a second before, and exactly then."""
    desk = Desk()
    desk.put(a_job(status=Status.FAILED))
    desk.clock.advance(LATE_S - 1)
    assert desk.restore_letters() == 0
    desk.clock.advance(1)
    assert desk.restore_letters() == 1


@pytest.mark.fault("F9")
def test_more_letters_than_a_sweep_looks_through_are_told_and_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is waited for and nothing is sent: the auditor compares them. Who asks by himself is answered."""
    monkeypatch.setattr(restore_letters, "LOOKED_THROUGH", 3)
    desk = Desk()
    jobs = failed(desk, 5)
    take(desk, {jobs[0].job_id}, delete=True)
    desk.jobs.move(jobs[1], lifecycle.letter_taken(jobs[1], desk.clock.now()))
    desk.clock.advance(LATE_S)
    began = desk.clock.now()
    assert (desk.restore_letters(), desk.clock.now()) == (1, began)
    assert [event.ids for event in desk.telemetry.named("letters_unchecked")] == [{"lane": "support", "count": 4}]
    assert not desk.telemetry.named("dead_letter_gone")


@pytest.mark.fault("F9", "F2")
@pytest.mark.parametrize("happened", ["replayed", "dismissed", "failed again", "moved"])
def test_a_job_that_left_meanwhile_needs_no_letter(happened: str) -> None:
    """The index is late and the look takes its time: the row is read before a letter is written."""
    desk = Desk()
    (job,) = failed(desk, 1)
    take(desk, {job.job_id}, delete=True)
    desk.clock.advance(LATE_S)

    class Late(Flaky):
        def receive(self, lane: str, *, limit: int, hide_s: int) -> object:
            now = desk.clock.now()
            after: Job = {
                "replayed": lambda: lifecycle.replayed(job, "plan-1", now),
                "failed again": lambda: lifecycle.replayed(job, "plan-1", now),
                "dismissed": lambda: lifecycle.canceled(job, desk.lane, "ops", now),
                "moved": lambda: lifecycle.letter_taken(job, now),
            }[happened]()
            desk.jobs.move(job, after)
            if happened == "failed again":
                desk.jobs.move(after, lifecycle.failed_unclaimed(after, desk.lane, now, Category.POISON, "receives"))
            return self._target.receive(lane, limit=limit, hide_s=hide_s)

    desk.dead_letters = Late(desk.dead_letters)  # type: ignore[assignment]
    assert (desk.restore_letters(), desk.dead_letters.job_ids("support")) == (0, [])


@pytest.mark.fault("K1", "F4")
def test_a_row_that_cannot_be_read_keeps_nobody_from_his_letter() -> None:
    """It is told, and left alone."""
    desk = Desk()
    jobs = failed(desk, 2)
    take(desk, {job.job_id for job in jobs}, delete=True)
    desk.jobs.plant({**(desk.jobs.item(jobs[0].job_id) or {}), "category": {"S": "tired"}})
    desk.clock.advance(LATE_S)
    assert (desk.restore_letters(), desk.dead_letters.job_ids("support")) == (1, [jobs[1].job_id])
    assert [error.ids["job_id"] for error in desk.telemetry.named("row_unreadable")] == [jobs[0].job_id]


@pytest.mark.fault("F4")
def test_a_letter_that_cannot_be_sent_is_asked_for_again() -> None:
    """It counts as sent only when it is, and the row goes on asking."""
    desk = Desk()
    jobs = failed(desk, 2)
    take(desk, {job.job_id for job in jobs}, delete=True)
    desk.jobs.move(jobs[0], lifecycle.letter_taken(jobs[0], desk.clock.now()))
    desk.clock.advance(LATE_S)

    class Full(Flaky):
        def send(self, letters: object) -> object:
            return letters

    whole = desk.dead_letters
    desk.dead_letters = Full(whole)  # type: ignore[assignment]
    assert (desk.restore_letters(), desk.job(jobs[0].job_id).waits) == (0, True)
    desk.dead_letters = whole
    assert (desk.restore_letters(), desk.job(jobs[0].job_id).waits) == (2, False)
    assert sorted(whole.job_ids("support")) == sorted(job.job_id for job in jobs)
    assert dead_letter_of(jobs[0]).job_id == jobs[0].job_id


@pytest.mark.fault("F9")
@pytest.mark.parametrize(("left_s", "sent", "waited_s"), [(LOOK_S - 1, 1, 0), (LOOK_S, 2, 0), (PATIENCE_S, 2, 0)])
def test_a_sweep_ends_in_time(left_s: int, sent: int, waited_s: int) -> None:
    """With too little left nobody looks, or nobody waits for letters in hand; that is told. Who asks by itself is
    answered all the same."""
    desk = Desk()
    asking, deleted = failed(desk, 2)
    take(desk, {asking.job_id, deleted.job_id}, delete=True)
    desk.jobs.move(asking, lifecycle.letter_taken(asking, desk.clock.now()))
    desk.clock.advance(LATE_S)
    assert desk.restore_letters(left_s=left_s) == sent
    assert len(desk.telemetry.named("letters_unchecked")) == 2 - sent
    desk.dead_letters.receive("support", limit=10, hide_s=45)
    began = desk.clock.now()
    desk.restore_letters(left_s=left_s)
    assert (desk.clock.now() - began).total_seconds() == waited_s
    assert desk.restore_letters(left_s=LOOK_S + PATIENCE_S) == 2 - sent
