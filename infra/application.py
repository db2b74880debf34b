"""Puts a stage together: State, a stack per lane, Control, Watch and what watches each lane."""

from __future__ import annotations

from dataclasses import dataclass

from aws_cdk import App, Tags

from infra import naming
from infra.control import ControlStack
from infra.deployment import Deployment
from infra.lane import LaneStack
from infra.state import StateStack
from infra.watch import LaneWatchStack, WatchStack


@dataclass(frozen=True, slots=True, kw_only=True)
class Penstock:
    """The stacks of one stage."""

    stage: str
    state: StateStack
    lanes: tuple[LaneStack, ...]
    control: ControlStack
    watch: WatchStack
    lane_watches: tuple[LaneWatchStack, ...]


def build(app: App, deployment: Deployment) -> Penstock:
    """Every stack of the stage, in the order they are deployed."""
    state = StateStack(app, "State", deployment=deployment)
    key_arn = state.content_key.key_arn
    lanes = tuple(
        LaneStack(app, naming.lane_part(spec.name), spec=spec, deployment=deployment, key_arn=key_arn)
        for spec in deployment.stage.lanes.values()
    )
    control = ControlStack(app, "Control", deployment=deployment, stream_arn=state.stream_arn, key_arn=key_arn)
    watch = WatchStack(app, "Watch", deployment=deployment)
    lane_watches = tuple(
        LaneWatchStack(app, naming.lane_watch_part(spec.name), lane=spec, deployment=deployment)
        for spec in deployment.stage.lanes.values()
    )
    # Most references go by name, which CloudFormation cannot see: the order is said here.
    for lane in lanes:
        lane.add_stack_dependency(state)
        control.add_stack_dependency(lane)
    control.add_stack_dependency(state)
    # Silence is bad news to some alarms: let there be something to hear first.
    watch.add_stack_dependency(control)
    for one in lane_watches:
        one.add_stack_dependency(watch)
    Tags.of(app).add("penstock:stage", deployment.stage.name)
    # On functions alone: a tag that changes with each release would touch event sources, and so caps, tables and keys.
    Tags.of(app).add("penstock:version", deployment.version, include_resource_types=["AWS::Lambda::Function"])
    return Penstock(
        stage=deployment.stage.name,
        state=state,
        lanes=lanes,
        control=control,
        watch=watch,
        lane_watches=lane_watches,
    )
