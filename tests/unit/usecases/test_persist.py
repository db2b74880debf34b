"""Asking a store again, and knowing how much time is left."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.adapters.memory.clock import VirtualClock
from shared.core.errors import BadInput, ControlUnreadable, Unavailable
from shared.usecases.deadline import Deadline
from shared.usecases.persist import TRIES, persist


@pytest.mark.fault("C1")
@given(failures=st.integers(0, 8))
def test_a_store_is_asked_up_to_four_times_with_growing_waits(failures: int) -> None:
    """A passing throttle is not noticed; a lasting one is told, within a second."""
    clock, asked = VirtualClock(), []
    started = clock.now()

    def write() -> str:
        asked.append(clock.now())
        if len(asked) <= failures:
            raise Unavailable("jobs", "throttled")
        return "written"

    if failures < TRIES:
        assert persist(write, clock) == "written"
        assert len(asked) == failures + 1
    else:
        with pytest.raises(Unavailable):
            persist(write, clock)
        assert len(asked) == TRIES
    gaps = [(after - before).total_seconds() for before, after in pairwise(asked)]
    assert gaps == sorted(gaps)
    assert clock.now() - started < timedelta(seconds=1)


@pytest.mark.fault("C2")
@pytest.mark.parametrize("error", [BadInput("a", "b"), ValueError(), KeyError()])
def test_an_answer_is_not_asked_for_again(error: Exception) -> None:
    """Only silence is: a refusal, a conflict or a defect is the same the second time."""
    asked: list[int] = []

    def write() -> None:
        asked.append(1)
        raise error

    with pytest.raises(type(error)):
        persist(write, VirtualClock())
    assert len(asked) == 1


def test_silence_of_a_special_kind_is_silence() -> None:
    """Errors below Unavailable are asked again, too, and keep their class."""

    def write() -> None:
        raise ControlUnreadable("control", "throttled")

    with pytest.raises(ControlUnreadable):
        persist(write, VirtualClock())


@given(left=st.integers(-100, 100), own=st.integers(0, 100), passed=st.integers(0, 50))
def test_a_deadline_is_the_nearer_of_two(left: int, own: int, passed: int) -> None:
    """Never later than the invocation's, and it comes closer as time passes."""
    clock = VirtualClock()
    whole = Deadline(at=clock.now() + timedelta(seconds=left), clock=clock)
    part = whole.within(own)
    assert part.remaining_s == min(left, own)
    clock.advance(passed)
    assert part.remaining_s == min(left, own) - passed
