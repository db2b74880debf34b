"""The lanes, vendors, accounts and rules a stage was deployed with, as its parameters say."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from botocore.exceptions import ClientError

from shared.adapters.aws.clients import TRIES, client
from shared.contract import names, parts
from shared.core.account import AccountSpec
from shared.core.errors import BadInput, UnknownStage
from shared.core.governing import Rules
from shared.core.lane import LaneSpec
from shared.core.people import People
from shared.core.routing import Routing
from shared.core.vendor import VendorSpec


def deployed_lanes(stage: str, *, tries: int = TRIES) -> Mapping[str, LaneSpec]:
    """Every lane of the stage; a stage that was never deployed is named."""
    parameter = names.lanes_parameter(stage)
    told = _told(parameter, tries)
    if told is None:
        raise UnknownStage(f"{stage!r} has no parameter {parameter}: is it deployed in this account and region?")
    return {name: LaneSpec.from_mapping(name, values) for name, values in told.items()}


def deployed_vendors(stage: str) -> Mapping[str, VendorSpec] | None:
    """Every vendor of the stage; None for a stage that was deployed before its parameters told of them."""
    told = _told(names.vendors_parameter(stage))
    return None if told is None else {name: VendorSpec(**{**values, "name": name}) for name, values in told.items()}


def deployed_routing(stage: str) -> Mapping[str, Routing] | None:
    """What the events of the stage's lanes may be about, where they are told apart; None as for vendors."""
    told = _told(names.routing_parameter(stage))
    return (
        None
        if told is None
        else {name: Routing.from_mapping(f"lanes.{name}.routing", values) for name, values in told.items()}
    )


def deployed_accounts(stage: str) -> Mapping[str, AccountSpec]:
    """Every vendor account of the stage; one that was deployed before there were accounts has none."""
    told = _told(names.accounts_parameter(stage)) or {}
    return {name: AccountSpec(**{**values, "name": name}) for name, values in told.items()}


def deployed_rules(stage: str) -> Rules:
    """What the words mean in this stage, how caps move and what vendors charge; the defaults where nothing was told."""
    return Rules.from_mapping(_told(names.rules_parameter(stage)) or {})


def deployed_people(stage: str) -> People:
    """Whom AWS names for certain in this stage; free names only where the stage says so."""
    told: Mapping[str, object] = _told(names.people_parameter(stage)) or {}
    return People(
        roles=frozenset(names.role(stage, role) for role in names.ROLES),
        free_session_names=told.get(names.FREE_SESSION_NAMES) is True,
    )


def _told(parameter: str, tries: int = TRIES) -> dict[str, dict[str, Any]] | None:
    ssm = client("ssm", tries=tries)

    def value(name: str) -> str:
        return str(ssm.get_parameter(Name=name)["Parameter"]["Value"])

    for last in (False, True):
        try:
            first = value(parameter)
        except ClientError as exc:
            if _is_absent(exc):
                return None
            raise
        try:
            text = parts.whole(first, lambda number: value(names.parameter_part(parameter, number)))
        except (parts.NotWhole, ClientError) as exc:
            if isinstance(exc, ClientError) and not _is_absent(exc):
                raise
            if last:
                raise BadInput("stage", f"is being deployed: {parameter} is half written; ask again shortly") from exc
            continue
        told: dict[str, dict[str, Any]] = json.loads(text)
        return told
    raise AssertionError("the last try returned or raised")


def _is_absent(exc: ClientError) -> bool:
    return exc.response.get("Error", {}).get("Code") == "ParameterNotFound"
