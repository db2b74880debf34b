"""The environment of each function: names from the contract, derived from what the function is granted.

It says what things are called and nothing of what they are: lanes, vendors and accounts stand in the package
(`infra.settings`), since an environment may have 4 KB, however many lanes there are.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from aws_cdk import Stack

from infra.arns import Arns
from infra.grants import GRANTS, Resource
from shared.contract import env, names
from shared.core.stage import StageSpec

TABLES: Mapping[Resource, tuple[str, str]] = {
    Resource.JOBS: (env.JOBS_TABLE, "jobs"),
    Resource.WAITING: (env.JOBS_TABLE, "jobs"),
    Resource.EFFECTS: (env.EFFECTS_TABLE, "effects"),
    Resource.CONTROL: (env.CONTROL_TABLE, "control"),
    Resource.LEDGER: (env.LEDGER_TABLE, "ledger"),
    Resource.HISTORY: (env.HISTORY_TABLE, "history"),
    Resource.PAYLOAD_ROWS: (env.CONTENT_TABLE, names.CONTENT_TABLE),
}
"""What is in a table: the variable and the table that the permission is about."""


def of(granted_as: str, arns: Arns) -> dict[str, str]:
    """What every function is told: its stage, its lane if it has one, and each thing that its code may use."""
    told = {env.STAGE: arns.stage.name}
    if arns.lane is not None:
        told[env.LANE] = arns.lane
    if reads_rows(granted_as):
        told[env.SETTINGS] = names.SETTINGS_FILE
    for grant in GRANTS[granted_as]:
        if not grant.by_platform:
            told |= _named(grant.on, arns)
    return told


def reads_rows(granted_as: str) -> bool:
    """True for a function that uses a table: it must know the lanes whose rows it finds there."""
    return any(grant.on in TABLES for grant in GRANTS[granted_as])


def of_schedule(schedule: str, period_s: int, stage: StageSpec) -> dict[str, str]:
    """What a scheduled function is told beside that: how often it runs, and its rule if it has one of its own."""
    told = {env.PERIOD_S: str(period_s)}
    rule = stage.schedule_rules.get(schedule)
    if rule is not None and rule.to_mapping():
        told[env.SCHEDULE_RULE] = json.dumps(rule.to_mapping(), separators=(",", ":"))
    return told


def _named(resource: Resource, arns: Arns) -> dict[str, str]:
    if resource in TABLES:
        variable, table = TABLES[resource]
        return {variable: names.table(arns.stage.name, table)}
    match resource:
        case Resource.CONTENT | Resource.PAYLOADS:
            return {env.CONTENT_BUCKET: content_bucket(arns.stage, arns.stack)}
        case Resource.LANE_QUEUES | Resource.DEAD_LETTERS:
            return {env.ACCOUNT_ID: arns.stack.account}
        case Resource.EVENT_BUS:
            return {env.EVENT_BUS: names.event_bus(arns.stage.name)}
        case Resource.SECRET if arns.secret_arn is not None:
            return {env.SECRET_ARN: arns.secret_arn}
    return {}


def content_bucket(stage: StageSpec, stack: Stack) -> str:
    """The bucket of the content store."""
    return names.bucket(stage.name, stack.account, stack.region)
