"""Puts a stage together: State, a stack per lane, Control, Watch."""

from __future__ import annotations

from dataclasses import dataclass

from aws_cdk import App, Tags

from infra import naming
from infra.control import ControlStack
from infra.deployment import Deployment
from infra.lane import LaneStack
from infra.state import StateStack
from infra.watch import WatchStack


@dataclass(frozen=True, slots=True, kw_only=True)
class Penstock:
    """The stacks of one stage."""

    stage: str
    state: StateStack
    lanes: tuple[LaneStack, ...]
    control: ControlStack
    watch: WatchStack


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
    # Most references go by name, which CloudFormation cannot see: the order is said here.
    for lane in lanes:
        lane.add_stack_dependency(state)
        control.add_stack_dependency(lane)
    control.add_stack_dependency(state)
    Tags.of(app).add("penstock:stage", deployment.stage.name)
    Tags.of(app).add("penstock:version", deployment.version)
    return Penstock(stage=deployment.stage.name, state=state, lanes=lanes, control=control, watch=watch)
