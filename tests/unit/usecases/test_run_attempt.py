"""Run an attempt: every way a message can meet its job, and whether it is acknowledged or returned."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from shared.contract import metrics
from shared.core import lifecycle
from shared.core.errors import BadInput, ClaimLost, Unavailable
from shared.core.job import Category, Job, Status
from shared.core.outcome import NOT_A_CODE, Defer, Done, Fail, Outcome, Retry, Submitted
from shared.core.switches import Level
from shared.usecases.context import Context
from shared.usecases.run_attempt import STORE_PAUSE_S, Answer
from tests.builders import NOW, a_job, a_ticket
from tests.unit.usecases.desk import Desk, Flaky

SECRET = "the customer's own words"


def a_desk(task: Callable[[Job, Context], Any], **lane: Any) -> Desk:
    """A desk whose only task is this one."""
    return Desk(tasks={"reply": task}, **lane)


def returning(outcome: Any) -> Callable[[Job, Context], Any]:
    return lambda job, ctx: outcome


def raising(error: BaseException) -> Callable[[Job, Context], Outcome]:
    def task(job: Job, ctx: Context) -> Outcome:
        raise error

    return task


# ---------------------------------------------------------------------------------- the task's own ending
LATER = NOW + timedelta(hours=1)
ENDINGS = {
    "done": (Done("replied"), Status.COMPLETED, {"result": "replied"}),
    "retry": (Retry("vendor_timeout"), Status.QUEUED, {"attempt_count": 1, "last_error": "vendor_timeout"}),
    "defer": (Defer(LATER, "later"), Status.QUEUED, {"attempt_count": 0, "due": LATER, "blocked_by": "later"}),
    "fail": (Fail(Category.AUTH, "no_token"), Status.FAILED, {"category": Category.AUTH, "last_error": "no_token"}),
    "submitted": (Submitted("batch-1"), Status.BATCH_SUBMITTED, {"attempt_count": 0}),
    "nothing": (None, Status.FAILED, {"category": Category.MALFORMED, "last_error": "task_returned_no_outcome"}),
    "text": (SECRET, Status.FAILED, {"category": Category.MALFORMED, "last_error": "task_returned_no_outcome"}),
    "text as code": (Retry(SECRET), Status.QUEUED, {"last_error": NOT_A_CODE}),
    "naive time": (Defer(datetime(2026, 1, 2), "x"), Status.FAILED, {"last_error": "bad_input:until"}),
}


@pytest.mark.req("M4", "R8")
@pytest.mark.parametrize(("outcome", "status", "fields"), ENDINGS.values(), ids=ENDINGS)
def test_every_ending_is_written_and_the_message_acknowledged(
    outcome: Any, status: Status, fields: dict[str, Any]
) -> None:
    """Claimed, run, settled: the job is in an end state or stands in the index, so its message may go."""
    desk = a_desk(returning(outcome))
    job = desk.put(a_job())
    assert desk.work(job) is Answer.ACKNOWLEDGE
    after = desk.job(job.job_id)
    assert (after.status, after.fence, after.claimed_by) == (status, 1, None)
    assert {name: getattr(after, name) for name in fields} == fields
    assert [move.reason.partition(":")[0] for move in after.moves][:2] == ["enqueued", "claim"]
    assert SECRET not in repr(desk.jobs.item(job.job_id))


RAISED = {
    "an exception": (ValueError(SECRET), Status.QUEUED, "exception:ValueError"),
    "a key error": (KeyError(SECRET), Status.QUEUED, "exception:KeyError"),
    "recursion": (RecursionError(SECRET), Status.QUEUED, "exception:RecursionError"),
    "exit": (SystemExit(SECRET), Status.QUEUED, "exception:SystemExit"),
    "bad input": (BadInput("topic", "must be a word"), Status.FAILED, "bad_input:topic"),
    "bad input with text": (BadInput(SECRET, SECRET), Status.FAILED, NOT_A_CODE),
}


@pytest.mark.req("R14")
@pytest.mark.fault("I1")
@pytest.mark.parametrize(("error", "status", "code"), RAISED.values(), ids=RAISED)
def test_what_a_task_raises_is_a_retry_by_its_type(error: BaseException, status: Status, code: str) -> None:
    """One attempt used, the type kept, its text nowhere; input the task refuses fails at once."""
    desk = a_desk(raising(error))
    job = desk.put(a_job())
    assert desk.work(job) is Answer.ACKNOWLEDGE
    after = desk.job(job.job_id)
    assert (after.status, after.last_error) == (status, code)
    assert after.attempt_count == (status is Status.QUEUED)
    assert SECRET not in repr(desk.jobs.item(job.job_id)) + repr(desk.telemetry.events)


@pytest.mark.req("R10", "R11", "M5")
def test_a_job_that_always_fails_is_tried_as_often_as_its_lane_says() -> None:
    """Each try after its own wait; then failed, and no further message is sent for it."""
    desk = a_desk(returning(Retry("vendor_timeout")), max_attempts=3, retry_backoff_s=(5, 50))
    ref = desk.enqueue()
    waits: list[float] = []
    assert desk.work(ref.job_id) is Answer.ACKNOWLEDGE
    while (job := desk.job(ref.job_id)).status is Status.QUEUED:
        assert job.due is not None
        waits.append((job.due - desk.clock.now()).total_seconds())
        desk.clock.advance_to(job.due)
        assert desk.dispatch().sent == 1
        desk.work(job)
    assert waits == [5, 50]
    assert (job.status, job.category, job.attempt_count) == (Status.FAILED, Category.RETRIES_EXHAUSTED, 3)
    desk.clock.advance(86_400)
    assert desk.dispatch().sent == 0


# ------------------------------------------------------------------------------ messages without a claim
@pytest.mark.req("R8")
def test_nothing_unclaimed_is_run() -> None:
    """For every state but queued the task is not called, and nothing is written."""
    ran: list[str] = []

    def task(job: Job, ctx: Context) -> Outcome:
        ran.append(job.job_id)
        return Done()

    for status in set(Status) - {Status.QUEUED}:
        desk = a_desk(task)
        job = desk.put(a_job(status=status))
        before = desk.jobs.item(job.job_id)
        answer = desk.work(job, by="w2/1")
        assert answer is (Answer.RETURN if status is Status.PROCESSING else Answer.ACKNOWLEDGE)
        assert desk.jobs.item(job.job_id) == before
    assert ran == []


@pytest.mark.req("R8")
@pytest.mark.fault("A3")
def test_a_live_claim_is_respected() -> None:
    """A second delivery while the first worker lives is returned: it will come again, and meet what became of it."""
    inside: list[Answer] = []

    def task(job: Job, ctx: Context) -> Outcome:
        inside.append(desk.work(a_ticket(job, message_id="00000002-again"), by="w2/2"))
        return Done()

    desk = a_desk(task)
    job = desk.put(a_job())
    assert desk.work(job) is Answer.ACKNOWLEDGE
    assert inside == [Answer.RETURN]
    assert desk.job(job.job_id).fence == 1
    assert desk.work(job, by="w3/3") is Answer.ACKNOWLEDGE
    assert len(inside) == 1


@pytest.mark.fault("C3")
def test_a_claim_whose_answer_was_lost_is_still_ours() -> None:
    """Asking again with the same name is safe, and the task runs once."""
    desk = a_desk(returning(Done()))
    job = desk.put(a_job())
    desk.jobs.claim(job.job_id, by="w1/00000001", now=NOW)
    assert desk.work(job, by="w1/00000001") is Answer.ACKNOWLEDGE
    after = desk.job(job.job_id)
    assert (after.status, after.fence) == (Status.COMPLETED, 1)


@pytest.mark.req("R9", "M9")
@pytest.mark.fault("A4")
def test_a_dead_workers_job_is_recovered_by_the_redelivery() -> None:
    """One attempt used, fence raised, error named; and the same message runs it again at once."""
    seen: list[Job] = []
    desk = a_desk(lambda job, ctx: seen.append(job) or Done())  # type: ignore[func-returns-value]
    job = desk.put(a_job())
    desk.jobs.claim(job.job_id, by="dead/1", now=NOW)
    desk.clock.advance(desk.lane.claim_timeout_s)
    assert desk.work(job, by="w2/2") is Answer.ACKNOWLEDGE
    assert [(one.attempt_count, one.fence, one.last_error) for one in seen] == [(1, 3, "stale_claim_requeued")]
    assert desk.job(job.job_id).status is Status.COMPLETED
    assert desk.telemetry.total(metrics.STALE) == 1


@pytest.mark.req("R9")
def test_a_job_that_kills_every_worker_ends_as_poison() -> None:
    """At `max_attempts` it is failed by the recovery itself, and acknowledged without running."""
    ran: list[Job] = []
    desk = a_desk(lambda job, ctx: ran.append(job) or Done(), max_attempts=1, retry_backoff_s=())  # type: ignore[func-returns-value]
    job = desk.put(a_job(max_attempts=1))
    desk.jobs.claim(job.job_id, by="dead/1", now=NOW)
    desk.clock.advance(desk.lane.claim_timeout_s)
    assert desk.work(job) is Answer.ACKNOWLEDGE
    after = desk.job(job.job_id)
    assert (after.status, after.category, after.attempt_count) == (Status.FAILED, Category.POISON, 1)
    assert ran == []


@pytest.mark.fault("A10")
def test_a_message_that_keeps_coming_back_is_failed_without_running() -> None:
    """At the eighth receive of a job that was claimed before; one that never was may still run."""
    ran: list[Job] = []
    desk = a_desk(lambda job, ctx: ran.append(job) or Done())  # type: ignore[func-returns-value]
    poison = desk.put(a_job(key="a", fence=1))
    assert desk.work(a_ticket(poison, receive_count=8)) is Answer.ACKNOWLEDGE
    after = desk.job(poison.job_id)
    assert (after.status, after.category, after.last_error) == (Status.FAILED, Category.POISON, "receives_exhausted")
    assert ran == []
    innocent = desk.put(a_job(key="b"))
    assert desk.work(a_ticket(innocent, receive_count=9)) is Answer.ACKNOWLEDGE
    assert [job.job_id for job in ran] == [innocent.job_id]


def test_an_early_message_waits_in_the_index() -> None:
    """A job whose time has not come is not run; it stands in the index, so its message may go."""
    desk = a_desk(returning(Done()))
    at = NOW + timedelta(minutes=5)
    early = desk.put(a_job(key="a", not_before_at=at))
    assert desk.work(early) is Answer.ACKNOWLEDGE
    assert (desk.job(early.job_id).due, desk.job(early.job_id).blocked_by) == (at, "early")
    waiting = desk.put(a_job(key="b", not_before_at=at, due=at))
    before = desk.jobs.item(waiting.job_id)
    assert desk.work(waiting) is Answer.ACKNOWLEDGE
    assert desk.jobs.item(waiting.job_id) == before


def test_a_message_without_a_job_is_returned() -> None:
    """Triage keeps a trace of it, once its receives are used up."""
    desk = a_desk(returning(Done()))
    assert desk.work(a_ticket(a_job())) is Answer.RETURN
    assert desk.telemetry.named("job_missing")


@pytest.mark.fault("A11")
@pytest.mark.parametrize(
    ("changes", "error"), [({"task": "zzz"}, "unknown_task"), ({"task_version": 2}, "unknown_task_version")]
)
def test_an_unknown_task_or_version_is_refused_at_once(changes: dict[str, Any], error: str) -> None:
    """One receive, no retry: failed as malformed, with the reason."""
    desk = a_desk(returning(Done()))
    job = desk.put(a_job(**changes))
    assert desk.work(job) is Answer.ACKNOWLEDGE
    after = desk.job(job.job_id)
    assert (after.status, after.category, after.last_error) == (Status.FAILED, Category.MALFORMED, error)
    assert after.attempt_count == 0


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"job_id": None, "lane": None, "problem": "envelope is not an object"}, "envelope is not an object"),
        ({"lane": "mail"}, "wrong_lane"),
    ],
)
def test_a_message_that_is_not_ours_is_returned_untouched(changes: dict[str, Any], problem: str) -> None:
    """Unreadable or another lane's: no row is read or written, the dead-letter queue gets it in the end."""
    desk = a_desk(returning(Done()))
    job = desk.put(a_job())
    before = desk.jobs.item(job.job_id)
    assert desk.work(a_ticket(job, **changes)) is Answer.RETURN
    assert desk.jobs.item(job.job_id) == before
    assert desk.telemetry.named("envelope_unreadable")[0].ids["problem"] == problem


@pytest.mark.fault("K1")
def test_a_row_of_another_version_is_left_alone() -> None:
    """An unknown status is no licence to guess: returned, unchanged, named by its key."""
    desk = a_desk(returning(Done()))
    job = desk.put(a_job())
    strange = {**(desk.jobs.item(job.job_id) or {}), "status": {"S": "hibernating"}}
    desk.jobs.plant(strange)
    assert desk.work(a_ticket(job)) is Answer.RETURN
    assert desk.jobs.item(job.job_id) == strange
    assert desk.telemetry.named("message_returned")[0].code == "unreadable_row"


# ------------------------------------------------------------------------------------------- time, switches
def test_without_time_nothing_is_claimed() -> None:
    """An item not started before the end is returned, not half done."""
    desk = a_desk(returning(Done()))
    job = desk.put(a_job())
    assert desk.work(job, left_s=0) is Answer.RETURN
    assert desk.job(job.job_id).status is Status.QUEUED


def test_a_job_gets_the_smaller_of_its_own_and_the_invocations_time() -> None:
    """Its limit, or what is left of the function."""
    seen: list[float] = []
    desk = a_desk(lambda job, ctx: seen.append(ctx.remaining_s) or Done())  # type: ignore[func-returns-value]
    desk.work(desk.put(a_job(key="a")), left_s=16)
    desk.work(desk.put(a_job(key="b")), left_s=7)
    assert seen == [10, 7]


@pytest.mark.req("F9")
@pytest.mark.fault("E6")
@pytest.mark.parametrize("level", [Level.DRAIN, Level.HALT])
@pytest.mark.parametrize(
    "scope", ["all", "lane/support", "vendor/helpdesk", "task/support/reply", "tenant/support/tenant-1"]
)
def test_a_closed_switch_holds_the_job_and_acknowledges(scope: str, level: Level) -> None:
    """On every scope: not run, not dropped, no attempt used; it waits under the switch's name."""
    ran: list[Job] = []
    desk = a_desk(lambda job, ctx: ran.append(job) or Done())  # type: ignore[func-returns-value]
    job = desk.put(a_job())
    desk.close(scope, level)
    assert desk.work(job) is Answer.ACKNOWLEDGE
    after = desk.job(job.job_id)
    assert (after.status, after.blocked_by, after.attempt_count) == (Status.QUEUED, f"switches:{scope}", 0)
    assert after.waits
    assert ran == []
    desk.open(scope)
    desk.clock.advance(60)
    desk.dispatch()
    assert desk.work(after) is Answer.ACKNOWLEDGE
    assert len(ran) == 1


@pytest.mark.parametrize("status", [Status.COMPLETED, Status.FAILED, Status.CANCELED])
def test_a_closed_switch_lets_ended_jobs_messages_go(status: Status) -> None:
    """There is nothing to hold."""
    desk = a_desk(returning(Done()))
    job = desk.put(a_job(status=status))
    desk.close()
    before = desk.jobs.item(job.job_id)
    assert desk.work(job) is Answer.ACKNOWLEDGE
    assert desk.jobs.item(job.job_id) == before


def test_a_closed_switch_returns_what_it_cannot_hold() -> None:
    """A claimed job's message and one without a row come again."""
    desk = a_desk(returning(Done()))
    desk.close()
    assert desk.work(desk.put(a_job(status=Status.PROCESSING))) is Answer.RETURN
    assert desk.work(a_ticket(a_job(key="unknown"))) is Answer.RETURN


# --------------------------------------------------------------------------------------------- faults
@pytest.mark.fault("E3")
def test_switches_that_go_out_of_sight_in_the_middle_cost_no_attempt() -> None:
    """Claimed and then blind: the job waits, nothing is sent, and even its last try is not used up."""

    def task(job: Job, ctx: Context) -> Outcome:
        desk.control.down = True
        desk.clock.advance(61)
        return reply(job, ctx)

    from tests.vendors_and_tasks import reply

    desk = a_desk(task, max_attempts=1, retry_backoff_s=(), function_timeout_s=100, job_timeout_s=90, visibility_s=600)
    job = desk.put(a_job(max_attempts=1))
    assert desk.work(job, left_s=90) is Answer.ACKNOWLEDGE
    after = desk.job(job.job_id)
    assert (after.status, after.attempt_count) == (Status.QUEUED, 0)
    assert after.blocked_by == "store:control_unreadable"
    assert desk.vendor.requests == 0


@pytest.mark.fault("C1")
def test_a_store_that_fails_inside_the_task_defers() -> None:
    """Throttles are nobody's fault: no attempt used, a short wait."""
    desk = a_desk(raising(Unavailable("content", "SlowDown")))
    job = desk.put(a_job())
    assert desk.work(job) is Answer.ACKNOWLEDGE
    after = desk.job(job.job_id)
    assert (after.status, after.attempt_count) == (Status.QUEUED, 0)
    assert after.due == NOW + timedelta(seconds=STORE_PAUSE_S)


@pytest.mark.fault("C1")
def test_a_store_that_cannot_settle_returns_the_message() -> None:
    """The end could not be written: the redelivery finds a stale claim and recovers it."""
    desk = a_desk(returning(Done()))
    job = desk.put(a_job())
    flaky = Flaky(desk.jobs, "move")
    flaky.down = True
    desk.jobs = flaky  # type: ignore[assignment]
    assert desk.work(job) is Answer.RETURN
    assert desk.job(job.job_id).status is Status.PROCESSING
    flaky.down = False
    desk.clock.advance(desk.lane.claim_timeout_s)
    assert desk.work(job, by="w2/2") is Answer.ACKNOWLEDGE
    assert desk.job(job.job_id).status is Status.COMPLETED


@pytest.mark.fault("A4")
def test_a_worker_that_lost_its_claim_writes_nothing() -> None:
    """Frozen past its claim's time and overtaken: its end is not written, its message comes again."""

    def task(job: Job, ctx: Context) -> Outcome:
        desk.clock.advance(desk.lane.claim_timeout_s)
        stale = desk.job(job.job_id)
        desk.jobs.move(stale, lifecycle.recovered(stale, desk.lane, desk.clock.now(), open_intent=False))
        return Done("late")

    desk = a_desk(task)
    job = desk.put(a_job())
    assert desk.work(job) is Answer.RETURN
    after = desk.job(job.job_id)
    assert (after.status, after.result, after.fence) == (Status.QUEUED, None, 2)
    assert desk.telemetry.named("message_returned")[0].error == ClaimLost.__name__


def test_a_fault_of_the_engine_itself_is_returned_not_raised() -> None:
    """Whatever breaks, the neighbours in the batch go on."""
    desk = a_desk(returning(Done()))
    job = desk.put(a_job())

    class Broken(Flaky):
        def claim(self, *args: Any, **kwargs: Any) -> Any:
            raise RuntimeError(SECRET)

    desk.jobs = Broken(desk.jobs)  # type: ignore[assignment]
    assert desk.work(a_ticket(job)) is Answer.RETURN
    assert desk.telemetry.named("worker_fault")[0].error == "RuntimeError"
    assert SECRET not in repr(desk.telemetry.events)
    assert desk.telemetry.total(metrics.NACKED) == 1
