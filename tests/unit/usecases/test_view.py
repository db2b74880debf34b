"""What admission looks at: cached briefly, never past the ceiling."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.core.capacity import CapacityState
from shared.core.errors import UnknownLane, UnreadableRow
from shared.core.message import Message
from shared.usecases.view import CACHED_S
from tests.builders import a_job
from tests.unit.usecases.desk import Desk, Flaky


@pytest.fixture
def desk() -> Desk:
    desk = Desk()
    desk.queues = Flaky(desk.queues, "depth")  # type: ignore[assignment]
    desk.viewer._queues = desk.queues
    return desk


def fill(desk: Desk, count: int) -> None:
    desk.queues.send([Message(job_id=f"{n}", lane="support", tenant="t") for n in range(count)])


def test_a_queue_is_asked_at_most_every_two_seconds(desk: Desk) -> None:
    """Within that time the answer is the same one; after it, a fresh one."""
    queues: Any = desk.queues
    for _ in range(5):
        assert desk.viewer.of("support").capacity.depth == 0
    assert queues.calls == 1
    fill(desk, 4)
    assert desk.viewer.of("support").capacity.depth == 0
    desk.clock.advance(CACHED_S)
    assert desk.viewer.of("support").capacity.depth == 4
    assert queues.calls == 2


def test_what_was_just_sent_is_added_until_the_queue_is_asked_again(desk: Desk) -> None:
    """So one batch cannot overfill a window that it has seen empty."""
    desk.viewer.of("support")
    for key in ("a", "b", "c"):
        desk.viewer.sent(a_job(key=key), desk.clock.now())
    assert desk.viewer.of("support").capacity.depth == 3
    desk.clock.advance(CACHED_S)
    assert desk.viewer.of("support").capacity.depth == 0


def test_what_runs_is_no_backlog(desk: Desk) -> None:
    """Messages in a worker's hands do not fill the window."""
    fill(desk, 4)
    desk.queues.receive("support", limit=3)
    assert desk.viewer.of("support").capacity.depth == 1


def test_a_lane_nobody_configured_is_named(desk: Desk) -> None:
    """The caller decides what becomes of its job."""
    with pytest.raises(UnknownLane, match="'mail' is not configured; known lanes: support"):
        desk.viewer.of("mail")


@pytest.mark.req("C7")
@given(cap=st.none() | st.integers(-10, 5000))
def test_no_wanted_cap_passes_the_ceiling(cap: int | None) -> None:
    """The control table may say anything; the window is never larger than the ceiling's."""
    desk = Desk(baseline=2, ceiling=10)
    if cap is not None:
        desk.control.set_cap("support", cap)
    limit = desk.viewer.of("support").capacity.limit
    assert 1 <= limit <= desk.lane.queue_limit_at(10)
    if cap is None:
        assert limit == desk.lane.queue_limit
    elif 2 <= cap <= 10:
        assert limit == desk.lane.queue_limit_at(cap)


@pytest.mark.fault("E9")
@pytest.mark.parametrize("cap", [-5, 1001, 10**30])
def test_a_cap_outside_its_bounds_is_no_cap(desk: Desk, cap: int) -> None:
    """It holds the lane neither at one job nor lets it run: the baseline counts, and it is said."""
    desk.control.set_cap("support", cap)
    assert desk.viewer.of("support").capacity.limit == desk.lane.queue_limit
    assert [event.error for event in desk.telemetry.named("cap_unreadable")] == ["UnreadableRow"]


def test_a_cap_that_cannot_be_read_stops_nobody(desk: Desk) -> None:
    """A corrupt control row: the baseline counts, and it is said."""

    class Corrupt:
        def capacity(self, lane: str) -> CapacityState | None:
            raise UnreadableRow("CAP#support", "its cap is not a number")

    corrupt: Any = Corrupt()
    desk.viewer._control = corrupt
    desk.viewer._telemetry = desk.telemetry
    assert desk.viewer.of("support").capacity.limit == desk.lane.queue_limit
    assert [event.error for event in desk.telemetry.named("cap_unreadable")] == ["UnreadableRow"]
