"""The environment of each function: names from the contract, values from the stage. Nothing else is set."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from typing import Any

from aws_cdk import Stack

from shared.contract import env, names
from shared.core.account import AccountSpec
from shared.core.lane import LaneSpec
from shared.core.stage import StageSpec

TABLE_VARIABLES = {
    "jobs": env.JOBS_TABLE,
    "effects": env.EFFECTS_TABLE,
    "control": env.CONTROL_TABLE,
    "ledger": env.LEDGER_TABLE,
    "history": env.HISTORY_TABLE,
}

ENGINE_TABLES = {
    "stream": ("jobs", "control", "ledger"),
    "dispatcher": ("jobs", "control", "ledger"),
    "sweeper": ("jobs", "effects", "ledger"),
    "triage": ("jobs", "effects", "ledger"),
    "auditor": ("jobs", "effects", "ledger"),
    "redriver": ("jobs", "control", "ledger", "history"),
    "governor": ("jobs", "control", "ledger", "history"),
}
PUBLISHES = ("feed",)
ASKS_ACCOUNTS = ("stream", "dispatcher", "redriver", "governor")
SEES_LANE_QUEUES = ("stream", "dispatcher", "auditor", "redriver", "governor")
USES_DEAD_LETTERS = ("stream", "triage", "auditor", "sweeper", "redriver", "governor")
GOVERNS = ("governor",)
WRITES_CONTENT = ("triage",)


def of_engine(function: str, stage: StageSpec, stack: Stack) -> dict[str, str]:
    """What an engine function is told."""
    if function in PUBLISHES:
        return {env.STAGE: stage.name, env.EVENT_BUS: names.event_bus(stage.name)}
    told = {env.STAGE: stage.name, env.LANES: lanes_json(stage.lanes.values())}
    told |= tables(stage, ENGINE_TABLES[function])
    if function in ASKS_ACCOUNTS:
        told |= accounts(stage, stage.lanes.values())
    if function in SEES_LANE_QUEUES:
        told[env.QUEUE_URLS] = queue_urls(stage, stack)
    if function in USES_DEAD_LETTERS:
        told[env.DLQ_URLS] = queue_urls(stage, stack, dead_letters=True)
    if function in WRITES_CONTENT:
        told[env.CONTENT_BUCKET] = content_bucket(stage, stack)
    if function in GOVERNS and stage.governing:
        told[env.GOVERNING] = rules_json(stage)
    if function in names.SCHEDULED:
        told[env.PERIOD_S] = str(getattr(stage.schedules, function))
        rule = stage.schedule_rules.get(function)
        if rule is not None and rule.to_mapping():
            told[env.SCHEDULE_RULE] = _json(rule.to_mapping())
    return told


def of_worker(lane: LaneSpec, stage: StageSpec, stack: Stack, *, secret_arn: str | None) -> dict[str, str]:
    """What a lane's worker is told: its own lane, its own vendors, its one secret."""
    told = {
        env.STAGE: stage.name,
        env.LANE: lane.name,
        env.LANES: _json({lane.name: lane.to_mapping()}),
        env.CONTENT_BUCKET: content_bucket(stage, stack),
        env.VENDORS: vendors_json(lane, stage),
    }
    told |= tables(stage, ("jobs", "effects", "control", "ledger"))
    told |= accounts(stage, [lane])
    if secret_arn is not None:
        told[env.SECRET_ARN] = secret_arn
    return told


def of_run(lane: LaneSpec, role: str, stage: StageSpec, stack: Stack, *, secret_arn: str | None) -> dict[str, str]:
    """What a lane's scheduled function is told: what a worker is, and how often it runs."""
    told = of_worker(lane, stage, stack, secret_arn=secret_arn)
    told[env.PERIOD_S] = str(lane.runs[role])
    rule = stage.schedule_rules.get(names.run(lane.name, role))
    if rule is not None and rule.to_mapping():
        told[env.SCHEDULE_RULE] = _json(rule.to_mapping())
    return told


def of_intake(lane: LaneSpec, stage: StageSpec, stack: Stack, *, secret_arn: str) -> dict[str, str]:
    """What a lane's intake is told: where a job goes, and where the keys of its senders are."""
    return {
        env.STAGE: stage.name,
        env.LANE: lane.name,
        env.LANES: lanes_json([lane]),
        env.CONTENT_BUCKET: content_bucket(stage, stack),
        env.SECRET_ARN: secret_arn,
        **tables(stage, ("jobs",)),
    }


def tables(stage: StageSpec, wanted: Iterable[str]) -> dict[str, str]:
    """The names of the tables a function may use."""
    return {TABLE_VARIABLES[name]: names.table(stage.name, name) for name in wanted}


def lanes_json(lanes: Iterable[LaneSpec]) -> str:
    """Only what differs from the defaults: a function's whole environment may have 4 KB. What a lane's events may be
    about is its worker's affair."""
    return _json({lane.name: replace(lane.for_engine, router=None).to_mapping() for lane in lanes})


def producers_json(lanes: Iterable[LaneSpec]) -> str:
    """The same for whoever enqueues: where a job is executed is decided there."""
    return _json({lane.name: lane.for_engine.to_mapping() for lane in lanes})


def accounts(stage: StageSpec, lanes: Iterable[LaneSpec]) -> dict[str, str]:
    """The accounts these lanes spend: everybody who asks an account is told the same limits."""
    spent = {name: stage.accounts[name] for lane in lanes for name in lane.accounts}
    return {env.ACCOUNTS: accounts_json(spent.values())} if spent else {}


def accounts_json(accounts: Iterable[AccountSpec]) -> str:
    """Each account's limits, only what differs from the defaults."""
    return _json({account.name: account.to_mapping() for account in accounts})


def rules_json(stage: StageSpec) -> str:
    """What of the rules for judging and steering differs from the defaults: governor and tools are told alike."""
    return _json(stage.governing)


def vendors_json(lane: LaneSpec, stage: StageSpec) -> str:
    """Addresses and declared abilities of the lane's vendors, never a secret."""
    chosen = {vendor: asdict(stage.vendors[vendor]) for vendor in lane.vendors}
    return _json({vendor: {k: v for k, v in told.items() if k != "name"} for vendor, told in chosen.items()})


def queue_urls(stage: StageSpec, stack: Stack, *, dead_letters: bool = False) -> str:
    """lane → address. Put together from the queue's name, so no stack holds on to another."""
    name_of = names.dead_letter_queue if dead_letters else names.queue
    host = f"https://sqs.{stack.region}.{stack.url_suffix}/{stack.account}"
    having = [name for name, lane in stage.lanes.items() if dead_letters or lane.run is None]
    return _json({lane: f"{host}/{name_of(stage.name, lane)}" for lane in having})


def content_bucket(stage: StageSpec, stack: Stack) -> str:
    """The bucket of the content store."""
    return names.bucket(stage.name, stack.account, stack.region)


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, separators=(",", ":"))
