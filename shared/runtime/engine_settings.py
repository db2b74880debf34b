"""What an engine function is told by its environment and its package. Read once, in wiring."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shared.contract import env
from shared.core.errors import BadInput
from shared.core.lane import LaneSpec
from shared.runtime.settings import Environ, Settings, accounts_of, required, told_by


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSettings(Settings):
    """An engine function, which serves every lane."""

    rules: Mapping[str, Any]
    """How lanes are judged and steered: what of it differs from the defaults."""

    @classmethod
    def from_env(cls, environ: Environ) -> EngineSettings:
        told = told_by(environ)
        if not told.get("lanes"):
            raise BadInput(env.SETTINGS, "describes no lane")
        lanes = {name: LaneSpec.from_mapping(name, values) for name, values in told["lanes"].items()}
        return cls(
            stage=required(environ, env.STAGE),
            lanes=lanes,
            accounts=accounts_of(told, lanes),
            rules=told.get("rules", {}),
            environ=environ,
        )
