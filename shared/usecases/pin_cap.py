"""Pin a cap: what an operator wants holds at once, over every decision, until it ends or is taken away."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from shared.core.budget import us_of
from shared.core.capacity import CapacityState, Pin, check_pin, pinned, unpinned
from shared.core.errors import BadInput
from shared.core.lane import LaneSpec
from shared.core.moment import iso
from shared.core.ports import Clock, ControlStore, History
from shared.usecases.steer import note, reason_of

TRIES = 5
"""The governor writes the same row once a minute; whoever meets it looks again."""


def pin_cap(
    lane: LaneSpec,
    cap: int,
    span: timedelta,
    *,
    by: str,
    why: str,
    control: ControlStore,
    history: History,
    clock: Clock,
) -> CapacityState:
    """The lane's capacity with the pin. A cap above the ceiling and a pin without an end are refused."""
    now = clock.now()
    pin = Pin(cap=check_pin(cap, now + span, lane, now), until=now + span, by=by, why=reason_of(why))
    after = _written(lane, control, lambda state: pinned(state, pin, now))
    note(
        f"capacity/{lane.name}",
        "pin",
        by,
        {"cap": cap, "until": iso(pin.until), "why": pin.why},
        history,
        clock,
    )
    return after


def unpin_cap(
    lane: LaneSpec, *, by: str, why: str, control: ControlStore, history: History, clock: Clock
) -> CapacityState:
    """The lane's capacity without its pin: the next decision goes on from the cap as it stands."""
    reason = reason_of(why)
    if (present := control.capacity(lane.name)) is None or present.pinned(clock.now()) is None:
        raise BadInput("lane", f"{lane.name} has no pin")
    after = _written(lane, control, unpinned)
    note(f"capacity/{lane.name}", "unpin", by, {"cap": after.cap, "why": reason}, history, clock)
    return after


def reset_cap(
    lane: LaneSpec, *, by: str, why: str, control: ControlStore, history: History, clock: Clock
) -> CapacityState:
    """The lane's capacity begun anew at its baseline, without a pin, when its row cannot be read or holds what is not
    so. The governor goes on from there."""
    reason = reason_of(why)
    # Above every version the row can have had: nobody writes what they decided from it.
    after = CapacityState(cap=lane.baseline, version=us_of(clock.now()))
    control.reset_capacity(lane.name, after)
    note(f"capacity/{lane.name}", "reset", by, {"cap": after.cap, "why": reason}, history, clock)
    return after


def _written(lane: LaneSpec, control: ControlStore, change: Callable[[CapacityState], CapacityState]) -> CapacityState:
    for _ in range(TRIES):
        seen = control.capacity(lane.name)
        after = change(seen or CapacityState(cap=lane.baseline))
        if control.set_capacity(lane.name, seen, after):
            return after
    raise BadInput("lane", f"{lane.name} is being decided about; ask again in a moment")
