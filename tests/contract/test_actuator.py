"""The promises of `Actuator`, kept by every adapter."""

from __future__ import annotations

import pytest

from shared.core.capacity import EventSource
from shared.core.errors import Unavailable
from tests.contract.worlds import World


def test_a_source_is_read_as_it_stands(world: World) -> None:
    """Its state and its cap."""
    assert world.actuator.source("support") == EventSource(state="Enabled", cap=2)


def test_a_cap_is_asserted(world: World) -> None:
    """And seen by the next look; asking for the same again is harmless."""
    for cap in (6, 6, 2):
        assert world.actuator.assert_cap("support", cap)
        assert world.actuator.source("support").has(cap)


def test_nought_disables_and_a_cap_enables_again(world: World) -> None:
    """A source that feeds nobody keeps its cap, but has none."""
    assert world.actuator.assert_cap("support", 0)
    stopped = world.actuator.source("support")
    assert (stopped.enabled, stopped.settled, stopped.has(0), stopped.has(2)) == (False, True, True, False)
    assert world.actuator.assert_cap("support", 4)
    assert world.actuator.source("support").has(4)


@pytest.mark.fault("B10")
def test_a_lane_without_a_source_is_told(world: World) -> None:
    """It is not taken for one that is at rest."""
    with pytest.raises(Unavailable, match="missing"):
        world.actuator.source("sharded")
    with pytest.raises(Unavailable, match="missing"):
        world.actuator.assert_cap("sharded", 4)
