"""Whether the platform feeds a lane's workers, for the pages that explain why jobs stand still."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from ops.cli.trouble import problem_of
from shared.contract import names
from shared.core.capacity import CapacityState, EventSource
from shared.core.feeding import THROTTLED_MIN, Feeding, FeedTrouble, feed_trouble
from shared.core.switches import Switches, lane_scopes

if TYPE_CHECKING:
    from ops.cli.stage import Stage
    from shared.core.lane import LaneSpec


def trouble_of(
    stage: Stage, lane: LaneSpec, switches: Switches, kept: CapacityState | None = None
) -> FeedTrouble | None:
    """What is wrong with a lane's feeding, None where nothing is, or where runs take its jobs. What cannot be looked at
    is told, and taken for no trouble."""
    if lane.run is not None:
        return None
    halted = switches.standing(lane_scopes(lane.name, lane.shared_vendors)).closes_intent
    on_purpose = halted or (kept is not None and (kept.stopped or kept.cap == 0))
    try:
        return feed_trouble(fed(stage, lane), on_purpose=on_purpose)
    except Exception as exc:  # whatever it is, the page it stands on is needed
        told = f"whether its workers are fed could not be looked at: {problem_of(exc).sentence}"
        return FeedTrouble(sentence=told, stops=False)


def fed(stage: Stage, lane: LaneSpec) -> Feeding:
    """The lane's event source, its worker's reserve, and the starts that were refused of late."""
    worker = names.function(stage.name, names.worker(lane.name))
    lambda_ = stage.client("lambda")
    found = lambda_.list_event_source_mappings(FunctionName=f"{worker}:{names.LIVE}")["EventSourceMappings"]
    if not found:
        return Feeding(source=None)
    # Some endpoints list without the details.
    told = lambda_.get_event_source_mapping(UUID=found[0]["UUID"])
    reserved = lambda_.get_function_concurrency(FunctionName=worker).get("ReservedConcurrentExecutions")
    now = stage.clock.now()
    points = stage.client("cloudwatch").get_metric_statistics(
        Namespace="AWS/Lambda",
        MetricName="Throttles",
        Dimensions=[{"Name": "FunctionName", "Value": worker}],
        StartTime=now - timedelta(minutes=THROTTLED_MIN),
        EndTime=now,
        Period=60,
        Statistics=["Sum"],
    )["Datapoints"]
    return Feeding(
        source=EventSource(
            state=told.get("State", "unknown"), cap=told.get("ScalingConfig", {}).get("MaximumConcurrency")
        ),
        reserved=reserved,
        throttled=int(sum(point["Sum"] for point in points)),
    )
