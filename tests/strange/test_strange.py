"""Strange tasks before strange vendors, with people in between: never twice, no end that says more than is known."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.strange import coverage
from tests.strange.execution import execute
from tests.strange.night import State, night, run_block
from tests.strange.report import PROPERTY

pytestmark = pytest.mark.simulation

BATCHES, EACH = 4, 5000


@pytest.mark.slow
@pytest.mark.req("R8")
@pytest.mark.fault("A4")
@pytest.mark.fault("A13")
@pytest.mark.fault("A14")
@pytest.mark.fault("A15")
@pytest.mark.fault("A19")
@pytest.mark.parametrize("batch", range(BATCHES))
def test_whatever_a_task_does_nothing_is_doubled_lost_or_ended_falsely(
    batch: int, record_property: Callable[[str, object], None]
) -> None:
    """Effects whose name, order, number, kind or vendor differ by attempt, every answer of a vendor, three workers and
    everybody else at every call: no effect accepted twice, no end over an open effect, nothing lost; and each kind of
    vendor, answer, task and interleaving was drawn."""
    block = run_block(batch * EACH, EACH, until_found=True)
    told = {"count": block.count, "found": len(block.found), "ends": block.ends, "seen": block.seen}
    record_property(PROPERTY, json.dumps(told))
    assert not block.found, f"{block.found}; the story: python -m tests.strange {next(iter(block.found))}"
    assert coverage.missing(block.seen) == []


@pytest.mark.parametrize("seed", [7, 104, 1591])
def test_an_execution_replays_identically(seed: int) -> None:
    """A seed is a story: told twice, it is the same to the last call."""
    first, again = (execute(seed, tell=True) for _ in range(2))
    assert first.story == again.story
    assert first.problems == again.problems
    assert len(first.story) > 20


def test_a_night_goes_on_where_it_stopped(tmp_path: Path) -> None:
    """Stopped after any block and begun again, it has run each seed once, and counts as if it had never stopped."""
    path = tmp_path / "night.json"
    night(30, 1, path)
    assert State.read(path).done == 30
    resumed = night(60, 1, path)
    whole = run_block(0, 60)
    assert (resumed.done, resumed.seen, resumed.ends) == (60, whole.seen, whole.ends)


def test_a_kind_that_is_never_drawn_is_named() -> None:
    """Nothing drawn is everything missing; everything drawn is nothing missing."""
    assert "answer:401:again" in coverage.missing(Counter())
    assert coverage.missing(Counter(dict.fromkeys(coverage.required(), 1))) == []
