"""The law of vendor budgets: never more than the limit, and a refusal that knows its time."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.core import feedback, rate
from shared.core.account import MOST, AccountSpec, Limit
from shared.core.budget import DAY, MINUTE, SECOND, Budget, Hold, Refusal, Search, Taken, Terms, Want, at_us, us_of
from shared.core.errors import BadInput
from shared.core.lease import lease_of
from tests.builders import NOW, an_account

NOW_US = us_of(NOW)
UNPACED = {"requests_per_minute": None, "tokens_per_minute": None}

paces = st.integers(1, 5000)
bursts = st.sampled_from([0.0, 0.3, 1.0, 2.0])
pauses = st.integers(0, 200_000) | st.integers(0, 30 * SECOND)


def taken(spec: AccountSpec, budget: Budget, want: Want, now_us: int, **hold: object) -> Budget:
    """The account after a take that must fit."""
    answer = rate.take(spec, budget, want, now_us, **hold)  # type: ignore[arg-type]
    assert isinstance(answer, Taken), answer
    return answer.budget


def refused(spec: AccountSpec, budget: Budget, want: Want, now_us: int, **hold: object) -> Refusal:
    """The refusal of a take that must not fit."""
    answer = rate.take(spec, budget, want, now_us, **hold)  # type: ignore[arg-type]
    assert isinstance(answer, Refusal), answer
    return answer


# ---------------------------------------------------------------------------------------------- the pace
@pytest.mark.req("X3")
@settings(max_examples=150)
@given(
    most=paces,
    burst_s=bursts,
    asked=st.lists(st.tuples(pauses, st.integers(1, 400)), min_size=1, max_size=60),
    greedy=st.booleans(),
    ahead_s=st.sampled_from([0, 0, 1, 2]),
)
def test_no_minute_has_more_than_the_limit_and_one_burst(
    most: int, burst_s: float, asked: list[tuple[int, int]], greedy: bool, ahead_s: int
) -> None:
    """In any sixty seconds, however they are laid: the limit and a burst, or one request where that is larger. What is
    taken for a moment ahead counts at its moment."""
    spec = an_account(requests_per_minute=most, tokens_per_minute=None, burst_s=burst_s)
    budget, now_us, given_ = Budget(), NOW_US, list[tuple[int, int]]()
    for pause_us, amount in asked:
        amount = min(amount, most)
        now_us += pause_us
        answer = rate.take(spec, budget, Want(requests=amount), now_us, ahead_us=ahead_s * SECOND)
        if isinstance(answer, Refusal) and greedy:
            # The worst caller comes at the very first moment it may.
            now_us = answer.retry_us
            answer = rate.take(spec, budget, Want(requests=amount), now_us)
        if isinstance(answer, Taken):
            assert now_us <= answer.at_us <= now_us + ahead_s * SECOND
            budget = answer.budget
            given_.append((answer.at_us, amount))
    largest = max((amount for _, amount in given_), default=0)
    bound = most + max(burst_s * most / 60, largest)
    for start_us, _ in given_:
        assert sum(n for at, n in given_ if start_us <= at < start_us + MINUTE) <= bound + 0.001


@pytest.mark.req("X3")
@given(most=st.integers(60, 5000), asked=st.lists(st.tuples(pauses, st.integers(1, 30), st.booleans()), max_size=50))
def test_what_comes_back_does_not_lift_the_bound(most: int, asked: list[tuple[int, int, bool]]) -> None:
    """Takes less returns, in any sixty seconds: still the limit and a burst."""
    spec = an_account(requests_per_minute=most, tokens_per_minute=None)
    budget, now_us, moves = Budget(), NOW_US, list[tuple[int, int]]()
    for pause_us, amount, returns in asked:
        now_us += pause_us
        answer = rate.take(spec, budget, Want(requests=amount), now_us)
        if isinstance(answer, Taken):
            budget = answer.budget
            moves.append((now_us, amount))
            if returns:
                now_us += pause_us // 2
                budget = rate.give_back(spec, budget, Want(requests=amount), now_us)
                moves.append((now_us, -amount))
    bound = most + max(2 * most / 60, 30)
    for number, (start_us, _) in enumerate(moves):
        assert sum(n for at, n in moves[number:] if at < start_us + MINUTE) <= bound + 0.001


@pytest.mark.req("X3")
@settings(max_examples=200)
@given(
    limits=st.fixed_dictionaries(
        {},
        optional={
            "requests_per_minute": paces,
            "tokens_per_minute": st.integers(1000, 100_000),
            "requests_per_day": st.integers(1, 50),
            "tokens_per_day": st.integers(1000, 50_000),
        },
    ),
    burst_s=bursts,
    asked=st.lists(st.tuples(pauses, st.integers(1, 50), st.integers(0, 5000)), min_size=1, max_size=20),
    quiet_us=st.integers(0, 20 * SECOND),
)
def test_a_refusals_time_is_exact(
    limits: dict[str, int], burst_s: float, asked: list[tuple[int, int, int]], quiet_us: int
) -> None:
    """The same request is refused a microsecond before it and granted at it, whichever limits are in the way."""
    spec = an_account(**{**UNPACED, **limits, "burst_s": burst_s})
    budget, now_us = Budget(terms=Terms(quiet_until_us=NOW_US + quiet_us)), NOW_US
    for pause_us, requests, tokens in asked:
        now_us += pause_us
        want = Want(requests=requests, tokens=tokens)
        if rate.too_large(spec, budget, want, now_us) is not None:
            continue
        answer = rate.take(spec, budget, want, now_us)
        if isinstance(answer, Refusal):
            assert answer.retry_us > now_us
            assert answer.deficit > 0 or answer.limit == "quiet"
            assert refused(spec, budget, want, answer.retry_us - 1).retry_us == answer.retry_us
            now_us = answer.retry_us
            answer = rate.take(spec, budget, want, now_us)
        assert isinstance(answer, Taken)
        budget = answer.budget


@given(
    most=st.integers(60, 5000),
    share=st.sampled_from([1.0, 0.7, 0.31]),
    spent=st.integers(0, 200),
    least=st.integers(1, 5),
    more=st.integers(0, 300),
    day=st.integers(1, 400),
    elapsed_us=st.integers(0, 3 * SECOND),
)
def test_a_lease_is_the_most_that_fits(
    most: int, share: float, spent: int, least: int, more: int, day: int, elapsed_us: int
) -> None:
    """If the least fits, something is given; one more would not fit, but for the one request that an idle account
    lets through whatever its size."""
    spec = an_account(requests_per_minute=most, tokens_per_minute=None, requests_per_day=day, share=share)
    budget = Budget(terms=Terms(version=1, told={Limit.REQUESTS: most}))
    start = rate.take(spec, budget, Want(requests=spent), NOW_US)
    budget = start.budget
    now_us = NOW_US + elapsed_us
    want, needed = Want(requests=least + more), Want(requests=least)
    answer = rate.take_most(spec, budget, want, needed, now_us)
    alone = rate.take(spec, budget, needed, now_us)
    assert isinstance(answer, Taken) == isinstance(alone, Taken)
    if isinstance(answer, Taken):
        assert least <= answer.want.requests <= least + more
        if answer.want.requests < least + more and budget.arrival_us.get(Limit.REQUESTS, 0) > now_us:
            refused(spec, budget, Want(requests=answer.want.requests + 1), now_us)


def test_a_limit_that_is_lowered_holds_at_once() -> None:
    """What was spent stays spent; the next one is paced by the new limit."""
    spec = an_account(tokens_per_minute=None)
    budget = taken(spec, Budget(), Want(requests=2), NOW_US)
    lower = replace(budget, terms=Terms(version=1, told={Limit.REQUESTS: 6}))
    assert refused(spec, lower, Want(), NOW_US).retry_us == NOW_US + 2 * SECOND
    after = taken(spec, lower, Want(), NOW_US + 2 * SECOND)
    assert after.arrival_us[Limit.REQUESTS] == NOW_US + 12 * SECOND


@given(most=paces | st.floats(1, 5000), amount=st.integers(0, 10_000))
def test_a_return_never_gives_more_than_was_taken(most: float, amount: int) -> None:
    """Rounding is on the account's side: a microsecond, or a millisecond of what takes long."""
    cost_us = rate.cost_us(amount, most)
    assert 0 <= cost_us - rate.back_us(amount, most) <= (1 if cost_us < SECOND // 2 else 1000)
    assert rate.amount_in(cost_us, most) == amount or most > MINUTE // 1000


@given(most=paces | st.floats(1, 5000), span_us=st.integers(0, 5 * MINUTE))
def test_what_a_span_lets_through_costs_no_more_than_it(most: float, span_us: int) -> None:
    """However costs are rounded: what is said to fit does."""
    amount = rate.amount_in(span_us, most)
    assert rate.cost_us(amount, most) <= span_us
    assert rate.cost_us(amount + 1, most) > span_us or most > MINUTE


@pytest.mark.req("X9")
@given(most=st.floats(1, 100))
def test_a_part_of_a_slow_limit_is_not_lost(most: float) -> None:
    """A search finds seven and a half calls a minute, or our share is a third of twenty: so many are let through, not
    seven or six."""
    assert MINUTE / most <= rate.cost_us(1, most) <= MINUTE / most * 1.001 + 1000
    assert rate.amount_in(1000 * MINUTE, most) == pytest.approx(1000 * most, abs=1.001)


@pytest.mark.req("X9")
@given(most=st.integers(1, 119))
def test_slow_calls_are_whole_milliseconds_apart(most: int) -> None:
    """A clock that counts them sends none early: at a vendor that lets nothing be saved up, a call that is a part of a
    millisecond early is refused."""
    spec = an_account(requests_per_minute=most, tokens_per_minute=None, burst_s=0.0)
    budget, at = Budget(), NOW
    for _ in range(5):
        budget = taken(spec, budget, Want(), us_of(at))
        refusal = refused(spec, budget, Want(), us_of(at))
        assert us_of(at_us(refusal.retry_us)) == refusal.retry_us
        assert us_of(at) + MINUTE / most <= refusal.retry_us < us_of(at) + MINUTE / most + 1000
        at = at_us(refusal.retry_us)


@pytest.mark.req("X3")
@given(seed=st.integers(0, 1000), first=st.integers(1, 10**15))
def test_a_usual_call_is_the_middle_one(seed: int, first: int) -> None:
    """Half of all use more, half use less: whatever the first one told, a thousand calls that differ by a factor of
    thirteen bring it near, and no answer makes it more than a row can hold."""
    chances = random.Random(seed)
    budget = replace(Budget(), usual_tokens=rate.usual_after(Budget(), first))
    assert budget.usual_tokens <= MOST
    for _ in range(1000):
        used = int(1000 * math.exp(chances.uniform(math.log(0.3), math.log(4))))
        budget = replace(budget, usual_tokens=rate.usual_after(budget, used))
    assert 600 <= budget.usual_tokens <= 2000


# ----------------------------------------------------------------------------------------- what fits never
@pytest.mark.req("X3")
@pytest.mark.parametrize(
    ("want", "sentence"),
    [
        (Want(tokens=30_001), "needs 30,001 tokens, the whole limit of account desk_account is 30,000"),
        (Want(requests=61), "needs 61 requests, the whole limit of account desk_account is 60"),
        (Want(slots=3), "needs 3 concurrency, the whole limit of account desk_account is 2"),
    ],
)
def test_a_request_that_never_fits_says_so_in_a_sentence(want: Want, sentence: str) -> None:
    """And is refused on an empty account, with nothing taken."""
    spec = an_account(concurrency=2)
    assert rate.too_large(spec, Budget(), want, NOW_US) == sentence
    assert refused(spec, Budget(), want, NOW_US, hold="w").limit == rate.TOO_LARGE
    assert rate.too_large(spec, Budget(), Want(requests=60, tokens=30_000, slots=2), NOW_US) is None


def test_a_slow_search_does_not_make_a_request_too_large() -> None:
    """What the search found is a pace, not a size."""
    search = Search(base=0.1, top=0.2, since_us=NOW_US, unit_s=60.0, spent_us=0)
    budget = Budget(terms=Terms(version=1, search=search))
    assert rate.too_large(an_account(), budget, Want(tokens=30_000), NOW_US) is None
    assert isinstance(rate.take(an_account(), budget, Want(tokens=30_000), NOW_US), Taken)


@pytest.mark.req("X3")
@pytest.mark.parametrize("estimate", [-1, -(10**9), MOST + 1, 10**30, 1.5, "12", None, True, float("nan"), [1]])
def test_an_estimate_that_is_none_is_named(estimate: object) -> None:
    """Negative, absurd, or no whole number."""
    with pytest.raises(BadInput, match="estimated_tokens"):
        rate.check_estimate(estimate)


@pytest.mark.req("X3")
@pytest.mark.parametrize("estimate", [0, 1, MOST])
def test_an_estimate_may_be_nothing_or_very_large(estimate: int) -> None:
    """Nothing known is 0; whether it fits is another question."""
    assert rate.check_estimate(estimate) == estimate


# --------------------------------------------------------------------------------------------------- days
@given(at_us_=st.integers(0, 3 * DAY - 1), used=st.integers(1, 5))
def test_a_day_is_a_day_of_utc(at_us_: int, used: int) -> None:
    """Full until midnight, empty at it."""
    spec = an_account(**UNPACED, requests_per_day=5)
    now_us = NOW_US + at_us_
    budget = taken(spec, Budget(), Want(requests=used), now_us)
    refusal = refused(spec, budget, Want(requests=6 - used), now_us)
    assert refusal.retry_us == (now_us // DAY + 1) * DAY
    assert at_us(refusal.retry_us).hour == 0
    assert taken(spec, budget, Want(requests=5), refusal.retry_us).used == {Limit.REQUESTS_PER_DAY: 5}


def test_what_comes_back_after_midnight_was_yesterdays() -> None:
    """Today's count is today's; a charge that comes late is counted, not lost."""
    spec = an_account(**UNPACED, requests_per_day=5, tokens_per_day=1000)
    budget = taken(spec, Budget(), Want(requests=4, tokens=100), NOW_US)
    back = rate.give_back(spec, budget, Want(requests=2, tokens=50), NOW_US + DAY)
    assert (back.day, back.used) == (budget.day, budget.used)
    charged = rate.give_back(spec, budget, Want(requests=0, tokens=-70), NOW_US + DAY)
    assert (charged.day, charged.used) == (budget.day + 1, {Limit.TOKENS_PER_DAY: 70})
    below = rate.give_back(spec, budget, Want(requests=9), NOW_US)
    assert below.used[Limit.REQUESTS_PER_DAY] == 0


# ------------------------------------------------------------------------------------------------ holding
HELD = an_account(**UNPACED, concurrency=10)


@pytest.mark.fault("C6")
@given(
    dies=st.lists(st.booleans(), min_size=10, max_size=10).filter(lambda dead: sum(dead) == 3),
    hold_s=st.integers(5, 120),
)
def test_the_count_of_the_living_is_the_truth_within_one_lease(dies: list[bool], hold_s: int) -> None:
    """Three of ten die at any moment: when their time is over, exactly the living hold."""
    budget = Budget()
    for n in range(10):
        budget = taken(HELD, budget, Want(slots=1), NOW_US, hold=f"w{n}", hold_s=hold_s)
    end_us = NOW_US + hold_s * SECOND
    living = [n for n in range(10) if not dies[n]]
    for n in living:
        budget = taken(HELD, budget, Want(slots=1), end_us - 1, hold=f"w{n}", hold_s=hold_s)
    assert refused(HELD, budget, Want(slots=1), end_us - 1, hold="new").retry_us == end_us
    after = taken(HELD, budget, Want(slots=3), end_us, hold="new", hold_s=hold_s)
    assert set(after.holds) == {*(f"w{n}" for n in living), "new"}
    assert after.held(Limit.CONCURRENCY) == 10


def test_a_dead_holder_is_not_missed_by_who_wants_no_slots() -> None:
    """Any take removes it."""
    budget = taken(HELD, Budget(), Want(slots=4), NOW_US, hold="a", hold_s=1)
    assert taken(HELD, budget, Want(), NOW_US + SECOND).holds == {}
    assert budget.expired(NOW_US + SECOND - 1) == ()


def test_more_running_than_a_lowered_limit_allows_is_waited_out() -> None:
    """Nobody is added, nobody is stopped; the deficit says by how many."""
    budget = taken(HELD, Budget(), Want(slots=8), NOW_US, hold="a", hold_s=60)
    lower = replace(budget, terms=Terms(version=1, pinned={Limit.CONCURRENCY: 5}))
    assert refused(HELD, lower, Want(slots=1), NOW_US, hold="b").deficit == 4
    assert rate.largest(HELD, lower, Want(slots=3), Want(slots=1), NOW_US).slots == 1
    # The holder itself may go on with less.
    assert taken(HELD, lower, Want(slots=5), NOW_US, hold="a", hold_s=60).held(Limit.CONCURRENCY) == 5


# ------------------------------------------------------------------------------------------------- limits
def test_which_limit_holds() -> None:
    """The vendor's in our share, else the configured one; an operator's pin is never passed."""
    spec = an_account(share=0.5)
    told, pinned = {Limit.REQUESTS: 1000}, {Limit.REQUESTS: 70}

    def most(**terms: object) -> float | None:
        return rate.limit_of(spec, Terms(**terms), Limit.REQUESTS, NOW_US)  # type: ignore[arg-type]

    assert (most(), most(told=told), most(pinned=pinned), most(told=told, pinned=pinned)) == (60, 500, 60, 70)
    assert most(told={Limit.REQUESTS: 1}) == 1
    assert rate.limit_of(spec, Terms(), Limit.CONCURRENCY, NOW_US) is None
    assert rate.limit_of(spec, Terms(pinned={Limit.CONCURRENCY: 3}), Limit.CONCURRENCY, NOW_US) == 3


# ----------------------------------------------------------------------------------------- lines and times
@given(asked=st.lists(st.tuples(st.integers(1, SECOND), st.integers(0, MINUTE)), min_size=1, max_size=20))
def test_promised_starts_never_overlap(asked: list[tuple[int, int]]) -> None:
    """Each is at or after its moment and behind every earlier promise."""
    budget, ends = Budget(), 0
    for span_us, ahead_us in asked:
        start, budget = rate.reserve(budget, span_us, NOW_US + ahead_us)
        assert start == max(ends, NOW_US + ahead_us)
        ends = start + span_us


@given(us=st.integers(0, 10**16))
def test_a_moment_on_a_row_is_never_early(us: int) -> None:
    """Rounded up to the milliseconds a row keeps."""
    assert 0 <= us_of(at_us(us)) - us < 1000
    assert us_of(NOW + timedelta(microseconds=1)) == NOW_US + 1


@given(expected=st.integers(0, 10_000), mean=st.floats(0, 5000), most=paces, tokens=st.integers(1000, 10**6))
def test_a_lease_is_small(expected: int, mean: float, most: int, tokens: int) -> None:
    """Two seconds of the pace and a twentieth of the limit at most, and never less than what is needed."""
    spec = an_account(requests_per_minute=most, tokens_per_minute=tokens)
    least = Want(requests=1, tokens=50)
    lease = lease_of(spec, Budget(), least, expected, mean, NOW_US)
    assert 1 <= lease.requests <= max(1, most / 30)
    assert 50 <= lease.tokens <= 50 + tokens / 30


@given(spent=st.integers(0, 60), seconds=st.integers(0, 120))
def test_what_is_available_is_what_is_not_spoken_for(spent: int, seconds: int) -> None:
    """Spending lowers it, time raises it, and it is never negative or above the limit."""
    budget = Budget(arrival_us={Limit.REQUESTS: NOW_US + spent * SECOND})
    left = rate.available(an_account(), budget, Limit.REQUESTS, NOW_US + seconds * SECOND)
    assert left == 60 - max(0, spent - seconds)
    assert rate.available(an_account(), budget, Limit.CONCURRENCY, NOW_US) is None


def test_a_shut_account_takes_no_calls_and_says_when_a_probe_may_go() -> None:
    """Whatever is left of its limits."""
    terms = feedback.shut_down(Terms(), feedback.OUTAGE, NOW_US, NOW_US)
    assert terms is not None
    early = refused(an_account(), Budget(terms=terms), Want(), NOW_US)
    assert (early.limit, early.probe, early.retry_us) == ("shut:outage", False, NOW_US + SECOND)
    assert refused(an_account(), Budget(terms=terms), Want(), NOW_US + SECOND).probe


def test_what_a_holder_holds_is_its_own() -> None:
    """By limit."""
    hold = Hold(slots=2, batch_tokens=7, until_us=0)
    assert (hold.of(Limit.CONCURRENCY), hold.of(Limit.BATCH_TOKENS)) == (2, 7)
    assert rate.span_of(an_account(), Budget(), Want(tokens=1500), NOW_US) == 3 * SECOND
    assert rate.enforced(an_account(enforced=False), Terms()) is False
    assert rate.enforced(an_account(enforced=False), Terms(enforced=True)) is True


# ------------------------------------------------------------------------------------------- after a quiet
@pytest.mark.req("X9")
@given(most=st.integers(10, 1200), burst_s=st.sampled_from([0.0, 0.5, 2.0]), told=st.booleans())
def test_after_a_quiet_one_call_asks_and_the_next_follow_at_their_pace(most: int, burst_s: float, told: bool) -> None:
    """Whoever has saved up a burst beforehand has none for ten seconds after the quiet; told limits or not."""
    spec = an_account(requests_per_minute=most, tokens_per_minute=None, burst_s=burst_s)
    limits = {Limit.REQUESTS: most} if told else {}
    budget = Budget(terms=Terms(version=1, quiet_until_us=NOW_US, told=limits))
    moments, now_us = [], NOW_US
    while now_us < NOW_US + 10 * SECOND and len(moments) < 8:
        taken = rate.take(spec, budget, Want(), now_us)
        if isinstance(taken, Taken):
            budget = taken.budget
            moments.append(now_us)
        else:
            assert taken.retry_us > now_us
            now_us = taken.retry_us
    span_us = MINUTE / most
    assert moments[0] == NOW_US
    assert all(after - before >= 0.99 * span_us for before, after in pairwise(moments))


def test_a_burst_is_back_ten_seconds_later() -> None:
    """Who was never quiet has all of it."""
    spec, terms = an_account(burst_s=2.0), Terms(version=1, quiet_until_us=NOW_US)
    bursts = [rate.burst_at(spec, terms, NOW_US + s * SECOND) for s in (-5, 0, 9, 10, 400)]
    assert bursts == [SECOND // 20] * 3 + [2 * SECOND] * 2
    assert rate.burst_at(spec, Terms(), NOW_US) == 2 * SECOND


def test_a_search_is_measured_by_what_was_really_taken() -> None:
    """In the configured limits' time, whatever the pace: what is taken and not used comes off again, what an answer
    used beyond its estimate is added, and what is taken for a moment to come is not yet sent."""
    spec = an_account(requests_per_minute=60, tokens_per_minute=6000, burst_s=0.0)
    half = Search(base=0.5, top=0.5, since_us=NOW_US, unit_s=60.0, spent_us=0)
    budget = Budget(terms=Terms(version=1, search=half))
    for tokens in (50, 150, 50):
        taken = rate.take(spec, budget, Want(tokens=tokens), NOW_US, ahead_us=10 * SECOND)
        assert isinstance(taken, Taken)
        budget = taken.budget
    assert budget.spent_us == 3.5 * SECOND
    second = rate.spending(spec, budget, Want(tokens=150), NOW_US + 2 * SECOND)
    assert (second.call_us, second.spent_us, second.sent_us) == (
        1.5 * SECOND,
        3.5 * SECOND,
        pytest.approx(2.5 * SECOND, abs=1000),
    )
    last = rate.spending(spec, budget, Want(tokens=50), NOW_US + 5 * SECOND)
    assert (last.call_us, last.spent_us, last.sent_us) == (SECOND, 3.5 * SECOND, 3.5 * SECOND)
    budget = rate.give_back(spec, budget, Want(requests=1, tokens=150), NOW_US)
    assert budget.spent_us == 2 * SECOND
    assert rate.give_back(spec, budget, Want(requests=0, tokens=-100), NOW_US).spent_us == 3 * SECOND
    assert rate.give_back(spec, Budget(), Want(), NOW_US).spent_us == 0
