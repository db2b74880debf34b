"""What a lane's intake is told by its environment and its package. Read once, in wiring."""

from __future__ import annotations

from dataclasses import dataclass

from shared.contract import env
from shared.core.errors import BadInput
from shared.core.lane import LaneSpec
from shared.runtime.settings import Environ, Settings, lane_of, required, told_by


@dataclass(frozen=True, slots=True, kw_only=True)
class IntakeSettings(Settings):
    """A lane's intake: one lane, the task its events become, one secret."""

    lane: LaneSpec
    task: str
    secret_arn: str

    @classmethod
    def from_env(cls, environ: Environ) -> IntakeSettings:
        lane = lane_of(environ, told_by(environ))
        if lane.intake is None:
            raise BadInput(env.SETTINGS, f"does not describe lane {lane.name} as one that takes events")
        return cls(
            stage=required(environ, env.STAGE),
            lane=lane,
            lanes={lane.name: lane},
            accounts={},
            task=lane.intake,
            secret_arn=required(environ, env.SECRET_ARN),
            environ=environ,
        )
