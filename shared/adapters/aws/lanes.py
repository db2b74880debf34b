"""The lanes, vendor accounts and rules a stage was deployed with, as its parameters say."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from botocore.exceptions import ClientError

from shared.adapters.aws.clients import TRIES, client
from shared.contract import names
from shared.core.account import AccountSpec
from shared.core.errors import BadInput
from shared.core.governing import Rules
from shared.core.lane import LaneSpec


def deployed_lanes(stage: str, *, tries: int = TRIES) -> Mapping[str, LaneSpec]:
    """Every lane of the stage; a stage that was never deployed is named."""
    parameter = names.lanes_parameter(stage)
    told = _told(parameter, tries)
    if told is None:
        raise BadInput("stage", f"{stage!r} has no parameter {parameter}: is it deployed?")
    return {name: LaneSpec.from_mapping(name, values) for name, values in told.items()}


def deployed_accounts(stage: str) -> Mapping[str, AccountSpec]:
    """Every vendor account of the stage; one that was deployed before there were accounts has none."""
    told = _told(names.accounts_parameter(stage)) or {}
    return {name: AccountSpec(**{**values, "name": name}) for name, values in told.items()}


def deployed_rules(stage: str) -> Rules:
    """What the words mean in this stage, how caps move and what vendors charge; the defaults where nothing was told."""
    return Rules.from_mapping(_told(names.rules_parameter(stage)) or {})


def _told(parameter: str, tries: int = TRIES) -> dict[str, dict[str, Any]] | None:
    try:
        text = client("ssm", tries=tries).get_parameter(Name=parameter)["Parameter"]["Value"]
    except ClientError as exc:
        if exc.response.get("Error", {}).get("Code") == "ParameterNotFound":
            return None
        raise
    told: dict[str, dict[str, Any]] = json.loads(text)
    return told
