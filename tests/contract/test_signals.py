"""The promises of `SignalLedger`, kept by every adapter."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from shared.adapters.meter import Usage
from shared.contract import table
from shared.core.errors import UnreadableRow
from shared.core.moment import epoch_s, iso
from shared.core.signals import Counts, Minute, VendorCounts
from tests.builders import NOW
from tests.contract.worlds import World

SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
BATCH = Counts(
    claims=10,
    completed=7,
    failed=1,
    errors=2,
    oldest_age_s=61,
    vendors={
        "helpdesk": VendorCounts(calls=9, limited=2, errors=1),
        "openai": VendorCounts(calls=10, tokens=4200),
    },
)


def test_a_lane_that_did_nothing_has_no_minutes(world: World) -> None:
    """Nothing is known, and that is no error."""
    assert world.signals.minutes("support", since=NOW) == []


def test_a_batch_is_read_back_as_it_was_counted(world: World) -> None:
    """Every count, by vendor, in the minute it was written."""
    world.signals.add("support", NOW + 42 * SECOND, BATCH)
    assert world.signals.minutes("support", since=NOW) == [Minute(at=NOW, counts=BATCH)]
    assert world.signals.minutes("other", since=NOW) == []


@pytest.mark.req("C3")
def test_batches_of_a_minute_add_up_and_the_oldest_age_stays(world: World) -> None:
    """Also when several workers write at once; the largest age counts, whoever saw it."""
    ages = (5, 250, 31, 250, 0, 7)
    with ThreadPoolExecutor(world.threads) as pool:
        list(pool.map(lambda age: world.signals.add("support", NOW, Counts(claims=1, oldest_age_s=age)), ages))
    assert world.signals.minutes("support", since=NOW) == [Minute(at=NOW, counts=Counts(claims=6, oldest_age_s=250))]


def test_minutes_are_apart_and_in_order(world: World) -> None:
    """The last second of one and the first of the next; what is older than asked for is left out."""
    for seconds in (121, 59, 0, 60):
        world.signals.add("support", NOW + seconds * SECOND, Counts(claims=1))
    assert [(one.at, one.counts.claims) for one in world.signals.minutes("support", since=NOW)] == [
        (NOW, 2),
        (NOW + MINUTE, 1),
        (NOW + 2 * MINUTE, 1),
    ]
    assert len(world.signals.minutes("support", since=NOW + 90 * SECOND)) == 2


def test_a_lane_in_fast_time_has_minutes_of_its_own(world: World) -> None:
    """Each of the length it counts by; all from the asked time on are given."""
    for seconds in (0, 1, 2, 5):
        world.signals.add("support", NOW + seconds * SECOND, Counts(claims=1), minute_s=2)
    found = [(one.at, one.counts.claims) for one in world.signals.minutes("support", since=NOW)]
    assert found == [(NOW, 2), (NOW + 2 * SECOND, 1), (NOW + 4 * SECOND, 1)]


def test_nothing_is_not_written(world: World) -> None:
    """A batch in which nothing happened costs no call."""
    world.signals.add("support", NOW, Counts())
    assert world.meter.total() == Usage()


def test_a_batch_costs_one_write(world: World) -> None:
    """One call, one unit, however many vendors and jobs it had."""
    world.signals.add("support", NOW, BATCH)
    world.signals.add("support", NOW, BATCH)
    assert world.meter.total() == Usage(calls=2, write_units=2)


def test_a_minute_expires_after_two_days(world: World) -> None:
    """So the table does not grow."""
    world.signals.add("support", NOW + 5 * SECOND, BATCH)
    row = world.row("ledger", table.signals_pk("support"), iso(NOW))
    assert row is not None
    assert row[table.TTL] == {"N": str(epoch_s(NOW + timedelta(days=2)))}


@pytest.mark.fault("E5")
@pytest.mark.parametrize("value", [{"S": "many"}, {"N": "1.5"}])
def test_a_count_that_is_no_number_is_named(world: World, value: dict[str, str]) -> None:
    """It is not taken for nothing."""
    key = {table.PK: {"S": table.signals_pk("support")}, table.SK: {"S": iso(NOW)}}
    for name in ("claims", "vendor#helpdesk#limited", "ages"):
        world.plant("ledger", {**key, name: value})
        with pytest.raises(UnreadableRow, match=name):
            world.signals.minutes("support", since=NOW)
