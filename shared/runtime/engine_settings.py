"""What an engine function is told by its environment. Read once, in wiring; a missing variable is named."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from shared.contract import env
from shared.core.account import AccountSpec
from shared.core.lane import LaneSpec
from shared.core.schedule import ScheduleRule
from shared.runtime.settings import Environ, accounts_of, json_object, lanes_of, required


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSettings:
    """An engine function. Each is given, and asks for, only what its work needs."""

    stage: str
    lanes: Mapping[str, LaneSpec]
    environ: Environ

    @classmethod
    def from_env(cls, environ: Environ) -> EngineSettings:
        return cls(stage=required(environ, env.STAGE), lanes=lanes_of(environ), environ=environ)

    def text(self, name: str) -> str:
        """A variable this function must have."""
        return required(self.environ, name)

    def urls(self, name: str) -> Mapping[str, str]:
        """Lane → URL."""
        return {str(lane): str(url) for lane, url in json_object(self.environ, name).items()}

    @property
    def accounts(self) -> Mapping[str, AccountSpec]:
        """The vendor accounts of its lanes."""
        return accounts_of(self.environ, self.lanes)

    @property
    def period_s(self) -> int:
        """Seconds between two runs."""
        return int(required(self.environ, env.PERIOD_S))

    @property
    def schedule_rule(self) -> ScheduleRule:
        """What it does after a gap and beside a run that is still going."""
        told = json_object(self.environ, env.SCHEDULE_RULE) if self.environ.get(env.SCHEDULE_RULE) else {}
        return ScheduleRule.from_mapping("here", told)
