"""What each function is told by its environment. Read once, in wiring; a missing variable is named."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shared.contract import env
from shared.core.account import AccountSpec
from shared.core.errors import BadInput
from shared.core.lane import LaneSpec
from shared.core.vendor import VendorSpec

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
    accounts: Mapping[str, AccountSpec]
    ledger_table: str
    secret_arn: str | None

    @classmethod
    def from_env(cls, environ: Environ) -> WorkerSettings:
        lanes = lanes_of(environ)
        name = required(environ, env.LANE)
        if name not in lanes:
            raise BadInput(env.LANES, f"does not describe lane {name}")
        return cls(
            stage=required(environ, env.STAGE),
            lane=lanes[name],
            jobs_table=required(environ, env.JOBS_TABLE),
            effects_table=required(environ, env.EFFECTS_TABLE),
            control_table=required(environ, env.CONTROL_TABLE),
            content_bucket=required(environ, env.CONTENT_BUCKET),
            vendors={n: VendorSpec(**{"name": n, **v}) for n, v in json_object(environ, env.VENDORS).items()},
            accounts=accounts_of(environ, {name: lanes[name]}),
            ledger_table=required(environ, env.LEDGER_TABLE),
            secret_arn=environ.get(env.SECRET_ARN) or None,
        )


def required(environ: Environ, name: str) -> str:
    value = environ.get(name)
    if not value:
        raise BadInput(name, "is not set in the function's environment")
    return value


def json_object(environ: Environ, name: str) -> dict[str, Any]:
    try:
        value = json.loads(required(environ, name))
    except json.JSONDecodeError:
        raise BadInput(name, "is not JSON") from None
    if not isinstance(value, dict):
        raise BadInput(name, "is not a JSON object")
    return value


def accounts_of(environ: Environ, lanes: Mapping[str, LaneSpec]) -> dict[str, AccountSpec]:
    """The accounts these lanes spend."""
    told = json_object(environ, env.ACCOUNTS) if env.ACCOUNTS in environ else {}
    accounts: dict[str, AccountSpec] = {}
    for name in sorted({name for lane in lanes.values() for name in lane.accounts}):
        if name not in told:
            raise BadInput(env.ACCOUNTS, f"does not describe account {name}")
        accounts[name] = AccountSpec(**{"name": name, **told[name]})
    return accounts


def lanes_of(environ: Environ) -> dict[str, LaneSpec]:
    entries = json_object(environ, env.LANES).items()
    return {
        name: LaneSpec.from_mapping(name, {k: v for k, v in values.items() if k != "name"}) for name, values in entries
    }
