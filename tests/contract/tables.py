"""The tables, queues and bucket of a stage, in the shape infra deploys them, made by plain calls."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable, Mapping
from typing import Any

from shared.contract import names, table

SORTED = ("effects", "ledger", "history")
"""Tables with a sort key."""


def table_shape(stage: str, name: str) -> dict[str, Any]:
    """The arguments of CreateTable for one of a stage's tables."""
    keys = [table.PK, table.SK] if name in SORTED else [table.PK]
    shape: dict[str, Any] = {
        "TableName": names.table(stage, name),
        "BillingMode": "PAY_PER_REQUEST",
        "KeySchema": _schema(keys),
    }
    if name == "jobs":
        keys += [table.WAITING_PK, table.WAITING_SK]
        shape["GlobalSecondaryIndexes"] = [
            {
                "IndexName": names.WAITING_INDEX,
                "KeySchema": _schema([table.WAITING_PK, table.WAITING_SK]),
                "Projection": {"ProjectionType": "KEYS_ONLY"},
            }
        ]
        shape["StreamSpecification"] = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
    shape["AttributeDefinitions"] = [{"AttributeName": key, "AttributeType": "S"} for key in keys]
    return shape


def create_tables(
    client: Any, stage: str, only: Iterable[str] = (*names.TABLES, names.CONTENT_TABLE), *, expires: bool = True
) -> None:
    """Create a stage's tables, with their expiry where it is wanted, and wait until they are there."""
    for name in only:
        client.create_table(**table_shape(stage, name))
    for name in only:
        client.get_waiter("table_exists").wait(
            TableName=names.table(stage, name), WaiterConfig={"Delay": 1, "MaxAttempts": 30}
        )
        if expires and name not in ("control", "history"):
            client.update_time_to_live(
                TableName=names.table(stage, name),
                TimeToLiveSpecification={"Enabled": True, "AttributeName": table.TTL},
            )


def create_queues(client: Any, stage: str, lanes: Iterable[str]) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Create each lane's queue and dead-letter queue; their URLs by lane."""
    queues, dead = {}, {}
    for lane in lanes:
        queues[lane] = client.create_queue(QueueName=names.queue(stage, lane))["QueueUrl"]
        dead[lane] = client.create_queue(QueueName=names.dead_letter_queue(stage, lane))["QueueUrl"]
    return queues, dead


def create_source(clients: Any, stage: str, lane: str, url: str) -> None:
    """Create a lane's worker with its alias, fed by its queue with a cap of 2. Nothing of it ever runs."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as package:
        package.writestr("handler.py", "handler = print")
    name = names.function(stage, names.worker(lane))
    role = clients.iam.create_role(RoleName=name, AssumeRolePolicyDocument="{}")["Role"]["Arn"]
    clients.lambda_.create_function(
        FunctionName=name,
        Runtime="python3.13",
        Role=role,
        Handler="handler.handler",
        Code={"ZipFile": archive.getvalue()},
        Publish=True,
    )
    clients.lambda_.create_alias(FunctionName=name, Name=names.LIVE, FunctionVersion="1")
    attributes = clients.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]
    clients.lambda_.create_event_source_mapping(
        EventSourceArn=attributes["QueueArn"],
        FunctionName=f"{name}:{names.LIVE}",
        ScalingConfig={"MaximumConcurrency": 2},
    )


def _schema(keys: list[str]) -> list[dict[str, str]]:
    return [{"AttributeName": key, "KeyType": kind} for key, kind in zip(keys, ("HASH", "RANGE"), strict=False)]
