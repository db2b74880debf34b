"""What a job costs, from enqueue to completed: counts are promises, and the same on every adapter."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from ops.bench.account import account, tables_on
from ops.bench.lives import LANE, LIVES, Cost, Tables, cost_of
from shared.adapters.memory.stores import MemoryEffectStore, MemoryJobStore
from shared.adapters.meter import Meter

OPEN = {"open_path": (3, 3), "one_effect": (5, 5)}
"""Life → calls, write units."""
WAITS = {"future_time": (4, 2), "held_by_capacity": (5, 2), "held_by_switch": (5, 2)}
"""Life → units of the table, units of the index."""
RUNS_TWICE = {"deferred": (6, 2), "retried": (6, 2), "deferred_effect": (10, 2)}
ROW_BYTES = 1024


Costs = Mapping[str, Cost]


@pytest.fixture(scope="module", params=["memory", "moto"])
def costs(request: pytest.FixtureRequest) -> Costs:
    """Every life walked once, on counted tables of each kind."""
    if request.param == "moto":
        with account() as client:
            tables = tables_on(client)
            return {life: cost_of(life, tables) for life in LIVES}
    meter = Meter()
    jobs = MemoryJobStore(lanes={LANE.name: LANE}, meter=meter)
    tables = Tables(jobs=jobs, effects=MemoryEffectStore(meter=meter), meter=meter, row=jobs.item)
    return {life: cost_of(life, tables) for life in LIVES}


@pytest.mark.parametrize("life", OPEN)
def test_the_open_path_costs_three_calls_and_three_units(costs: Costs, life: str) -> None:
    """Put, claim, settle, no read and no index; an effect adds its intent and its record."""
    used = costs[life].usage
    assert (used.calls, used.all_write_units) == OPEN[life]
    assert (used.index_units, used.read_units) == (0, 0)


@pytest.mark.parametrize("life", [*WAITS, *RUNS_TWICE])
def test_waiting_once_costs_its_place_in_the_index(costs: Costs, life: str) -> None:
    """Into the index, and out of it by the hand-off: two units, whatever made the job wait."""
    used = costs[life].usage
    assert (used.write_units, used.index_units) == {**WAITS, **RUNS_TWICE}[life]


@pytest.mark.parametrize("life", [*WAITS, "deferred", "retried"])
def test_a_job_that_waits_once_costs_at_most_eight_units(costs: Costs, life: str) -> None:
    """Whatever made it wait; a deferral or a retry runs it twice."""
    assert costs[life].usage.all_write_units <= 8


@pytest.mark.parametrize("life", OPEN)
def test_a_batch_writes_its_signals_once(costs: Costs, life: str) -> None:
    """One call and one unit beside the jobs': of a batch of ten, a tenth each."""
    batch = costs[life].batches
    assert (batch.calls, batch.all_write_units, batch.read_units) == (1, 1, 0)


@pytest.mark.parametrize("life", LIVES)
def test_a_duplicate_delivery_costs_one_unit(costs: Costs, life: str) -> None:
    """One refused claim, whatever the job's life was; nothing else is read or written."""
    duplicate = costs[life].duplicate
    assert (duplicate.calls, duplicate.all_write_units, duplicate.read_units) == (1, 1, 0)


@pytest.mark.parametrize("life", LIVES)
def test_a_row_stays_below_a_kilobyte(costs: Costs, life: str) -> None:
    """So every write is one unit: the row of a job with ordinary ids, at its largest, waits and tries included."""
    assert costs[life].row_bytes <= ROW_BYTES
