"""What each function is told by its environment. Read once, in wiring; a missing variable is named."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shared.contract import env
from shared.core.errors import BadInput
from shared.core.lane import LaneSpec
from shared.core.stage import VendorSpec

Environ = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    """A lane's worker."""

    stage: str
    lane: LaneSpec
    jobs_table: str
    effects_table: str
    control_table: str
    content_bucket: str
    vendors: Mapping[str, VendorSpec]
    secret_arn: str | None

    @classmethod
    def from_env(cls, environ: Environ) -> WorkerSettings:
        lanes = _lanes(environ)
        name = _required(environ, env.LANE)
        if name not in lanes:
            raise BadInput(env.LANES, f"does not describe lane {name}")
        return cls(
            stage=_required(environ, env.STAGE),
            lane=lanes[name],
            jobs_table=_required(environ, env.JOBS_TABLE),
            effects_table=_required(environ, env.EFFECTS_TABLE),
            control_table=_required(environ, env.CONTROL_TABLE),
            content_bucket=_required(environ, env.CONTENT_BUCKET),
            vendors={n: VendorSpec(**{"name": n, **v}) for n, v in _json(environ, env.VENDORS).items()},
            secret_arn=environ.get(env.SECRET_ARN) or None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSettings:
    """An engine function. Each is given, and asks for, only what its work needs."""

    stage: str
    lanes: Mapping[str, LaneSpec]
    environ: Environ

    @classmethod
    def from_env(cls, environ: Environ) -> EngineSettings:
        return cls(stage=_required(environ, env.STAGE), lanes=_lanes(environ), environ=environ)

    def text(self, name: str) -> str:
        """A variable this function must have."""
        return _required(self.environ, name)

    def urls(self, name: str) -> Mapping[str, str]:
        """Lane → URL."""
        return {str(lane): str(url) for lane, url in _json(self.environ, name).items()}

    @property
    def period_s(self) -> int:
        """Seconds between two runs."""
        return int(_required(self.environ, env.PERIOD_S))


def _required(environ: Environ, name: str) -> str:
    value = environ.get(name)
    if not value:
        raise BadInput(name, "is not set in the function's environment")
    return value


def _json(environ: Environ, name: str) -> dict[str, Any]:
    try:
        value = json.loads(_required(environ, name))
    except json.JSONDecodeError:
        raise BadInput(name, "is not JSON") from None
    if not isinstance(value, dict):
        raise BadInput(name, "is not a JSON object")
    return value


def _lanes(environ: Environ) -> dict[str, LaneSpec]:
    entries = _json(environ, env.LANES).items()
    return {
        name: LaneSpec.from_mapping(name, {k: v for k, v in values.items() if k != "name"}) for name, values in entries
    }
