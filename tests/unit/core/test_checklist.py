"""The exit checklist: each line alone can keep a switch closed, a lane on which nothing happened is calm."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from shared.core.capacity import CapacityState, Pin
from shared.core.checklist import LaneChecks, Seen, checklist, lanes_under, record
from shared.core.governing import Rules
from shared.core.signals import Counts, Minute, Moved, Signals, VendorCounts
from shared.core.switches import Level, Switches
from shared.core.vendor_cost import Price, Prices
from tests.builders import NOW, a_lane, a_switch

LANE = a_lane(baseline=4, cost_spike_per_hour=10.0)
RULES = Rules(prices=Prices(vendors={"helpdesk": Price(per_call=0.1, per_1000_tokens=0.0)}))
LOOKED = CapacityState(cap=4, looked_at=NOW - timedelta(seconds=40))
NAMES = (
    *("queue_age", "vendor_429s", "vendor_errors", "worker_errors", "dead_letters", "vendors", "cost"),
    *("cap", "governor"),
)


def minute(back: int, **counts: Any) -> Minute:
    """The counts of a minute so many minutes ago."""
    return Minute(at=NOW - timedelta(minutes=back), counts=Counts(**counts))


def desk(**counts: int) -> dict[str, Any]:
    """What the help desk was asked and answered."""
    return {"vendors": {"helpdesk": VendorCounts(**counts)}}


def judged(
    signals: Signals | None = None,
    *,
    state: CapacityState | None = LOOKED,
    switches: tuple[Any, ...] = (),
    unreadable: bool = False,
    **lane: Any,
) -> LaneChecks:
    """The checklist of a lane of which this is known."""
    seen = Seen(
        signals=None if unreadable else signals or Signals(at=NOW),
        state=state,
        switches=Switches(entries={one.scope: one for one in switches}),
        at=NOW,
    )
    return checklist(replace(LANE, **lane), seen, RULES)


def lacking(*minutes: Minute, **more: Any) -> list[str]:
    """Names of the lines that do not hold."""
    of_signals = {name: more.pop(name) for name in ("shut", "visible", "oldest_due_at", "moved") if name in more}
    found = judged(Signals(at=NOW, minutes=minutes, **of_signals), **more)
    return [name.removeprefix("support.") for name in found.failing]


@pytest.mark.req("C6")
def test_a_lane_on_which_nothing_happened_is_calm() -> None:
    """Before the governor's first look, too; every line is there, each with what it asks for and what was seen."""
    for state in (LOOKED, None):
        found = judged(state=state)
        assert found.failing == ()
        assert tuple(check.name for check in found.checks) == NAMES
        assert all(check.asks and check.seen for check in found.checks)


@pytest.mark.req("C6")
def test_a_busy_healthy_lane_is_calm() -> None:
    """Work goes on, young and without trouble; a few errors under one percent are normal."""
    work = [minute(back, claims=100, completed=100, oldest_age_s=12, **desk(calls=1)) for back in range(16)]
    assert lacking(*work, minute(3, **desk(calls=1000, limited=9, errors=9)), cost_spike_per_hour=None) == []


@pytest.mark.req("C6", "C16")
@pytest.mark.parametrize(
    ("name", "minutes"),
    [
        ("queue_age", [minute(14, claims=1, oldest_age_s=60)]),
        ("vendor_429s", [minute(14, **desk(calls=100, limited=1))]),
        ("vendor_errors", [minute(14, **desk(calls=100, errors=1))]),
        ("worker_errors", [minute(14, claims=100, errors=1)]),
        ("dead_letters", [minute(4, claims=100, failed=1)]),
        ("cost", [minute(1, **desk(calls=26))]),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_one_line_is_enough_to_keep_it_closed(name: str, minutes: list[Minute]) -> None:
    """Each in its window; a while after that window it holds again."""
    most = 10.0 if name == "cost" else 10_000.0
    assert lacking(*minutes, cost_spike_per_hour=most) == [name]
    aged = [replace(one, at=one.at - timedelta(minutes=60)) for one in minutes]
    assert lacking(*aged, cost_spike_per_hour=most) == []


@pytest.mark.req("C6")
def test_what_waits_now_counts_as_well_as_what_was_started() -> None:
    """In the table, and in a queue that stands still."""
    assert lacking(oldest_due_at=NOW - timedelta(seconds=60)) == ["queue_age"]
    assert lacking(visible=3, moved=Moved(at=NOW - timedelta(minutes=2))) == ["queue_age"]
    assert lacking(oldest_due_at=NOW - timedelta(seconds=59)) == []


@pytest.mark.req("C6")
@pytest.mark.parametrize("scope", ["all", "lane/support", "vendor/helpdesk"])
def test_what_a_switch_holds_back_does_not_keep_it_closed(scope: str) -> None:
    """Jobs that are held on purpose grow old; of another lane's switch, or of safe mode, that is no excuse."""
    old = NOW - timedelta(hours=3)
    assert lacking(oldest_due_at=old, switches=(a_switch(scope, Level.NO_NEW_STARTS),)) == []
    assert lacking(oldest_due_at=old, switches=(a_switch(scope, Level.ROUTE_ONLY),)) == ["queue_age"]
    assert lacking(oldest_due_at=old, switches=(a_switch("lane/mail", Level.HALT),)) == ["queue_age"]
    started = minute(2, claims=1, oldest_age_s=900)
    assert lacking(started, switches=(a_switch(scope, Level.DRAIN),)) == ["queue_age"]


@pytest.mark.req("C6")
@pytest.mark.parametrize("scope", ["task/support/reply", "tenant/support/acme"])
def test_a_switch_over_some_jobs_is_no_excuse_for_the_others(scope: str) -> None:
    """What is old may be theirs: it cannot be told. While nothing is old, there is nothing to tell."""
    old, closed = NOW - timedelta(hours=3), (a_switch(scope, Level.NO_NEW_STARTS),)
    assert lacking(oldest_due_at=old, switches=closed) == ["queue_age"]
    assert lacking(switches=closed) == []
    wide = (*closed, a_switch("lane/support", Level.DRAIN))
    assert lacking(oldest_due_at=old, switches=wide) == []


@pytest.mark.req("C6", "C13")
def test_an_unstable_vendor_keeps_it_closed() -> None:
    """A breaker that is open, or two bad minutes."""
    found = judged(Signals(at=NOW, shut=frozenset({"helpdesk"})))
    assert found.failing == ("support.vendors",)
    assert next(check.seen for check in found.checks if check.name == "vendors") == "helpdesk: breaker open"
    bad = desk(calls=10, limited=6)
    assert "vendors" in lacking(minute(1, **bad), minute(2, **bad))


@pytest.mark.req("C6")
def test_a_cap_that_is_held_down_keeps_it_closed() -> None:
    """Until its hold-down is over, it is back at the baseline, or a person pinned it."""
    lowered = replace(LOOKED, cap=2, lowered_at=NOW - timedelta(minutes=9))
    pin = Pin(cap=2, until=NOW + timedelta(hours=1), by="alice", why="x")
    assert lacking(state=lowered) == ["cap"]
    assert lacking(state=replace(lowered, lowered_at=NOW - timedelta(minutes=10))) == []
    assert lacking(state=replace(lowered, cap=4)) == []
    assert lacking(state=replace(lowered, pin=pin)) == []


@pytest.mark.req("C6")
def test_a_silent_governor_keeps_it_closed() -> None:
    """Three minutes; and one that never looked at a lane that works."""
    assert lacking(state=replace(LOOKED, looked_at=NOW - timedelta(minutes=3))) == []
    assert lacking(state=replace(LOOKED, looked_at=NOW - timedelta(seconds=181))) == ["governor"]
    assert lacking(minute(1, claims=1), state=None) == ["governor"]
    assert lacking(visible=1, state=None) == ["governor"]


@pytest.mark.req("C6")
def test_what_cannot_be_read_is_not_confirmed() -> None:
    """Every line that signals say something about."""
    assert {name.removeprefix("support.") for name in judged(unreadable=True).failing} == set(NAMES[:7])


@pytest.mark.req("C15", "C6")
def test_a_cost_that_is_not_known_is_not_below_a_threshold() -> None:
    """A vendor of which no price is known was called."""
    crm = minute(5, vendors={"crm": VendorCounts(calls=1)})
    assert lacking(crm) == ["cost"]
    assert lacking(crm, cost_spike_per_hour=None) == []


def test_a_scope_covers_its_lanes() -> None:
    """All of them, those that call a vendor, or the one that is named; a lane nobody deployed has none."""
    lanes = {name: a_lane(name=name, vendors=vendors) for name, vendors in (("a", ("x",)), ("b", ("x", "y")))}
    expected = {"all": "ab", "vendor/x": "ab", "vendor/y": "b", "lane/a": "a", "task/b/t": "b", "tenant/a/t/u": "a"}
    found = {scope: "".join(lane.name for lane in lanes_under(scope, lanes)) for scope in (*expected, "lane/c")}
    assert found == {**expected, "lane/c": ""}


def test_it_is_kept_as_words() -> None:
    """By lane and line, with the mark and what was seen."""
    kept = record([judged(Signals(at=NOW, shut=frozenset({"helpdesk"})))])
    assert kept["support"]["vendors"] == "✗ helpdesk: breaker open"
    assert kept["support"]["governor"] == "✓ 40 s ago"
