"""The search for a limit that nobody tells, against vendors that count."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ops.simulator.rules import Kept, Rule, Window
from shared.core import search
from shared.core.budget import MINUTE, SECOND, Search, us_of
from shared.core.search import Spending, begun, met, searched
from tests.builders import NOW

NOW_US = us_of(NOW)
CONFIGURED = 600.0
"""Calls a minute: one takes a tenth of a second of the configured limit's time."""
CALL_US = SECOND // 10
NEW = Search(base=0.5, top=1.0, since_us=NOW_US, unit_s=60.0, spent_us=0)


def spending(calls: float) -> Spending:
    """After so many calls, the last of them the one that is heard about."""
    spent_us = int(calls * CALL_US)
    return Spending(call_us=CALL_US, spent_us=spent_us, sent_us=spent_us)


def called(
    rule: Rule, *, seconds: float, configured: float = CONFIGURED, explore: float = 1.0
) -> tuple[int, list[tuple[float, Search]]]:
    """Whoever always has a call to make, against a vendor that tells nothing: how many calls it served, and each
    refusal's second with the search after it."""
    kept, now_s, quiet_s, calls = Kept(rule), 0.0, 0.0, 0
    call_us = int(MINUTE / configured)
    state: Search | None = None
    found: list[tuple[float, Search]] = []
    while now_s < seconds:
        now_us = NOW_US + int(now_s * SECOND)
        calls += 1
        spent = Spending(call_us=call_us, spent_us=calls * call_us, sent_us=calls * call_us)
        if kept.wait_s(1, now_s) > 0:
            was_quiet_s = quiet_s
            quiet_s = max(1.0, kept.wait_s(1, now_s))
            state = met(state, now_us, now_us + int(quiet_s * SECOND), explore, spent, quiet_s=was_quiet_s)
            found.append((now_s, state))
            now_s += quiet_s
            continue
        kept.charge(1, now_s)
        if state is None and explore > 1:
            state = begun(now_us, spent)
        pace = 1.0 if state is None else searched(state, now_us, explore)
        now_s += 60 / configured / pace
    return calls - len(found), found


def refusals(rule: Rule, *, seconds: float) -> list[tuple[float, Search]]:
    """Those of a vendor whose limit is not above what is configured."""
    return called(rule, seconds=seconds)[1]


@pytest.mark.req("X9")
@given(limit=st.floats(30, 580), holds_s=st.floats(1, 6))
def test_a_few_refusals_tell_the_limit(limit: float, holds_s: float) -> None:
    """Whatever was believed and however little the vendor saves up: what is found is hardly ever above the limit, and
    little below it, and forty calls pass between two refusals."""
    rule = Rule(window=Window.BUCKET, steps=((0.0, limit),), holds_s=holds_s, least=1.0)
    found = refusals(rule, seconds=1_900)
    late = [(at_s, state) for at_s, state in found if at_s > 1_000]
    assert late
    assert all(0.9 < state.top * CONFIGURED / limit < 1.1 for _, state in late)
    assert len(late) <= 900 * limit / 60 / 40 + 1


@pytest.mark.req("X9")
@pytest.mark.parametrize("configured", [600.0, 60.0, 20.0])
def test_a_limit_configured_at_half_of_the_real_one_is_left(configured: float) -> None:
    """Where the configuration lets it look further, three thousand calls take hardly longer than at the limit that
    nobody told, and one call in fifty is refused at most."""
    real = Rule(window=Window.BUCKET, steps=((0.0, 2 * configured),), holds_s=3.0)
    seconds = real.soonest_s(3_000)
    served, found = called(real, seconds=1.1 * seconds, configured=configured, explore=4.0)
    assert served >= 3_000
    assert len(found) <= served / 50


@pytest.mark.req("C16")
@pytest.mark.fault("E7")
def test_a_vendor_at_a_quarter_is_found_out_without_a_spike() -> None:
    """In the minute of the cut it refuses at most five calls, and none of them makes the pace lower than it must be:
    what was refused threefold is not tried again."""
    cut = Rule(window=Window.BUCKET, steps=((0.0, CONFIGURED), (60.0, CONFIGURED / 4)), holds_s=6.0)
    found = [(at_s, state) for at_s, state in refusals(cut, seconds=600) if at_s >= 60]
    assert len([at_s for at_s, _ in found if at_s < 120]) <= 5
    assert all(0.2 < state.base < 0.3 for at_s, state in found if at_s > 70)


@pytest.mark.req("X9")
@given(
    limit=st.floats(0.02, 1),
    below=st.floats(0.3, 1),
    unit_s=st.floats(20, 600),
    seconds=st.lists(st.integers(0, 4000), min_size=2, max_size=5),
)
def test_a_search_only_grows_and_stays_within_its_bound(
    limit: float, below: float, unit_s: float, seconds: list[int]
) -> None:
    """A function of time alone, without a write, never above what was configured to explore."""
    state = Search(base=limit * below, top=limit, since_us=NOW_US, unit_s=unit_s, spent_us=0)
    paces = [searched(state, NOW_US + s * SECOND, 1.2) for s in sorted(seconds)]
    assert paces == sorted(paces)
    assert all(state.base * 0.999 <= pace <= 1.2 for pace in paces)
    assert searched(state, NOW_US - SECOND, 1.2) == pytest.approx(state.base)


@pytest.mark.req("X9")
@given(part=st.floats(0.02, 1), seconds=st.integers(0, 300))
def test_it_grows_in_proportion_to_what_was_found(part: float, seconds: int) -> None:
    """A limit that was configured far too high is left as fast as one that was right."""
    far = replace(NEW, base=NEW.base * part, top=NEW.top * part)
    now_us = NOW_US + seconds * SECOND
    assert searched(far, now_us, 1000) == pytest.approx(part * searched(NEW, now_us, 1000))


@pytest.mark.req("X9")
def test_it_is_slow_where_it_was_refused_and_ever_faster_beyond() -> None:
    """Fast back, hardly at all near what was found, doubled a unit later."""
    state = replace(NEW, base=0.875)
    paces = [searched(state, NOW_US + s * SECOND, 100) for s in range(0, 121, 15)]
    steps = [after - before for before, after in pairwise(paces)]
    assert steps[0] > steps[1] > 0
    assert steps[2] < steps[3] < steps[4] < steps[5]
    assert searched(state, NOW_US + 30 * SECOND, 100) == pytest.approx(1.0)
    assert searched(state, NOW_US + 90 * SECOND, 100) == pytest.approx(2.0)


@pytest.mark.req("X9")
@given(calls=st.floats(0, 10_000), quiet_s=st.floats(0, 3600), seconds=st.integers(0, 4000))
def test_one_refusal_halves_a_pace_at_most_and_never_raises_it(calls: float, quiet_s: float, seconds: int) -> None:
    """However little seems to have passed; and to nothing it never falls."""
    sent_us = NOW_US + seconds * SECOND
    pace, after = searched(NEW, sent_us, 1.0), met(NEW, sent_us, sent_us, 1.0, spending(calls), quiet_s=quiet_s)
    assert pace / 2 <= after.top <= pace
    assert after.base == pytest.approx(search.BELOW * after.top)
    slow = replace(NEW, base=search.SLOWEST, top=search.SLOWEST)
    assert met(slow, NOW_US, NOW_US, 1.0, spending(0), quiet_s=0).base == search.SLOWEST


@pytest.mark.req("X9")
def test_the_quiet_is_a_part_of_the_time_but_not_more_than_a_minute_of_it() -> None:
    """What passed up to a refusal, that call with it, passed in the time since the one before, in which nobody called
    at first. An hour's quiet says nothing about a limit of minutes."""
    sent_us = NOW_US + 30 * SECOND

    def found(calls: int, quiet_s: float) -> float:
        return met(NEW, sent_us, sent_us, 1.0, spending(calls), quiet_s=quiet_s).top

    assert found(300, 10) == pytest.approx(0.75)
    assert found(300, 20) == pytest.approx(0.6)
    assert found(600, 3_600) == found(600, 60) == pytest.approx(2 / 3)


@pytest.mark.req("X9")
def test_what_was_taken_for_later_has_not_passed() -> None:
    """Of calls that wait for their moments when one is refused, none was sent."""
    sent_us = NOW_US + 40 * SECOND
    ahead = Spending(call_us=CALL_US, spent_us=32 * SECOND, sent_us=28 * SECOND)
    after = met(NEW, sent_us, sent_us, 1.0, ahead, quiet_s=0)
    assert after.top == pytest.approx(0.7)
    assert after.spent_us == ahead.spent_us


@pytest.mark.req("X9")
@pytest.mark.parametrize(("calls_a_minute", "unit_s"), [(3000, 20), (600, 20), (60, 120), (20, 360)])
def test_what_it_costs_to_know_is_counted_in_calls(calls_a_minute: int, unit_s: float) -> None:
    """A slow account tries more as seldom as a fast one, by its own calls."""
    call_us = MINUTE // calls_a_minute
    at_once = met(None, NOW_US, NOW_US, 1.0, Spending(call_us=call_us, spent_us=0, sent_us=0), quiet_s=0)
    assert at_once.unit_s == pytest.approx(unit_s)
    half = met(replace(NEW, base=0.5, top=0.5), NOW_US, NOW_US, 1.0, spending(0), quiet_s=0)
    assert half.unit_s == pytest.approx(max(20, 120 * 0.1 / half.top))
