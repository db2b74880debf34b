"""Scheduled functions out of turn: a schedule fires once a minute at most, and who looks on does not wait for that."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

from ops.local.clients import Clients
from ops.local.errors import LocalStackError
from shared.contract import names, table
from shared.core.moment import iso, parse
from shared.usecases.run_slot import BY_HAND

TRIES = 3


def run_now(clients: Clients, stage: str, schedule: str) -> dict[str, Any]:
    """Run a scheduled function now; if its schedule was there first, the slot is made free for it."""
    for _ in range(TRIES):
        reply = clients.of("lambda").invoke(FunctionName=names.function(stage, schedule), Payload=b"{}")
        answer: dict[str, Any] = json.loads(reply["Payload"].read())
        if "FunctionError" in reply:
            raise LocalStackError(f"{schedule} failed: {answer.get('errorMessage')}")
        if answer["ran"]:
            return answer
        _free_slots(clients, stage, schedule)
    raise LocalStackError(f"{schedule} found its slot taken {TRIES} times")


def _free_slots(clients: Clients, stage: str, schedule: str) -> None:
    """What the last run counted stays, in front of its slot: the next run compares with it, as triage does."""
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
    last = next((item for item in found["Items"] if "finished_at" in item), None)
    if last is not None:
        dynamodb.put_item(TableName=ledger, Item={**last, "sk": {"S": _before(last["sk"]["S"], last["run_id"]["S"])}})


def _before(slot: str, run_id: str) -> str:
    """Where a run stands that a person started just before the slot."""
    return slot if BY_HAND in slot else f"{iso(parse(slot) - timedelta(milliseconds=1))}{BY_HAND}{run_id}"
