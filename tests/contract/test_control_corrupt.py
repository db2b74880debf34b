"""Control rows that nobody of ours wrote: read as unreadable or as what they say, never as open, and always mended."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from moto import mock_aws

from shared.adapters import capacity_rows, switch_rows
from shared.adapters.attributes import Item
from shared.adapters.budget_rows import budget_from_item, budget_item
from shared.adapters.memory.clock import VirtualClock
from shared.adapters.memory.stores import MemoryHistory
from shared.contract import table
from shared.core import rate
from shared.core.account import Limit
from shared.core.budget import Budget, Hold, Search, Shut, Terms, Want, at_us, us_of
from shared.core.capacity import CapacityState, Policy, decide
from shared.core.errors import BadInput, ControlUnreadable, UnreadableRow, UnreadableSwitches
from shared.core.switches import Level, Switches
from shared.usecases.pin_cap import reset_cap
from shared.usecases.reset_budget import reset_budget
from shared.usecases.reset_switches import reset_switches
from shared.usecases.set_switch import SwitchSet, set_switch
from shared.usecases.switchboard import SwitchBoard
from tests.builders import NOW, a_lane, a_switch, an_account
from tests.contract.conftest import _clients
from tests.contract.corruptions import NO_VALUE, spoiled, spoiled_parts
from tests.contract.test_control import WHOLE
from tests.contract.worlds import AwsWorld, MemoryWorld, World
from tests.unit.core.strategies import few

LANES = {lane.name: lane for lane in (a_lane(), a_lane(name="mail"))}
SCOPES = ("all", "lane/support", "vendor/helpdesk", "task/support/reply", "tenant/support/acme")
HUGE = "x" * 399_000
"""With an entry more, the row would be larger than a row can be."""


def row_of(switches: Switches) -> Item:
    """The switches' row as it is written."""
    entries = {scope: switch_rows.switch_attribute(switch) for scope, switch in switches.entries.items()}
    return {table.PK: {"S": table.SWITCHES}, switch_rows.SCOPES: {"M": entries}}


GOOD = Switches(
    entries={
        scope: a_switch(scope, level, automation_enabled=paid)
        for scope, level, paid in (
            ("lane/support", Level.ROUTE_ONLY, True),
            ("lane/mail", Level.DRAIN, False),
            ("tenant/support/acme", Level.NORMAL, False),
        )
    }
)
TOO_LARGE = row_of(Switches(entries={"lane/mail": a_switch("lane/mail", Level.DRAIN, why=HUGE)}))
corrupt_switches = spoiled_parts(row_of(GOOD), switch_rows.SCOPES)
CAP = capacity_rows.capacity_item("support", WHOLE)
KEY = {table.PK: CAP[table.PK]}
WITHOUT_KEY = {name: value for name, value in CAP.items() if name != table.PK}


@pytest.fixture(scope="module", params=["memory", "moto"])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    """One world for all examples: each plants its row anew."""
    if request.param == "memory":
        yield MemoryWorld()
        return
    with mock_aws():
        yield AwsWorld(_clients(), threads=1)


def halt(world: World, scope: str) -> SwitchSet:
    """As `penstock control set SCOPE halt` does."""
    return set_switch(
        scope,
        Level.HALT,
        by="alice",
        why="wrong answers",
        lanes=LANES,
        control=world.control,
        history=MemoryHistory(),
        clock=VirtualClock(),
    )


def unreadable(read: Callable[[], object]) -> UnreadableRow | None:
    """The error of a row that cannot be read, which repeats no value; None for any other."""
    try:
        read()
    except UnreadableRow as exc:
        error = exc
    else:
        return None
    assert NO_VALUE not in str(error)
    return error


# ------------------------------------------------------------------------------------------------ switches
@pytest.mark.fault("E5", "E9")
@few
@given(row=corrupt_switches)
def test_a_corrupt_switches_row_names_its_scope(world: World, row: Item) -> None:
    """Whatever stands there is read as it was written, or is unreadable by the scope it is about; what can be read
    comes with the error."""
    world.plant("control", row)
    parts = row.get(switch_rows.SCOPES, {}).get("M")
    error = unreadable(world.control.switches)
    if error is None:
        assert parts is not None
        assert set(world.control.switches().entries) == set(parts) <= set(GOOD.entries)
        return
    spoilt = [scope for scope in parts or () if scope not in GOOD.entries or parts[scope] != good(scope)]
    assert error.key == table.SWITCHES
    assert parts is None or any(scope in error.problem for scope in spoilt)


def good(scope: str) -> object:
    return switch_rows.switch_attribute(GOOD.entries[scope])


@pytest.mark.fault("E5", "E8")
@few
@given(row=corrupt_switches, scope=st.sampled_from(SCOPES))
@example(row=TOO_LARGE, scope="lane/support")
@example(row=TOO_LARGE, scope="all")
@example(row={table.PK: {"S": table.SWITCHES}}, scope="lane/support")
@example(row={table.PK: {"S": table.SWITCHES}, switch_rows.SCOPES: {"S": "all"}}, scope="lane/support")
def test_a_halt_works_beside_every_corruption(world: World, row: Item, scope: str) -> None:
    """It is written whatever stands there; nothing that was closed and could be read is looser after it; and where
    nothing could be kept of the row, all is halted, and the answer says so."""
    world.plant("control", row)
    before = readable(world)
    done = halt(world, scope)
    after = readable(world)
    assert after.entries[scope].level is Level.HALT
    for was in before.entries.values():
        now = after.standing([was.scope, "all"])
        assert now.level >= was.level
        assert now.closes_intent or was.automation_enabled or now.paid_calls_closed_by is not None
    if switch_rows.SCOPES not in row or "M" not in row[switch_rows.SCOPES]:
        assert world.control.switches() == after
        assert after.entries["all"].level is Level.HALT
        assert scope == "all" or "all is halted" in done.warnings[0]


def readable(world: World) -> Switches:
    try:
        return world.control.switches()
    except UnreadableSwitches as exc:
        return exc.readable


@pytest.mark.req("C2")
@pytest.mark.fault("E5", "E8")
@few
@given(row=corrupt_switches, scope=st.sampled_from(SCOPES))
def test_a_halt_is_felt_within_ten_seconds_beside_every_corruption(world: World, row: Item, scope: str) -> None:
    """A worker that read the row while it was good does not trust that against a halt it can read."""
    world.plant("control", row_of(Switches()))
    clock = VirtualClock()
    board = SwitchBoard(control=world.control, clock=clock)
    board.read()
    world.plant("control", row)
    halt(world, scope)
    clock.advance(10)
    with suppress(ControlUnreadable):
        assert board.read().standing([scope]).closes_intent


@pytest.mark.fault("E5", "E9")
@few
@given(row=corrupt_switches)
@example(row={table.PK: {"S": table.SWITCHES}, switch_rows.SCOPES: {"L": []}})
def test_switches_that_cannot_be_read_are_begun_anew_with_all_halted(world: World, row: Item) -> None:
    """One command makes any row readable, and opens nothing by it; a row that can be read is not thrown away."""
    world.plant("control", row)
    history = MemoryHistory()

    def reset() -> object:
        return reset_switches(
            by="alice", why="hand-made entry", control=world.control, history=history, clock=VirtualClock()
        )

    if unreadable(world.control.switches) is None:
        with pytest.raises(BadInput, match="can be read"):
            reset()
        return
    reset()
    assert {scope: one.level for scope, one in world.control.switches().entries.items()} == {"all": Level.HALT}
    (event,) = history.of("switch/all", limit=5)
    assert (event.by, event.detail["reset"]) == ("alice", True)


@pytest.mark.fault("E5")
@pytest.mark.parametrize("value", [{"S": "all"}, {"L": []}, {"NULL": True}, {"N": "1"}])
def test_where_no_entry_can_be_kept_nothing_but_a_halt_is_written(world: World, value: Item) -> None:
    """A trip finds nothing to close, and any other level says how to get out of it."""
    row = {table.PK: {"S": table.SWITCHES}, switch_rows.SCOPES: value}
    world.plant("control", row)
    assert not world.control.trip(a_switch("lane/support", Level.ROUTE_ONLY))
    assert not world.control.open_switch(a_switch("all", Level.NORMAL), a_switch("all", Level.DRAIN))
    with pytest.raises(UnreadableRow, match="scopes"):
        world.control.set_switch(a_switch("lane/support", Level.DRAIN))
    assert unreadable(world.control.switches) is not None


# --------------------------------------------------------------------------------------------------- caps
@pytest.mark.fault("E5", "E9")
@few
@given(row=spoiled(WITHOUT_KEY) | spoiled(CAP["pin"]["M"]).map(lambda pin: {**WITHOUT_KEY, "pin": {"M": pin}}))
@example(row={**WITHOUT_KEY, "changed_at": {"S": "9999-12-31T23:59:59Z"}})
@example(row={**WITHOUT_KEY, "cap": {"N": "-5"}})
@example(row={**WITHOUT_KEY, "age_s": {"N": "-1"}})
@example(row={**WITHOUT_KEY, "version": {"N": "-1"}})
@example(row={**WITHOUT_KEY, "pin": {"M": {**CAP["pin"]["M"], "cap": {"N": "70000"}}}})
def test_a_cap_is_within_its_bounds_or_unreadable_and_a_command_mends_it(world: World, row: Item) -> None:
    """One reader: whoever asks for the cap and whoever asks for all of it get the same answer; and whoever decided
    from what stood there before it was mended writes nothing."""
    world.plant("control", {**row, **KEY})
    if unreadable(lambda: world.control.capacity("support")) is None:
        state = world.control.capacity("support")
        assert state is not None
        assert 0 <= state.cap <= 1000
        assert state.age_s >= 0
        assert state.pin is None or 0 <= state.pin.cap <= 1000
        decide(state, None, Policy().of(LANES["support"]), NOW)
    clock = VirtualClock()
    after = reset_cap(
        LANES["support"], by="alice", why="typo", control=world.control, history=MemoryHistory(), clock=clock
    )
    assert world.control.capacity("support") == after == CapacityState(cap=2, version=after.version)
    for seen in (None, WHOLE, replace(WHOLE, version=7)):
        assert not world.control.set_capacity("support", seen, replace(WHOLE, version=8))
    assert world.control.set_capacity("support", after, replace(WHOLE, version=after.version + 1))


# ----------------------------------------------------------------------------------------------- accounts
ACCOUNT = an_account(requests_per_day=10, concurrency=2, explore=2.0)
NOW_US = us_of(NOW)
BUDGET = budget_item(
    ACCOUNT.name,
    Budget(
        terms=Terms(
            version=3,
            told={Limit.REQUESTS: 500},
            pinned={Limit.TOKENS: 150_000},
            search=Search(base=0.5, top=0.6, since_us=NOW_US, unit_s=60.0, spent_us=NOW_US),
            shut=Shut(reason="outage", since_us=NOW_US, probe_us=NOW_US + 1, probe_every_s=1.0),
            quiet_until_us=NOW_US + 1,
            changed_us=NOW_US,
        ),
        arrival_us={Limit.REQUESTS: NOW_US},
        day=20_454,
        used={Limit.REQUESTS_PER_DAY: 3},
        holds={"w1": Hold(slots=1, batch_tokens=0, until_us=NOW_US + 1)},
        line_us=NOW_US + 7,
        backlog_us=NOW_US + 9,
    ),
)
BUDGET_KEY = {name: BUDGET[name] for name in (table.PK, table.SK)}
SPENT = {name: value for name, value in BUDGET.items() if name not in BUDGET_KEY}
TERMS = SPENT["terms"]["M"]


def with_terms(terms: Item) -> Item:
    return {**SPENT, "terms": {"M": terms}}


@pytest.mark.fault("E5", "E9")
@few
@given(
    row=spoiled(SPENT)
    | spoiled(TERMS).map(with_terms)
    | spoiled(TERMS["shut"]["M"]).map(lambda shut: with_terms({**TERMS, "shut": {"M": shut}}))
    | spoiled(TERMS["search"]["M"]).map(lambda search: with_terms({**TERMS, "search": {"M": search}}))
    | spoiled(SPENT["hold#w1"]["M"]).map(lambda hold: {**SPENT, "hold#w1": {"M": hold}})
)
@example(row={**SPENT, "requests_arrival_us": {"N": "9" * 38}})
@example(row={**SPENT, "line_us": {"N": "9" * 38}})
@example(row=with_terms({**TERMS, "quiet_until_us": {"N": "9" * 38}}))
@example(row=with_terms({**TERMS, "told": {"M": {"requests": {"N": "0"}}}}))
@example(row=with_terms({**TERMS, "pinned": {"M": {"tokens": {"N": "-1"}}}}))
def test_an_account_can_be_reckoned_with_or_is_unreadable_and_a_command_mends_it(row: Item) -> None:
    """Whatever the law computes from what was read is a moment and an amount; begun anew, it is the account as
    configured."""
    item = {**row, **BUDGET_KEY}
    if unreadable(lambda: budget_from_item(ACCOUNT.name, item)) is not None:
        return
    budget = budget_from_item(ACCOUNT.name, item)
    for terms in (budget.terms, replace(budget.terms, shut=None)):
        refusal = rate.refused(ACCOUNT, replace(budget, terms=terms), Want(requests=1, tokens=100), NOW_US)
        assert refusal is None or at_us(refusal.retry_us) >= NOW
    for limit in Limit:
        most = rate.limit_of(ACCOUNT, budget.terms, limit, NOW_US)
        assert most is None or most >= 1
    assert at_us(max(budget.line_us, budget.backlog_us)).year > 0


@pytest.mark.fault("E9")
def test_a_corrupt_account_is_mended_by_a_command() -> None:
    """Whatever stands there: as configured, open, with nothing spent."""
    with mock_aws():
        world = AwsWorld(_clients(), threads=1)
        for bad in ({"N": "9" * 38}, {"S": "soon"}, {"L": []}):
            world.plant("ledger", {**BUDGET, "line_us": bad})
            with pytest.raises(UnreadableRow, match="line_us"):
                world.budgets.read(ACCOUNT)
            clock = VirtualClock()
            reset_budget(ACCOUNT, by="alice", why="typo", ledger=world.budgets, history=MemoryHistory(), clock=clock)
            found = world.other_budgets().read(ACCOUNT)
            assert (found.line_us, found.terms.shut, found.holds) == (0, None, {})
