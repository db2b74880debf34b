"""Closing takes one person; opening takes a checklist that somebody looked at. The governor opens nothing, ever."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.contract import metrics
from shared.core.errors import BadInput
from shared.core.feedback import OUTAGE, shut_down
from shared.core.governing import Rules
from shared.core.rate import us_of
from shared.core.run import RunConfig
from shared.core.signals import Counts, VendorCounts
from shared.core.switches import Level, Switch, loosens
from shared.core.vendor_cost import Price, Prices
from shared.usecases.examine import Examiner
from shared.usecases.set_switch import Opening, set_switch
from tests.builders import a_switch, an_account
from tests.unit.usecases.desk import Flaky
from tests.unit.usecases.watch import QUIET, SPIKE, Watch

SCOPE = "lane/support"
PRICES = Prices(vendors={"helpdesk": Price(per_call=0.5, per_1000_tokens=0.0)})


def examiner(watch: Watch) -> Examiner:
    """The governor's eyes, for somebody who wants to open."""
    desk = watch.desk
    return Examiner(
        lookout=watch.governor.lookout, rules=Rules(), control=desk.control, lanes={desk.lane.name: desk.lane}
    )


def turn(watch: Watch, level: Level, *, automation_enabled: bool = True, opening: Opening | None = None) -> Switch:
    """As a person does."""
    desk = watch.desk
    return set_switch(
        SCOPE,
        level,
        automation_enabled=automation_enabled,
        by="alice",
        why="stable",
        lanes={desk.lane.name: desk.lane},
        control=desk.control,
        history=desk.history,
        clock=desk.clock,
        opening=opening,
    ).switch


def looked_at(watch: Watch, *, anyway: bool = False) -> Opening:
    """The checklist as it stands."""
    present = watch.desk.control.switches().entries.get(SCOPE)
    return Opening(
        checked=tuple(examiner(watch).examine(SCOPE)), present=present, at=watch.desk.clock.now(), anyway=anyway
    )


def tripped() -> Watch:
    """A lane that the governor has closed."""
    watch = Watch()
    for _ in range(2):
        watch.saw(SPIKE)
        watch.look()
    assert watch.level() is Level.ROUTE_ONLY
    watch.desk.clock.advance(1)
    return watch


# ------------------------------------------------------------------------------------------- opening
@pytest.mark.req("C6")
def test_nothing_is_loosened_without_a_checklist() -> None:
    """Not by a level, nor by automation; to tighten or to say the same again needs none."""
    watch = Watch()
    turn(watch, Level.DRAIN, automation_enabled=False)
    turn(watch, Level.DRAIN, automation_enabled=False)
    for level, paid in ((Level.NORMAL, False), (Level.NO_NEW_STARTS, False), (Level.DRAIN, True)):
        with pytest.raises(BadInput, match="opening asks for it: look with `penstock control check lane/support`"):
            turn(watch, level, automation_enabled=paid)
    turn(watch, Level.HALT)
    assert watch.level() is Level.HALT


@pytest.mark.req("C6", "C13")
def test_a_tripped_lane_opens_after_a_quarter_of_an_hour_of_calm() -> None:
    """Not while the vendor's bad minutes are in the window; then by a person, and the checklist is kept with it."""
    watch = tripped()
    with pytest.raises(BadInput, match=r"support\.vendor_429s.* do not hold: wait until") as refused:
        turn(watch, Level.NORMAL, opening=looked_at(watch))
    assert "--anyway" in refused.value.problem
    assert watch.level() is Level.ROUTE_ONLY
    for _ in range(17):
        watch.saw(QUIET)
        watch.look()
    turn(watch, Level.NORMAL, opening=looked_at(watch))
    assert watch.level() is Level.NORMAL
    newest = watch.desk.history.of(f"switch/{SCOPE}", limit=1)[0]
    assert newest.detail["checklist"]["support"]["queue_age"].startswith("✓ ")
    assert "anyway" not in newest.detail


@pytest.mark.req("C6")
def test_a_calm_lane_that_was_closed_a_minute_ago_opens_at_once() -> None:
    """The quarter of an hour counts on the signals, not on the switch."""
    watch = Watch()
    for _ in range(16):
        watch.saw(QUIET)
        watch.look()
    turn(watch, Level.NO_NEW_STARTS)
    watch.desk.clock.advance(60)
    watch.look()
    turn(watch, Level.NORMAL, opening=looked_at(watch))
    assert watch.level() is Level.NORMAL


@pytest.mark.req("C6")
def test_opened_all_the_same_says_by_whom_why_and_although_what() -> None:
    """In the history of the switch."""
    watch = tripped()
    turn(watch, Level.NORMAL, opening=looked_at(watch, anyway=True))
    newest = watch.desk.history.of(f"switch/{SCOPE}", limit=1)[0]
    assert (newest.by, newest.detail["why"]) == ("alice", "stable")
    assert {"support.vendor_429s", "support.vendors"} <= set(newest.detail["anyway"])
    assert newest.detail["checklist"]["support"]["vendors"] == "✗ helpdesk: spikes"


@pytest.mark.req("C6", "C13")
def test_a_trip_after_the_look_is_not_opened_unseen() -> None:
    """Somebody closed it harder, or anew, while a person read the checklist."""
    watch = Watch()
    turn(watch, Level.ROUTE_ONLY)
    opening = looked_at(watch)
    watch.desk.control.set_switch(a_switch(SCOPE, Level.HALT, by="bob"))
    with pytest.raises(BadInput, match="was changed by bob meanwhile: look at it again"):
        turn(watch, Level.NORMAL, opening=opening)
    assert watch.level() is Level.HALT


@pytest.mark.req("C6")
@pytest.mark.fault("E1")
def test_a_halt_between_the_look_and_the_write_stays() -> None:
    """The write itself asks for the entry that was looked at: nobody is overruled unseen, however late they came."""
    watch = Watch()
    turn(watch, Level.ROUTE_ONLY)
    opening = looked_at(watch)
    control, late = watch.desk.control, a_switch(SCOPE, Level.HALT, by="bob")

    class Raced:
        def __getattr__(self, name: str) -> Any:
            return getattr(control, name)

        def switches(self) -> Any:
            seen = control.switches()
            control.set_switch(late)
            return seen

    watch.desk.control = Raced()  # type: ignore[assignment]
    with pytest.raises(BadInput, match="was changed meanwhile: look at it again"):
        turn(watch, Level.NORMAL, opening=opening)
    assert control.switches().entries[SCOPE] == late


@pytest.mark.req("C6")
def test_a_checklist_grows_old() -> None:
    """Two minutes after the look it tells nothing of how things are."""
    watch = Watch()
    turn(watch, Level.ROUTE_ONLY)
    opening = looked_at(watch, anyway=True)
    watch.desk.clock.advance(121)
    with pytest.raises(BadInput, match="2 minutes ago: look again"):
        turn(watch, Level.NORMAL, opening=opening)
    opening = looked_at(watch, anyway=True)
    watch.desk.clock.advance(119)
    turn(watch, Level.NORMAL, opening=opening)
    assert watch.level() is Level.NORMAL


@pytest.mark.req("C6")
@pytest.mark.parametrize("port", ["signals", "control"])
def test_what_cannot_be_read_keeps_it_closed(port: str) -> None:
    """Counts, or what the governor kept: not confirmed."""
    watch = Watch()
    turn(watch, Level.ROUTE_ONLY)
    desk: Any = watch.desk
    flaky = Flaky(getattr(desk, port), "minutes", "capacity")
    setattr(desk, port, flaky)
    watch.governor = watch.a_governor()
    flaky.down = True
    opening = looked_at(watch)
    flaky.down = False
    with pytest.raises(BadInput, match=r"support\.queue_age"):
        turn(watch, Level.NORMAL, opening=opening)


# ------------------------------------------------------------------------------------------- the governor
MINUTES = st.sampled_from(
    [
        Counts(),
        QUIET,
        SPIKE,
        Counts(claims=5, errors=5, failed=2, oldest_age_s=400),
        Counts(claims=1, vendors={"helpdesk": VendorCounts(calls=900, tokens=10**6)}),
    ]
)
CLOSED = st.builds(
    a_switch,
    st.sampled_from(["all", SCOPE, "vendor/helpdesk", "task/support/reply", "tenant/support/acme"]),
    st.sampled_from(list(Level)),
    automation_enabled=st.booleans(),
)


@pytest.mark.req("C6", "C13", "C15")
@settings(max_examples=60, deadline=None)
@given(closed=st.lists(CLOSED, max_size=3), minutes=st.lists(MINUTES, min_size=1, max_size=25), shut=st.booleans())
def test_the_governor_never_loosens_a_switch(closed: list[Switch], minutes: list[Counts], shut: bool) -> None:
    """Whatever was closed by whom, whatever the vendors do and cost, for however long: no scope gets looser."""
    watch = Watch(account=an_account(), cost_spike_per_hour=1.0)
    for switch in closed:
        watch.desk.control.set_switch(switch)
    if shut:
        terms = watch.desk.budget_ledger.read(an_account()).terms
        now_us = us_of(watch.desk.clock.now())
        broken = shut_down(terms, OUTAGE, now_us, now_us)
        assert broken is not None
        watch.desk.budget_ledger.change(an_account(), terms, broken)
    before = watch.desk.control.switches().entries
    for counts in minutes:
        watch.saw(counts)
        watch.look()
        after = watch.desk.control.switches().entries
        for scope in {*before, *after}:
            now = after.get(scope)
            level, paid = (Level.NORMAL, True) if now is None else (now.level, now.automation_enabled)
            assert not loosens(before.get(scope), level, paid), scope
        before = after


# ------------------------------------------------------------------------------------------- what it meters
@pytest.mark.req("C15")
def test_the_governor_meters_what_a_lane_costs() -> None:
    """By lane and by vendor account, at each look, and beside each decision that is kept."""
    watch = Watch(account=an_account(), prices=PRICES)
    for _ in range(2):
        watch.saw(QUIET)
    watch.look()
    told = watch.desk.telemetry
    assert told.counts[(metrics.COST, "support")] == 40.0
    assert told.of_accounts[(metrics.ACCOUNT_COST, "support", "desk_account")] == 40.0
    assert watch.desk.history.of("capacity/support", limit=1)[0].detail["costPerHour"] == "40.00 USD"


@pytest.mark.req("C15")
def test_a_vendor_without_a_price_is_said_and_not_metered_as_nothing() -> None:
    """No point at 0 that would look like a quiet lane."""
    watch = Watch()
    watch.saw(QUIET)
    watch.look()
    told = watch.desk.telemetry
    assert (metrics.COST, "support") not in told.counts
    assert [event.ids["vendor"] for event in told.named("vendor_without_price")] == ["helpdesk"]
    assert watch.desk.history.of("capacity/support", limit=1)[0].detail["costPerHour"] == "no price: helpdesk"


@pytest.mark.req("C13", "C6")
@pytest.mark.parametrize(
    ("switch", "rung"),
    [
        (None, 0),
        (a_switch("all", Level.ROUTE_ONLY), 1),
        (a_switch("all", Level.NORMAL, automation_enabled=False), 1),
        (a_switch("vendor/helpdesk", Level.DRAIN), 3),
        (a_switch("task/support/reply", Level.NO_NEW_STARTS), 2),
        (a_switch("tenant/support/acme", Level.HALT), 0),
        (a_switch("lane/mail", Level.HALT), 0),
    ],
    ids=lambda one: one.scope if isinstance(one, Switch) else str(one),
)
def test_the_governor_meters_what_is_closed_over_a_lane(switch: Switch | None, rung: int) -> None:
    """The strictest switch on the lane or a task of it; one tenant's is that tenant's affair."""
    watch = Watch()
    if switch is not None:
        watch.desk.control.set_switch(switch)
    watch.look()
    assert watch.desk.telemetry.counts[(metrics.SWITCH_LEVEL, "support")] == rung


@pytest.mark.req("C15")
def test_a_lane_that_is_started_by_runs_is_watched_too() -> None:
    """It has no cap to decide; what it costs and what is closed over it is metered all the same."""
    watch = Watch(prices=PRICES)
    watch.saw(QUIET)
    scheduled = replace(watch.desk.lane, admission="scheduled", max_attempts=2, run=RunConfig(), runs={"worker": 900})
    assert watch.governor.run({"support": scheduled}) == {}
    assert watch.desk.telemetry.counts[(metrics.COST, "support")] == 20.0
    assert watch.desk.telemetry.counts[(metrics.SWITCH_LEVEL, "support")] == 0
    assert (metrics.CAP, "support") not in watch.desk.telemetry.counts
