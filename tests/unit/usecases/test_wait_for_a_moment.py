"""A worker that only the pace holds back takes the moment at once, waits for it, and looks again before it calls."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from shared.core import feedback
from shared.core.account import Limit
from shared.core.effects import Call
from shared.core.job import Job, Status
from shared.core.outcome import Done, Outcome
from shared.core.rate import SECOND, us_of
from shared.core.sensitive import Sensitive
from shared.core.switches import Level
from shared.usecases.context import Context
from shared.usecases.purse import AHEAD_MOST_S
from shared.usecases.run_attempt import WAIT_SHARE
from tests.builders import a_switch, a_ticket, an_account
from tests.unit.usecases.desk import Desk, Flaky
from tests.vendors_and_tasks import VendorKind
from tests.waiting import PATIENCE_S


def ask(job: Job, ctx: Context) -> Outcome:
    for _ in range(ctx.payload.reveal().get("calls", 1)):
        ctx.call(Call(vendor="helpdesk", action="ask", body=Sensitive({}), paid=True))
        ctx.keep("one", b"more")
    return Done("asked")


def a_desk(ahead_s: float = 0.0, **lane: Any) -> Desk:
    """An account whose next call may go in `ahead_s`."""
    values: dict[str, Any] = {"tasks": {"ask": ask}, **lane}
    desk = Desk(account=an_account(burst_s=0.0, tokens_per_minute=None), **values)
    if ahead_s:
        desk.budget_ledger.spent(desk.accounts["desk_account"], us_of(desk.clock.now()) + int(ahead_s * SECOND))
    return desk


def meanwhile(desk: Desk, happens: Callable[[], None]) -> list[float]:
    """Whatever waits, this happens before the wait is over; how long each wait was."""
    waits: list[float] = []

    def waited(seconds: float) -> None:
        waits.append(seconds)
        happens()
        desk.clock.advance(seconds)

    desk.clock.on_sleep = waited
    return waits


def spent_until_us(desk: Desk) -> int:
    return desk.budget_ledger.read(desk.accounts["desk_account"]).arrival_us[Limit.REQUESTS]


@pytest.mark.req("X4")
def test_a_job_a_second_early_waits_for_its_moment() -> None:
    """One write takes the moment, the call goes out in it, and nothing is put back."""
    desk = a_desk(ahead_s=1.25)
    due = desk.clock.now() + timedelta(seconds=1.25)
    waits = meanwhile(desk, lambda: None)
    ref = desk.enqueue("ask")
    desk.work(ref.job_id)
    assert (desk.job(ref.job_id).status, waits) == (Status.COMPLETED, [1.25])
    assert desk.clock.now() == due
    assert desk.budget_ledger.writes == 1


@pytest.mark.req("X4")
def test_nobody_waits_longer_than_two_seconds() -> None:
    """Two seconds are waited for; a moment more, and the job is put back for its own turn."""
    desk = a_desk(ahead_s=AHEAD_MOST_S)
    ref = desk.enqueue("ask")
    desk.work(ref.job_id)
    assert desk.job(ref.job_id).status is Status.COMPLETED
    desk = a_desk(ahead_s=AHEAD_MOST_S + 0.001)
    ref = desk.enqueue("ask")
    desk.work(ref.job_id)
    job = desk.job(ref.job_id)
    assert (job.status, job.blocked_by, desk.vendor.calls) == (Status.QUEUED, "budget:desk_account", 0)


@pytest.mark.req("X4")
def test_a_job_waits_a_fifth_of_its_time_at_most() -> None:
    """Each call's moment is a second after the one before: when a fifth of its time has gone by in waits, the job is
    put back with the turn of its next call."""
    desk = a_desk(job_timeout_s=15, function_timeout_s=90, visibility_s=600)
    waits = meanwhile(desk, lambda: None)
    ref = desk.enqueue("ask", payload={"calls": 9})
    desk.work(ref.job_id, left_s=80)
    assert waits == [1.0, 1.0, 1.0]
    assert sum(waits) <= WAIT_SHARE * 15
    assert desk.job(ref.job_id).blocked_by == "budget:desk_account"
    assert desk.vendor.calls == 4


@pytest.mark.req("X3")
@pytest.mark.req("X4")
def test_a_batch_takes_its_moments_in_one_write() -> None:
    """Ten calls a second and a batch of five: one write, and each job calls in a moment of its own, a tenth apart."""
    desk = Desk(tasks={"ask": ask}, account=an_account(requests_per_minute=600, burst_s=0.5), batch_size=10)
    desk.budget_ledger.spent(desk.accounts["desk_account"], us_of(desk.clock.now()) + SECOND)
    waits = meanwhile(desk, lambda: None)
    refs = [desk.enqueue("ask", key=f"k-{n}") for n in range(5)]
    desk.batch(*(a_ticket(desk.job(ref.job_id), message_id=f"{n:08d}") for n, ref in enumerate(refs)), left_s=60)
    assert desk.budget_ledger.writes == 1
    assert waits == [0.6, 0.1, 0.1, 0.1, 0.1]


@pytest.mark.req("X4")
def test_others_take_permits_while_one_waits() -> None:
    """The wait holds no lock: another thread of the same environment is answered in the middle of it."""
    desk = a_desk(ahead_s=1.0)
    answered: list[object] = []

    def another() -> None:
        thread = threading.Thread(target=lambda: answered.append(desk.budgets.try_consume("helpdesk")), daemon=True)
        thread.start()
        thread.join(PATIENCE_S)

    meanwhile(desk, another)
    desk.work(desk.enqueue("ask").job_id)
    assert len(answered) == 1


@pytest.mark.req("X4")
@pytest.mark.req("R8")
@pytest.mark.parametrize("scope", ["all", "vendor/helpdesk"])
def test_a_switch_that_closes_while_a_job_waits_is_obeyed(scope: str) -> None:
    """Halted in the wait: no intent was written, nothing was sent, and the account has its permit back."""
    desk = a_desk(ahead_s=1.5, tasks={"reply": _reply}, kind=VendorKind.NEITHER)
    before_us = spent_until_us(desk)

    def halt() -> None:
        desk.control.set_switch(a_switch(scope, Level.HALT))
        desk.board = None  # type: ignore[assignment]
        desk.clock.advance(10)

    meanwhile(desk, halt)
    ref = desk.enqueue("reply")
    desk.work(ref.job_id, left_s=60)
    assert desk.job(ref.job_id).blocked_by == f"switches:{scope}"
    assert (desk.rows(ref.job_id), desk.vendor.requests) == ([], 0)
    assert spent_until_us(desk) == before_us


@pytest.mark.req("C2")
def test_a_paid_call_that_was_forbidden_in_the_wait_is_not_made() -> None:
    """Automation was turned off while the job waited: no paid call."""
    desk = a_desk(ahead_s=1.5)

    def off() -> None:
        desk.control.set_switch(a_switch("all", Level.NORMAL, automation_enabled=False))
        desk.clock.advance(10)

    meanwhile(desk, off)
    desk.work(desk.enqueue("ask").job_id, left_s=60)
    assert desk.vendor.calls == 0


@pytest.mark.req("X4")
def test_time_that_ran_out_in_the_wait_begins_nothing() -> None:
    """The wait took longer than it should: no intent without the time to send."""
    desk = a_desk(ahead_s=1.5, tasks={"reply": _reply}, kind=VendorKind.NEITHER)
    before_us = spent_until_us(desk)
    meanwhile(desk, lambda: desk.clock.advance(30))
    ref = desk.enqueue("reply")
    desk.work(ref.job_id)
    assert (desk.rows(ref.job_id), desk.vendor.requests) == ([], 0)
    assert spent_until_us(desk) == before_us


@pytest.mark.req("X4")
@pytest.mark.parametrize("trouble", ["quiet", "shut", "slower"])
def test_terms_that_became_stricter_in_the_wait_are_obeyed(trouble: str) -> None:
    """Another environment heard a 429, an outage or a lower limit: nothing is called, and the job has a later turn. No
    return makes permits: under a lower pace the same call is more time than was taken for it."""
    desk = a_desk(ahead_s=1.5)
    spec, before_us = desk.accounts["desk_account"], spent_until_us(desk)

    def heard() -> None:
        now_us = us_of(desk.clock.now())
        seen = desk.budget_ledger.read(spec).terms
        after = {
            "quiet": feedback.changed(seen, now_us, quiet_until_us=now_us + 30 * SECOND),
            "shut": feedback.shut_down(seen, feedback.OUTAGE, now_us, now_us),
            "slower": feedback.changed(seen, now_us, told={Limit.REQUESTS: 10}),
        }[trouble]
        assert after is not None
        desk.budget_ledger.change(spec, seen, after)

    meanwhile(desk, heard)
    ref = desk.enqueue("ask")
    desk.work(ref.job_id)
    job = desk.job(ref.job_id)
    assert (job.status, job.blocked_by, desk.vendor.calls) == (Status.QUEUED, "budget:desk_account", 0)
    assert job.permit_at is not None
    assert job.permit_at >= desk.clock.now() + timedelta(seconds={"quiet": 28, "shut": 0, "slower": 0.5}[trouble])
    assert spent_until_us(desk) >= before_us


@pytest.mark.req("X4")
def test_terms_that_became_easier_in_the_wait_change_nothing() -> None:
    """A raised limit is no reason to put the job back."""
    desk = a_desk(ahead_s=1.5)
    spec = desk.accounts["desk_account"]

    def raised() -> None:
        seen = desk.budget_ledger.read(spec).terms
        raised = feedback.changed(seen, us_of(desk.clock.now()), told={Limit.REQUESTS: 600})
        desk.budget_ledger.change(spec, seen, raised)

    meanwhile(desk, raised)
    ref = desk.enqueue("ask")
    desk.work(ref.job_id)
    assert desk.job(ref.job_id).status is Status.COMPLETED


def test_an_account_that_cannot_be_asked_after_the_wait_gets_no_call() -> None:
    """Nobody knows whether the vendor is in trouble: the job waits, and the permit is lost, not doubled."""
    desk = a_desk(ahead_s=1.5)
    flaky = Flaky(desk.budget_ledger, "read")
    desk.budget_ledger = flaky  # type: ignore[assignment]
    desk.budgets = desk.an_environment("env-2")

    def down() -> None:
        flaky.down = True

    meanwhile(desk, down)
    ref = desk.enqueue("ask")
    desk.work(ref.job_id)
    assert (desk.job(ref.job_id).status, desk.vendor.calls) == (Status.QUEUED, 0)


def _reply(job: Job, ctx: Context) -> Outcome:
    from tests.vendors_and_tasks import TASKS

    return TASKS["reply"](job, ctx)
