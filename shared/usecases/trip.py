"""Trip: close a lane to `route_only` while a vendor of it is unstable. Only a person opens it again."""

from __future__ import annotations

from collections.abc import Iterable

from shared.contract import metrics
from shared.core.lane import LaneSpec
from shared.core.ports import Clock, ControlStore, History, Telemetry
from shared.core.switches import Level, Switch, Switches
from shared.usecases.steer import note

GOVERNOR = "governor"


def trip(
    lane: LaneSpec,
    unstable: Iterable[str],
    switches: Switches,
    *,
    correlation_id: str,
    control: ControlStore,
    history: History,
    clock: Clock,
    telemetry: Telemetry,
) -> bool:
    """True when this call closed the lane. What is closed already stays as it is, whoever closed it.

    The whole lane, not the vendor alone: an answer that was written while the model behind it fails must not go out
    through a help desk that is well.
    """
    vendors = sorted(unstable)
    scope = f"lane/{lane.name}"
    present = switches.entries.get(scope)
    if not vendors or not lane.trip_on_unstable or (present is not None and present.level >= Level.ROUTE_ONLY):
        return False
    switch = Switch(
        scope=scope,
        level=Level.ROUTE_ONLY,
        automation_enabled=present is None or present.automation_enabled,
        by=GOVERNOR,
        why=f"unstable: {', '.join(vendors)}",
        at=clock.now(),
    )
    if not control.trip(switch):
        return False
    telemetry.event("lane_tripped", lane=lane.name, vendors=",".join(vendors), correlation_id=correlation_id)
    telemetry.count(metrics.TRIPPED, lane=lane.name)
    note(
        f"switch/{scope}",
        "switch",
        GOVERNOR,
        {
            "level": switch.level.word,
            "automation_enabled": switch.automation_enabled,
            "why": switch.why,
            "correlationId": correlation_id,
        },
        history,
        clock,
    )
    return True
