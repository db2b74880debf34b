"""A rate limit is not an error: the job waits its exact turn, nothing fails, and its neighbours go on."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from shared.adapters.memory.vendor import Says
from shared.contract import metrics
from shared.core.effects import Call
from shared.core.job import Category, Job, Status
from shared.core.outcome import Done, Outcome
from shared.core.rate import us_of
from shared.core.sensitive import Sensitive
from shared.usecases.context import Context
from shared.usecases.run_attempt import Answer
from tests.builders import a_ticket, an_account
from tests.unit.usecases.desk import Desk
from tests.vendors_and_tasks import VendorKind

CANARY = "Maria's invoice is wrong"


def ask(job: Job, ctx: Context) -> Outcome:
    tokens = ctx.payload.reveal().get("tokens", 0)
    ctx.call(Call(vendor="helpdesk", action="ask", body=Sensitive({"text": CANARY}), tokens=tokens))
    return Done("asked")


def a_desk(**account: Any) -> Desk:
    return Desk(tasks={"ask": ask}, account=an_account(**account), batch_size=10)


def spend(desk: Desk, seconds: float) -> None:
    desk.budget_ledger.spent(desk.accounts["desk_account"], us_of(desk.clock.now() + timedelta(seconds=seconds)))


@pytest.mark.req("X4")
@pytest.mark.fault("B3")
def test_a_refused_job_waits_with_its_time_and_reason() -> None:
    """Acknowledged, queued, no attempt used, its turn and its need on the row; nothing was asked of the vendor."""
    desk = a_desk()
    spend(desk, 30)
    ref = desk.enqueue("ask", payload={"tokens": 1000})
    assert desk.work(ref.job_id) is Answer.ACKNOWLEDGE
    job = desk.job(ref.job_id)
    assert (job.status, job.attempt_count, job.blocked_by) == (Status.QUEUED, 0, "budget:desk_account")
    assert job.not_before_at == job.permit_at == job.due
    assert job.permit_at is not None
    assert job.permit_at >= desk.clock.now() + timedelta(seconds=28)
    assert job.estimated_tokens == 1000
    assert desk.vendor.calls == 0


@pytest.mark.req("X4")
def test_the_batch_goes_on_with_the_next_job() -> None:
    """A job too dear for what is left waits; the cheap ones behind it run."""
    desk = a_desk(tokens_per_minute=30_000, requests_per_minute=600)
    spend_tokens = desk.enqueue("ask", key="first", payload={"tokens": 1300})
    dear = desk.enqueue("ask", key="dear", payload={"tokens": 25_000})
    cheap = [desk.enqueue("ask", key=f"cheap-{n}", payload={"tokens": 100}) for n in range(5)]
    refs = [spend_tokens, dear, *cheap]
    tickets = [a_ticket(desk.job(ref.job_id), message_id=f"{n:08d}") for n, ref in enumerate(refs)]
    assert desk.batch(*tickets) == []
    states = [desk.job(ref.job_id).status for ref in refs]
    assert states == [Status.COMPLETED, Status.QUEUED, *[Status.COMPLETED] * 5]


@pytest.mark.req("X4")
def test_its_turn_comes_and_it_runs() -> None:
    """At its time the dispatcher lets it through and it completes: one deferral, no attempt."""
    desk = a_desk()
    spend(desk, 30)
    ref = desk.enqueue("ask", payload={"tokens": 1000})
    desk.work(ref.job_id)
    turn = desk.job(ref.job_id).permit_at
    assert turn is not None
    desk.clock.advance_to(turn)
    desk.viewer.look_again()
    assert desk.dispatch().sent == 1
    desk.work(ref.job_id)
    job = desk.job(ref.job_id)
    assert (job.status, job.attempt_count, job.permit_at) == (Status.COMPLETED, 0, None)


@pytest.mark.req("X6")
@pytest.mark.req("R14")
def test_checks_and_deferrals_are_told_in_their_shape() -> None:
    """Operation, what was asked and left, what came of it; times in milliseconds with Z; none of the text."""
    desk = a_desk()
    spend(desk, 30)
    ref = desk.enqueue("ask", payload={"tokens": 1000})
    desk.work(ref.job_id)
    (check,) = desk.telemetry.named("rate_limit_check")
    (deferral,) = desk.telemetry.named("rate_limit_schedule")
    common = {"job_id": ref.job_id, "account": "desk_account", "operation_type": "scheduling", "status": "completed"}
    left = {"estimated_tokens": 1000, "available_tokens": 15_000, "available_requests": 30}
    assert check.ids == {
        **common,
        "operation_name": "rate_limit_check",
        "input_data": left,
        "output_data": {"allowed": False},
    }
    told: Any = deferral.ids["output_data"]
    turn = desk.job(ref.job_id).permit_at
    assert turn is not None
    assert deferral.ids["input_data"] == left
    assert told["delay_seconds"] == (turn - desk.clock.now()).total_seconds()
    assert told["scheduled_at"] == turn.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    assert CANARY not in repr(desk.telemetry.events)


@pytest.mark.req("X6")
def test_an_allowed_check_is_told_too() -> None:
    """Allowed is an answer like any other."""
    desk = a_desk()
    desk.work(desk.enqueue("ask").job_id)
    (check,) = desk.telemetry.named("rate_limit_check")
    assert check.ids["output_data"] == {"allowed": True}
    assert desk.telemetry.named("rate_limit_schedule") == []


@pytest.mark.req("X4")
def test_a_429_uses_no_attempt_and_quiets_the_account() -> None:
    """The vendor's limit was met all the same: the job waits its turn behind the quiet time."""
    desk = a_desk()
    desk.vendor.call_script.append(Says.REFUSE_RATE)
    ref = desk.enqueue("ask")
    desk.work(ref.job_id)
    job = desk.job(ref.job_id)
    assert (job.status, job.attempt_count, job.blocked_by) == (Status.QUEUED, 0, "budget:desk_account")


@pytest.mark.fault("G9")
def test_refused_credentials_defer_the_job() -> None:
    """No dead letter for a key that expired: the account is shut, the job waits."""
    desk = a_desk()
    desk.vendor.call_script.append(Says.REFUSE_AUTH)
    ref = desk.enqueue("ask")
    desk.work(ref.job_id)
    assert desk.job(ref.job_id).status is Status.QUEUED
    assert desk.job(ref.job_id).attempt_count == 0
    assert desk.telemetry.named("account_shut")[0].ids["reason"] == "auth"


@pytest.mark.req("X3")
def test_more_than_the_limit_fails_at_once() -> None:
    """It is not retried for ever: malformed, with a code that says so, and nothing was asked."""
    desk = a_desk()
    ref = desk.enqueue("ask", payload={"tokens": 30_001})
    desk.work(ref.job_id)
    job = desk.job(ref.job_id)
    assert (job.status, job.category, job.last_error) == (Status.FAILED, Category.MALFORMED, "over_limit:helpdesk")
    assert desk.vendor.calls == 0


@pytest.mark.parametrize("estimate", [-5, 0.5, "x", True])
@pytest.mark.req("X3")
def test_an_estimate_that_is_none_fails_the_job_by_name(estimate: object) -> None:
    """A task's mistake is named, and its neighbours are not harmed."""
    desk = a_desk()
    ref = desk.enqueue("ask", payload={"tokens": estimate})
    desk.work(ref.job_id)
    assert desk.job(ref.job_id).last_error == "bad_input:estimated_tokens"


def test_an_effect_takes_its_permit_before_its_intent() -> None:
    """Refused by a spent account, it leaves no intent behind: nothing was begun."""
    desk = Desk(kind=VendorKind.NEITHER, account=an_account())
    spend(desk, 30)
    ref = desk.enqueue("reply")
    desk.work(ref.job_id)
    assert desk.job(ref.job_id).blocked_by == "budget:desk_account"
    assert desk.rows(ref.job_id) == []
    assert desk.vendor.requests == 0


@pytest.mark.req("X8")
def test_without_an_account_nothing_changes() -> None:
    """A lane that names no account runs as before, and the ledger is not touched."""
    desk = Desk(tasks={"ask": ask})
    ref = desk.enqueue("ask", payload={"tokens": 10**6})
    desk.work(ref.job_id)
    assert desk.job(ref.job_id).status is Status.COMPLETED
    assert desk.budget_ledger.writes == 0


@pytest.mark.req("X8")
def test_turned_off_and_on_by_configuration() -> None:
    """`enforced: false` lets a spent account pass; a job that was deferred under it still runs."""
    desk = a_desk()
    spend(desk, 3000)
    ref = desk.enqueue("ask", payload={"tokens": 10})
    desk.work(ref.job_id)
    assert desk.job(ref.job_id).status is Status.QUEUED
    off = a_desk(enforced=False)
    off.budget_ledger, off.jobs, off.content = desk.budget_ledger, desk.jobs, desk.content
    off.viewer, off.budgets = off.a_viewer(), off.an_environment("env-2")
    turn = desk.job(ref.job_id).permit_at
    assert turn is not None
    off.clock.advance_to(turn)
    assert off.work(ref.job_id) is Answer.ACKNOWLEDGE
    assert off.job(ref.job_id).status is Status.COMPLETED


def ask_three(job: Job, ctx: Context) -> Outcome:
    for _ in range(3):
        ctx.call(Call(vendor="helpdesk", action="ask", body=Sensitive({}), tokens=100))
    return Done("asked")


def keep_three(job: Job, ctx: Context) -> Outcome:
    for number in range(3):
        if ctx.kept(f"part-{number}") is None:
            ctx.call(Call(vendor="helpdesk", action="ask", body=Sensitive({}), tokens=100))
            ctx.keep(f"part-{number}", b"answer")
    return Done("asked")


@pytest.mark.req("X4")
@pytest.mark.parametrize(("task", "calls"), [(ask_three, 6), (keep_three, 3)])
def test_a_job_of_several_calls_ends_under_a_narrow_limit(task: Any, calls: int) -> None:
    """One call at a time fits: an attempt that was refused half-way asks for all it must repeat at once; one that keeps
    its answers repeats nothing."""
    desk = Desk(tasks={"ask": task}, account=an_account(requests_per_minute=20, tokens_per_minute=None))
    ref = desk.enqueue("ask")
    for _ in range(6):
        desk.work(ref.job_id)
        if desk.job(ref.job_id).status is Status.COMPLETED:
            break
        turn = desk.job(ref.job_id).permit_at
        assert turn is not None
        desk.clock.advance_to(turn + timedelta(seconds=6))
    job = desk.job(ref.job_id)
    assert (job.status, job.attempt_count) == (Status.COMPLETED, 0)
    assert desk.vendor.calls == calls


@pytest.mark.req("X9")
def test_what_is_spent_and_what_waits_is_counted_by_account() -> None:
    """Permits, tokens, deferrals and the seconds of their waits, each under the account that was asked."""
    desk = a_desk(requests_per_minute=600)
    first = desk.enqueue("ask", key="first", payload={"tokens": 20_000})
    second = desk.enqueue("ask", key="second", payload={"tokens": 20_000})
    for ref in (first, second):
        desk.work(ref.job_id)
    counted = {metric: value for (metric, _, account), value in desk.telemetry.of_accounts.items() if account}
    assert {account for _, _, account in desk.telemetry.of_accounts} == {"desk_account"}
    turn = desk.job(second.job_id).permit_at
    assert turn is not None
    waited_s = (turn - desk.clock.now()).total_seconds()
    assert counted[metrics.PERMITS] == 1
    assert counted[metrics.TOKENS] == 20_000
    assert (counted[metrics.RATE_DEFERRED], counted[metrics.RATE_WAIT]) == (1, pytest.approx(waited_s))
