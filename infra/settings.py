"""What each function is told of lanes, vendors, accounts and rules: a file in its package, and the stage's parameters.

A package and its settings are one: a function never meets settings of another version, and a rollback of the alias
brings back both. Only what differs from the defaults is told.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from typing import Any

from shared.contract import names
from shared.core.lane import LaneSpec
from shared.core.stage import StageSpec

Told = dict[str, dict[str, Any]]


def of_engine(stage: StageSpec) -> Told:
    """Every lane, every account that a lane spends, and the rules. What a lane's events may be about, and where its
    jobs are executed, is not the engine's affair."""
    lanes = {name: replace(lane.for_engine, router=None).to_mapping() for name, lane in stage.lanes.items()}
    return _some(lanes=lanes, accounts=accounts(stage, stage.lanes.values()), rules=stage.governing)


def of_worker(lane: LaneSpec, stage: StageSpec) -> Told:
    """One lane with all of its settings, its vendors and its accounts."""
    return _some(
        lanes={lane.name: lane.to_mapping()},
        vendors=vendors(stage, lane.vendors),
        accounts=accounts(stage, [lane]),
    )


def of_intake(lane: LaneSpec) -> Told:
    """One lane, as everybody but its worker is told it."""
    return _some(lanes={lane.name: lane.for_engine.to_mapping()})


def of_tools(stage: StageSpec) -> Mapping[str, Mapping[str, Any]]:
    """Parameter → what it holds: everything, for producers and tools."""
    return {
        names.lanes_parameter(stage.name): {name: lane.for_engine.to_mapping() for name, lane in stage.lanes.items()},
        names.routing_parameter(stage.name): {
            name: lane.routing.to_mapping() for name, lane in stage.lanes.items() if lane.routing is not None
        },
        names.vendors_parameter(stage.name): vendors(stage, stage.vendors),
        names.accounts_parameter(stage.name): {one.name: one.to_mapping() for one in stage.accounts.values()},
        names.rules_parameter(stage.name): stage.governing,
        names.people_parameter(stage.name): {names.FREE_SESSION_NAMES: stage.free_session_names},
    }


def accounts(stage: StageSpec, lanes: Iterable[LaneSpec]) -> dict[str, Any]:
    """The accounts these lanes spend: everybody who asks an account is told the same limits."""
    return {name: stage.accounts[name].to_mapping() for lane in lanes for name in lane.accounts}


def vendors(stage: StageSpec, named: Iterable[str]) -> dict[str, Any]:
    """Addresses and declared abilities, never a secret."""
    chosen = {name: asdict(stage.vendors[name]) for name in named}
    return {name: {k: v for k, v in told.items() if k != "name"} for name, told in chosen.items()}


def text(told: Mapping[str, Any]) -> str:
    """As it is written: ASCII, nothing between."""
    return json.dumps(told, separators=(",", ":"))


def _some(**parts: dict[str, Any]) -> Told:
    return {name: entries for name, entries in parts.items() if entries}
