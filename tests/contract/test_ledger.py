"""The promises of `Ledger`, kept by every adapter."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from shared.contract import table
from shared.core.moment import epoch_s, iso
from shared.core.schedule import RunRecord
from tests.builders import NOW
from tests.contract.worlds import World


def a_run(run_id: str = "run-1", at: datetime = NOW, schedule: str = "dispatcher") -> RunRecord:
    """A run that has just started."""
    return RunRecord(schedule=schedule, slot=iso(at), run_id=run_id, started_at=at)


@pytest.mark.fault("D1")
def test_a_slot_is_opened_once(world: World) -> None:
    """However often a schedule fires for one slot, one run gets it."""
    runs = [a_run(f"run-{n}") for n in range(world.threads + 2)]
    with ThreadPoolExecutor(world.threads) as pool:
        answers = list(pool.map(world.ledger.open_run, runs))
    assert answers.count(True) == 1
    (kept,) = world.ledger.runs("dispatcher", limit=10)
    assert kept == runs[answers.index(True)]


@pytest.mark.fault("C3")
def test_opening_again_with_the_same_run_is_still_ours(world: World) -> None:
    """A lost reply does not skip the run."""
    assert world.ledger.open_run(a_run())
    assert world.ledger.open_run(a_run())
    assert not world.ledger.open_run(a_run("run-2"))


def test_schedules_and_slots_are_apart(world: World) -> None:
    """Another schedule, or the next slot, is another run."""
    assert world.ledger.open_run(a_run())
    assert world.ledger.open_run(a_run(schedule="sweeper"))
    assert world.ledger.open_run(a_run("run-2", NOW + timedelta(minutes=1)))


def test_a_run_is_closed_with_its_counts(world: World) -> None:
    """The record keeps when it ended and what it did; closing twice is the same."""
    run = a_run()
    world.ledger.open_run(run)
    closed = replace(run, finished_at=NOW + timedelta(seconds=3), counts={"support.sent": 3, "support.held": 0})
    world.ledger.close_run(closed)
    world.ledger.close_run(closed)
    assert world.ledger.runs("dispatcher", limit=10) == [closed]


def test_nobody_closes_the_run_of_another(world: World) -> None:
    """A slot that belongs to another run is left as it is, and none is made by closing it."""
    run = a_run()
    world.ledger.open_run(run)
    world.ledger.close_run(replace(a_run("run-2"), finished_at=NOW, counts={"sent": 99}))
    world.ledger.close_run(replace(a_run("run-3", NOW + timedelta(minutes=1)), finished_at=NOW))
    assert world.ledger.runs("dispatcher", limit=10) == [run]


def test_the_newest_runs_come_first(world: World) -> None:
    """As many as were asked for, of this schedule only."""
    times = [NOW + timedelta(minutes=n) for n in range(4)]
    for n, at in enumerate(times):
        world.ledger.open_run(a_run(f"run-{n}", at))
    world.ledger.open_run(a_run("other", schedule="sweeper"))
    assert [run.run_id for run in world.ledger.runs("dispatcher", limit=3)] == ["run-3", "run-2", "run-1"]
    assert world.ledger.runs("auditor", limit=3) == []


def test_a_run_expires_after_thirty_days(world: World) -> None:
    """The ledger does not grow for ever."""
    world.ledger.open_run(a_run())
    item = world.row("ledger", table.run_pk("dispatcher"), iso(NOW))
    assert item is not None
    assert item[table.TTL] == {"N": str(epoch_s(NOW + timedelta(days=30)))}
