"""What one environment spends: leases that serve many calls, turns of one's own, and answers that are heard."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.core import feedback, rate
from shared.core.account import Limit
from shared.core.effects import Accepted, Refused, Unknown
from shared.core.errors import BadInput
from shared.core.feedback import Report
from shared.core.rate import SECOND, Terms, us_of
from shared.usecases.budgets import Budgets
from shared.usecases.permit import Checked, Denied, OverLimit, Permit
from tests.builders import an_account
from tests.unit.usecases.desk import Desk, Flaky

VENDOR = "helpdesk"


def check(budgets: Budgets, tokens: int = 0) -> Permit | Denied:
    checked = budgets.try_consume(VENDOR, tokens)
    assert isinstance(checked, Checked)
    return checked.answer


def permit(budgets: Budgets, tokens: int = 0) -> Permit:
    answer = check(budgets, tokens)
    assert isinstance(answer, Permit)
    return answer


def denied(budgets: Budgets, tokens: int = 0) -> Denied:
    answer = check(budgets, tokens)
    assert isinstance(answer, Denied)
    return answer


def with_a_wrong_clock(desk: Desk, skew_s: float) -> Budgets:
    """An environment whose machine's clock is ahead by so much, and knows it."""
    return Budgets.of(
        desk.accounts.values(),
        ledger=desk.budget_ledger,
        clock=desk.clock.skewed(skew_s),
        telemetry=desk.telemetry,
        owner="env-9",
        skew_s=lambda: skew_s,
    )


@pytest.fixture
def desk() -> Desk:
    return Desk(account=an_account(requests_per_minute=600, tokens_per_minute=60_000))


def test_a_vendor_without_an_account_is_not_kept(desk: Desk) -> None:
    """Nobody gave it a budget: its calls pass and cost no write."""
    assert desk.budgets.try_consume("somebody_else", 5) is None
    assert desk.budget_ledger.writes == 0


@pytest.mark.req("X3")
def test_one_write_serves_a_batch(desk: Desk) -> None:
    """Ten calls that were announced take one lease."""
    desk.budgets.expect(10, 60)
    for _ in range(10):
        permit(desk.budgets, 10)
    assert desk.budget_ledger.writes == 1


@pytest.mark.req("X3")
def test_over_the_limit_the_answer_is_a_time_and_never_a_wait(desk: Desk) -> None:
    """The burst is two seconds of the pace here; then every refusal has its own later turn, and no clock was moved."""
    began = desk.clock.now()
    answers = [check(desk.budgets) for _ in range(60)]
    allowed = [answer for answer in answers if isinstance(answer, Permit)]
    turns = [answer.until for answer in answers if isinstance(answer, Denied)]
    assert 20 <= len(allowed) <= 21
    assert desk.clock.now() == began
    assert len(set(turns)) == len(turns)
    assert all(turn > began for turn in turns)


@pytest.mark.req("X4")
def test_refused_jobs_do_not_wake_together() -> None:
    """A thousand refusals in one second, in many environments: no second has more than three times the mean."""
    desk = Desk(account=an_account(requests_per_minute=6_000, tokens_per_minute=None))
    desk.budget_ledger.spent(desk.accounts["desk_account"], us_of(desk.clock.now() + timedelta(seconds=5)))
    turns: list[int] = []
    for number in range(100):
        environment = desk.an_environment(f"env-{number}")
        environment.expect(10, 60)
        turns += [int(denied(environment).until.timestamp()) for _ in range(10)]
    seconds = [turns.count(second) for second in range(min(turns), max(turns) + 1)]
    assert sum(seconds) == 1000
    assert max(seconds) <= 3 * (sum(seconds) / len(seconds))


def test_what_is_not_used_goes_back(desk: Desk) -> None:
    """A lease of ten of which one was used leaves the account as if one had been taken."""
    desk.budgets.expect(10, 60)
    desk.budgets.heard(VENDOR, permit(desk.budgets, 100), Accepted("id"))
    desk.clock.advance(1.5)
    desk.budgets.give_back()
    spec = desk.accounts["desk_account"]
    arrival = desk.budget_ledger.read(spec).arrival_us
    assert arrival[Limit.REQUESTS] == us_of(desk.clock.now() - timedelta(seconds=1.5)) + rate.cost_us(1, 600)


def test_a_lease_is_void_after_the_bursts_time(desk: Desk) -> None:
    """An environment that was frozen does not spend what it took long ago: it asks again."""
    desk.budgets.expect(10, 60)
    permit(desk.budgets)
    desk.clock.advance(desk.accounts["desk_account"].burst_s)
    permit(desk.budgets)
    assert desk.budget_ledger.writes == 2


@pytest.mark.req("X9")
def test_two_lanes_spend_one_account(desk: Desk) -> None:
    """What one environment took is gone for the other: together they get no more than the limit and its burst."""
    other = desk.an_environment("env-2")
    allowed = sum(isinstance(check(budgets), Permit) for _ in range(50) for budgets in (desk.budgets, other))
    assert allowed <= 21


def call(desk: Desk, used: int, tokens: int = 0) -> Permit:
    """A batch of one call, estimated at so much, which used so much."""
    paid = permit(desk.budgets, tokens)
    desk.budgets.heard(VENDOR, paid, Accepted("id", report=Report(tokens_used=used)))
    desk.budgets.give_back()
    return paid


def test_the_estimate_is_settled_with_the_use(desk: Desk) -> None:
    """Estimated 1,000 and used 400: with the next take, which costs no write more, the account has been charged for
    what was used; used more, it pays more. What is too much to wait is charged after the batch."""
    spec = desk.accounts["desk_account"]
    for used, later in ((400, True), (1500, True), (4500, False)):
        desk = Desk(account=spec)
        start = us_of(desk.clock.now())
        call(desk, used, 1000)
        assert desk.budget_ledger.writes == (1 if later else 2)
        if later:
            desk.clock.advance(0.9)
            call(desk, 1000, 1000)
            used += 1000
        assert desk.budget_ledger.read(spec).arrival_us[Limit.TOKENS] - start == rate.cost_us(used, 60_000)


@pytest.mark.req("X3")
def test_a_call_that_nobody_estimated_is_charged_with_a_usual_one(desk: Desk) -> None:
    """The first one with nothing, since nobody knows; the next ones, in any environment, with what was told, as far as
    the limits let a call; one that is estimated with its estimate; and where nobody counts tokens none with any."""
    assert call(desk, 1600).tokens == 0
    desk.clock.advance(10)
    call(desk, 1600)
    desk.clock.advance(10)
    other = desk.an_environment("env-2")
    permit(other)
    desk.clock.advance(10)
    assert permit(other).tokens == 1600
    assert permit(other, 20).tokens == 20
    spec = desk.accounts["desk_account"]
    small = Desk(account=replace(spec, tokens_per_minute=1000))
    for charged in (0, 0, 1000):
        assert call(small, 1600).tokens == charged
        small.clock.advance(600)
    daily = Desk(account=replace(spec, tokens_per_minute=None, tokens_per_day=10_000))
    assert [call(daily, 1600).tokens for _ in range(4)] == [0, 0, 1600, 1600]
    free = Desk(account=replace(spec, tokens_per_minute=None))
    assert [call(free, 1600).tokens for _ in range(4)] == [0] * 4


@pytest.mark.req("X3")
def test_calls_that_nobody_estimates_cost_no_more_writes() -> None:
    """One call a batch, each of them between 0.3 and 4 times the middle one, in four environments: one and a half
    writes a call at most, and the account was charged what was used."""
    desk = Desk(account=an_account(requests_per_minute=600, tokens_per_minute=60_000, burst_s=0.5))
    spec, rng, used, calls = desk.accounts["desk_account"], random.Random("usual"), 0, 0
    environments = [desk.an_environment(f"env-{number}") for number in range(4)]
    while calls < 400:
        environment = environments[calls % 4]
        checked = environment.try_consume(VENDOR, 0, ahead_s=2.0)
        assert isinstance(checked, Checked)
        if isinstance(checked.answer, Denied):
            desk.clock.advance((checked.answer.until - desk.clock.now()).total_seconds())
            continue
        desk.clock.advance(checked.answer.wait_us / SECOND + 1)
        tokens = int(1000 * math.exp(rng.uniform(math.log(0.3), math.log(4))))
        environment.heard(VENDOR, checked.answer, Accepted("id", report=Report(tokens_used=tokens)))
        environment.give_back()
        used, calls = used + tokens, calls + 1
    assert desk.budget_ledger.writes <= 1.5 * calls
    spent_us = desk.budget_ledger.read(spec).spent_us
    assert spent_us == pytest.approx(used / 60_000 * 60 * SECOND, rel=0.05)


@pytest.mark.parametrize("estimate", [-1, 2.5, float("nan"), True, "many", None, 10**13])
@pytest.mark.req("X3")
def test_an_estimate_that_is_none_is_named(desk: Desk, estimate: object) -> None:
    """Negative, fractional, absurd or no number at all: a clear error, and nothing was taken."""
    with pytest.raises(BadInput, match="estimated_tokens"):
        desk.budgets.try_consume(VENDOR, estimate)  # type: ignore[arg-type]
    assert desk.budget_ledger.writes == 0


@pytest.mark.req("X3")
def test_more_than_the_whole_limit_is_refused_with_a_sentence(desk: Desk) -> None:
    """No waiting makes it fit, so it does not wait."""
    with pytest.raises(OverLimit, match=r"needs 60,001 tokens, the whole limit of account desk_account is 60,000"):
        check(desk.budgets, 60_001)
    assert desk.budget_ledger.writes == 0


def test_a_refusal_is_remembered(desk: Desk) -> None:
    """Once refused, an environment does not write again to be told the same before that time."""
    desk.budget_ledger.spent(desk.accounts["desk_account"], us_of(desk.clock.now() + timedelta(seconds=30)))
    desk.budgets.expect(10, 60)
    for _ in range(10):
        denied(desk.budgets)
    assert desk.budget_ledger.writes == 2  # asked once, and a block of turns


@pytest.mark.req("X3")
def test_what_was_just_seen_to_be_spent_is_not_asked_for(desk: Desk) -> None:
    """An account whose next moment is known to come later than anybody waits for: a turn, and no write to be refused.
    Two seconds later it is asked again, since somebody may have returned something."""
    call(desk, 10_000, 10_000)
    desk.clock.advance(1.9)
    assert isinstance(check(desk.budgets, 100), Denied)
    assert desk.budget_ledger.writes == 2  # the call, and a turn
    other = desk.an_environment("env-2")
    assert isinstance(check(other, 100), Denied)
    assert desk.budget_ledger.writes == 4
    spec = desk.accounts["desk_account"]
    desk.budget_ledger.give_back(spec, rate.Want(requests=0, tokens=10_000), now_us=us_of(desk.clock.now()))
    desk.clock.advance(0.2)
    assert isinstance(check(desk.budgets, 100), Permit)


def test_a_429_quiets_everybody(desk: Desk) -> None:
    """The vendor asked for five seconds: no environment of the account gets a permit before."""
    paid = permit(desk.budgets)
    later = desk.budgets.heard(VENDOR, paid, Refused("429", report=Report(retry_after_s=5)))
    assert later is not None
    assert later.until >= desk.clock.now() + timedelta(seconds=5)
    other = desk.an_environment("env-2")
    assert denied(other).until >= desk.clock.now() + timedelta(seconds=5)
    desk.clock.advance(5)
    permit(other)


def test_told_limits_hold_for_everybody(desk: Desk) -> None:
    """One answer with headers halves the pace of all."""
    paid = permit(desk.budgets)
    told = Report(limits={Limit.REQUESTS: 60}, remaining={Limit.REQUESTS: 10})
    desk.budgets.heard(VENDOR, paid, Accepted("id", report=told))
    spec = desk.accounts["desk_account"]
    assert rate.limit_of(spec, desk.budget_ledger.read(spec).terms, Limit.REQUESTS, 0) == 60
    version = desk.budget_ledger.read(spec).terms.version
    desk.budgets.heard(VENDOR, permit(desk.budgets), Accepted("id", report=told))
    assert desk.budget_ledger.read(spec).terms.version == version


@pytest.mark.fault("G9")
def test_refused_credentials_shut_the_account_and_fail_no_job(desk: Desk) -> None:
    """One 401: the job waits, everybody waits, one probe a minute looks again."""
    later = desk.budgets.heard(VENDOR, permit(desk.budgets), Refused("401", auth=True))
    assert later is not None
    other = desk.an_environment("env-2")
    assert denied(other).limit == "shut:auth"
    desk.clock.advance(60)
    probe = permit(other)
    assert probe.probe
    assert isinstance(check(desk.an_environment("env-3")), Denied)
    assert other.heard(VENDOR, probe, Accepted("id")) is None
    assert isinstance(check(desk.an_environment("env-3")), Permit)


@pytest.mark.fault("G9")
def test_a_probe_that_was_not_needed_is_the_next_callers(desk: Desk) -> None:
    """An effect that stands at the vendor already needs no call: the probe taken for it is free again at once. Else a
    job whose first effect is made would take every probe for that one, and find none left for its second."""
    desk.budgets.heard(VENDOR, permit(desk.budgets), Refused("401", auth=True))
    other = desk.an_environment("env-2")
    desk.clock.advance(60)
    probe = permit(other)
    assert probe.probe
    other.unsent(VENDOR, probe)
    again = permit(other)
    assert again.probe
    assert isinstance(check(desk.an_environment("env-3")), Denied)
    assert other.heard(VENDOR, again, Accepted("id")) is None
    assert not permit(other).probe


@pytest.mark.fault("G8")
def test_an_outage_shuts_the_account_and_one_probe_opens_it(desk: Desk) -> None:
    """Five failures of calls sent since the account was opened; then one probe a second; its answer opens for all."""
    environment = desk.budgets
    environment.expect(10, 60)
    paid = [permit(environment) for _ in range(7)]
    desk.clock.advance(0.5)
    outcomes = [environment.heard(VENDOR, one, Unknown("503")) for one in paid]
    assert outcomes[:4] == [None] * 4
    assert all(later is not None for later in outcomes[4:])
    assert denied(environment).limit == "shut:outage"
    desk.clock.advance(1)
    probe = permit(environment)
    assert probe.probe
    assert isinstance(check(environment), Denied)
    desk.clock.advance(0.2)
    environment.heard(VENDOR, probe, Accepted("id"))
    assert not permit(environment).probe


@pytest.mark.fault("G8")
def test_failures_of_calls_sent_before_do_not_shut_it_again(desk: Desk) -> None:
    """A breaker counts by send time: what was under way in the outage says nothing about now."""
    environment = desk.budgets
    environment.expect(20, 60)
    old = [permit(environment) for _ in range(12)]
    desk.clock.advance(0.5)
    for one in old[:5]:
        environment.heard(VENDOR, one, Unknown("503"))
    desk.clock.advance(1)
    environment.heard(VENDOR, permit(environment), Accepted("id"))
    for one in old[5:]:
        environment.heard(VENDOR, one, Unknown("503"))
    spec = desk.accounts["desk_account"]
    assert desk.budget_ledger.read(spec).terms.shut is None


def test_a_probe_that_fails_leaves_it_shut_and_the_job_waits(desk: Desk) -> None:
    """The outage is not the job's fault: no attempt is used for it."""
    environment = desk.budgets
    environment.expect(10, 60)
    for one in [permit(environment) for _ in range(5)]:
        environment.heard(VENDOR, one, Unknown("503"))
    desk.clock.advance(1)
    assert environment.heard(VENDOR, permit(environment), Unknown("503")) is not None
    assert isinstance(check(environment), Denied)


@pytest.mark.parametrize("skew_s", [-30.0, -2.5, 2.5, 30.0])
@pytest.mark.fault("D4")
def test_a_clock_that_is_wrong_takes_no_permits(desk: Desk, skew_s: float) -> None:
    """Beyond two seconds an environment would spend other minutes than its own: it waits, and writes no take."""
    budgets = with_a_wrong_clock(desk, skew_s)
    assert denied(budgets).limit == "clock_skew"
    assert not desk.budget_ledger.read(desk.accounts["desk_account"]).arrival_us


@pytest.mark.parametrize("skew_s", [-2.0, -0.7, 0.7, 2.0])
@pytest.mark.fault("D4")
def test_a_clock_that_is_a_little_wrong_is_corrected(desk: Desk, skew_s: float) -> None:
    """Within two seconds it spends by the table's clock."""
    budgets = with_a_wrong_clock(desk, skew_s)
    permit(budgets)
    arrival = desk.budget_ledger.read(desk.accounts["desk_account"]).arrival_us[Limit.REQUESTS]
    assert arrival == us_of(desk.clock.now()) + rate.cost_us(1, 600)


@pytest.mark.req("X5")
def test_an_account_that_cannot_be_asked_is_estimated(desk: Desk) -> None:
    """Nothing is known, so nothing is sent; the wait is the estimate's."""
    ledger = Flaky(desk.budget_ledger, "take", "reserve")
    budgets = Budgets.of(
        desk.accounts.values(),
        ledger=ledger,  # type: ignore[arg-type]
        clock=desk.clock,
        telemetry=desk.telemetry,
        owner="env-1",
        chance=lambda: 0.5,
    )
    ledger.down = True
    answer = denied(budgets, 30_000)
    assert answer.limit == "unreadable"
    assert timedelta(seconds=1) <= answer.until - desk.clock.now() <= timedelta(seconds=300)


@pytest.mark.fault("C6")
def test_slots_are_held_by_whoever_runs_and_come_back(desk: Desk) -> None:
    """Three calls at once for everybody; a dead environment's slots are free when its time is over."""
    desk = Desk(account=an_account(requests_per_minute=6000, tokens_per_minute=None, concurrency=3))
    one, two = desk.an_environment("env-1"), desk.an_environment("env-2")
    one.expect(2, 60)
    held = [permit(one), permit(one)]
    two.expect(5, 60)
    permit(two)
    assert denied(two).limit == "concurrency"
    for paid in held:
        one.heard(VENDOR, paid, Accepted("id"))
    one.give_back()
    desk.clock.advance(1)
    assert isinstance(check(desk.an_environment("env-3")), Permit)
    # env-2 and env-3 die with their slots: nobody gives them back.
    desk.clock.advance(70)
    four = desk.an_environment("env-4")
    four.expect(3, 60)
    assert [type(check(four)) for _ in range(3)] == [Permit] * 3


def test_turned_off_it_lets_everything_pass_and_on_again_it_holds(desk: Desk) -> None:
    """The flag of an account, both ways, without a deploy."""
    spec = desk.accounts["desk_account"]
    terms = desk.budget_ledger.read(spec).terms
    off = feedback.changed(terms, us_of(desk.clock.now()), enforced=False)
    desk.budget_ledger.change(spec, terms, off)
    assert all(isinstance(check(desk.budgets), Permit) for _ in range(100))
    desk.budget_ledger.change(spec, off, feedback.changed(off, us_of(desk.clock.now()), enforced=True))
    desk.clock.advance(11)
    assert any(isinstance(check(desk.budgets), Denied) for _ in range(100))


def overspent(calls: list[tuple[float, int]], requests: int, tokens: int) -> bool:
    """True when some sliding minute holds more calls or more tokens."""
    for start, _ in calls:
        inside = [used for at, used in calls if start <= at < start + 60]
        if len(inside) > requests or sum(inside) > tokens:
            return True
    return False


@pytest.mark.req("X9")
@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 10**6), hurry_s=st.floats(0.05, 0.6))
def test_no_sliding_minute_is_overspent(seed: int, hurry_s: float) -> None:
    """However many environments come and go, ask, return and use more than they estimated: calls in any sliding minute
    stay within the limit, the burst, one request, and the leases that were live at its start."""
    rng = random.Random(seed)
    desk = Desk(account=an_account(requests_per_minute=60, tokens_per_minute=30_000))
    environments = [desk.an_environment(f"env-{number}") for number in range(5)]
    calls: list[tuple[float, int]] = []
    for number in range(400):
        desk.clock.advance(rng.uniform(0, 2 * hurry_s))
        if rng.random() < 0.02:
            environments[rng.randrange(5)] = desk.an_environment(f"new-{number}")
        environment = environments[rng.randrange(5)]
        environment.expect(rng.randint(1, 3), 60)
        answer = check(environment, rng.randint(0, 900))
        if isinstance(answer, Permit):
            calls.append((desk.clock.now().timestamp(), answer.tokens))
            used = Report(tokens_used=rng.randint(0, answer.tokens))
            environment.heard(VENDOR, answer, Accepted("id", report=used))
        if rng.random() < 0.3:
            environment.give_back()
    # Two seconds of the pace, and a lease of at most three calls and a twentieth of the limit in five hands.
    burst, leases = (2, 1_000), (5 * 3, 5 * 1_500)
    assert not overspent(calls, 60 + burst[0] + leases[0], 30_000 + burst[1] + leases[1] + 900)


def test_the_judge_of_sliding_minutes_can_see() -> None:
    """Without a limiter the same calls are overspent: the bound above is one."""
    calls = [(number * 0.3, 450) for number in range(400)]
    assert overspent(calls, 60 + 2 + 15, 30_000 + 1_000 + 7_500 + 900)


# ---------------------------------------------------------------------------- what reviews and nights brought up
def test_a_far_off_time_pushes_nobody_else() -> None:
    """Refused until midnight by a daily limit, a job keeps its place then; a small one beside it runs at once."""
    desk = Desk(account=an_account(requests_per_minute=600, tokens_per_minute=None, tokens_per_day=5_000))
    permit(desk.budgets, 1_000)
    later = denied(desk.budgets, 5_000)
    assert later.until.date() > desk.clock.now().date()
    assert desk.budget_ledger.read(desk.accounts["desk_account"]).line_us <= us_of(desk.clock.now()) + SECOND
    assert isinstance(check(desk.budgets, 10), Permit)


def test_a_wrong_clock_pushes_nobody_else(desk: Desk) -> None:
    """An hour ahead, an environment gets no permit, and the line of the others stays where it is."""
    wrong = with_a_wrong_clock(desk, 3600.0)
    assert denied(wrong).until - desk.clock.now() < timedelta(seconds=20)
    assert desk.budget_ledger.read(desk.accounts["desk_account"]).line_us <= us_of(desk.clock.now()) + SECOND


def test_a_large_refusal_does_not_reserve_for_its_neighbours() -> None:
    """One request of twenty thousand tokens in a batch of ten: the line grows by it and nine usual ones, not by ten
    large ones."""
    desk = Desk(account=an_account(requests_per_minute=600, tokens_per_minute=30_000))
    environment = desk.an_environment("env-1")
    environment.expect(10, 60)
    permit(environment, 100)
    denied(environment, 20_000)
    line_us = desk.budget_ledger.read(desk.accounts["desk_account"]).line_us
    assert line_us - us_of(desk.clock.now()) < 60 * SECOND


def test_no_token_is_taken_that_no_call_will_use() -> None:
    """Calls one after the other at the pace: what the account was charged is what they used."""
    desk = Desk(account=an_account(requests_per_minute=600, tokens_per_minute=30_000, tokens_per_day=300_000))
    spec, calls = desk.accounts["desk_account"], 0
    for _ in range(400):
        answer = check(desk.budgets, 3_000)
        if isinstance(answer, Permit):
            calls += 1
            desk.budgets.heard(VENDOR, answer, Accepted("id", report=Report(tokens_used=3_000)))
        desk.budgets.give_back()
        desk.clock.advance(3)
    assert calls == 100
    assert desk.budget_ledger.read(spec).used[Limit.TOKENS_PER_DAY] == 300_000


@pytest.mark.fault("G8")
def test_a_slow_probe_opens_the_account(desk: Desk) -> None:
    """Its answer takes four seconds while others ask for the next probe: there is one probe, and it opens."""
    shut_down(desk)
    desk.clock.advance(1)
    probe = permit(desk.budgets)
    others = [desk.an_environment(f"env-{number}") for number in range(2, 8)]
    for _ in range(4):
        desk.clock.advance(1)
        assert all(isinstance(check(other), Denied) for other in others)
    assert desk.budgets.heard(VENDOR, probe, Accepted("id")) is None
    assert desk.budget_ledger.read(desk.accounts["desk_account"]).terms.shut is None


def test_an_answer_is_heard_although_somebody_changed_the_terms(desk: Desk) -> None:
    """The probe seemed dead, another one is under way; the first answer that comes opens the account all the same."""
    shut_down(desk)
    desk.clock.advance(1)
    slow = permit(desk.budgets)
    desk.clock.advance(11)
    assert permit(desk.an_environment("env-2")).probe
    assert desk.budgets.heard(VENDOR, slow, Accepted("id")) is None
    assert desk.budget_ledger.read(desk.accounts["desk_account"]).terms.shut is None


def test_probes_that_fail_mint_no_tokens(desk: Desk) -> None:
    """Nothing was charged for them, so nothing comes back: afterwards the account has no more than its burst."""
    shut_down(desk)
    for _ in range(30):
        desk.clock.advance(1)
        desk.budgets.heard(VENDOR, permit(desk.budgets, 20_000), Refused("unreachable"))
    desk.clock.advance(1)
    desk.budgets.heard(VENDOR, permit(desk.budgets, 0), Accepted("id"))
    allowed = sum(isinstance(check(desk.budgets, 1_000), Permit) for _ in range(30))
    assert allowed <= 3


@pytest.mark.fault("G9")
def test_one_jobs_own_refusal_is_not_the_accounts(desk: Desk) -> None:
    """Refused a second time while the key is good for others: the job's affair, the account stays open."""
    permit_of = permit(desk.budgets)
    assert desk.budgets.heard(VENDOR, permit_of, Refused("403", auth=True)) is not None
    desk.clock.advance(1)
    desk.budgets.heard(VENDOR, permit(desk.budgets), Accepted("id"))
    assert desk.budgets.heard(VENDOR, permit(desk.budgets), Refused("403", auth=True), again=True) is None
    assert desk.budget_ledger.read(desk.accounts["desk_account"]).terms.shut is None
    desk.clock.advance(61)
    assert desk.budgets.heard(VENDOR, permit(desk.budgets), Refused("403", auth=True), again=True) is not None


def test_a_remembered_refusal_is_about_its_own_size_and_soon_forgotten() -> None:
    """A small request is not refused for a large one's sake; what an operator opens is felt within two seconds."""
    desk = Desk(account=an_account(requests_per_minute=600, tokens_per_minute=None, tokens_per_day=5_000))
    permit(desk.budgets, 1_000)
    denied(desk.budgets, 5_000)
    assert isinstance(check(desk.budgets, 10), Permit)
    denied(desk.budgets, 5_000)
    spec = desk.accounts["desk_account"]
    terms = desk.budget_ledger.read(spec).terms
    desk.budget_ledger.change(spec, terms, feedback.changed(terms, us_of(desk.clock.now()), enforced=False))
    desk.clock.advance(2)
    assert isinstance(check(desk.budgets, 5_000), Permit)


def test_limits_told_by_a_429_are_learnt(desk: Desk) -> None:
    """A vendor that tells its limits only where it refuses is believed there."""
    report = Report(limits={Limit.REQUESTS: 60}, retry_after_s=2)
    desk.budgets.heard(VENDOR, permit(desk.budgets), Refused("429", report=report))
    terms = desk.budget_ledger.read(desk.accounts["desk_account"]).terms
    assert terms.told == {Limit.REQUESTS: 60}
    assert terms.quiet_until_us == us_of(desk.clock.now()) + 2 * SECOND


@pytest.mark.fault("G10")
def test_a_429_that_brings_a_lower_limit_is_still_a_429(desk: Desk) -> None:
    """Its limit and its quiet are one piece of news: both hold."""
    before = Report(limits={Limit.REQUESTS: 600})
    desk.budgets.heard(VENDOR, permit(desk.budgets), Accepted("id", report=before))
    desk.clock.advance(1)
    report, sent = Report(limits={Limit.REQUESTS: 300}, retry_after_s=5), permit(desk.budgets)
    desk.clock.advance(0.1)
    later = desk.budgets.heard(VENDOR, sent, Refused("429", report=report))
    assert later is not None
    assert later.until >= desk.clock.now() + timedelta(seconds=5)
    terms = desk.budget_ledger.read(desk.accounts["desk_account"]).terms
    assert (terms.told, terms.refused_us) == ({Limit.REQUESTS: 300}, (us_of(desk.clock.now()),))
    assert denied(desk.an_environment("env-2")).until >= later.until


def test_little_left_at_the_vendor_is_little_left_here(desk: Desk) -> None:
    """Somebody else spends the account: told that one request is left, no burst is sent."""
    report = Report(limits={Limit.REQUESTS: 600}, remaining={Limit.REQUESTS: 1})
    desk.budgets.heard(VENDOR, permit(desk.budgets), Accepted("id", report=report))
    assert sum(isinstance(check(desk.budgets), Permit) for _ in range(20)) <= 1


def test_a_permit_that_comes_back_into_quiet_is_not_spent(desk: Desk) -> None:
    """A 429 voids the lease; a neighbour's unused permit does not revive it."""
    desk.budgets.expect(10, 60)
    one, two = permit(desk.budgets), permit(desk.budgets)
    desk.budgets.heard(VENDOR, one, Refused("429", retry_after_s=5, report=Report(retry_after_s=5)))
    desk.budgets.unsent(VENDOR, two)
    assert isinstance(check(desk.budgets), Denied)


def test_a_call_that_never_left_says_nothing_about_the_vendor(desk: Desk) -> None:
    """A probe without a token does not open the account."""
    shut_down(desk)
    desk.clock.advance(1)
    desk.budgets.heard(VENDOR, permit(desk.budgets), Refused("secret_unavailable", unsent=True))
    assert desk.budget_ledger.read(desk.accounts["desk_account"]).terms.shut is not None


def test_a_call_whose_answer_nobody_tells_runs_no_more() -> None:
    """A slot is free again although the record after the send failed."""
    desk = Desk(account=an_account(requests_per_minute=6000, tokens_per_minute=None, concurrency=2))
    for _ in range(5):
        desk.budgets.over(VENDOR, permit(desk.budgets))


def test_a_pace_that_was_lowered_fails_nobody(desk: Desk) -> None:
    """Pinned or told below the size of a request, the account lets it wait for its turn; above the configured limit
    it is refused for good."""
    spec = desk.accounts["desk_account"]
    terms = desk.budget_ledger.read(spec).terms
    low = feedback.changed(terms, us_of(desk.clock.now()), pinned={Limit.TOKENS: 1_000}, told={Limit.TOKENS: 4_000})
    desk.budget_ledger.change(spec, terms, low)
    assert isinstance(check(desk.budgets, 5_000), Permit)
    with pytest.raises(OverLimit):
        check(desk.budgets, 60_001)


@pytest.mark.parametrize("skew_s", [-1.9, 1.9])
@pytest.mark.fault("D4")
def test_all_of_an_environments_times_are_the_tables(desk: Desk, skew_s: float) -> None:
    """With a clock a little wrong: a lease is returned within its time, and a quiet second is a whole one."""
    budgets = with_a_wrong_clock(desk, skew_s)
    spec = desk.accounts["desk_account"]
    budgets.expect(10, 60)
    budgets.heard(VENDOR, permit(budgets), Accepted("id"))
    desk.clock.advance(1.5)
    budgets.give_back()
    assert desk.budget_ledger.read(spec).arrival_us[Limit.REQUESTS] <= us_of(desk.clock.now())
    budgets.heard(VENDOR, permit(budgets), Refused("429", report=Report(retry_after_s=1)))
    assert desk.budget_ledger.read(spec).terms.quiet_until_us == us_of(desk.clock.now()) + SECOND


def test_jobs_refused_for_want_of_slots_do_not_wake_together() -> None:
    """Calls of about a second, two at once: a hundred refusals are spread over their time."""
    desk = Desk(account=an_account(requests_per_minute=None, tokens_per_minute=None, concurrency=2))
    held = [permit(desk.budgets), permit(desk.budgets)]
    turns = [int(denied(desk.an_environment(f"other-{n}")).until.timestamp()) for n in range(100)]
    assert len(held) == 2
    assert max(turns.count(second) for second in set(turns)) <= 3


@pytest.mark.req("X9")
@pytest.mark.parametrize("burst_s", [1.0, 2.0])
def test_at_a_thousand_permits_a_second_the_account_is_written_seldom(burst_s: float) -> None:
    """Fifty environments, each with ten calls of half a second at once: once they know their demand, at most one write
    for twenty permits."""
    desk = Desk(account=an_account(requests_per_minute=60_000, tokens_per_minute=None, burst_s=burst_s))
    environments = [desk.an_environment(f"env-{number}") for number in range(50)]
    permits, writes = 0, 0
    for turn in range(60):
        if turn == 10:
            permits, writes = 0, desk.budget_ledger.writes
        for environment in environments:
            desk.clock.advance(0.01)
            environment.expect(10, 60)
            answers = [check(environment) for _ in range(10)]
            given = [answer for answer in answers if isinstance(answer, Permit)]
            permits += len(given)
            for answer in given:
                environment.heard(VENDOR, answer, Accepted("id"))
            environment.give_back()
    assert permits > 0.95 * 25_000
    print(f"{permits} permits, {(desk.budget_ledger.writes - writes) / permits:.4f} writes a permit")
    assert desk.budget_ledger.writes - writes <= 0.05 * permits


def shut_down(desk: Desk) -> None:
    """An outage that everybody knows of."""
    spec, now_us = desk.accounts["desk_account"], us_of(desk.clock.now())
    shut = feedback.shut_down(Terms(), feedback.OUTAGE, now_us, now_us)
    assert shut is not None
    desk.budget_ledger.change(spec, Terms(), shut)
