"""What an account learns: told limits, a limit nobody tells, an outage, refused credentials."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.core import feedback, rate
from shared.core.account import Limit
from shared.core.budget import SECOND, Terms, us_of
from shared.core.feedback import AUTH, NOTHING, OUTAGE, Health, Report
from shared.core.search import Spending
from tests.builders import NOW, an_account

NOW_US = us_of(NOW)
SPEC = an_account()
SPENDING = Spending(call_us=SECOND, spent_us=0, sent_us=0)
"""Nothing passed: a pace is halved by each refusal."""


def changed(terms: Terms | None) -> Terms:
    """The new terms, which must be there."""
    assert terms is not None
    return terms


# ---------------------------------------------------------------------------------------------- told limits
@pytest.mark.req("X9")
def test_a_told_limit_holds_from_then_on() -> None:
    """Halved or raised: under a new version, once, and nothing is written when nothing changes."""
    half = changed(feedback.calibrated(Terms(), Report(limits={Limit.REQUESTS: 30}), NOW_US, NOW_US))
    assert (half.version, half.told, half.changed_us) == (1, {Limit.REQUESTS: 30}, NOW_US)
    assert rate.limit_of(SPEC, half, Limit.REQUESTS, NOW_US) == 30
    assert feedback.calibrated(half, Report(limits={Limit.REQUESTS: 30}), NOW_US + 1, NOW_US + 2) is None
    later_us = NOW_US + 10 * SECOND
    more = changed(feedback.calibrated(half, Report(limits={Limit.REQUESTS: 600}), NOW_US + 1, later_us))
    assert rate.limit_of(SPEC, more, Limit.REQUESTS, NOW_US) == 600
    assert feedback.calibrated(more, NOTHING, later_us + 1, later_us + 1) is None


def test_answers_that_contradict_each_other_do_not_thrash_a_limit() -> None:
    """Two limits told in turn, a hundred a second: the lower one holds, and the terms change a few times only."""
    terms, changes = Terms(), 0
    for number in range(1000):
        now_us = NOW_US + number * SECOND // 100
        report = Report(limits={Limit.REQUESTS: 600 if number % 2 else 300})
        after = feedback.calibrated(terms, report, now_us, now_us)
        changes += after is not None
        terms = after or terms
    assert terms.told == {Limit.REQUESTS: 300}
    assert changes <= 3


def test_a_search_begins_where_the_configuration_lets_it() -> None:
    """With `explore` above one and no limits told, the pace grows past the configured limit, without a refusal."""
    spec = replace(SPEC, explore=4.0)
    terms = changed(feedback.searching(spec, Terms(), NOTHING, NOW_US, SPENDING))
    paces = [rate.limit_of(spec, terms, Limit.REQUESTS, NOW_US + s * SECOND) or 0 for s in range(0, 2000, 100)]
    assert paces[0] == 60
    assert paces == sorted(paces)
    assert paces[-1] == 240
    assert feedback.searching(spec, terms, NOTHING, NOW_US, SPENDING) is None
    assert feedback.searching(SPEC, Terms(), NOTHING, NOW_US, SPENDING) is None
    assert feedback.searching(spec, Terms(), Report(limits={Limit.REQUESTS: 60}), NOW_US, SPENDING) is None


def test_a_told_limit_ends_the_search() -> None:
    """Who tells need not be probed."""
    searching = changed(feedback.slowed(SPEC, Terms(), NOTHING, NOW_US, NOW_US, SPENDING))
    report = Report(limits={Limit.TOKENS: 9})
    assert changed(feedback.calibrated(searching, report, NOW_US + 1, NOW_US + 1)).search is None


@pytest.mark.parametrize(
    "report",
    [
        Report(limits={Limit.REQUESTS: 60}, remaining={Limit.REQUESTS: 61}),
        Report(limits={Limit.REQUESTS: 0}),
        Report(limits={Limit.REQUESTS: -5}),
        Report(limits={Limit.REQUESTS: 10**13}),
    ],
)
def test_what_cannot_be_true_is_not_believed(report: Report) -> None:
    """More left than there is, no limit, an absurd one: ignored, and only that one."""
    assert feedback.calibrated(Terms(), report, NOW_US, NOW_US) is None
    both = replace(report, limits={**report.limits, Limit.TOKENS: 7})
    assert changed(feedback.calibrated(Terms(), both, NOW_US, NOW_US)).told == {Limit.TOKENS: 7}


def test_an_answer_from_before_a_change_says_nothing_about_it() -> None:
    """Of none of the rules."""
    terms = Terms(version=3, changed_us=NOW_US)
    late = NOW_US - 1
    assert feedback.calibrated(terms, Report(limits={Limit.REQUESTS: 9}), late, NOW_US) is None
    assert feedback.slowed(SPEC, terms, NOTHING, late, NOW_US, SPENDING) is None
    assert feedback.shut_down(terms, OUTAGE, late, NOW_US) is None


# -------------------------------------------------------------------------------------------- being slowed
@pytest.mark.fault("G7")
@given(asked=st.none() | st.floats(0, 1e9))
def test_a_429_makes_everybody_quiet_for_a_second_to_an_hour(asked: float | None) -> None:
    """As long as the vendor asks, within bounds; a second when it does not say."""
    terms = changed(feedback.slowed(SPEC, Terms(), Report(retry_after_s=asked), NOW_US, NOW_US, SPENDING))
    wanted = 1.0 if asked is None else min(max(asked, 1.0), 3600.0)
    assert terms.quiet_until_us == NOW_US + int(wanted * SECOND)


def test_a_round_of_429s_slows_once() -> None:
    """Ten calls were under way at one pace: the first refusal lowers it, the other nine find it lowered."""
    terms, slowed = Terms(), 0
    for n in range(10):
        after = feedback.slowed(SPEC, terms, NOTHING, NOW_US - n, NOW_US + n, SPENDING)
        slowed += after is not None
        terms = after or terms
    assert slowed == 1
    assert terms.search is not None
    assert (terms.search.top, terms.search.base) == (1.0, 0.95)
    again = changed(feedback.slowed(SPEC, terms, NOTHING, NOW_US + SECOND, NOW_US + SECOND, SPENDING))
    assert again.search is not None
    assert again.search.base < 0.5


@pytest.mark.req("X9")
def test_what_went_out_in_the_quiet_says_nothing_about_the_pace_after_it() -> None:
    """It was sent on a permit from before: the quiet may grow longer, the search begins as it was, later."""
    terms = changed(feedback.slowed(SPEC, Terms(), NOTHING, NOW_US, NOW_US, SPENDING))
    sent_us, now_us = NOW_US + SECOND // 4, NOW_US + SECOND // 2
    again = changed(feedback.slowed(SPEC, terms, NOTHING, sent_us, now_us, SPENDING))
    assert terms.search is not None
    assert again.search == replace(terms.search, since_us=now_us + SECOND)
    assert again.quiet_until_us == now_us + SECOND


def test_the_search_goes_by_what_passed_since_the_refusal_before() -> None:
    """Nine seconds of the configured limits' time in ten, of which the first was quiet, with the call that was refused;
    or five."""
    terms = changed(feedback.slowed(SPEC, Terms(), NOTHING, NOW_US, NOW_US, SPENDING))
    sent_us = NOW_US + 10 * SECOND
    for seconds in (9, 5):
        passed = Spending(call_us=SECOND, spent_us=0, sent_us=seconds * SECOND)
        after = changed(feedback.slowed(SPEC, terms, NOTHING, sent_us, sent_us, passed))
        assert after.search is not None
        assert after.search.top == pytest.approx(seconds / 10)
        most = rate.limit_of(SPEC, after, Limit.REQUESTS, after.quiet_until_us)
        assert most == pytest.approx(60 * 0.95 * seconds / 10)


def test_a_vendor_that_tells_its_limits_is_not_searched() -> None:
    """It refuses for reasons of its own: quiet is enough."""
    terms = Terms(version=1, told={Limit.REQUESTS: 100})
    after = changed(feedback.slowed(SPEC, terms, NOTHING, NOW_US, NOW_US, SPENDING))
    assert after.search is None
    assert after.quiet_until_us == NOW_US + SECOND


@pytest.mark.fault("G10")
@pytest.mark.parametrize(("reset_s", "quiet_s"), [({}, 60), ({Limit.REQUESTS: 6.0, Limit.TOKENS: 2.5}, 6)])
def test_who_tells_limits_is_asked_again_after_one_window(reset_s: dict[Limit, float], quiet_s: int) -> None:
    """`Retry-After: 900` is believed until the limits are whole again, or for a minute where that is not told. Who
    asks for less is given less."""
    terms = Terms(version=1, told={Limit.REQUESTS: 100})
    report = Report(retry_after_s=900, reset_s=reset_s)
    after = changed(feedback.slowed(SPEC, terms, report, NOW_US, NOW_US, SPENDING))
    assert after.quiet_until_us == NOW_US + quiet_s * SECOND
    little = replace(report, retry_after_s=1.5)
    after = changed(feedback.slowed(SPEC, terms, little, NOW_US, NOW_US, SPENDING))
    assert after.quiet_until_us == NOW_US + 3 * SECOND // 2


@pytest.mark.fault("G10")
def test_who_tells_no_limits_is_obeyed() -> None:
    """Nobody knows what its quarter of an hour is about."""
    after = changed(feedback.slowed(SPEC, Terms(), Report(retry_after_s=900), NOW_US, NOW_US, SPENDING))
    assert after.quiet_until_us == NOW_US + 900 * SECOND


def refused_under(told: int, times: int, every_s: int) -> tuple[Terms, int]:
    """The terms after so many refusals under a told limit, and when."""
    terms, now_us = Terms(version=1, told={Limit.REQUESTS: told}), NOW_US
    for _ in range(times):
        now_us += every_s * SECOND
        terms = changed(feedback.slowed(SPEC, terms, Report(retry_after_s=1), now_us, now_us, SPENDING))
    return terms, now_us


@pytest.mark.fault("G10")
def test_a_limit_under_which_it_refuses_three_times_counts_as_untold() -> None:
    """It tells twice the truth: after three refusals inside a window the account goes back to its configured limit and
    searches from there, and a long `Retry-After` is obeyed. After an hour it is believed again."""
    terms, now_us = refused_under(120, times=3, every_s=20)
    later_us = now_us + 2 * SECOND
    assert rate.limit_of(SPEC, terms, Limit.REQUESTS, later_us) < 60  # type: ignore[operator]
    long = changed(feedback.slowed(SPEC, terms, Report(retry_after_s=900), later_us, later_us, SPENDING))
    assert long.quiet_until_us == later_us + 900 * SECOND
    assert rate.limit_of(SPEC, terms, Limit.REQUESTS, now_us + 3600 * SECOND) == 120


@pytest.mark.fault("G10")
@pytest.mark.parametrize(("times", "every_s"), [(2, 1), (9, 31)])
def test_a_limit_under_which_it_seldom_refuses_holds(times: int, every_s: int) -> None:
    """Two refusals, or many that are half a minute apart, are no proof that it lies."""
    terms, now_us = refused_under(120, times, every_s)
    assert rate.limit_of(SPEC, terms, Limit.REQUESTS, now_us) == 120
    assert terms.search is None


@pytest.mark.fault("G10")
def test_a_doubted_limit_is_still_a_bound() -> None:
    """Below the configured limit it holds as told, whatever a search has found; and news of it do not end the doubt."""
    terms, now_us = refused_under(120, times=3, every_s=1)
    cut = changed(feedback.calibrated(terms, Report(limits={Limit.REQUESTS: 20}), now_us + 1, now_us + 1))
    assert rate.limit_of(SPEC, cut, Limit.REQUESTS, now_us + 600 * SECOND) == 20
    assert cut.search == terms.search
    more_us = now_us + 20 * SECOND
    more = changed(feedback.calibrated(cut, Report(limits={Limit.REQUESTS: 240}), more_us, more_us))
    assert rate.limit_of(SPEC, more, Limit.REQUESTS, more_us) <= 60  # type: ignore[operator]


def test_a_shorter_wait_does_not_shorten_a_longer_one() -> None:
    """The longest that was asked for counts."""
    terms = Terms(version=1, told={Limit.REQUESTS: 100}, quiet_until_us=NOW_US + 60 * SECOND)
    assert feedback.slowed(SPEC, terms, Report(retry_after_s=1), NOW_US, NOW_US, SPENDING) is None


def test_the_pace_grows_again_without_a_write() -> None:
    """After a refusal at the configured limit: from just below it back to it, and no further than it may."""
    terms = changed(feedback.slowed(SPEC, Terms(), NOTHING, NOW_US, NOW_US, SPENDING))
    paces = [
        rate.limit_of(SPEC, terms, Limit.REQUESTS, terms.quiet_until_us + s * SECOND) or 0 for s in range(0, 60, 5)
    ]
    assert paces[0] == pytest.approx(57)
    assert paces == sorted(paces)
    assert paces[-1] == pytest.approx(60)


# ------------------------------------------------------------------------------------------- shut and open
@pytest.mark.fault("G9")
@pytest.mark.parametrize("reason", [OUTAGE, AUTH])
def test_a_shut_account_is_probed_one_at_a_time(reason: str) -> None:
    """The first probe after a second; nobody else before it is answered, or is taken for dead."""
    shut = changed(feedback.shut_down(Terms(), reason, NOW_US, NOW_US))
    due = NOW_US + SECOND
    assert feedback.probing(shut, due - 1) is None
    probed = changed(feedback.probing(shut, due, by="w1"))
    assert probed.shut is not None
    assert probed.shut.probe_by == "w1"
    assert feedback.probing(probed, due + 9 * SECOND) is None
    assert feedback.probing(probed, due + 10 * SECOND) is not None
    assert changed(feedback.probing(shut, due, by="w2")) != probed


@pytest.mark.fault("G9")
@pytest.mark.parametrize(("reason", "pauses"), [(OUTAGE, [1, 1, 1, 1]), (AUTH, [2, 4, 8, 16, 32, 60, 60])])
def test_after_a_probe_in_vain_the_next_follows(reason: str, pauses: list[int]) -> None:
    """An outage is asked about every second, refused credentials ever less often; answers that take no longer than
    the pause cost no time."""
    terms, now_us = changed(feedback.shut_down(Terms(), reason, NOW_US, NOW_US)), NOW_US + SECOND
    for pause_s in pauses:
        probed = changed(feedback.probing(terms, now_us))
        terms = changed(feedback.in_vain(probed, now_us, now_us + SECOND // 2))
        assert terms.shut is not None
        assert terms.shut.turn_us == now_us + pause_s * SECOND
        now_us = terms.shut.turn_us
    assert feedback.in_vain(terms, now_us, now_us) is None


@pytest.mark.fault("G8")
def test_late_answers_neither_open_nor_shut_an_account() -> None:
    """An answer is about the moment its call was sent: before the outage it proves nothing, and a failure from
    before it opened does not shut it again."""
    shut = changed(feedback.shut_down(Terms(), OUTAGE, NOW_US, NOW_US))
    assert feedback.opened(shut, NOW_US - 1, NOW_US + SECOND) is None
    assert feedback.shut_down(shut, OUTAGE, NOW_US, NOW_US + SECOND) is None
    opened = changed(feedback.opened(shut, NOW_US + SECOND, NOW_US + 2 * SECOND))
    assert (opened.shut, opened.quiet_until_us) == (None, 0)
    assert feedback.shut_down(opened, OUTAGE, NOW_US + SECOND, NOW_US + 3 * SECOND) is None
    assert feedback.opened(opened, NOW_US + 3 * SECOND, NOW_US + 3 * SECOND) is None
    assert changed(feedback.shut_down(opened, OUTAGE, NOW_US + 2 * SECOND, NOW_US + 3 * SECOND)).shut is not None


def test_a_probes_turn_does_not_count_as_news() -> None:
    """Its own answer must still be able to open the account."""
    shut = changed(feedback.shut_down(Terms(), OUTAGE, NOW_US, NOW_US))
    probed = changed(feedback.probing(shut, NOW_US + SECOND))
    assert probed.changed_us == shut.changed_us
    assert probed.version == shut.version + 1
    assert feedback.opened(probed, NOW_US + SECOND, NOW_US + 2 * SECOND) is not None


# --------------------------------------------------------------------------------------------- the breaker
def health(*calls: tuple[float, bool]) -> Health:
    """A memory of calls: seconds after `NOW` when sent, and whether they failed; in the order of their answers."""
    memory = Health()
    for seconds, failed in calls:
        memory.note(NOW_US + int(seconds * SECOND), failed=failed)
    return memory


@pytest.mark.fault("G8")
@pytest.mark.parametrize(
    ("calls", "broken"),
    [
        ([(n, True) for n in range(5)], True),
        ([(n, True) for n in range(4)], False),
        ([(n, n % 2 == 0) for n in range(9)], True),
        ([(n / 2, n % 3 == 0) for n in range(18)], False),
        ([(0, True), (0, True), (0, True), (11, True), (12, True)], False),
        ([(20, True), (20, True), (20, True), (0, True), (1, True)], False),
    ],
    ids=["five", "four", "half", "a_third", "old_ones_left", "late_answers"],
)
def test_the_breaker_needs_five_failures_and_half_of_the_calls(calls: list[tuple[float, bool]], broken: bool) -> None:
    """Of those sent in the last ten seconds, however late they answer."""
    assert health(*calls).broken(0) is broken


@pytest.mark.fault("G8")
def test_failures_sent_before_the_account_opened_do_not_count() -> None:
    """They were under way when it opened."""
    memory = health(*((n / 10, True) for n in range(10)))
    assert memory.broken(NOW_US)
    assert not memory.broken(NOW_US + SECOND)
