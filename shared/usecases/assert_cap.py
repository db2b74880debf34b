"""Assert a cap: make a lane's event source as it is wanted, if it can be changed now. Stopping never depends on it."""

from __future__ import annotations

from enum import StrEnum

from shared.contract import metrics
from shared.core.capacity import EventSource
from shared.core.errors import Unavailable
from shared.core.lane import LaneSpec
from shared.core.ports import Actuator, Telemetry


class Asserted(StrEnum):
    """What became of a wanted cap."""

    STANDS = "stands"
    """The source had it already."""
    ASKED = "asked"
    SKIPPED = "skipped"
    """It is being changed or cannot be asked: the next tick tries again."""
    FOREIGN = "foreign"
    """Somebody else has disabled it, and it is theirs to enable: told, not undone."""


def source_of(lane: LaneSpec, *, actuator: Actuator, telemetry: Telemetry) -> EventSource | None:
    """The lane's source; None, said as an event, when it cannot be seen."""
    try:
        return actuator.source(lane.name)
    except Unavailable as exc:
        telemetry.error("source_unreadable", exc, lane=lane.name)
        telemetry.count(metrics.SOURCE_CLOSED, lane=lane.name)
        return None


def assert_cap(
    lane: LaneSpec,
    cap: int,
    source: EventSource | None,
    *,
    stopped_by_us: bool,
    actuator: Actuator,
    telemetry: Telemetry,
) -> Asserted:
    """Ask for `cap` on a difference only, in a settled state only, and never for more than the ceiling."""
    wanted = min(cap, lane.ceiling)
    if source is None:
        return Asserted.SKIPPED
    if source.settled and wanted and not source.enabled and not stopped_by_us:
        telemetry.event("source_disabled", lane=lane.name, state=source.state)
        telemetry.count(metrics.SOURCE_CLOSED, lane=lane.name)
        return Asserted.FOREIGN
    if source.has(wanted):
        return Asserted.STANDS
    if not source.settled:
        return _skipped(lane, wanted, source.state, telemetry)
    try:
        done = actuator.assert_cap(lane.name, wanted)
    except Unavailable as exc:
        telemetry.error("source_unreadable", exc, lane=lane.name)
        return Asserted.SKIPPED
    if not done:
        return _skipped(lane, wanted, "in_use", telemetry)
    telemetry.event("cap_asserted", lane=lane.name, was=source.cap if source.enabled else 0, wanted=wanted)
    return Asserted.ASKED


def _skipped(lane: LaneSpec, wanted: int, state: str, telemetry: Telemetry) -> Asserted:
    telemetry.event("cap_skipped", lane=lane.name, wanted=wanted, state=state)
    telemetry.count(metrics.CAP_SKIPPED, lane=lane.name)
    return Asserted.SKIPPED
