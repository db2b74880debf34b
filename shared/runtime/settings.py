"""What each function is told: names by its environment, and lanes, vendors and accounts by a file in its package.

Read once, in wiring; what is missing is named.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shared.contract import env
from shared.core.account import AccountSpec
from shared.core.errors import BadInput
from shared.core.lane import LaneSpec
from shared.core.schedule import ScheduleRule
from shared.core.vendor import VendorSpec

Environ = Mapping[str, str]
PACKAGE = Path(__file__).resolve().parents[2]
"""The root of the function's package."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What every function with lanes is told. A name is asked for by whoever needs it."""

    stage: str
    lanes: Mapping[str, LaneSpec]
    accounts: Mapping[str, AccountSpec]
    """The vendor accounts of these lanes."""
    environ: Environ

    def text(self, name: str) -> str:
        """A variable this function must have."""
        return required(self.environ, name)

    @property
    def period_s(self) -> int:
        """Seconds between two runs."""
        return int(self.text(env.PERIOD_S))

    @property
    def schedule_rule(self) -> ScheduleRule:
        """What it does after a gap and beside a run that is still going."""
        told = json_object(env.SCHEDULE_RULE, self.environ.get(env.SCHEDULE_RULE) or "{}")
        return ScheduleRule.from_mapping("here", told)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings(Settings):
    """A function that works for one lane: its worker, or one that its schedules start."""

    lane: LaneSpec
    vendors: Mapping[str, VendorSpec]
    secret_arn: str | None

    @classmethod
    def from_env(cls, environ: Environ) -> WorkerSettings:
        told = told_by(environ)
        lane = lane_of(environ, told)
        return cls(
            stage=required(environ, env.STAGE),
            lane=lane,
            lanes={lane.name: lane},
            vendors={n: VendorSpec(**{"name": n, **v}) for n, v in told.get("vendors", {}).items()},
            accounts=accounts_of(told, {lane.name: lane}),
            secret_arn=environ.get(env.SECRET_ARN) or None,
            environ=environ,
        )


def required(environ: Environ, name: str) -> str:
    value = environ.get(name)
    if not value:
        raise BadInput(name, "is not set in the function's environment")
    return value


def told_by(environ: Environ) -> Mapping[str, Mapping[str, Any]]:
    """What stands in the package's settings: {lanes, vendors, accounts, rules}, each only where it is needed."""
    name = required(environ, env.SETTINGS)
    try:
        text = (PACKAGE / name).read_text(encoding="utf-8")
    except OSError:
        raise BadInput(env.SETTINGS, f"names {name}, which is not in the function's package") from None
    told = json_object(env.SETTINGS, text)
    for part, entries in told.items():
        if not isinstance(entries, dict):
            raise BadInput(env.SETTINGS, f"has {part} that is no table")
    return told


def json_object(name: str, text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        raise BadInput(name, "is not JSON") from None
    if not isinstance(value, dict):
        raise BadInput(name, "is not a JSON object")
    return value


def accounts_of(told: Mapping[str, Any], lanes: Mapping[str, LaneSpec]) -> dict[str, AccountSpec]:
    """The accounts these lanes spend."""
    known = told.get("accounts", {})
    accounts: dict[str, AccountSpec] = {}
    for name in sorted({name for lane in lanes.values() for name in lane.accounts}):
        if name not in known:
            raise BadInput(env.SETTINGS, f"does not describe account {name}")
        accounts[name] = AccountSpec(**{"name": name, **known[name]})
    return accounts


def lane_of(environ: Environ, told: Mapping[str, Any]) -> LaneSpec:
    """The one lane that the function works for."""
    name = required(environ, env.LANE)
    if name not in told.get("lanes", {}):
        raise BadInput(env.SETTINGS, f"does not describe lane {name}")
    return LaneSpec.from_mapping(name, told["lanes"][name])
