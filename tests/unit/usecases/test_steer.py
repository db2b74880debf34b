"""Steer: what an operator may do to one job, with who and why, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from shared.core import lifecycle
from shared.core.effects import EffectState
from shared.core.errors import BadInput, IllegalMove, UnknownLane
from shared.core.job import KEPT_MOVES, Category, Job, Status
from shared.usecases import steer
from shared.usecases.dismiss import dismiss
from shared.usecases.run_attempt import Answer
from tests.builders import NOW, a_job, a_ticket, an_effect_row
from tests.unit.usecases.desk import Desk, Flaky

LATER = NOW + timedelta(hours=1)


@pytest.fixture
def desk() -> Desk:
    return Desk()


def cancel(desk: Desk, job_id: str, **more: Any) -> Job:
    """The job after it was canceled, at once or once its worker was gone."""
    answer = withdraw(desk, job_id, **more)
    if answer.again_at is None:
        return answer.job
    desk.clock.advance_to(answer.again_at)
    return withdraw(desk, job_id, **more).job


def withdraw(desk: Desk, job_id: str, **more: Any) -> steer.Withdrawal:
    values: dict[str, Any] = {"by": "alice", "why": "wrong order", **more}
    return steer.cancel(
        job_id,
        jobs=desk.jobs,
        effects=desk.effects,
        history=desk.history,
        lanes=desk.lanes,
        clock=desk.clock,
        **values,
    )


def schedule(desk: Desk, job_id: str, at: Any, **more: Any) -> Job:
    values: dict[str, Any] = {"by": "alice", "why": "after lunch", **more}
    return steer.schedule(job_id, at, jobs=desk.jobs, history=desk.history, clock=desk.clock, **values)


@pytest.mark.parametrize("status", [Status.QUEUED, Status.PROCESSING, Status.FAILED, Status.BATCH_SUBMITTED])
def test_a_job_is_withdrawn_with_who_and_why(desk: Desk, status: Status) -> None:
    """Canceled in the row, noted in the history; its message, if any, is acknowledged without running."""
    job = desk.put(a_job(status=status))
    after = cancel(desk, job.job_id)
    assert desk.job(job.job_id) == after
    assert (after.status, after.moves[-1].reason.endswith(":alice")) == (Status.CANCELED, True)
    event, *before = desk.history.of(f"job/{job.job_id}", limit=5)
    was = Status.QUEUED if status is Status.PROCESSING else status
    assert (event.kind, event.by, event.detail) == ("cancel", "alice", {"was": was.value, "why": "wrong order"})
    assert [one.kind for one in before] == (["cancel_begun"] if status is Status.PROCESSING else [])
    assert desk.work(a_ticket(job)) is Answer.ACKNOWLEDGE
    assert desk.vendor.requests == 0


@pytest.mark.parametrize("status", [Status.COMPLETED, Status.CANCELED])
def test_what_is_over_cannot_be_withdrawn(desk: Desk, status: Status) -> None:
    """Final is final."""
    job = desk.put(a_job(status=status))
    with pytest.raises(IllegalMove):
        cancel(desk, job.job_id)
    assert desk.history.of(f"job/{job.job_id}", limit=5) == []


@pytest.mark.parametrize("status", [Status.QUEUED, Status.PROCESSING, Status.FAILED])
def test_a_job_with_an_open_effect_cannot_be_withdrawn(desk: Desk, status: Status) -> None:
    """It may have reached the vendor: its outcome must be known first."""
    job = desk.put(a_job(status=status))
    desk.effects.intend(an_effect_row(job_id=job.job_id))
    with pytest.raises(BadInput, match="has an open effect"):
        cancel(desk, job.job_id)
    assert desk.job(job.job_id) == job


@pytest.mark.parametrize("status", [Status.QUEUED, Status.PROCESSING])
def test_a_job_whose_every_request_was_refused_may_be_withdrawn(desk: Desk, status: Status) -> None:
    """Refused means that no vendor has it."""
    job = desk.put(a_job(status=status))
    desk.effects.intend(an_effect_row(job_id=job.job_id, state=EffectState.REFUSED))
    assert cancel(desk, job.job_id).status is Status.CANCELED


@pytest.mark.fault("A4")
@pytest.mark.parametrize("status", [Status.QUEUED, Status.PROCESSING])
def test_a_job_that_has_acted_cannot_be_withdrawn(desk: Desk, status: Status) -> None:
    """Canceled means that nothing was done: the effects that were made are named, and the job goes on."""
    job = desk.put(a_job(status=status))
    row = an_effect_row(job_id=job.job_id)
    desk.effects.intend(row)
    desk.effects.accept(replace(row, state=EffectState.ACCEPTED, vendor_id="v-1"))
    with pytest.raises(BadInput, match="has made reply and can no longer be canceled"):
        cancel(desk, job.job_id)
    assert desk.job(job.job_id) == job


@pytest.mark.fault("A4")
def test_a_cancel_that_races_with_an_intent_names_what_was_begun(desk: Desk) -> None:
    """The worker begins between the look and the move: the job is taken back, not canceled, and ends by itself."""

    class Beginning(Flaky):
        def move(self, before: Job, after: Job) -> None:
            desk.effects.intend(an_effect_row(job_id=before.job_id, intent_at=NOW - timedelta(seconds=1)))
            self._target.move(before, after)

    jobs, desk.jobs = desk.jobs, Beginning(desk.jobs)  # type: ignore[assignment]
    job = desk.put(a_job(status=Status.PROCESSING))
    answer = withdraw(desk, job.job_id)
    desk.jobs = jobs
    assert (answer.job.status, answer.begun) == (Status.QUEUED, ("reply",))
    (event,) = desk.history.of(f"job/{job.job_id}", limit=5)
    assert (event.kind, event.detail["begun"]) == ("cancel_begun", ["reply"])
    desk.clock.advance_to(answer.again_at or NOW)
    with pytest.raises(BadInput, match="has an open effect"):
        withdraw(desk, job.job_id)


@pytest.mark.fault("A4")
def test_a_running_job_is_canceled_once_its_worker_is_gone(desk: Desk) -> None:
    """Asked again and again it is held once, with one line in its history, and canceled at that second and not before;
    a worker that is gone already is not waited for."""
    job = desk.put(a_job(status=Status.PROCESSING))
    gone_at = NOW + timedelta(seconds=desk.lane.claim_timeout_s)
    answers = [withdraw(desk, job.job_id) for _ in range(12)]
    assert {(answer.job.fence, answer.job.status, answer.again_at) for answer in answers} == {
        (job.fence + 1, Status.QUEUED, gone_at)
    }
    assert [event.kind for event in desk.history.of(f"job/{job.job_id}", limit=5)] == ["cancel_begun"]
    desk.clock.advance_to(gone_at - timedelta(seconds=1))
    assert withdraw(desk, job.job_id).again_at == gone_at
    desk.clock.advance(1)
    assert withdraw(desk, job.job_id).job.status is Status.CANCELED
    stale = desk.put(a_job(key="b", status=Status.PROCESSING))
    desk.clock.advance(desk.lane.claim_timeout_s)
    assert withdraw(desk, stale.job_id).again_at is None
    assert desk.job(stale.job_id).status is Status.CANCELED


def test_a_cancel_that_is_not_given_again_holds_its_job_for_minutes(desk: Desk) -> None:
    """Whoever forgot it has canceled nothing: the job runs."""
    job = desk.put(a_job(status=Status.PROCESSING))
    gone_at = withdraw(desk, job.job_id).again_at or NOW
    desk.clock.advance_to(gone_at + timedelta(minutes=8))
    assert desk.dispatch().sent == 0
    desk.clock.advance_to(gone_at + steer.HELD_FOR_A_CANCEL)
    assert desk.dispatch().sent == 1


@pytest.mark.fault("A4")
def test_a_queued_job_is_held_while_a_worker_may_still_begin(desk: Desk) -> None:
    """Taken back a moment ago: its worker may send until its time is over, whatever became of the job meanwhile."""
    job = desk.put(a_job(status=Status.PROCESSING))
    queued = lifecycle.taken_back(job, NOW, "reset:alice", NOW)
    for turn in range(KEPT_MOVES):
        queued = lifecycle.rescheduled(queued, NOW, f"turn:{turn}", NOW)
    desk.jobs.move(job, queued)
    answer = withdraw(desk, job.job_id)
    assert (answer.job.status, answer.again_at) == (Status.QUEUED, NOW + timedelta(seconds=desk.lane.claim_timeout_s))
    assert cancel(desk, job.job_id).status is Status.CANCELED


@pytest.mark.fault("A4")
@pytest.mark.parametrize("then", ["cancel", "dismiss"])
def test_no_failed_job_is_closed_while_a_worker_may_still_begin(desk: Desk, then: str) -> None:
    """Taken back a moment ago, and failed since: until when its worker may send is told."""
    job = desk.put(a_job(status=Status.PROCESSING))
    queued = lifecycle.taken_back(job, NOW, "reset:alice", NOW)
    desk.jobs.move(job, queued)
    desk.jobs.move(queued, lifecycle.failed_unclaimed(queued, desk.lane, NOW, Category.INFRASTRUCTURE, "x"))
    verb: Any = {"cancel": steer.cancel, "dismiss": dismiss}[then]
    stores = {"jobs": desk.jobs, "effects": desk.effects, "history": desk.history, "clock": desk.clock}
    for at in (NOW, NOW + timedelta(seconds=desk.lane.claim_timeout_s - 1)):
        desk.clock.advance_to(at)
        with pytest.raises(BadInput, match="may still begin to send it; again after"):
            verb(job.job_id, by="alice", why="x", lanes=desk.lanes, **stores)
    desk.clock.advance(1)
    verb(job.job_id, by="alice", why="x", lanes=desk.lanes, **stores)
    assert desk.job(job.job_id).status is Status.CANCELED


def test_a_canceled_job_stays_so_when_its_worker_returns(desk: Desk) -> None:
    """The fence rose against it."""
    from shared.core.outcome import Done

    def task(job: Job, ctx: object) -> Done:
        withdraw(desk, job.job_id)
        return Done("late")

    desk.tasks = {"reply": task}
    job = desk.put(a_job())
    assert desk.work(job) is Answer.RETURN
    desk.clock.advance(desk.lane.claim_timeout_s)
    cancel(desk, job.job_id)
    assert (desk.job(job.job_id).status, desk.job(job.job_id).result) == (Status.CANCELED, None)
    assert desk.work(job, by="w2/2") is Answer.ACKNOWLEDGE


@pytest.mark.parametrize("at", [LATER, NOW - timedelta(hours=1)])
def test_a_queued_job_is_given_another_time(desk: Desk, at: datetime) -> None:
    """The past means now; the dispatcher brings it then."""
    job = desk.put(a_job(due=NOW + timedelta(days=1), not_before_at=NOW + timedelta(days=1)))
    after = schedule(desk, job.job_id, at)
    assert (after.not_before_at, after.due, after.blocked_by) == (at, at, "scheduled:alice")
    desk.clock.advance_to(max(at, NOW))
    assert desk.dispatch().sent == 1


REFUSED: dict[str, tuple[str, dict[str, Any]]] = {
    "naive": ("at", {"at": datetime(2026, 1, 1)}),
    "text": ("at", {"at": "soon"}),
    "nothing": ("at", {"at": None}),
    "no reason": ("why", {"why": ""}),
    "blank reason": ("why", {"why": " \n "}),
    "long reason": ("why", {"why": "x" * 201}),
}


@pytest.mark.parametrize(("field", "values"), REFUSED.values(), ids=REFUSED)
def test_a_change_needs_a_time_and_a_reason(desk: Desk, field: str, values: dict[str, Any]) -> None:
    """Refused by name, and nothing is written."""
    job = desk.put(a_job())
    with pytest.raises(BadInput) as refused:
        schedule(desk, job.job_id, **{"at": LATER, **values})
    assert refused.value.field == field
    assert desk.job(job.job_id) == job


@pytest.mark.parametrize("status", sorted(set(Status) - {Status.QUEUED}))
def test_only_a_queued_job_can_be_given_another_time(desk: Desk, status: Status) -> None:
    """The error says what it is instead."""
    job = desk.put(a_job(status=status))
    with pytest.raises(BadInput, match=f"is {status}; only a queued job"):
        schedule(desk, job.job_id, LATER)


def test_what_does_not_exist_is_named(desk: Desk) -> None:
    """A job, or its lane."""
    with pytest.raises(BadInput, match="does not exist in this stage"):
        cancel(desk, a_job().job_id)
    stranger = desk.put(a_job(lane="mail"))
    with pytest.raises(UnknownLane):
        cancel(desk, stranger.job_id)


def test_a_job_that_changed_meanwhile_is_looked_at_again(desk: Desk) -> None:
    """Nothing is written over what somebody else did."""
    job = desk.put(a_job())

    class Racing(Flaky):
        def get(self, job_id: str) -> Job | None:
            seen = jobs.get(job_id)
            jobs.claim(job_id, by="w", now=NOW)
            return seen

    jobs = desk.jobs
    desk.jobs = Racing(jobs)  # type: ignore[assignment]
    with pytest.raises(BadInput, match="changed meanwhile; look at it again"):
        schedule(desk, job.job_id, LATER)
    assert desk.history.of(f"job/{job.job_id}", limit=5) == []


def test_a_job_is_not_given_a_time_at_which_its_text_is_gone(desk: Desk) -> None:
    """Up to sixty days after its text was stored; a job without text waits as long as it likes, and now is always."""
    job = desk.job(desk.enqueue(payload={"text": "hello"}).job_id)
    bare = desk.job(desk.enqueue(key="bare", payload={}).job_id)
    desk.clock.advance(86_400)
    last = job.created_at + timedelta(days=60)
    with pytest.raises(BadInput, match="more than 60 days after the payload was stored") as refused:
        schedule(desk, job.job_id, last + timedelta(seconds=1))
    assert refused.value.field == "at"
    assert desk.job(job.job_id) == job
    assert schedule(desk, job.job_id, last).not_before_at == last
    assert schedule(desk, bare.job_id, last + timedelta(days=400)).not_before_at == last + timedelta(days=400)
    desk.clock.advance(70 * 86_400)
    assert schedule(desk, job.job_id, desk.clock.now()).due == desk.clock.now()
