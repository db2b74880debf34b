"""Letters are told by ids: none is doubled because others are hidden, and what was not seen is not conserved."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.core import lifecycle
from shared.core.job import Category, Job, Status
from shared.core.message import dead_letter_of
from shared.core.ports import DeadLetterQueues
from shared.usecases import look_for_letters as looking
from shared.usecases.audit import Fault
from shared.usecases.look_for_letters import LATE_S, PATIENCE_S, look_for_letters
from tests.builders import a_job
from tests.unit.usecases.desk import Desk, Flaky

HOUR = 3600


def failed(desk: Desk, count: int) -> list[Job]:
    """Failed jobs, each with its letter."""
    jobs = [desk.put(a_job(key=f"event-{n}", status=Status.FAILED)) for n in range(count)]
    desk.dead_letters.send([dead_letter_of(job) for job in jobs])
    return jobs


def take(desk: Desk, job_ids: set[str], *, hide_s: int = 0, delete: bool = False) -> None:
    """Somebody looks at the queue and keeps some letters in hand, or deletes them; the others are given back."""
    for letter in desk.dead_letters.receive("support", limit=1000, hide_s=HOUR * 24):
        if letter.job_id not in job_ids:
            desk.dead_letters.queue("support").show(letter.receipt)
        elif delete:
            desk.dead_letters.delete("support", letter.receipt)
        elif hide_s:
            desk.dead_letters.queue("support").show(letter.receipt, hide_s)


@pytest.mark.req("C8")
@pytest.mark.fault("F9")
@settings(max_examples=60)
@given(
    fates=st.lists(st.sampled_from(["stands", "hidden", "deleted"]), min_size=1, max_size=12),
    strangers=st.integers(0, 6),
    audits=st.integers(1, 3),
)
def test_whatever_is_hidden_or_deleted_no_letter_is_doubled(fates: list[str], strangers: int, audits: int) -> None:
    """As many bytes of strangers as there are letters deleted change nothing: only what was seen counts as seen."""
    desk = Desk()
    jobs = failed(desk, len(fates))
    for n in range(strangers):
        desk.dead_letters.add("support", f"not a letter {n}")
    of = {fate: {job.job_id for job, told in zip(jobs, fates, strict=True) if told == fate} for fate in set(fates)}
    hidden, deleted = of.get("hidden", set()), of.get("deleted", set())
    take(desk, deleted, delete=True)
    take(desk, hidden, hide_s=24 * HOUR)
    desk.clock.advance(LATE_S)
    for n in range(audits):
        report = desk.auditor().run(repair=True)
        found = {one.job_id for one in report.findings}
        assert found == (set() if hidden or n else deleted)
        assert report.unchecked.total() == (len(hidden | deleted) if hidden else 0)
        assert report.conserved == (not hidden and not found)
    assert max(Counter(desk.dead_letters.job_ids("support")).values(), default=0) <= 1
    desk.clock.advance(24 * HOUR)
    assert desk.auditor().run(repair=True).checked
    assert Counter(desk.dead_letters.job_ids("support")) == Counter(job.job_id for job in jobs)


@pytest.mark.fault("F9")
def test_who_has_letters_in_hand_for_a_moment_is_waited_for() -> None:
    """Triage hides what it looks at: the audit looks once more, and nothing stays unchecked."""
    desk = Desk()
    jobs = failed(desk, 5)
    take(desk, {jobs[1].job_id}, delete=True)
    desk.clock.advance(LATE_S)
    take(desk, {jobs[0].job_id}, hide_s=45)
    began = desk.clock.now()
    report = desk.auditor().run(repair=False)
    assert {one.job_id: one.fault for one in report.findings} == {jobs[1].job_id: Fault.NO_DEAD_LETTER}
    assert report.checked
    assert (desk.clock.now() - began).total_seconds() == PATIENCE_S


@pytest.mark.fault("F9")
def test_more_letters_than_can_be_looked_through_are_unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are not taken at their word."""
    monkeypatch.setattr(looking, "LIMIT", 3)
    desk = Desk()
    failed(desk, 4)
    desk.clock.advance(LATE_S)
    report = desk.auditor().run(repair=True)
    assert (report.unchecked, report.conserved, report.findings) == ({"support": 4}, False, [])
    assert report.counts() == {"jobs": 4, "findings": 0, "repaired": 0, "unchecked": 4, "listed": 0}
    assert [event.ids for event in desk.telemetry.named("letters_unchecked")] == [{"lane": "support", "count": 4}]


@pytest.mark.fault("F9")
def test_a_letter_that_arrives_during_the_look_is_nobodys_gap() -> None:
    """What the queue holds after the look counts as well: one more than was seen may be the one that was not."""
    desk = Desk()
    jobs = failed(desk, 2)
    take(desk, {jobs[0].job_id}, delete=True)
    desk.clock.advance(LATE_S)

    class Arriving(Flaky):
        def receive(self, lane: str, *, limit: int, hide_s: int) -> object:
            seen = self._target.receive(lane, limit=limit, hide_s=hide_s)
            self._target.send([dead_letter_of(jobs[0])])
            return seen

    letters: DeadLetterQueues = Arriving(desk.dead_letters)  # type: ignore[assignment]
    seen = look_for_letters(
        {"support": [job.job_id for job in jobs]}, dead_letters=letters, clock=desk.clock, patience_s=0
    )["support"]
    assert (seen.missing, seen.unchecked) == ((), (jobs[0].job_id,))


@pytest.mark.fault("F9", "F2")
@pytest.mark.parametrize("happened", ["replayed", "dismissed", "failed again"])
def test_a_job_that_left_meanwhile_needs_no_letter(happened: str) -> None:
    """The scan and the look take their time: the row is read once more before a letter is written."""
    desk = Desk()
    (job,) = failed(desk, 1)
    take(desk, {job.job_id}, delete=True)
    desk.clock.advance(LATE_S)

    class Late(Flaky):
        def receive(self, lane: str, *, limit: int, hide_s: int) -> object:
            now = desk.clock.now()
            after = lifecycle.replayed(job, "plan-1", now)
            if happened == "dismissed":
                after = lifecycle.canceled(job, desk.lane, "ops", now)
            desk.jobs.move(job, after)
            if happened == "failed again":
                desk.jobs.move(after, lifecycle.failed_unclaimed(after, desk.lane, now, Category.POISON, "receives"))
            return self._target.receive(lane, limit=limit, hide_s=hide_s)

    desk.dead_letters = Late(desk.dead_letters)  # type: ignore[assignment]
    report = desk.auditor().run(repair=True)
    assert (report.findings, desk.dead_letters.job_ids("support")) == ([], [])
