"""Admission: ordered gates, one verdict, and a reason a person can act on."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.core import feedback, rate
from shared.core.account import PACED, Limit
from shared.core.admission import GATES, AccountView, Capacity, GateAnswer, View, admit
from shared.core.job import Job
from shared.core.switches import Level, Switches
from tests.builders import NOW, a_job, a_lane, a_switch, an_account
from tests.unit.core.strategies import few

LANE = a_lane()
CLOSING = (Level.NO_NEW_STARTS, Level.DRAIN, Level.HALT)


def a_view(*, depth: int = 0, limit: int = 10, **switches: Level) -> View:
    """What admission may look at; switches as `all=…`, `lane_support=…`."""
    entries = {
        scope.replace("_", "/", 1): a_switch(scope.replace("_", "/", 1), level) for scope, level in switches.items()
    }
    return View(lane=LANE, switches=Switches(entries=entries), capacity=Capacity(depth=depth, limit=limit))


@st.composite
def views(draw: st.DrawFn) -> View:
    """Any mixture of switches and fullness."""
    scopes = draw(st.lists(st.sampled_from(["all", "lane_support", "vendor_helpdesk", "lane_other"]), unique=True))
    levels = {scope: draw(st.sampled_from(Level)) for scope in scopes}
    return a_view(depth=draw(st.integers(0, 20)), limit=draw(st.integers(1, 20)), **levels)


jobs = st.integers(-7200, 7200).map(lambda s: a_job(not_before_at=NOW + timedelta(seconds=s))) | st.just(a_job())


def test_a_job_that_nothing_holds_runs() -> None:
    """Every gate open: no blocking gate, no reason."""
    verdict = admit(a_job(), a_view(), NOW)
    assert (verdict.runs, verdict.blocked, verdict.reason) == (True, None, None)
    assert [answer.gate for answer in verdict.gates] == ["switches", "schedule", "budget", "capacity"]


@few
@given(job=jobs, view=views())
def test_the_verdict_is_the_first_closed_gate(job: Job, view: View) -> None:
    """Every gate is asked, in order; the first that is closed is what blocks."""
    verdict = admit(job, view, NOW)
    closed = [answer for answer in verdict.gates if not answer.open]
    assert verdict.blocked == (closed[0] if closed else None)
    assert verdict.runs == (not closed)
    assert len(verdict.gates) == len(GATES)


@pytest.mark.req("F9")
@few
@given(job=jobs, view=views())
def test_a_closed_gate_names_its_key_and_what_opens_it(job: Job, view: View) -> None:
    """Back-pressure is visible: no job waits without a key and a way out, and its reason says both."""
    verdict = admit(job, view, NOW)
    for answer in verdict.gates:
        if not answer.open:
            assert answer.key
            assert answer.unblock
    if verdict.blocked is not None:
        assert verdict.reason == f"{verdict.blocked.gate}:{verdict.blocked.key}"


@few
@given(job=jobs, view=views())
def test_admission_only_looks(job: Job, view: View) -> None:
    """The same job, view and time give the same verdict, however often it is asked."""
    assert admit(job, view, NOW) == admit(job, view, NOW)


@pytest.mark.parametrize(
    "scope", ["all", "lane_support", "vendor_helpdesk", "task_support/reply", "tenant_support/tenant-1"]
)
@pytest.mark.parametrize("level", list(Level))
def test_the_switch_gate_closes_from_no_new_starts_upwards(scope: str, level: Level) -> None:
    """On every scope the job is in, and the scope that closes it is named."""
    verdict = admit(a_job(), a_view(**{scope: level}), NOW)
    assert verdict.runs == (level not in CLOSING)
    if level in CLOSING:
        named = scope.replace("_", "/", 1)
        assert verdict.blocked is not None
        assert (verdict.blocked.gate, verdict.blocked.key) == ("switches", named)
        assert f"penstock control set {named} normal" in verdict.blocked.unblock


@pytest.mark.parametrize("scope", ["lane_outreach", "vendor_openai", "task_support/other", "tenant_support/tenant-2"])
def test_anothers_switch_holds_nobody_here(scope: str) -> None:
    """A scope the job is not in has no say."""
    assert admit(a_job(), a_view(**{scope: Level.HALT}), NOW).runs


@given(early_s=st.integers(-100, 100))
def test_the_schedule_gate_is_closed_until_the_jobs_time(early_s: int) -> None:
    """Closed while the job's own time is more than the claim's slack away, and says when it opens."""
    at = NOW + timedelta(seconds=early_s)
    verdict = admit(a_job(not_before_at=at), a_view(), NOW)
    assert verdict.runs == (early_s <= 2)
    if verdict.blocked is not None:
        assert (verdict.blocked.gate, verdict.blocked.retry_at) == ("schedule", at)


def test_the_schedule_gate_keeps_the_reason_of_the_wait() -> None:
    """A job deferred by a vendor says so; one that was enqueued for later says that."""
    later = NOW + timedelta(hours=1)
    waits = admit(a_job(not_before_at=later, blocked_by="vendor:helpdesk:429"), a_view(), NOW)
    assert waits.reason == "schedule:vendor:helpdesk:429"
    assert admit(a_job(not_before_at=later), a_view(), NOW).reason == "schedule:not_before_at"


@given(depth=st.integers(0, 30), limit=st.integers(1, 30))
def test_the_capacity_gate_closes_when_the_window_is_full(depth: int, limit: int) -> None:
    """A full window holds; one place free lets the next one through."""
    verdict = admit(a_job(), a_view(depth=depth, limit=limit), NOW)
    assert verdict.runs == (depth < limit)
    if not verdict.runs:
        assert verdict.reason == "capacity:support"


def test_switches_come_before_time_and_time_before_capacity() -> None:
    """With everything closed, the reason is the one a person must act on first."""
    later = a_job(not_before_at=NOW + timedelta(hours=1))
    assert (admit(later, a_view(depth=10, all=Level.HALT), NOW).reason or "").startswith("switches:")
    assert (admit(later, a_view(depth=10), NOW).reason or "").startswith("schedule:")
    assert (admit(a_job(), a_view(depth=10), NOW).reason or "").startswith("capacity:")


def test_a_new_gate_is_one_object() -> None:
    """Nothing else changes: a gate given to `admit` is asked in its place and can block."""

    class Quota:
        name = "quota"

        def look(self, job: Job, view: View, now: object) -> GateAnswer:
            return GateAnswer(gate=self.name, open=False, key=job.tenant, unblock="a slot of the tenant ends")

    verdict = admit(a_job(), a_view(), NOW, (GATES[0], Quota(), *GATES[1:]))
    assert [answer.gate for answer in verdict.gates] == ["switches", "quota", "schedule", "budget", "capacity"]
    assert verdict.reason == "quota:tenant-1"


# ------------------------------------------------------------------------------------------------ budgets
def an_account_view(*, spent_s: float = 0, line_s: float = 0, shut: str = "", **account: object) -> AccountView:
    """An account of `a_lane()` with so much of its time spent and promised."""
    now_us = rate.us_of(NOW)
    terms = rate.Terms()
    if shut:
        changed = feedback.shut_down(terms, shut, now_us, now_us)
        assert changed is not None
        terms = changed
    spent_us = now_us + int(spent_s * rate.SECOND)
    budget = rate.Budget(terms=terms, arrival_us=dict.fromkeys(PACED, spent_us))
    return AccountView(spec=an_account(**account), budget=budget, line_us=now_us + int(line_s * rate.SECOND))


def budget_answer(job: Job, *accounts: AccountView, at: datetime = NOW) -> GateAnswer:
    view = replace(a_view(), accounts=accounts)
    return next(answer for answer in admit(job, view, at).gates if answer.gate == "budget")


def test_a_spent_account_closes_until_the_exact_moment() -> None:
    """The gate names the account, what is missing and the time; a moment earlier it is closed, then it is open."""
    view, job = an_account_view(spent_s=30), a_job(estimated_tokens=1000)
    answer = budget_answer(job, view)
    assert (answer.open, answer.key, answer.stuck) == (False, "desk_account", False)
    assert answer.retry_at is not None
    assert "missing" in answer.unblock
    assert "desk_account" in answer.unblock
    assert not budget_answer(job, view, at=answer.retry_at - timedelta(milliseconds=2)).open
    assert budget_answer(job, view, at=answer.retry_at).open


def test_who_was_promised_a_turn_stands_in_front_of_the_line() -> None:
    """The line is for those who have no promise; a promise nobody kept for a minute is none."""
    view = an_account_view(line_s=40)
    assert budget_answer(a_job(), view).retry_at == NOW + timedelta(seconds=40)
    assert budget_answer(a_job(permit_at=NOW), view).open
    assert not budget_answer(a_job(permit_at=NOW - timedelta(seconds=61)), view).open


def test_a_shut_account_gives_no_turn_but_its_probe() -> None:
    """Its time is the next look, not a promise that it opens: one job may go there for it."""
    view = an_account_view(shut=feedback.OUTAGE)
    answer = budget_answer(a_job(), view)
    assert (answer.open, answer.stuck) == (False, True)
    assert admit(a_job(), replace(a_view(), accounts=(view,)), NOW).starts_at(NOW, 60) == answer.retry_at
    assert admit(a_job(), replace(a_view(), accounts=(view,)), NOW).starts_at(NOW, 0.5) is None
    assert budget_answer(a_job(), view, at=NOW + timedelta(seconds=1)).open


NOON = NOW + timedelta(hours=12)
NOON_US = rate.us_of(NOON)
FULL = {"w1": rate.Hold(slots=2, batch_tokens=0, until_us=NOON_US + rate.SECOND)}
TODAY: dict[str, Any] = {"day": rate.day_of(NOON_US), "used": {Limit.REQUESTS_PER_DAY: 100}}
KINDS: dict[str, tuple[AccountView, str, timedelta]] = {
    "requests": (
        AccountView(spec=an_account(), budget=rate.Budget(arrival_us={Limit.REQUESTS: NOON_US + 10 * rate.SECOND})),
        "account desk_account: 9 requests missing; its turn is at 2026-01-01T12:00:09.000Z",
        timedelta(seconds=9),
    ),
    "tokens": (
        AccountView(spec=an_account(), budget=rate.Budget(arrival_us={Limit.TOKENS: NOON_US + 10 * rate.SECOND})),
        "account desk_account: 5,000 tokens missing; its turn is at 2026-01-01T12:00:10.000Z",
        timedelta(seconds=10),
    ),
    "quiet": (
        AccountView(spec=an_account(), budget=rate.Budget(terms=rate.Terms(quiet_until_us=NOON_US + 20 * rate.SECOND))),
        "account desk_account: it is quiet after a 429 of the vendor; its turn is at 2026-01-01T12:00:20.000Z",
        timedelta(seconds=20),
    ),
    "day": (
        AccountView(spec=an_account(requests_per_day=100), budget=rate.Budget(**TODAY)),
        "account desk_account: 1 requests over the limit of the day, which ends at midnight UTC;"
        " its turn is at 2026-01-02T00:00:00.000Z",
        timedelta(hours=12),
    ),
    "at once": (
        AccountView(spec=an_account(concurrency=2), budget=rate.Budget(holds=FULL)),
        "account desk_account: 1 more calls at once than it allows; its turn is at 2026-01-01T12:00:01.000Z",
        timedelta(seconds=1),
    ),
    "line": (
        AccountView(spec=an_account(), budget=rate.Budget(), line_us=NOON_US + 30 * rate.SECOND),
        "account desk_account: others are promised first; its turn is at 2026-01-01T12:00:30.000Z",
        timedelta(seconds=30),
    ),
    "tokens and the line": (
        AccountView(
            spec=an_account(),
            budget=rate.Budget(arrival_us={Limit.TOKENS: NOON_US + 10 * rate.SECOND}),
            line_us=NOON_US + 30 * rate.SECOND,
        ),
        "account desk_account: 5,000 tokens missing, and others are promised first;"
        " its turn is at 2026-01-01T12:00:30.000Z",
        timedelta(seconds=30),
    ),
}


@pytest.mark.parametrize(("view", "sentence", "wait"), KINDS.values(), ids=KINDS)
def test_every_kind_of_refusal_has_a_sentence_that_is_true(view: AccountView, sentence: str, wait: timedelta) -> None:
    """The account, how much of what is missing, and the time; nobody reads that zero of something is missing."""
    answer = budget_answer(a_job(estimated_tokens=5_000), view, at=NOON)
    assert (answer.open, answer.key, answer.retry_at) == (False, "desk_account", NOON + wait)
    assert answer.unblock == sentence


def test_an_account_that_cannot_be_read_is_closed_until_it_can_be() -> None:
    """Nothing is known, so nothing is promised: no start ahead, and the sentence has the command that repairs it."""
    view = replace(an_account_view(), readable=False)
    answer = budget_answer(a_job(), view)
    assert (answer.open, answer.stuck, answer.retry_at) == (False, True, None)
    assert "penstock budget set desk_account --reset" in answer.unblock
    assert admit(a_job(), replace(a_view(), accounts=(view,)), NOW).starts_at(NOW, 3600) is None
    not_kept = replace(view, spec=an_account(enforced=False))
    assert budget_answer(a_job(), not_kept).open


def test_of_two_closed_accounts_the_later_one_gives_the_time() -> None:
    """A job needs both: the probe of one is no start while the other is spent."""
    shut = an_account_view(shut=feedback.OUTAGE)
    spent = an_account_view(spent_s=60, name="model")
    answer = budget_answer(a_job(), shut, spent)
    assert answer.key == "desk_account"
    assert answer.retry_at == budget_answer(a_job(), spent).retry_at
    assert budget_answer(a_job(), spent, replace(shut, readable=False)).retry_at is None


def test_a_budget_that_is_not_enforced_is_open() -> None:
    """The flag lets everything pass."""
    assert budget_answer(a_job(), an_account_view(spent_s=3000, enforced=False)).open


@few
@given(spent_s=st.floats(0, 50), line_s=st.floats(0, 50), ahead_s=st.floats(0, 60))
def test_a_start_ahead_is_the_turn_itself(spent_s: float, line_s: float, ahead_s: float) -> None:
    """What only waits for its turn starts at it, if that is near enough; anything else that is closed means waiting."""
    view = replace(a_view(), accounts=(an_account_view(spent_s=spent_s, line_s=line_s),))
    verdict = admit(a_job(), view, NOW)
    start = verdict.starts_at(NOW, ahead_s)
    blocked = verdict.blocked
    if blocked is None:
        assert start == NOW
    else:
        assert blocked.retry_at is not None
        near = blocked.retry_at <= NOW + timedelta(seconds=ahead_s)
        assert start == (blocked.retry_at if near else None)
    full = replace(view, capacity=Capacity(depth=5, limit=5))
    assert admit(a_job(), full, NOW).starts_at(NOW, ahead_s) is None
