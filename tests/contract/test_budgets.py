"""The promises of `BudgetLedger`, kept by every adapter."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from shared.core import feedback
from shared.core.account import Limit
from shared.core.budget import DAY, MINUTE, SECOND, Budget, Hold, Refusal, Search, Shut, Taken, Terms, Want, us_of
from shared.core.errors import BadInput
from tests.builders import NOW, an_account
from tests.contract.worlds import World

NOW_US = us_of(NOW)
SPEC = an_account()
ONE = Want(requests=1, tokens=0)


def granted(answer: Taken | Refusal) -> Taken:
    """The answer, which must be a grant."""
    assert isinstance(answer, Taken), answer
    return answer


def refused(answer: Taken | Refusal) -> Refusal:
    """The answer, which must be a refusal."""
    assert isinstance(answer, Refusal), answer
    return answer


def test_an_account_nobody_has_used_is_empty(world: World) -> None:
    """No row is no spending, no terms, nothing held."""
    assert world.budgets.read(SPEC) == Budget()


@pytest.mark.req("X3")
def test_what_is_taken_is_spent(world: World) -> None:
    """A grant returns the account after it, and that is what everybody reads."""
    taken = granted(world.budgets.take(SPEC, Want(tokens=500), least=ONE, now_us=NOW_US))
    assert taken.want == Want(tokens=500)
    assert taken.budget.arrival_us == {Limit.REQUESTS: NOW_US + SECOND, Limit.TOKENS: NOW_US + SECOND}
    assert world.other_budgets().read(SPEC) == taken.budget


@pytest.mark.req("X3")
@pytest.mark.parametrize("tokens", [0, 400])
def test_a_refusal_knows_its_time_to_the_microsecond(world: World, tokens: int) -> None:
    """The same request is refused one microsecond before that time and granted at it."""
    want = Want(tokens=tokens)
    granted(world.budgets.take(SPEC, want, least=want, now_us=NOW_US))
    granted(world.budgets.take(SPEC, want, least=want, now_us=NOW_US + 1))
    refusal = refused(world.budgets.take(SPEC, want, least=want, now_us=NOW_US + 2))
    assert (refusal.limit, refusal.retry_us) == ("requests", NOW_US + SECOND)
    assert refusal.budget == world.budgets.read(SPEC)
    assert refused(world.budgets.take(SPEC, want, least=want, now_us=refusal.retry_us - 1)).retry_us == refusal.retry_us
    granted(world.budgets.take(SPEC, want, least=want, now_us=refusal.retry_us))


@pytest.mark.req("X3")
@pytest.mark.req("X4")
@pytest.mark.parametrize("tokens", [0, 400, 5000])
def test_a_moment_ahead_is_taken_in_one_write_and_nobody_elses(world: World, tokens: int) -> None:
    """What the pace alone holds back is granted for exactly the moment a refusal would have told; the next one's moment
    is later, and what lies further ahead than asked for is refused."""
    want = Want(tokens=tokens)
    for _ in range(2):
        world.budgets.take(SPEC, want, least=want, now_us=NOW_US)
    refusal = refused(world.budgets.take(SPEC, want, least=want, now_us=NOW_US))
    ahead_us = refusal.retry_us - NOW_US
    assert refused(world.budgets.take(SPEC, want, least=want, now_us=NOW_US, ahead_us=ahead_us - 1))
    first = granted(world.budgets.take(SPEC, want, least=want, now_us=NOW_US, ahead_us=ahead_us))
    assert first.at_us == refusal.retry_us
    assert world.other_budgets().read(SPEC) == first.budget
    other = world.other_budgets()
    assert refused(other.take(SPEC, want, least=want, now_us=NOW_US, ahead_us=ahead_us))
    second = granted(other.take(SPEC, want, least=want, now_us=NOW_US, ahead_us=ahead_us + 20 * SECOND))
    assert second.at_us >= first.at_us + SECOND


@pytest.mark.req("X4")
def test_only_the_pace_is_taken_ahead(world: World) -> None:
    """Quiet, a day that is spent and calls at once are no pace: nobody takes a moment behind them."""
    quiet = feedback.changed(Terms(), NOW_US, quiet_until_us=NOW_US + SECOND)
    world.budgets.change(SPEC, Terms(), quiet)
    assert refused(world.budgets.take(SPEC, ONE, least=ONE, now_us=NOW_US, ahead_us=2 * SECOND)).limit == "quiet"
    late_us = (NOW_US // DAY + 1) * DAY - SECOND
    daily = an_account(name="daily", requests_per_day=1)
    granted(world.budgets.take(daily, ONE, least=ONE, now_us=late_us))
    assert refused(world.budgets.take(daily, ONE, least=ONE, now_us=late_us, ahead_us=2 * SECOND))
    slots = an_account(name="slots", concurrency=1)
    call = Want(requests=1, slots=1)
    granted(world.budgets.take(slots, call, least=call, now_us=NOW_US, hold="a", hold_s=1))
    assert refused(world.budgets.take(slots, call, least=call, now_us=NOW_US, hold="b", hold_s=1, ahead_us=2 * SECOND))


@pytest.mark.req("X9")
def test_after_a_quiet_one_call_goes_first(world: World) -> None:
    """What was saved up before is gone: the second goes at its pace, and ten seconds later there is a burst again; a
    moment that lies beyond them is taken with it."""
    spec = an_account(requests_per_minute=60, burst_s=2.0)
    world.budgets.change(spec, Terms(), feedback.changed(Terms(), NOW_US, quiet_until_us=NOW_US))
    granted(world.budgets.take(spec, ONE, least=ONE, now_us=NOW_US))
    assert refused(world.budgets.take(spec, ONE, least=ONE, now_us=NOW_US)).retry_us == NOW_US + SECOND
    granted(world.budgets.take(spec, ONE, least=ONE, now_us=NOW_US + SECOND))
    late_us = NOW_US + 9 * SECOND
    granted(world.budgets.take(spec, ONE, least=ONE, now_us=late_us))
    burst = granted(world.other_budgets().take(spec, ONE, least=ONE, now_us=late_us, ahead_us=SECOND))
    assert burst.at_us == NOW_US + 10 * SECOND
    granted(world.budgets.take(spec, ONE, least=ONE, now_us=NOW_US + 10 * SECOND))
    assert refused(world.budgets.take(spec, ONE, least=ONE, now_us=NOW_US + 10 * SECOND))


@pytest.mark.req("X9")
def test_what_was_ever_spent_is_counted(world: World) -> None:
    """In time of the configured limits, by the tighter of them: what comes back is taken off, what an answer used
    beyond its estimate is added, and who returns what nobody took changes nothing."""
    spec = an_account(requests_per_minute=60, tokens_per_minute=6000)
    world.budgets.give_back(spec, ONE, now_us=NOW_US)
    granted(world.budgets.take(spec, Want(tokens=150), least=Want(tokens=150), now_us=NOW_US))
    granted(world.other_budgets().take(spec, ONE, least=ONE, now_us=NOW_US + 5 * SECOND))
    assert world.budgets.read(spec).spent_us == 2.5 * SECOND
    world.budgets.give_back(spec, ONE, now_us=NOW_US + 5 * SECOND)
    assert world.budgets.read(spec).spent_us == 1.5 * SECOND
    world.budgets.give_back(spec, Want(requests=0, tokens=-50), now_us=NOW_US + 5 * SECOND)
    assert world.other_budgets().read(spec).spent_us == 2 * SECOND


@pytest.mark.req("X3")
def test_what_a_call_used_is_told_by_the_next_take(world: World) -> None:
    """It costs no write of its own, and everybody who reads the account knows it; a refused take tells nothing."""
    spec = an_account(requests_per_minute=60)
    granted(world.budgets.take(spec, ONE, least=ONE, now_us=NOW_US))
    assert world.budgets.read(spec).usual_tokens == 0
    granted(world.budgets.take(spec, ONE, least=ONE, now_us=NOW_US + SECOND, used_tokens=1600))
    assert world.other_budgets().read(spec).usual_tokens == 1600
    granted(world.budgets.take(spec, ONE, least=ONE, now_us=NOW_US + 2 * SECOND, used_tokens=160_000))
    assert world.budgets.read(spec).usual_tokens == 1700
    granted(world.budgets.take(spec, ONE, least=ONE, now_us=NOW_US + 3 * SECOND))
    for _ in range(3):
        last = world.budgets.take(spec, ONE, least=ONE, now_us=NOW_US + 3 * SECOND, used_tokens=1)
    refused(last)
    assert world.budgets.read(spec).usual_tokens in (1700 - 106, 1700 - 106 - 99)
    world.budgets.give_back(spec, Want(tokens=100), now_us=NOW_US + 4 * SECOND)
    assert world.budgets.read(spec).usual_tokens > 0


@pytest.mark.req("X3")
def test_a_lease_is_taken_ahead_in_one_write(world: World) -> None:
    """Of several calls each has its own moment, and the last one's is told; no more are taken than come in time."""
    spec = an_account(requests_per_minute=600, burst_s=0.5)
    taken = [
        granted(world.budgets.take(spec, Want(requests=5), least=ONE, now_us=NOW_US, ahead_us=2 * SECOND))
        for _ in range(5)
    ]
    assert [one.want.requests for one in taken] == [5] * 5
    assert [one.at_us - NOW_US for one in taken] == [n * SECOND // 2 for n in range(5)]
    world.budgets.give_back(spec, Want(requests=2), now_us=NOW_US)
    last = granted(world.budgets.take(spec, Want(requests=5), least=ONE, now_us=NOW_US, ahead_us=2 * SECOND))
    assert (last.want.requests, last.at_us) == (2, NOW_US + 2 * SECOND)
    assert refused(world.budgets.take(spec, Want(requests=5), least=ONE, now_us=NOW_US, ahead_us=2 * SECOND))


def test_a_refused_take_spends_no_other_limit(world: World) -> None:
    """Requests are left, tokens are not: nothing changes, and the refusal names the one that is free last."""
    granted(world.budgets.take(SPEC, Want(requests=1, tokens=1000), least=ONE, now_us=NOW_US))
    before = world.budgets.read(SPEC)
    want = Want(requests=1, tokens=1000)
    refusal = refused(world.budgets.take(SPEC, want, least=want, now_us=NOW_US))
    assert (refusal.limit, refusal.deficit) == ("tokens", 1000)
    assert world.budgets.read(SPEC) == before


def test_what_does_not_fit_is_cut_down_to_what_does(world: World) -> None:
    """A lease takes the most that fits, never less than is needed, of every limit it touches."""
    spec = an_account(requests_per_minute=600, tokens_per_minute=600_000, requests_per_day=25)
    want = Want(requests=20, tokens=20_000)
    granted(world.budgets.take(spec, Want(requests=12, tokens=12_000), least=ONE, now_us=NOW_US))
    assert granted(world.budgets.take(spec, want, least=ONE, now_us=NOW_US)).want == Want(requests=8, tokens=7368)
    later = NOW_US + MINUTE
    assert granted(world.budgets.take(spec, want, least=ONE, now_us=later)).want.requests == 5
    assert refused(world.budgets.take(spec, want, least=ONE, now_us=later)).limit == "requests_per_day"


@pytest.mark.req("X3")
def test_what_never_fits_is_not_written(world: World) -> None:
    """More than the whole limit is refused at once, on an idle account, and leaves no trace."""
    for want in (Want(tokens=30_001), Want(requests=61), Want(slots=1000)):
        spec = an_account(concurrency=10)
        refusal = refused(world.budgets.take(spec, want, least=want, now_us=NOW_US, hold="w1", hold_s=60))
        assert refusal.limit == "too_large"
        assert world.budgets.read(spec) == Budget()


def test_daily_counts_begin_anew_at_midnight_utc(world: World) -> None:
    """What is used up today is there again tomorrow; the refusal's time is that midnight."""
    spec = an_account(requests_per_minute=None, tokens_per_minute=None, requests_per_day=3)
    last = (NOW_US // DAY + 1) * DAY - 1
    granted(world.budgets.take(spec, Want(requests=3), least=ONE, now_us=last))
    refusal = refused(world.budgets.take(spec, ONE, least=ONE, now_us=last))
    assert refusal.retry_us == last + 1
    after = granted(world.budgets.take(spec, ONE, least=ONE, now_us=refusal.retry_us)).budget
    assert (after.day, after.used) == (NOW_US // DAY + 1, {Limit.REQUESTS_PER_DAY: 1})


def test_a_late_clock_does_not_begin_a_day_again(world: World) -> None:
    """A worker that still lives in yesterday counts on today, and cannot reset it."""
    spec = an_account(requests_per_minute=None, tokens_per_minute=None, requests_per_day=5)
    midnight = (NOW_US // DAY + 1) * DAY
    granted(world.budgets.take(spec, Want(requests=2), least=ONE, now_us=midnight))
    after = granted(world.other_budgets().take(spec, ONE, least=ONE, now_us=midnight - SECOND)).budget
    assert (after.day, after.used[Limit.REQUESTS_PER_DAY]) == (midnight // DAY, 3)


HELD = an_account(requests_per_minute=None, tokens_per_minute=None, concurrency=10, batch_tokens=1000)


def hold(world: World, name: str, slots: int, *, now_us: int = NOW_US, hold_s: float = 60) -> Taken | Refusal:
    """One holder asks for slots."""
    want = Want(slots=slots)
    return world.other_budgets().take(HELD, want, least=want, now_us=now_us, hold=name, hold_s=hold_s)


def test_slots_are_held_until_they_are_given_back(world: World) -> None:
    """No more than the limit at once; what one gives back, another has."""
    granted(hold(world, "a", 6))
    granted(hold(world, "b", 4))
    refusal = refused(hold(world, "c", 1))
    assert (refusal.limit, refusal.deficit) == ("concurrency", 1)
    world.other_budgets().give_back(HELD, Want(requests=0), now_us=NOW_US, hold="a")
    after = granted(hold(world, "c", 6)).budget
    assert sorted(after.holds) == ["b", "c"]
    assert after.held(Limit.CONCURRENCY) == 10


def test_asking_again_under_the_same_name_does_not_hold_twice(world: World) -> None:
    """A take whose reply was lost is asked for again: the holder has what it asked for last, once."""
    granted(hold(world, "a", 6))
    granted(hold(world, "a", 6, now_us=NOW_US + SECOND))
    after = granted(hold(world, "a", 9, now_us=NOW_US + SECOND)).budget
    assert after.holds == {"a": Hold(slots=9, batch_tokens=0, until_us=NOW_US + 61 * SECOND)}


def test_permits_leave_what_is_held_alone(world: World) -> None:
    """A holder that takes only requests keeps its slots."""
    granted(hold(world, "a", 6))
    after = granted(world.budgets.take(HELD, ONE, least=ONE, now_us=NOW_US, hold="a", hold_s=60)).budget
    assert after.held(Limit.CONCURRENCY) == 6


def test_slots_need_the_name_of_their_holder(world: World) -> None:
    """Nobody could give them back."""
    with pytest.raises(BadInput):
        world.budgets.take(HELD, Want(slots=1), least=Want(slots=1), now_us=NOW_US)


def test_giving_back_what_is_not_held_changes_nothing(world: World) -> None:
    """A second return, or a holder whose time was over: the sum does not go below its holders."""
    granted(hold(world, "a", 6))
    for name in ("b", "b"):
        world.budgets.give_back(HELD, Want(requests=0), now_us=NOW_US, hold=name)
    for _ in range(2):
        world.other_budgets().give_back(HELD, Want(requests=0), now_us=NOW_US, hold="a")
    assert world.budgets.read(HELD).held(Limit.CONCURRENCY) == 0
    granted(hold(world, "c", 10))


@pytest.mark.fault("C6")
def test_dead_holders_slots_come_back_when_their_time_is_over(world: World) -> None:
    """Three of ten die and never give back: the count is the truth again within one lease."""
    for n in range(10):
        granted(hold(world, f"w{n}", 1, hold_s=60))
    living = [f"w{n}" for n in range(3, 10)]
    assert refused(hold(world, "new", 1, now_us=NOW_US + 30 * SECOND)).limit == "concurrency"
    for name in living:
        granted(hold(world, name, 1, now_us=NOW_US + 59 * SECOND))
    after = granted(hold(world, "new", 3, now_us=NOW_US + 60 * SECOND)).budget
    assert sorted(after.holds) == sorted([*living, "new"])
    assert after.held(Limit.CONCURRENCY) == 10
    assert refused(hold(world, "late", 1, now_us=NOW_US + 60 * SECOND)).deficit == 1


def test_a_limit_lowered_below_what_is_held_waits_for_returns(world: World) -> None:
    """Eight run, four are allowed now: nobody is added until there are fewer than four."""
    granted(hold(world, "a", 4))
    granted(hold(world, "b", 4))
    lower = feedback.changed(Terms(), NOW_US, told={Limit.CONCURRENCY: 4})
    world.budgets.change(HELD, Terms(), lower)
    assert refused(hold(world, "c", 1)).deficit == 5
    world.budgets.give_back(HELD, Want(requests=0), now_us=NOW_US, hold="a")
    assert refused(hold(world, "c", 1)).deficit == 1
    world.budgets.give_back(HELD, Want(requests=0), now_us=NOW_US, hold="b")
    granted(hold(world, "c", 4))


def test_what_was_not_used_can_be_taken_by_another(world: World) -> None:
    """A return frees exactly what it names, and no count goes below nothing."""
    spec = an_account(requests_per_day=10)
    granted(world.budgets.take(spec, Want(requests=2, tokens=900), least=ONE, now_us=NOW_US))
    refused(world.other_budgets().take(spec, ONE, least=ONE, now_us=NOW_US))
    world.budgets.give_back(spec, Want(requests=1, tokens=400), now_us=NOW_US)
    after = granted(world.other_budgets().take(spec, ONE, least=ONE, now_us=NOW_US)).budget
    assert after.arrival_us == {Limit.REQUESTS: NOW_US + 2 * SECOND, Limit.TOKENS: NOW_US + SECOND}
    assert after.used == {Limit.REQUESTS_PER_DAY: 2}
    world.budgets.give_back(spec, Want(requests=7), now_us=NOW_US)
    assert world.budgets.read(spec).used == {Limit.REQUESTS_PER_DAY: 0}


def test_what_was_used_beyond_the_estimate_is_charged(world: World) -> None:
    """On a busy account on top, on an idle one from now: a charge is never swallowed by idle time."""
    granted(world.budgets.take(SPEC, Want(tokens=500), least=ONE, now_us=NOW_US))
    world.budgets.give_back(SPEC, Want(requests=0, tokens=-500), now_us=NOW_US)
    assert world.budgets.read(SPEC).arrival_us[Limit.TOKENS] == NOW_US + 2 * SECOND
    later = NOW_US + MINUTE
    world.budgets.give_back(SPEC, Want(requests=0, tokens=-1500), now_us=later)
    assert world.budgets.read(SPEC).arrival_us[Limit.TOKENS] == later + 3 * SECOND
    assert refused(world.budgets.take(SPEC, ONE, least=ONE, now_us=later)).retry_us == later + SECOND


def test_promised_starts_do_not_overlap(world: World) -> None:
    """Whoever asks, from which environment, and from when: each gets a span that nobody else has."""
    spans = [(SECOND, NOW_US), (SECOND, NOW_US), (500, NOW_US + 10 * SECOND), (SECOND, NOW_US), (1, NOW_US + SECOND)]
    ends = NOW_US
    for span_us, not_before_us in spans:
        start = world.other_budgets().reserve(SPEC, span_us, not_before_us=not_before_us)
        assert start == max(ends, not_before_us)
        ends = start + span_us
    assert world.budgets.read(SPEC).line_us == ends


FULL = Terms(
    version=1,
    told={Limit.REQUESTS: 17, Limit.BATCH_TOKENS: 10**12},
    pinned={Limit.TOKENS: 1},
    search=Search(base=0.1 + 0.2, top=1 / 3, since_us=NOW_US, unit_s=2 / 3, spent_us=-7),
    shut=Shut(reason="outage", since_us=NOW_US, probe_us=NOW_US + 1, probe_every_s=1.0, probe_by="w1"),
    quiet_until_us=NOW_US + 5,
    changed_us=NOW_US,
    refused_us=(NOW_US - 7, NOW_US),
    doubted_until_us=NOW_US + 9,
    enforced=False,
)


@pytest.mark.parametrize("after", [FULL, Terms(version=1), replace(FULL, search=None, enforced=True, told={})])
def test_terms_are_kept_as_they_were_written(world: World, after: Terms) -> None:
    """Every part and every digit comes back."""
    assert world.budgets.change(SPEC, Terms(), after).terms == after
    assert world.other_budgets().read(SPEC).terms == after


def test_terms_that_somebody_changed_are_not_overwritten(world: World) -> None:
    """One of several who saw the same terms changes them; the others are told what stands."""
    afters = [feedback.changed(Terms(), NOW_US, quiet_until_us=NOW_US + n) for n in range(1, world.threads + 2)]
    ledgers = [world.other_budgets() for _ in afters]
    with ThreadPoolExecutor(world.threads) as pool:
        found = pool.map(lambda ledger, after: ledger.change(SPEC, Terms(), after).terms, ledgers, afters)
        stands = list(found)
    assert len({terms.quiet_until_us for terms in stands}) == 1
    assert sum(stood == after for stood, after in zip(stands, afters, strict=True)) == 1


@pytest.mark.fault("G8")
def test_one_caller_has_the_probes_turn(world: World) -> None:
    """Several find the probe due in the same microsecond: one may call, the others wait for the next turn."""
    shut = feedback.shut_down(Terms(), feedback.OUTAGE, NOW_US, NOW_US)
    assert shut is not None
    world.budgets.change(SPEC, Terms(), shut)
    due_us = NOW_US + SECOND

    def probe(name: str) -> bool:
        ledger = world.other_budgets()
        refusal = refused(ledger.take(SPEC, ONE, least=ONE, now_us=due_us))
        after = feedback.probing(refusal.budget.terms, due_us, by=name) if refusal.probe else None
        return after is not None and ledger.change(SPEC, refusal.budget.terms, after).terms == after

    with ThreadPoolExecutor(world.threads) as pool:
        assert sum(pool.map(probe, [f"w{n}" for n in range(world.threads + 3)])) == 1
    refusal = refused(world.budgets.take(SPEC, ONE, least=ONE, now_us=due_us))
    assert refusal.retry_us == due_us + int(feedback.PROBE_LASTS_S) * SECOND
    after = feedback.in_vain(refusal.budget.terms, due_us, due_us + 1)
    assert after is not None
    world.budgets.change(SPEC, refusal.budget.terms, after)
    assert refused(world.budgets.take(SPEC, ONE, least=ONE, now_us=due_us + 1)).retry_us == due_us + SECOND


def test_the_vendors_own_count_leaves_no_more_room(world: World) -> None:
    """Told that little is left, nobody finds more; told less than is spent already, it changes nothing."""
    told_us = {Limit.REQUESTS: NOW_US + 2 * SECOND}
    refusal = refused(world.budgets.take(SPEC, ONE, least=ONE, now_us=NOW_US, told_us=told_us))
    assert refusal.limit == "requests"
    at_us = refusal.retry_us
    assert NOW_US < at_us <= NOW_US + 2 * SECOND
    taken = granted(world.budgets.take(SPEC, ONE, least=ONE, now_us=at_us, told_us=told_us))
    arrival_us = taken.budget.arrival_us[Limit.REQUESTS]
    assert arrival_us > told_us[Limit.REQUESTS]
    passed = {Limit.REQUESTS: arrival_us - 1}
    again_us = arrival_us + SECOND
    assert granted(world.budgets.take(SPEC, ONE, least=ONE, now_us=again_us, told_us=passed))


def test_nobody_spends_under_terms_that_no_longer_hold(world: World) -> None:
    """An environment that has not heard of the new terms meets them at its next take."""
    ignorant = world.other_budgets()
    granted(ignorant.take(SPEC, ONE, least=ONE, now_us=NOW_US))
    quiet = feedback.changed(Terms(), NOW_US, quiet_until_us=NOW_US + MINUTE)
    world.budgets.change(SPEC, Terms(), quiet)
    refusal = refused(ignorant.take(SPEC, ONE, least=ONE, now_us=NOW_US))
    assert (refusal.limit, refusal.retry_us) == ("quiet", NOW_US + MINUTE)
    again = replace(quiet, version=2, quiet_until_us=0, told={Limit.REQUESTS: 600})
    world.budgets.change(SPEC, quiet, again)
    after = granted(ignorant.take(SPEC, ONE, least=ONE, now_us=NOW_US + MINUTE)).budget
    assert after.arrival_us[Limit.REQUESTS] == NOW_US + MINUTE + SECOND // 10


@pytest.mark.req("X9")
def test_environments_that_know_nothing_of_each_other_share_one_limit(world: World) -> None:
    """However many ask at once, together they get what the account allows, and never more."""
    spec = an_account(requests_per_minute=600, tokens_per_minute=None, concurrency=100)
    ledgers = [world.other_budgets() for _ in range(world.threads + 1)]

    def ask(n: int) -> bool:
        want = Want(requests=1, slots=1)
        answer = ledgers[n % len(ledgers)].take(spec, want, least=want, now_us=NOW_US, hold=f"job-{n}", hold_s=60)
        return isinstance(answer, Taken)

    with ThreadPoolExecutor(world.threads) as pool:
        given = sum(pool.map(ask, range(30)))
    # Who lost two races was refused though there was room: it is there for whoever asks next.
    given += sum(map(ask, range(30, 50)))
    after = world.budgets.read(spec)
    assert given == 20
    assert after.arrival_us == {Limit.REQUESTS: NOW_US + 2 * SECOND}
    assert after.held(Limit.CONCURRENCY) == len(after.holds) == 20
