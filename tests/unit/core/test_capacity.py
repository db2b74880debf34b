"""The next cap of a lane: every rule, every reason, and what holds under any load."""

from __future__ import annotations

import itertools
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.core.capacity import (
    POLICIES,
    CapacityState,
    Decision,
    Pin,
    Policy,
    Reason,
    check_pin,
    decide,
    pinned,
    soon_s,
    unpinned,
)
from shared.core.errors import BadInput
from shared.core.severity import Reading, Severity
from tests.builders import NOW, a_lane

MINUTE = timedelta(minutes=1)
POLICY = replace(POLICIES["conservative"], floor=2, baseline=4, ceiling=20)
RAMP = replace(POLICIES["ramp"].of(a_lane(parallel=1)), floor=16, baseline=16, ceiling=1000)
CALM = Reading(severity=Severity.NORMAL, age_s=0)
BACKLOG = Reading(severity=Severity.MODERATE, age_s=200, aged=True)
LIMITED = replace(BACKLOG, limited=("helpdesk",), normal_rates=False)
FAILING = replace(BACKLOG, failing=("helpdesk",), normal_rates=False)
UNSTABLE = replace(BACKLOG, unstable=("helpdesk",), normal_rates=False)
GROWING = replace(BACKLOG, growing=True)
STUMBLING = replace(BACKLOG, worker_errors=True, normal_rates=False)


def a_state(cap: int = 4, **more: Any) -> CapacityState:
    return CapacityState(cap=cap, **more)


def a_pin(cap: int, minutes: int = 60) -> Pin:
    return Pin(cap=cap, until=NOW + minutes * MINUTE, by="operator", why="incident 7")


def after(
    minutes: int, *looks: Reading | None, policy: Policy = POLICY, start: CapacityState | None = None
) -> list[Decision]:
    """A decision a minute; the last look stands for the rest."""
    state, made = start or a_state(), []
    for minute in range(minutes):
        look = looks[min(minute, len(looks) - 1)]
        decision = decide(state, look, policy, NOW + minute * MINUTE)
        made.append(decision)
        state = decision.after
    return made


def caps(made: list[Decision]) -> list[int]:
    return [decision.to_cap for decision in made]


def changes(made: list[Decision]) -> list[tuple[int, int]]:
    """Minute and cap, where it changed."""
    return [(n, one.to_cap) for n, one in enumerate(made) if one.to_cap != one.from_cap]


# ------------------------------------------------------------------------------------------------ drain
@pytest.mark.req("C4")
def test_a_backlog_raises_by_two_every_ten_minutes() -> None:
    """At once, then never sooner than ten minutes after the change before."""
    assert changes(after(30, BACKLOG)) == [(0, 6), (10, 8), (20, 10)]


@pytest.mark.req("C4")
@pytest.mark.parametrize(
    ("trouble", "reason"),
    [
        (LIMITED, Reason.AT_FLOOR),
        (FAILING, Reason.AT_FLOOR),
        (GROWING, Reason.DLQ_GROWTH),
        (STUMBLING, Reason.WORKER_ERROR_SPIKE),
    ],
)
def test_no_rise_on_a_spike_or_on_growth(trouble: Reading, reason: Reason) -> None:
    """At the floor there is nothing to lower; the cap stays, and the decision says why."""
    made = after(30, trouble, start=a_state(2))
    assert changes(made) == []
    assert {reason} == {one.reason for one in made}


@pytest.mark.req("C4")
@pytest.mark.parametrize(("since_s", "wait_s"), [(594, 0), (595, 5), (599.5, 0.5), (600, 0), (30, 0), (-30, 0)])
def test_what_is_all_but_over_is_waited_for(since_s: float, wait_s: float) -> None:
    """A look a few seconds before the interval or the hold is over waits for it: a minute later would be a step every
    eleven minutes. Nobody waits for longer, and nobody where nothing changed."""
    now = NOW + timedelta(seconds=since_s)
    assert soon_s(a_state(6, changed_at=NOW), POLICY, now) == wait_s
    assert soon_s(a_state(6, lowered_at=NOW), POLICY, now) == wait_s
    assert soon_s(a_state(6), POLICY, now) == 0


@pytest.mark.req("C4", "C7")
def test_the_ceiling_ends_the_rise() -> None:
    """By its reason."""
    made = after(120, BACKLOG)
    assert 20 == max(caps(made)) == made[-1].to_cap
    assert Reason.AT_CEILING is made[-1].reason


# ------------------------------------------------------------------------------------------------ lower
@pytest.mark.req("C5", "C16")
@pytest.mark.parametrize(
    ("trouble", "reason"),
    [
        (LIMITED, Reason.VENDOR_429_SPIKE),
        (FAILING, Reason.VENDOR_ERROR_SPIKE),
        (UNSTABLE, Reason.VENDOR_UNSTABLE),
    ],
)
def test_vendor_trouble_halves_then_holds_ten_minutes(trouble: Reading, reason: Reason) -> None:
    """16, 8, 4, 2 and no lower, ten minutes apart however bad it is."""
    made = after(41, trouble, start=a_state(16))
    assert changes(made) == [(0, 8), (10, 4), (20, 2)]
    assert [reason, Reason.HOLD_DOWN, Reason.AT_FLOOR] == [made[0].reason, made[5].reason, made[40].reason]


@pytest.mark.req("C5")
def test_after_a_decrease_nothing_rises_for_ten_minutes() -> None:
    """Also when the trouble is over at once."""
    made = after(12, LIMITED, BACKLOG, start=a_state(10))
    assert changes(made) == [(0, 5), (10, 7)]
    assert {Reason.HOLD_DOWN} == {one.reason for one in made[1:10]}


@pytest.mark.req("C4")
def test_growth_and_worker_errors_do_not_lower_a_conservative_lane() -> None:
    """They only keep it from rising."""
    assert changes(after(30, GROWING, STUMBLING, start=a_state(16))) == []


# ------------------------------------------------------------------------------------------- back to baseline
@pytest.mark.req("C6")
def test_back_to_baseline_after_a_quarter_of_an_hour_of_calm() -> None:
    """In one step, and not a minute sooner."""
    assert changes(after(30, CALM, start=a_state(12))) == [(15, 4)]


@pytest.mark.req("C6")
@pytest.mark.parametrize("disturbance", [BACKLOG, None])
def test_a_disturbance_begins_the_calm_anew(disturbance: Reading | None) -> None:
    """One look at an old queue, or one that saw nothing, and the quarter of an hour starts again."""
    made = after(40, *[CALM] * 10, disturbance, CALM, start=a_state(20))
    assert changes(made) == [(26, 4)]


@pytest.mark.req("C6")
def test_rates_must_be_normal() -> None:
    """A young queue alone does not end an incident."""
    uneasy = replace(CALM, normal_rates=False)
    assert changes(after(60, uneasy, start=a_state(12))) == []
    assert changes(after(30, *[uneasy] * 20, CALM, start=a_state(12))) == [(20, 4)]


@pytest.mark.req("C6")
def test_a_silence_of_the_governor_is_no_calm() -> None:
    """What nobody saw does not count."""
    seen = decide(a_state(12), CALM, POLICY, NOW).after
    assert decide(seen, CALM, POLICY, NOW + 20 * MINUTE).to_cap == 12


@pytest.mark.req("C6", "C4")
def test_below_the_baseline_it_comes_back_in_steps() -> None:
    """After the hold-down, by two, never in a leap."""
    policy = replace(POLICY, baseline=10)
    assert changes(after(60, LIMITED, CALM, start=a_state(10), policy=policy)) == [(0, 5), (10, 7), (20, 9), (30, 10)]


# --------------------------------------------------------------------------------------------------- ramp
@pytest.mark.req("F4")
def test_ramp_rises_by_64_every_five_minutes_and_halves_on_any_breach() -> None:
    """Growing dead letters lower it, too; then it holds."""
    assert changes(after(12, BACKLOG, policy=RAMP, start=a_state(16))) == [(0, 80), (5, 144), (10, 208)]
    for breach in (LIMITED, FAILING, UNSTABLE, GROWING, STUMBLING):
        assert changes(after(5, breach, policy=RAMP, start=a_state(208))) == [(0, 104)]


@pytest.mark.req("F4")
def test_a_step_in_slots_is_fewer_invocations() -> None:
    """64 jobs at once are six invocations of ten, and at least one of a hundred."""
    ramp = POLICIES["ramp"]
    assert [ramp.of(a_lane(parallel=parallel)).step_up for parallel in (1, 10, 100)] == [64, 6, 1]


# ---------------------------------------------------------------------------------------------------- pins
@pytest.mark.req("C7")
@pytest.mark.fault("E1")
def test_a_pin_wins_over_everything_until_it_ends() -> None:
    """Over a backlog, over vendor trouble; afterwards the rules go on from there."""
    made = after(70, BACKLOG, LIMITED, BACKLOG, start=replace(a_state(4), pin=a_pin(9)))
    assert {9} == set(caps(made[:60]))
    assert {Reason.OPERATOR_PIN} == {one.reason for one in made[:60]}
    assert (made[59].pinned, made[60].pinned) == (True, False)
    assert made[60].to_cap == 11


@pytest.mark.req("C7")
def test_a_pin_above_the_ceiling_is_refused_and_never_followed() -> None:
    """At the door with a sentence; and if a deploy lowers the ceiling under a pin, the ceiling holds."""
    lane = a_lane(ceiling=8)
    with pytest.raises(BadInput, match="2 to 8, the ceiling of lane support"):
        check_pin(9, NOW + MINUTE, lane, NOW)
    assert decide(replace(a_state(4), pin=a_pin(900)), BACKLOG, POLICY, NOW).to_cap == 20


@pytest.mark.parametrize("cap", [1, -1, True, "4", 2.0])
def test_a_pin_that_no_event_source_takes_is_refused(cap: Any) -> None:
    """0 stops it, 2 is the least."""
    with pytest.raises(BadInput, match="must be 0"):
        check_pin(cap, NOW + MINUTE, a_lane(), NOW)


@pytest.mark.parametrize("minutes", [0, -5, 7 * 24 * 60 + 1])
def test_a_pin_has_an_end(minutes: int) -> None:
    """In the future, within a week."""
    with pytest.raises(BadInput, match="within 7 days"):
        check_pin(4, NOW + minutes * MINUTE, a_lane(), NOW)


def test_a_pin_holds_at_once_and_goes_by_hand() -> None:
    """Pinned, the cap is the pin's; unpinned, it stays until the next decision. Each is a new version."""
    state = pinned(a_state(4, version=7), a_pin(0), NOW)
    assert (state.cap, state.version) == (0, 8)
    assert decide(state, BACKLOG, POLICY, NOW + MINUTE).to_cap == 0
    free = unpinned(state)
    assert (free.cap, free.version, free.pin) == (0, 9, None)
    assert (
        (back := decide(free, BACKLOG, POLICY, NOW + MINUTE)).to_cap,
        back.reason,
    ) == (2, Reason.OUT_OF_BOUNDS)


# ------------------------------------------------------------------------------------------ other reasons
def test_without_signals_nothing_changes() -> None:
    """Who cannot see does not steer."""
    made = after(30, None, start=a_state(12))
    assert ([], {Reason.SIGNALS_UNKNOWN}) == (changes(made), {one.reason for one in made})


def test_a_closed_lane_is_not_raised() -> None:
    """Its jobs wait for a switch, not for workers; vendor trouble still lowers."""
    assert (
        (held := decide(a_state(4), BACKLOG, POLICY, NOW, closed=True)).to_cap,
        held.reason,
    ) == (4, Reason.LANE_CLOSED)
    assert decide(a_state(16), LIMITED, POLICY, NOW, closed=True).to_cap == 8


def test_a_lane_without_trouble_or_backlog_is_steady() -> None:
    """And says so."""
    assert ((made := decide(a_state(4), CALM, POLICY, NOW)).to_cap, made.reason) == (4, Reason.STEADY)


def test_a_rise_says_that_it_waits() -> None:
    """Between two steps."""
    assert {Reason.WAITS_FOR_INTERVAL} == {one.reason for one in after(10, BACKLOG)[1:]}


@pytest.mark.req("F5")
def test_a_decision_is_a_record_with_these_spellings() -> None:
    """Every field, for a change and for no change alike."""
    raised, held = after(2, BACKLOG)
    assert raised.record("c-1") == {
        "timestamp": "2026-01-01T00:00:00.000Z",
        "fromCapacity": 4,
        "toCapacity": 6,
        "reasonCode": "backlog",
        "guardrailState": "clear",
        "operatorOverrideActive": False,
        "correlationId": "c-1",
    }
    assert tuple(held.record("c-2")[name] for name in ("reasonCode", "fromCapacity", "toCapacity")) == (
        "waits_for_interval",
        6,
        6,
    )
    both = replace(LIMITED, growing=True)
    assert decide(a_state(8), both, POLICY, NOW).record("c")["guardrailState"] == "vendor_429_spike,dlq_growth"


# ---------------------------------------------------------------------------------------------- properties
readings = st.none() | st.builds(
    Reading,
    severity=st.sampled_from(Severity),
    age_s=st.integers(0, 1000),
    limited=st.sampled_from([(), ("helpdesk",)]),
    failing=st.sampled_from([(), ("helpdesk",)]),
    unstable=st.sampled_from([(), ("helpdesk",)]),
    worker_errors=st.booleans(),
    growing=st.booleans(),
    normal_rates=st.booleans(),
    aged=st.booleans(),
)
policies = st.sampled_from([POLICY, RAMP, replace(POLICY, floor=6, baseline=6, ceiling=7)])
pins = st.none() | st.builds(a_pin, st.integers(-5, 2000), st.integers(-30, 120))
looks = st.lists(readings, min_size=1, max_size=60)


@pytest.mark.req("C7")
@pytest.mark.fault("E5", "E1")
@given(looks=looks, cap=st.integers(-10, 5000), pin=pins, policy=policies)
def test_bounds_hold_whatever_the_row_says(
    looks: list[Reading | None], cap: int, pin: Pin | None, policy: Policy
) -> None:
    """Never above the ceiling; never below the floor but by a pin; and a pin that holds is never overwritten."""
    for one in after(len(looks), *looks, policy=policy, start=a_state(cap, pin=pin)):
        assert one.to_cap <= policy.ceiling
        if pin is not None and one.at < pin.until:
            assert one.pinned
            assert one.after.pin == pin
            assert one.to_cap == (0 if pin.cap <= 0 else min(max(2, pin.cap), policy.ceiling))
        else:
            assert not one.pinned
            assert policy.floor <= one.to_cap


@pytest.mark.req("C4", "C5")
@given(looks=looks)
def test_steps_are_never_larger_or_closer_than_the_policy_says(looks: list[Reading | None]) -> None:
    """Rises of two at most, ten minutes after any change; decreases by trouble ten minutes apart."""
    changed: datetime | None = None
    lowered: datetime | None = None
    for one in after(len(looks), *looks, start=a_state(12)):
        if one.to_cap > one.from_cap:
            assert one.to_cap - one.from_cap <= 2
            assert changed is None or one.at - changed >= 10 * MINUTE
        if one.to_cap < one.from_cap and one.reason is not Reason.BACK_TO_BASELINE:
            assert lowered is None or one.at - lowered >= 10 * MINUTE
            lowered = one.at
        changed = one.at if one.to_cap != one.from_cap else changed


@pytest.mark.fault("E7")
@given(lengths=st.lists(st.integers(1, 25), min_size=2, max_size=12), first=st.booleans(), policy=policies)
def test_a_step_load_does_not_make_the_cap_swing(lengths: list[int], first: bool, policy: Policy) -> None:
    """At most two changes of direction in any ten minutes, however load and trouble come and go."""
    loads = [BACKLOG if (n % 2 == 0) is first else (LIMITED if n % 3 else CALM) for n in range(len(lengths))]
    minutes = [look for look, length in zip(loads, lengths, strict=True) for _ in range(length)]
    made = after(len(minutes), *minutes, policy=policy, start=a_state(policy.baseline))
    moves = [(n, one.to_cap > one.from_cap) for n, one in enumerate(made) if one.to_cap != one.from_cap]
    turns = [n for (_, was), (n, now) in itertools.pairwise(moves) if was is not now]
    assert all(sum(1 for turn in turns if start <= turn < start + 10) <= 2 for start in range(len(made)))


@given(looks=looks, policy=policies)
def test_every_decision_has_a_reason_and_a_new_version(looks: list[Reading | None], policy: Policy) -> None:
    """From the closed list; versions rise by one."""
    made = after(len(looks), *looks, policy=policy)
    assert [one.after.version for one in made] == list(range(1, len(made) + 1))
    assert all(isinstance(one.reason, Reason) for one in made)
