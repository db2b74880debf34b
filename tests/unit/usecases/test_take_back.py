"""Delays, and taking a running job back from its worker: what is refused, and that nothing is ever sent twice."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.adapters.memory.vendor import Says
from shared.core.effects import Effect, EffectRow, EffectState
from shared.core.errors import BadInput, ClaimLost
from shared.core.job import MAX_DELAY_DAYS, Category, Job, Status, time_after
from shared.core.outcome import Done, Fail
from shared.core.sensitive import Sensitive
from shared.core.switches import Level
from shared.usecases import steer
from shared.usecases.context import Context
from shared.usecases.run_attempt import Answer
from shared.usecases.steer import TakenBack
from tests.builders import NOW, a_job, a_switch, a_ticket, an_effect_row
from tests.unit.usecases.desk import Desk, Flaky
from tests.vendors_and_tasks import TASKS, VendorKind


def take_back(desk: Desk, job_id: str, delay_seconds: float = 0, **more: Any) -> TakenBack:
    values: dict[str, Any] = {"by": "alice", "why": "wrong prompt", **more}
    return steer.reset_to_pending(
        job_id,
        delay_seconds,
        jobs=desk.jobs,
        effects=desk.effects,
        history=desk.history,
        clock=desk.clock,
        **values,
    )


# -------------------------------------------------------------------------------------------------- delays
@pytest.mark.req("X2")
@given(delay_s=st.integers(0, MAX_DELAY_DAYS * 86_400) | st.floats(0, 1e6))
def test_a_delay_is_counted_from_now(delay_s: float) -> None:
    """To the millisecond a row can hold, and never into the past."""
    at = time_after("delay_seconds", delay_s, NOW)
    assert at >= NOW
    assert abs((at - NOW).total_seconds() - delay_s) < 0.0011


ABSURD: dict[str, tuple[Any, str]] = {
    "negative": (-1, "must be 0 seconds .now. or more"),
    "a little negative": (-1e-9, "must be 0 seconds"),
    "not a number": (math.nan, "must be 0 seconds"),
    "minus infinity": (-math.inf, "must be 0 seconds"),
    "infinity": (math.inf, "is more than 400 days"),
    "a second too long": (MAX_DELAY_DAYS * 86_400 + 1, "is more than 400 days"),
    "milliseconds taken for seconds": (1_767_225_600_000, "is more than 400 days"),
    "beyond what a timedelta holds": (10**400, "is more than 400 days"),
    "text": ("90", "must be a number of seconds"),
    "nothing": (None, "must be a number of seconds"),
    "a flag": (True, "must be a number of seconds"),
}


@pytest.mark.req("X2")
@pytest.mark.parametrize(("delay", "problem"), ABSURD.values(), ids=ABSURD)
def test_a_delay_that_cannot_be_meant_is_refused(delay: Any, problem: str) -> None:
    """By its name and with a sentence, and the running job is as it was."""
    desk = Desk()
    job = desk.put(a_job(status=Status.PROCESSING))
    with pytest.raises(BadInput, match=problem) as refused:
        take_back(desk, job.job_id, delay)
    assert refused.value.field == "delay_seconds"
    assert desk.job(job.job_id) == job
    assert desk.history.of(f"job/{job.job_id}", limit=5) == []


def test_a_delay_past_the_last_year_is_refused() -> None:
    """What no row may hold is not computed either."""
    with pytest.raises(BadInput, match="between the years 2000 and 2200"):
        time_after("delay_seconds", 86_400, datetime(2199, 12, 31, 12, tzinfo=UTC))


# -------------------------------------------------------------------------------------------------- taking back
@pytest.mark.req("X2")
@pytest.mark.parametrize("delay_s", [0, 90])
def test_a_running_job_is_taken_back(delay_s: int) -> None:
    """Queued, its fence raised, in the index at once, no attempt used; who and why are in the history."""
    desk = Desk()
    job = desk.put(a_job(status=Status.PROCESSING, attempt_count=1))
    after = take_back(desk, job.job_id, delay_s).job
    at = NOW + timedelta(seconds=delay_s)
    assert desk.job(job.job_id) == after
    assert (after.status, after.fence, after.attempt_count) == (Status.QUEUED, job.fence + 1, 1)
    assert (after.not_before_at, after.due, after.claimed_at, after.claimed_by) == (at, at, None, None)
    (entry,) = desk.jobs.waiting(desk.lane, due_before=at, limit=5)
    assert (entry.job_id, entry.due) == (job.job_id, at)
    (event,) = desk.history.of(f"job/{job.job_id}", limit=5)
    assert (event.kind, event.by, event.detail["why"]) == ("reset", "alice", "wrong prompt")
    desk.clock.advance_to(at)
    assert desk.dispatch().sent == 1


@pytest.mark.req("X2")
@pytest.mark.parametrize("status", sorted(set(Status) - {Status.PROCESSING}))
def test_only_a_running_job_can_be_taken_back(status: Status) -> None:
    """The error says what it is instead, and nothing is written."""
    desk = Desk()
    job = desk.put(a_job(status=status))
    with pytest.raises(BadInput, match=f"is {status}; only a running job"):
        take_back(desk, job.job_id)
    assert desk.job(job.job_id) == job


@pytest.mark.req("X2")
def test_a_job_with_an_open_intent_is_not_taken_back() -> None:
    """The vendor may have it; one whose effects all have their answer may be taken."""
    desk = Desk()
    job = desk.put(a_job(status=Status.PROCESSING))
    desk.effects.intend(an_effect_row(job_id=job.job_id, name="tag", state=EffectState.ACCEPTED))
    desk.effects.intend(an_effect_row(job_id=job.job_id))
    with pytest.raises(BadInput, match="has an open effect"):
        take_back(desk, job.job_id)
    assert desk.job(job.job_id) == job
    row = an_effect_row(job_id=job.job_id)
    desk.effects.record(row, an_effect_row(job_id=job.job_id, state=EffectState.REFUSED, recorded_at=NOW))
    assert take_back(desk, job.job_id).job.status is Status.QUEUED


def test_a_job_that_was_settled_meanwhile_is_not_taken_back() -> None:
    """The move is written only if the claim is still the one that was read."""
    desk = Desk()
    job = desk.put(a_job())

    class Settling(Flaky):
        def get(self, job_id: str) -> Job | None:
            claimed = jobs.claim(job_id, by="w", now=NOW).job
            assert claimed is not None
            seen = jobs.get(job_id)
            desk.jobs = jobs
            desk.work(a_ticket(job), by="w")
            return seen

    jobs = desk.jobs
    desk.jobs = Settling(jobs)  # type: ignore[assignment]
    with pytest.raises(BadInput, match="changed meanwhile"):
        take_back(desk, job.job_id)
    assert desk.job(job.job_id).status is Status.COMPLETED
    assert len(desk.vendor.accepts) == 1


# ------------------------------------------------------------------------------------------------ interleavings
@pytest.mark.req("X2")
@pytest.mark.parametrize("kind", list(VendorKind))
def test_the_first_worker_can_no_longer_settle(kind: VendorKind) -> None:
    """Frozen after its claim while a second worker finishes the job taken back: it sends and writes nothing."""
    desk = Desk(kind=kind)

    def frozen(job: Job, ctx: Context) -> Any:
        if job.fence == 1:
            take_back(desk, job.job_id)
            desk.clock.advance(desk.lane.claim_timeout_s)
            assert desk.work(job.job_id, by="w2/2") is Answer.ACKNOWLEDGE
        return TASKS["reply"](job, ctx)

    desk.tasks = {"reply": frozen}
    ref = desk.enqueue()
    assert desk.work(ref.job_id) is Answer.RETURN
    lost = [event.error for event in desk.telemetry.named("message_returned")]
    job = desk.job(ref.job_id)
    assert (lost, len(desk.vendor.accepts)) == ([ClaimLost.__name__], 1)
    assert (job.status, job.fence, job.attempt_count) == (Status.COMPLETED, 3, 0)
    # The message that went back finds the job ended.
    assert desk.work(ref.job_id, by="w3/3") is Answer.ACKNOWLEDGE


class Interleaved(Flaky):
    """Effects whose `method` is called by the first worker: just before it is applied, somebody else acts."""

    def __init__(self, target: Any, method: str, act: Any) -> None:
        super().__init__(target)
        self._method, self._act = method, act

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._target, name)
        if name != self._method:
            return attribute

        def acted(*args: Any, **kwargs: Any) -> Any:
            act, self._act = self._act, None
            if act is not None:
                act()
            return attribute(*args, **kwargs)

        return acted


@pytest.mark.req("X2")
@pytest.mark.parametrize("kind", list(VendorKind))
@pytest.mark.parametrize("second_runs_first", [False, True])
def test_an_intent_written_after_the_job_was_taken_back_is_not_sent_twice(
    kind: VendorKind, second_runs_first: bool
) -> None:
    """Taken back while the first worker is about to write its intent: whoever writes it first is the only sender."""
    desk = Desk(kind=kind)
    ref = desk.enqueue()

    def meanwhile() -> None:
        take_back(desk, ref.job_id)
        if second_runs_first:
            desk.work(ref.job_id, by="w2/2")

    desk.effects = Interleaved(desk.effects, "intend", meanwhile)  # type: ignore[assignment]
    assert desk.work(ref.job_id) is Answer.RETURN
    finish(desk, ref.job_id)
    assert len(desk.vendor.accepts) == 1
    assert desk.job(ref.job_id).status is Status.COMPLETED


@pytest.mark.req("R8")
@pytest.mark.fault("A4")
@pytest.mark.parametrize("then", ["withheld", "failed"])
def test_no_end_is_written_while_the_first_worker_may_still_begin(then: str) -> None:
    """Taken back just before its intent; the next attempt would end the job without that effect, and then the vendor's
    answer is lost: an end over an open intent. It waits until the first worker is certainly gone, and asks."""
    desk = Desk(kind=VendorKind.DEDUPES, function_timeout_s=60, job_timeout_s=40, visibility_s=400)
    desk.vendor.script.append(Says.ACCEPTED_BUT_UNKNOWN)

    def reply(job: Job, ctx: Context) -> Any:
        if job.fence > 1 and then == "failed":
            return Fail(Category.VENDOR_PERMANENT, "gone")
        return TASKS["reply"](job, ctx)

    desk.tasks = {"reply": reply}
    ref = desk.enqueue()

    def meanwhile() -> None:
        take_back(desk, ref.job_id)
        if then == "withheld":
            desk.control.set_switch(a_switch(level=Level.ROUTE_ONLY))
            desk.clock.advance(11)
        desk.work(ref.job_id, by="w2/2")

    desk.effects = Interleaved(desk.effects, "intend", meanwhile)  # type: ignore[assignment]
    assert desk.work(ref.job_id, left_s=50) is Answer.RETURN
    desk.control.set_switch(a_switch(level=Level.NORMAL))
    finish(desk, ref.job_id)
    job, (row,) = desk.job(ref.job_id), desk.effects.of_job(ref.job_id)
    assert row.state is EffectState.ACCEPTED or job.category is Category.OUTCOME_UNKNOWN
    assert (job.fence > 2, len(desk.vendor.accepts)) == (True, 1)


@pytest.mark.req("X2")
@pytest.mark.fault("A4")
def test_one_worker_at_a_time_acts_for_a_job() -> None:
    """Taken back and brought again at once, or given the time now: put back without an attempt or a look at its task,
    to the second at which its first worker is certainly gone, however long it had waited before."""
    desk = Desk()
    since = NOW - timedelta(days=30)
    job = desk.put(a_job(status=Status.PROCESSING, waiting_since=since, attempt_count=1))
    gone_at = NOW + timedelta(seconds=desk.lane.claim_timeout_s)
    desk.clock.advance(3)
    take_back(desk, job.job_id)
    for turn in range(10):
        more = {"by": "alice", "why": "x", "jobs": desk.jobs, "history": desk.history, "clock": desk.clock}
        steer.schedule(job.job_id, desk.clock.now(), **more)  # type: ignore[arg-type]
        desk.work(job.job_id, by=f"w2/{turn}")
        after = desk.job(job.job_id)
        assert (after.status, after.not_before_at, after.blocked_by) == (Status.QUEUED, gone_at, "taken_back")
    assert (after.attempt_count, desk.vendor.requests) == (1, 0)
    desk.clock.advance_to(gone_at)
    desk.work(job.job_id, by="w3/3")
    assert (desk.job(job.job_id).status, len(desk.vendor.accepts)) == (Status.COMPLETED, 1)


@pytest.mark.req("R8")
@pytest.mark.fault("A15")
def test_two_workers_never_reply_under_two_names() -> None:
    """A model that says one thing to the worker that is taken back and another to the next: one reply."""
    desk = Desk()

    def reply(job: Job, ctx: Context) -> Any:
        body = Sensitive({"text": "x"})
        request = Effect(vendor="helpdesk", action="reply", target="c-1", body=body, customer_visible=True)
        ctx.effect("reply_billing" if job.fence == 1 else "reply_shipping", request)
        return Done("made")

    desk.tasks = {"reply": reply}
    ref = desk.enqueue()

    def meanwhile() -> None:
        take_back(desk, ref.job_id)
        desk.work(ref.job_id, by="w2/2")

    desk.effects = Interleaved(desk.effects, "intend", meanwhile)  # type: ignore[assignment]
    desk.work(ref.job_id)
    finish(desk, ref.job_id)
    assert len(desk.vendor.accepts) == 1
    assert desk.job(ref.job_id).category is Category.MALFORMED


@pytest.mark.req("X2")
@pytest.mark.parametrize("kind", list(VendorKind))
@pytest.mark.parametrize("second_runs_first", [False, True])
def test_an_intent_between_the_look_and_the_move_is_named_and_not_sent_twice(
    kind: VendorKind, second_runs_first: bool
) -> None:
    """The effects were read, the worker wrote its intent, the row was moved: the next attempt never sends blindly."""
    desk = Desk(kind=kind)
    ref = desk.enqueue()
    taken: list[TakenBack] = []

    def meanwhile() -> None:
        # The first look was before the intent that stands now; the second look sees it.
        effects = desk.effects
        desk.effects = Outdated(effects)  # type: ignore[assignment]
        taken.append(take_back(desk, ref.job_id))
        desk.effects = effects
        if second_runs_first:
            desk.work(ref.job_id, by="w2/2")

    desk.vendor = Interleaved(desk.vendor, "perform", meanwhile)  # type: ignore[assignment]
    desk.work(ref.job_id)
    assert taken[0].begun == ("reply",)
    assert desk.history.of(f"job/{ref.job_id}", limit=1)[0].detail["begun"] == ["reply"]
    finish(desk, ref.job_id)
    assert len(desk.vendor.accepts) == 1
    assert desk.job(ref.job_id).status is Status.COMPLETED


class Outdated(Flaky):
    """Effects as they were before anything was begun, for the first look."""

    def of_job(self, job_id: str) -> list[EffectRow]:
        self.calls += 1
        return [] if self.calls == 1 else self._target.of_job(job_id)


def finish(desk: Desk, job_id: str) -> None:
    """Deliver until the job has ended."""
    for turn in range(60):
        if desk.job(job_id).status.ended:
            return
        desk.clock.advance(30)
        desk.work(job_id, by=f"later/{turn}")


def test_a_late_done_of_a_job_taken_back_is_refused() -> None:
    """The result a lost worker brings is not written over the queued job."""
    desk = Desk()

    def task(job: Job, ctx: Context) -> Done:
        take_back(desk, job.job_id, 90)
        return Done("late")

    desk.tasks = {"reply": task}
    job = desk.put(a_job())
    assert desk.work(job) is Answer.RETURN
    assert (desk.job(job.job_id).status, desk.job(job.job_id).result) == (Status.QUEUED, None)
    # Its message is no longer needed: the job stands in the index.
    assert desk.work(job, by="w2/2") is Answer.ACKNOWLEDGE
