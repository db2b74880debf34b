"""Scheduled functions out of turn: a schedule fires once a minute at most, and who looks on does not wait for that."""

from __future__ import annotations

import json
from typing import Any

from ops.local.clients import Clients
from ops.local.errors import LocalStackError
from shared.contract import names, table

TRIES = 3


def run_now(clients: Clients, stage: str, schedule: str) -> dict[str, Any]:
    """Run a scheduled function now; the record of its slot is removed if its schedule was there first."""
    for _ in range(TRIES):
        reply = clients.of("lambda").invoke(FunctionName=names.function(stage, schedule), Payload=b"{}")
        answer: dict[str, Any] = json.loads(reply["Payload"].read())
        if "FunctionError" in reply:
            raise LocalStackError(f"{schedule} failed: {answer.get('errorMessage')}")
        if answer["ran"]:
            return answer
        _forget_slots(clients, stage, schedule)
    raise LocalStackError(f"{schedule} found its slot taken {TRIES} times")


def _forget_slots(clients: Clients, stage: str, schedule: str) -> None:
    dynamodb, ledger = clients.of("dynamodb"), names.table(stage, "ledger")
    found = dynamodb.query(
        TableName=ledger,
        KeyConditionExpression="pk = :pk",
        ExpressionAttributeValues={":pk": {"S": table.run_pk(schedule)}},
        ScanIndexForward=False,
        Limit=5,
    )
    for item in found["Items"]:
        dynamodb.delete_item(TableName=ledger, Key={"pk": item["pk"], "sk": item["sk"]})
