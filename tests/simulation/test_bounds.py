"""Slow and strict vendors: the rules that they keep, the ideal beside them, and a backlog worked off against them.
`make simulate ARGS=bounds` runs every row at full size."""

from __future__ import annotations

import io
import json
import random
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from ops.simulator import __main__ as simulator
from ops.simulator import bounds, bounds_report
from ops.simulator.engine import SlotClock
from ops.simulator.families import ABOUT_HEADERS, FAMILIES, member
from ops.simulator.hub import Hub
from ops.simulator.rules import Kept, Rule, Window
from ops.simulator.strict import Headers, Offer, StrictVendor
from shared.adapters.memory.clock import VirtualClock
from shared.core.account import Limit
from shared.core.effects import Accepted, Call, Refused
from shared.core.sensitive import Sensitive

CALL = Call(vendor="model", action="ask", body=Sensitive({}))


@st.composite
def rules(draw: st.DrawFn) -> Rule:
    """A limit that changes up to three times in its first minutes."""
    times = draw(st.lists(st.integers(1, 200), max_size=3, unique=True))
    limits = draw(st.lists(st.integers(1, 40), min_size=len(times) + 1, max_size=len(times) + 1))
    return Rule(
        window=draw(st.sampled_from(Window)),
        steps=tuple(zip([0.0, *map(float, sorted(times))], map(float, limits), strict=True)),
        holds_s=draw(st.floats(0.5, 60)),
        phase_s=draw(st.floats(0, 59.9)),
    )


@given(rule=rules(), amount=st.integers(1, 120))
@settings(max_examples=200, deadline=None)
def test_whoever_asks_at_every_moment_is_never_sooner_than_the_ideal_and_hardly_later(rule: Rule, amount: int) -> None:
    """A caller that sends whenever the rule lets it is done when the ideal says: it is a bound, and a tight one."""
    kept, now_s = Kept(rule), 0.0
    changes = [at_s for at_s, _ in rule.steps]
    for _ in range(amount):
        while (wait_s := kept.wait_s(1, now_s)) > 0:
            now_s += min([wait_s, *(at_s - now_s for at_s in changes if at_s > now_s)])
        kept.charge(1, now_s)
    ideal_s = rule.soonest_s(amount)
    assert ideal_s <= now_s + 1e-6
    # A bucket that shrinks spills what a call of one piece could not use; nothing else is lost.
    spilt_s = len(changes) * 60 / min(most for _, most in rule.steps) if rule.window is Window.BUCKET else 1e-3
    assert now_s <= ideal_s + spilt_s


@given(rule=rules(), seed=st.integers(0, 10_000), waits=st.floats(0.1, 20))
@settings(max_examples=200, deadline=None)
def test_no_caller_beats_the_ideal(rule: Rule, seed: int, waits: float) -> None:
    """Whatever is sent when, refused calls counted or not, no more has passed by any moment than the ideal says."""
    kept, rng, now_s, passed = Kept(rule), random.Random(seed), 0.0, 0
    for _ in range(150):
        now_s += rng.choice((0.0, rng.expovariate(1 / waits)))
        served = kept.wait_s(1, now_s) <= 0
        if served or rng.random() < 0.5:
            kept.charge(1, now_s)
        passed += served
        if served:
            assert rule.soonest_s(passed) <= now_s + 1e-6


def test_the_ideal_in_windows_is_counted_by_hand() -> None:
    """Ten a minute, five after ninety seconds: ten at once, ten a minute later, then five for each whole minute."""
    steps = ((0.0, 10.0), (90.0, 5.0))
    sliding = Rule(window=Window.SLIDING, steps=steps)
    assert [sliding.soonest_s(amount) for amount in (10, 11, 20, 21, 25, 26)] == [0, 60, 60, 120, 120, 180]
    calendar = Rule(window=Window.CALENDAR, steps=steps, phase_s=50.0)
    # Its minutes begin at second 10, 70, 130, …; the cut in the second of them takes nothing back.
    assert [calendar.soonest_s(amount) for amount in (10, 20, 30, 31, 36)] == [0, 10, 70, 130, 190]
    assert calendar.fluid_s(17.5) == 120


def test_the_ideal_of_a_bucket_is_its_level_and_its_flow() -> None:
    """Sixty a minute with ten in hand: seventy in a minute; half as fast from second 30 on."""
    even = Rule(window=Window.BUCKET, steps=((0.0, 60.0),), holds_s=10)
    assert even.soonest_s(70) == 60
    assert Rule(window=Window.BUCKET, steps=((0.0, 60.0), (30.0, 30.0)), holds_s=10).soonest_s(70) == 90
    assert even.fluid_s(70) == 70


def a_vendor(clock: VirtualClock, limit: float = 60.0, headers: Headers | None = None, tokens: int = 0) -> StrictVendor:
    rule = Rule(window=Window.BUCKET, steps=((0.0, limit),), holds_s=2)
    counted = Rule(window=Window.BUCKET, steps=((0.0, 1000.0),)) if tokens else None
    offer = Offer(name="model", requests=rule, tokens=counted, headers=headers or Headers(), takes_s=(0.0, 0.0))
    return StrictVendor(offer, clock=clock, uses=lambda number: tokens)


def test_headers_tell_what_stands_what_stood_or_a_lie() -> None:
    """True, five seconds old, or twice as much of everything; never more left than the limit that is told."""
    clock = VirtualClock()
    true, late, lying, silent = (
        a_vendor(clock, headers=headers)
        for headers in (Headers(), Headers(late_s=5.0), Headers(times=2.0), Headers(told=False))
    )
    for _ in range(2):
        answers = [one.perform(CALL, key=None, timeout_s=1) for one in (true, late, lying, silent)]
    assert [one.report.remaining.get(Limit.REQUESTS) for one in answers] == [0, 1, 0, None]
    assert [one.report.limits.get(Limit.REQUESTS) for one in answers] == [60, 60, 120, None]
    clock.advance(5)
    assert late.perform(CALL, key=None, timeout_s=1).report.remaining[Limit.REQUESTS] == 0


def test_tokens_are_judged_by_what_a_call_uses_and_told() -> None:
    """A call beyond the tokens' limit is refused until they are refilled, whatever it was estimated at; where it is
    counted all the same, that takes longer, and is told."""
    clock = VirtualClock()
    vendor = a_vendor(clock, limit=6000, tokens=600)
    first, second = (vendor.perform(CALL, key=None, timeout_s=1) for _ in range(2))
    assert isinstance(first, Accepted)
    assert first.report.tokens_used == 600
    assert isinstance(second, Refused)
    assert second.retry_after_s == pytest.approx(48)


def test_a_call_into_a_quiet_that_everybody_knows_is_counted() -> None:
    """What was under way at the 429 is nobody's fault; what comes after is."""
    clock = VirtualClock()
    vendor = a_vendor(clock, headers=Headers(retry_after_s=900.0))
    for _ in range(4):
        vendor.perform(CALL, key=None, timeout_s=1)
    assert (len(vendor.seen.refused_at), vendor.called_in_quiet) == (2, 0)
    clock.advance(60)
    vendor.perform(CALL, key=None, timeout_s=1)
    clock.advance(900)
    vendor.perform(CALL, key=None, timeout_s=1)
    assert vendor.called_in_quiet == 1


def test_a_row_says_whether_a_long_quiet_was_obeyed() -> None:
    """Where a quarter of an hour must be kept, the row says that nobody called in it, or that it is missed."""
    done = bounds.run("Retry-After 900 s, no headers", 40, 1)
    console = Console(width=110, file=io.StringIO(), record=True)
    told = []
    for calls in (0, 1):
        console.print(bounds_report.table([replace(done, called_in_quiet=calls)], 110))
        told.append("Retry-After 900 s, no headers, obeyed" in console.export_text())
        missed = [one for one in bounds_report.missed([replace(done, called_in_quiet=calls)]) if "in_quiet" in one]
        assert len(missed) == calls
    assert told == [True, False]


@pytest.mark.parametrize("family", FAMILIES)
def test_a_member_is_drawn_by_its_seed_alone(family: str) -> None:
    """The same numbers with headers and without, others for another seed, and a cut in each."""
    one, again, silent, other = (member(family, *drawn) for drawn in ((3, 600), (3, 600), (3, 600), (4, 600)))
    silent = member(family, 3, 600, tells=False)
    assert one == again != other
    assert [offer.rules for offer in one.vendors] == [offer.rules for offer in silent.vendors]
    assert not any(offer.headers.told for offer in silent.vendors)
    assert all(any(len(rule.steps) == 3 for rule in offer.rules.values()) for offer in one.vendors)


def test_a_worker_that_sleeps_keeps_its_slot_and_others_go_on() -> None:
    """Two jobs that sleep two seconds take two seconds together, and what each slept is counted."""
    hub, ended = Hub(), []
    clocks = [SlotClock(hub.clock.skewed(0.5)), SlotClock(hub.clock)]
    for clock in clocks:
        hub.spawn(lambda clock=clock: (clock.sleep(2.0), ended.append(hub.clock.now())))
    began = hub.clock.now()
    hub.run(until_s=60)
    assert [(at - began).total_seconds() for at in ended] == [2.0, 2.0]
    assert [clock.slept_s for clock in clocks] == [2.0, 2.0]


def test_a_few_calls_end_after_the_ideal() -> None:
    """A small run tells all its figures: done, later than the ideal, nobody failed; what slept is a smaller part of all
    the lane's slots than of those that were taken."""
    done = bounds.run("60 a minute, headers", 40, 1)
    assert (done.drained, done.failed) == (True, 0)
    assert done.seconds >= done.ideal_s
    assert 0 < done.slept_share < done.slept_of_held < 1
    assert done.slots == 20 * 10


def test_the_command_runs_what_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Rows by a part of their name, seeds, calls; each seed's figures and each row's in the report, and a picture."""
    monkeypatch.setattr(simulator, "REPORTS", tmp_path)
    assert simulator.main(["bounds", "--row", "20 a min", "--seeds", "2-3", "--calls", "30", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [(row["way"], row["seeds"]) for row in told["rows"]] == [
        ("20 a minute, headers", [2, 3]),
        ("20 a minute, no headers", [2, 3]),
    ]
    assert [one["seed"] for one in told["ways"]] == [2, 3, 2, 3]
    assert (tmp_path / "bounds.svg").stat().st_size > 1000
    assert simulator.main(["bounds", "--row", "no such row"]) == 2
    assert simulator.main(["--row", "20"]) == 2


def test_every_row_has_its_bounds() -> None:
    """With headers and without, but for what is about headers; no promise without its row."""
    ways = bounds.ways()
    assert len(ways) == 2 * len(FAMILIES) - len(ABOUT_HEADERS)
    assert set(bounds_report.APART) <= set(ways)
    assert bounds_report.bounds_of("20 a minute, headers")["times_ideal"] == 1.06
    assert bounds_report.bounds_of("8,000 tokens a call, headers")["times_ideal"] == 1.15
    assert bounds_report.bounds_of("20 a minute, no headers")["refused_share"] == 0.02
    assert "times_ideal" not in bounds_report.bounds_of("Retry-After 900 s, no headers")
