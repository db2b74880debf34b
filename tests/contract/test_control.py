"""The promises of `ControlStore`, kept by every adapter."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from shared.adapters import capacity_rows, switch_rows
from shared.contract import table
from shared.core.capacity import CapacityState, Pin
from shared.core.errors import UnreadableRow
from shared.core.severity import Severity
from shared.core.signals import Moved
from shared.core.switches import Level, Switches
from tests.builders import NOW, a_switch
from tests.contract.worlds import World


def test_without_a_switch_everything_is_normal(world: World) -> None:
    """A stage nobody has touched has no switches and no caps."""
    assert world.control.switches() == Switches()
    assert world.control.capacity("support") is None


def test_a_switch_is_read_back_as_it_was_set(world: World) -> None:
    """Level, automation, who, why and when."""
    switch = a_switch("lane/support", Level.ROUTE_ONLY, automation_enabled=False, why="vendor incident, see §4")
    world.control.set_switch(switch)
    assert world.control.switches().entries == {"lane/support": switch}


def test_scopes_do_not_disturb_each_other(world: World) -> None:
    """Set one after the other or all at once: every scope keeps its own setting, from the first ever on."""
    switches = [a_switch(f"tenant/support/t.{n}@x/", Level.DRAIN, why=f"reason {n}") for n in range(8)]
    with ThreadPoolExecutor(world.threads) as pool:
        list(pool.map(world.control.set_switch, switches))
    assert world.control.switches().entries == {switch.scope: switch for switch in switches}


def test_a_switch_can_be_changed(world: World) -> None:
    """The last setting counts."""
    world.control.set_switch(a_switch("all", Level.HALT))
    lower = a_switch("all", Level.ROUTE_ONLY, by="someone else")
    world.control.set_switch(lower)
    assert world.control.switches().entries == {"all": lower}


def test_a_scope_back_at_its_default_leaves_the_row(world: World) -> None:
    """Only what is closed is kept, so the row cannot grow until it cannot be written."""
    world.control.set_switch(a_switch("lane/support", Level.NORMAL))
    world.control.set_switch(a_switch("all", Level.HALT))
    world.control.set_switch(a_switch("lane/support", Level.DRAIN))
    world.control.set_switch(a_switch("all", Level.NORMAL))
    assert list(world.control.switches().entries) == ["lane/support"]
    unpaid = a_switch("all", Level.NORMAL, automation_enabled=False)
    world.control.set_switch(unpaid)
    assert world.control.switches().entries["all"] == unpaid


@pytest.mark.fault("E5")
@pytest.mark.parametrize(
    ("name", "value"),
    [("level", {"S": "sideways"}), ("level", {"N": "4"}), ("automation_enabled", {"S": "yes"}), ("at", {"S": "now"})],
)
def test_a_corrupt_switch_is_never_taken_for_an_open_one(world: World, name: str, value: dict[str, str]) -> None:
    """One entry that cannot be read makes all unreadable, by scope and field; setting it anew mends it."""
    world.control.set_switch(a_switch("all", Level.ROUTE_ONLY))
    good = switch_rows.switch_attribute(a_switch("lane/support"))
    assert good is not None
    scopes = {"all": good, "lane/support": {"M": {**good["M"], name: value}}}
    world.plant("control", {table.PK: {"S": table.SWITCHES}, switch_rows.SCOPES: {"M": scopes}})
    with pytest.raises(UnreadableRow, match=f"lane/support: {name}") as unreadable:
        world.control.switches()
    assert "sideways" not in str(unreadable.value)
    world.control.set_switch(a_switch("lane/support", Level.DRAIN))
    assert world.control.switches().entries["lane/support"].level is Level.DRAIN


def test_switches_that_are_no_map_are_unreadable(world: World) -> None:
    """A row without its map says nothing about what is closed."""
    world.plant("control", {table.PK: {"S": table.SWITCHES}, switch_rows.SCOPES: {"S": "all"}})
    with pytest.raises(UnreadableRow, match="scopes"):
        world.control.switches()


def test_a_wanted_cap_is_read(world: World) -> None:
    """What a governor or an operator wrote, for that lane alone."""
    world.plant("control", capacity_rows.cap_item("support", 4))
    assert world.control.capacity("support") == CapacityState(cap=4)
    assert world.control.capacity("other") is None


def test_an_unreadable_cap_is_named(world: World) -> None:
    """A cap that is no number is not taken for no cap."""
    world.plant("control", {table.PK: {"S": table.cap_pk("support")}, "cap": {"S": "many"}})
    with pytest.raises(UnreadableRow, match="cap"):
        world.control.capacity("support")


# ------------------------------------------------------------------------------------------------ capacity
MINUTE = timedelta(minutes=1)
WHOLE = CapacityState(
    cap=6,
    version=1,
    changed_at=NOW,
    lowered_at=NOW - MINUTE,
    calm_since=NOW - 2 * MINUTE,
    looked_at=NOW,
    moved=Moved(at=NOW - MINUTE, age_s=7),
    pin=Pin(cap=6, until=NOW + MINUTE, by="operator", why="incident 7"),
    stopped=True,
    reason="operator_pin",
    severity=Severity.SEVERE,
    age_s=301,
)


def test_a_capacity_is_read_back_as_it_was_written(world: World) -> None:
    """Everything, and then only what is left of it."""
    assert world.control.capacity("support") is None
    assert world.control.set_capacity("support", None, WHOLE)
    assert world.control.capacity("support") == WHOLE
    bare = CapacityState(cap=2, version=2)
    assert world.control.set_capacity("support", WHOLE, bare)
    assert world.control.capacity("support") == bare
    assert world.control.capacity("other") is None


@pytest.mark.fault("E2", "E1")
def test_of_two_writers_from_one_version_one_wins(world: World) -> None:
    """However many decide from what they saw: versions rise by one, and the losers are told."""
    world.control.set_capacity("support", None, WHOLE)
    wanted = [replace(WHOLE, cap=cap, version=2) for cap in range(2, 10)]
    with ThreadPoolExecutor(world.threads) as pool:
        won = list(pool.map(lambda after: world.control.set_capacity("support", WHOLE, after), wanted))
    assert won.count(True) == 1
    assert world.control.capacity("support") == wanted[won.index(True)]
    assert not world.control.set_capacity("support", None, replace(WHOLE, version=1))


def test_a_write_that_was_applied_before_counts_as_written(world: World) -> None:
    """Its reply may have been lost."""
    world.control.set_capacity("support", None, WHOLE)
    assert world.control.set_capacity("support", None, WHOLE)


def test_a_cap_of_before_there_were_versions_is_a_state(world: World) -> None:
    """It can be read, and written over."""
    world.plant("control", capacity_rows.cap_item("support", 4))
    old = world.control.capacity("support")
    assert old == CapacityState(cap=4)
    assert world.control.set_capacity("support", old, WHOLE)


@pytest.mark.fault("E5")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cap", {"N": "-1"}),
        ("cap", {"N": "100000"}),
        ("version", {"S": "one"}),
        ("changed_at", {"S": "yesterday"}),
        ("pin", {"S": "yes"}),
        ("pin", {"M": {"cap": {"N": "4"}}}),
        ("severity", {"S": "dire"}),
        ("stopped", {"S": "yes"}),
    ],
)
def test_a_corrupt_capacity_is_named(world: World, name: str, value: dict[str, Any]) -> None:
    """It is not taken for none, nor for a cap."""
    world.plant("control", {**capacity_rows.cap_item("support", 4), name: value})
    with pytest.raises(UnreadableRow, match=name):
        world.control.capacity("support")


# ------------------------------------------------------------------------------------------------ opening
@pytest.mark.req("C6")
@pytest.mark.fault("E1")
@pytest.mark.parametrize("level", [Level.NORMAL, Level.ROUTE_ONLY])
def test_what_was_looked_at_is_opened_and_nothing_else(world: World, level: Level) -> None:
    """To its default or to another level; an entry that somebody wrote meanwhile, or that is gone, stays as it is."""
    seen, after = a_switch("lane/support", Level.DRAIN), a_switch("lane/support", level, by="alice")
    assert not world.control.open_switch(after, seen)
    for other in (a_switch("lane/support", Level.HALT, by="bob"), a_switch("lane/support", Level.DRAIN, why="again")):
        world.control.set_switch(other)
        assert not world.control.open_switch(after, seen)
        assert world.control.switches().entries == {"lane/support": other}
    world.control.set_switch(seen)
    assert world.control.open_switch(after, seen)
    assert world.control.switches().entries == ({} if level is Level.NORMAL else {"lane/support": after})


# -------------------------------------------------------------------------------------------------- trips
@pytest.mark.fault("E5")
def test_a_trip_needs_no_other_entry_to_be_readable(world: World) -> None:
    """What is open can be closed beside a corrupt entry; the corrupt one itself is not tripped."""
    good = switch_rows.switch_attribute(a_switch("all"))
    assert good is not None
    scopes = {"all": {"M": {**good["M"], "level": {"S": "sideways"}}}}
    world.plant("control", {table.PK: {"S": table.SWITCHES}, switch_rows.SCOPES: {"M": scopes}})
    assert world.control.trip(a_switch("lane/support", Level.DRAIN))
    assert not world.control.trip(a_switch("all", Level.DRAIN))
    world.control.set_switch(a_switch("all", Level.HALT))
    found = world.control.switches().entries
    assert {scope: one.level for scope, one in found.items()} == {"all": Level.HALT, "lane/support": Level.DRAIN}


@pytest.mark.req("C13")
@pytest.mark.fault("E1")
def test_a_trip_closes_what_is_open_and_nothing_else(world: World) -> None:
    """Also as the first switch ever; what a person closed is neither loosened nor renamed."""
    trip = a_switch("lane/support", Level.ROUTE_ONLY, by="governor")
    assert world.control.trip(trip)
    assert world.control.switches().entries == {"lane/support": trip}
    world.control.set_switch(a_switch("lane/support", Level.HALT))
    assert not world.control.trip(trip)
    assert world.control.switches().entries["lane/support"].level is Level.HALT


def test_a_trip_does_not_turn_paid_calls_on(world: World) -> None:
    """Somebody turned them off meanwhile: the trip is refused, and a second look takes it along."""
    world.control.set_switch(a_switch("lane/support", Level.NORMAL, automation_enabled=False))
    assert not world.control.trip(a_switch("lane/support", Level.ROUTE_ONLY))
    both = a_switch("lane/support", Level.ROUTE_ONLY, automation_enabled=False)
    assert world.control.trip(both)
    assert world.control.switches().entries["lane/support"] == both
