"""Set a switch: with who and why, and only for what there is, since a stop that hits nothing stops nothing."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.adapters.memory.clock import VirtualClock
from shared.adapters.memory.stores import MemoryControlStore, MemoryHistory
from shared.core.errors import BadInput, UnknownScope, UnreadableRow
from shared.core.job import CANARY
from shared.core.scopes import known_scopes
from shared.core.switches import Level, Switches
from shared.usecases.set_switch import SwitchSet, set_switch
from tests.builders import NOW, a_lane, a_run_lane, a_switch
from tests.unit.core.strategies import few
from tests.unit.usecases.desk import Desk

LANES = {lane.name: lane for lane in (a_lane(tasks=("reply", "tag")), a_run_lane())}


class Panel:
    """Switches, and a person in front of them."""

    def __init__(self) -> None:
        self.control, self.history, self.clock = MemoryControlStore(), MemoryHistory(), VirtualClock()

    def set(self, scope: str, level: Level = Level.HALT, **more: Any) -> SwitchSet:
        values: dict[str, Any] = {"lanes": LANES, "by": "alice", "why": "wrong answers", **more}
        return set_switch(scope, level, control=self.control, history=self.history, clock=self.clock, **values)

    @property
    def entries(self) -> dict[str, Level]:
        return {scope: one.level for scope, one in self.control.switches().entries.items()}


@pytest.fixture
def panel() -> Panel:
    return Panel()


@pytest.mark.req("C2")
@pytest.mark.parametrize("level", list(Level))
def test_a_switch_is_set_with_who_and_why(level: Level) -> None:
    """Felt by the next look, noted in the history; closing takes one person."""
    desk = Desk()
    made = set_switch(
        "lane/support",
        level,
        automation_enabled=False,
        by="alice",
        why="vendor  is\nsick",
        lanes=desk.lanes,
        control=desk.control,  # type: ignore[arg-type]
        history=desk.history,
        clock=desk.clock,
    )
    assert (made.switch.why, made.switch.at, made.warnings) == ("vendor is sick", NOW, ())
    standing = desk.board.read().standing(["lane/support"])
    assert (standing.level, standing.paid_calls_closed_by) == (level, "lane/support")
    (event,) = desk.history.of("switch/lane/support", limit=5)
    assert (event.kind, event.by) == ("switch", "alice")
    assert event.detail == {"level": level.word, "automation_enabled": False, "why": "vendor is sick"}


@pytest.mark.parametrize(("scope", "why", "field"), [("everything", "x", "scope"), ("all", "", "why")])
def test_a_malformed_switch_is_not_set(panel: Panel, scope: str, why: str, field: str) -> None:
    """A scope nobody is in, or no reason."""
    with pytest.raises(BadInput) as refused:
        panel.set(scope, why=why)
    assert refused.value.field == field
    assert panel.entries == {}


# ------------------------------------------------------------------------------------------ what there is
@pytest.mark.fault("E8")
@pytest.mark.parametrize("scope", known_scopes(LANES))
def test_everything_that_is_configured_can_be_stopped(panel: Panel, scope: str) -> None:
    """Each lane, vendor and task, canaries among them, without a warning."""
    assert panel.set(scope).warnings == ()
    assert panel.entries == {scope: Level.HALT}


def test_known_scopes_are_those_of_the_lanes() -> None:
    """Canaries run where jobs are served as they come, and nowhere else."""
    assert known_scopes(LANES) == (
        *("all", "vendor/helpdesk", "vendor/openai", "lane/rewrite", "lane/support"),
        *("task/rewrite/complaint_rewrite", "task/support/reply", "task/support/tag", f"task/support/{CANARY}"),
    )


@pytest.mark.fault("E8")
@few
@given(
    scope=st.sampled_from([one for one in known_scopes(LANES) if one != "all"] + ["tenant/support/acme"]),
    slip=st.tuples(st.sampled_from(["drop", "double", "swap"]), st.integers(0, 40)),
    level=st.sampled_from([one for one in Level if one is not Level.NORMAL]),
)
def test_a_mistyped_name_is_refused_and_the_right_one_is_told(scope: str, slip: tuple[str, int], level: Level) -> None:
    """One letter lost, doubled or swapped in a lane's, vendor's or task's name: nothing is set, and the refusal says
    which name was probably meant."""
    kind, at = slip
    first = scope.index("/") + 1
    last = len(scope) if not scope.startswith("tenant/") else scope.rindex("/")
    place = first + at % (last - first)
    letters = scope[place : place + 2] if place + 1 < last else scope[place]
    swapped = {"drop": letters[1:], "double": letters[0] + letters, "swap": letters[::-1]}[kind]
    typo = scope[:place] + swapped + scope[place + len(letters) :]
    panel = Panel()
    if typo == scope or "//" in typo or "/" in swapped or typo.endswith("/") or typo in known_scopes(LANES):
        return
    with pytest.raises(UnknownScope) as refused:
        panel.set(typo, level)
    assert f"did you mean {scope}?" in refused.value.problem
    assert (panel.entries, panel.history.of(f"switch/{typo}", limit=1)) == ({}, [])


@pytest.mark.fault("E8")
def test_a_name_near_nothing_lists_what_there_is(panel: Panel) -> None:
    """Those of its kind; of a task, those of its lane."""
    with pytest.raises(UnknownScope, match=r"known scopes: vendor/helpdesk, vendor/openai; nothing was set"):
        panel.set("vendor/xyz")
    with pytest.raises(UnknownScope) as refused:
        panel.set("task/rewrite/zzz")
    assert "task/support" not in refused.value.problem


@pytest.mark.fault("E8")
@pytest.mark.parametrize("level", [Level.DRAIN, Level.HALT])
def test_what_is_no_longer_configured_is_closed_when_that_is_said(panel: Panel, level: Level) -> None:
    """Set, with a warning that nothing is held back by it, and kept as such with who it was."""
    done = panel.set("lane/gone", level, anyway=True)
    assert "holds nothing back" in done.warnings[0]
    assert panel.entries == {"lane/gone": level}
    (event,) = panel.history.of("switch/lane/gone", limit=1)
    assert event.detail["name"] == "not_configured"


@pytest.mark.fault("E8")
def test_what_was_closed_before_it_was_removed_is_closed_further(panel: Panel) -> None:
    """Its entry stands there: it is no slip of the pen, and nobody has to say so."""
    panel.control.set_switch(a_switch("lane/gone", Level.ROUTE_ONLY))
    panel.set("lane/gone", Level.DRAIN)
    assert panel.entries == {"lane/gone": Level.DRAIN}


@pytest.mark.fault("E8")
def test_a_halt_does_not_wait_for_the_lanes(panel: Panel) -> None:
    """It is set unchecked, and says so; any other level is refused where nobody can tell what it is aimed at."""
    done = panel.set("lane/supprt", lanes=None)
    assert "nobody checked that there is a lane/supprt" in done.warnings[0]
    (event,) = panel.history.of("switch/lane/supprt", limit=1)
    assert event.detail["name"] == "not_checked"
    with pytest.raises(BadInput, match="the lanes cannot be read"):
        panel.set("lane/support", Level.DRAIN, lanes=None)
    panel.set("lane/support", Level.DRAIN, lanes=None, anyway=True)
    assert panel.entries == {"lane/supprt": Level.HALT, "lane/support": Level.DRAIN}


@pytest.mark.req("C2")
@pytest.mark.fault("E8")
@pytest.mark.parametrize("level", list(Level))
def test_everything_is_closed_without_the_lanes(panel: Panel, level: Level) -> None:
    """`all` is no name that could be wrong: at every level, without a doubt."""
    assert panel.set("all", level, automation_enabled=False, lanes=None).warnings == ()
    assert panel.entries == {"all": level}


@pytest.mark.fault("E8")
def test_a_typo_is_refused_beside_an_entry_nobody_can_read(panel: Panel) -> None:
    """That the switches cannot be read does not make a name that nobody has one."""

    class Unreadable(MemoryControlStore):
        def switches(self) -> Switches:
            raise UnreadableRow("SWITCHES", "scopes is missing")

    panel.control = Unreadable()
    with pytest.raises(UnknownScope):
        panel.set("lane/supprt")
