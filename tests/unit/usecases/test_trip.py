"""An unstable vendor closes its lane; only a person opens it again."""

from __future__ import annotations

import pytest

from shared.contract import metrics
from shared.core.feedback import OUTAGE, shut_down
from shared.core.rate import us_of
from shared.core.switches import Level
from tests.builders import NOW, a_switch, an_account
from tests.unit.usecases.watch import QUIET, SPIKE, Watch


@pytest.mark.req("C13", "C16")
def test_a_vendor_with_two_bad_minutes_closes_the_lane() -> None:
    """Not after one; to route_only, by the governor, with the reason, kept in the history."""
    watch = Watch()
    watch.saw(SPIKE)
    watch.look()
    assert watch.level() is Level.NORMAL
    watch.saw(SPIKE)
    assert watch.look().tripped
    switch = watch.desk.control.switches().entries["lane/support"]
    assert (switch.level, switch.by, switch.why) == (Level.ROUTE_ONLY, "governor", "unstable: helpdesk")
    (event,) = watch.desk.history.of("switch/lane/support", limit=5)
    assert (event.by, event.detail["level"]) == ("governor", "route_only")
    assert watch.desk.telemetry.total(metrics.TRIPPED) == 1


@pytest.mark.req("C13")
def test_an_open_breaker_closes_the_lane() -> None:
    """A shut account is an unstable vendor, whatever the counts say."""
    watch = Watch(account=an_account())
    spec = an_account()
    seen = watch.desk.budget_ledger.read(spec).terms
    now_us = us_of(NOW)
    shut = shut_down(seen, OUTAGE, now_us, now_us)
    assert shut is not None
    watch.desk.budget_ledger.change(spec, seen, shut)
    assert watch.look().tripped
    assert watch.level() is Level.ROUTE_ONLY


@pytest.mark.req("C13", "C6")
def test_a_tripped_lane_stays_closed_until_a_person_opens_it() -> None:
    """However well the vendor is afterwards, and for how long."""
    watch = Watch()
    for _ in range(2):
        watch.saw(SPIKE)
        watch.look()
    for _ in range(40):
        watch.saw(QUIET)
        watch.look()
    assert watch.level() is Level.ROUTE_ONLY


@pytest.mark.req("C13")
@pytest.mark.parametrize("level", [Level.ROUTE_ONLY, Level.NO_NEW_STARTS, Level.HALT])
def test_a_trip_never_loosens_what_is_closed(level: Level) -> None:
    """Nor takes it over from whoever closed it."""
    watch = Watch()
    switch = a_switch("lane/support", level)
    watch.desk.control.set_switch(switch)
    for _ in range(3):
        watch.saw(SPIKE)
        watch.look()
    assert watch.desk.control.switches().entries["lane/support"] == switch


def test_a_lane_that_does_nothing_a_customer_sees_is_not_tripped() -> None:
    """Its configuration says so; its cap is lowered all the same."""
    watch = Watch(trip_on_unstable=False)
    for _ in range(2):
        watch.saw(SPIKE)
        watch.look()
    assert (watch.level(), watch.state.cap) == (Level.NORMAL, 2)
