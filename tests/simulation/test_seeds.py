"""Two thousand random systems in random trouble: never twice, never lost, only legal moves."""

from __future__ import annotations

import pytest

from tests.simulation.seeds import run_seed

pytestmark = pytest.mark.simulation

BATCHES, EACH = 20, 100


@pytest.mark.slow
@pytest.mark.req("R1")
@pytest.mark.req("R8")
@pytest.mark.req("R14")
@pytest.mark.fault("A3")
@pytest.mark.fault("A4")
@pytest.mark.fault("B3")
@pytest.mark.fault("C1")
@pytest.mark.fault("C3")
@pytest.mark.fault("C4")
@pytest.mark.fault("D4")
@pytest.mark.parametrize("batch", range(BATCHES))
def test_whatever_goes_wrong_nothing_is_doubled_lost_or_moved_illegally(batch: int) -> None:
    """Every seed ends with each job in an end state, each send made at most once, and a legal history."""
    for seed in range(batch * EACH, (batch + 1) * EACH):
        outcome = run_seed(seed)
        assert not outcome.problems, (
            f"seed {seed}: {outcome.problems[:5]}; replay: python -m tests.simulation.seeds {seed}"
        )


@pytest.mark.parametrize("seed", [3, 17, 1234, 987_654_321])
def test_a_seed_replays_identically(seed: int) -> None:
    """The same seed makes the same calls in the same order and leaves the same rows."""
    first, again = (run_seed(seed, fingerprint=True) for _ in range(2))
    assert first.trace_hash == again.trace_hash
    assert first.verdict == again.verdict


def test_seeds_differ() -> None:
    """Different seeds are different stories: otherwise two thousand would prove no more than one."""
    assert len({run_seed(seed, fingerprint=True).trace_hash for seed in range(12)}) == 12


def test_trouble_really_happens() -> None:
    """Among a few dozen seeds every kind of fault fires, or the simulation proves nothing."""
    fired = {fault for seed in range(40) for fault in run_seed(seed).faults}
    assert fired == {
        "crash_before",
        "crash_after",
        "applied_but_error",
        "throttle",
        "outage",
        "freeze",
        "duplicate_delivery",
    }
