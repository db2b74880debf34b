"""What a lane's intake is told by its environment. Read once, in wiring; a missing variable is named."""

from __future__ import annotations

from dataclasses import dataclass

from shared.contract import env
from shared.core.errors import BadInput
from shared.core.lane import LaneSpec
from shared.runtime.settings import Environ, lanes_of, required


@dataclass(frozen=True, slots=True, kw_only=True)
class IntakeSettings:
    """A lane's intake: one lane, the task its events become, one secret."""

    stage: str
    lane: LaneSpec
    task: str
    jobs_table: str
    content_bucket: str
    secret_arn: str

    @classmethod
    def from_env(cls, environ: Environ) -> IntakeSettings:
        name = required(environ, env.LANE)
        lane = lanes_of(environ).get(name)
        if lane is None or lane.intake is None:
            raise BadInput(env.LANES, f"does not describe lane {name} as one that takes events")
        return cls(
            stage=required(environ, env.STAGE),
            lane=lane,
            task=lane.intake,
            jobs_table=required(environ, env.JOBS_TABLE),
            content_bucket=required(environ, env.CONTENT_BUCKET),
            secret_arn=required(environ, env.SECRET_ARN),
        )
