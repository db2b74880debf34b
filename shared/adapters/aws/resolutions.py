"""Resolutions of unknown outcomes in the history table: one person asks, another confirms."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from shared.adapters import attributes, plan_rows
from shared.adapters.attributes import Item
from shared.adapters.aws import conditions
from shared.adapters.aws.errors import ConditionFalse, ask, write_if
from shared.adapters.meter import UNMETERED, Meter
from shared.contract import table
from shared.core.errors import ResolutionMoved
from shared.core.plan import Resolution

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

PORT = "resolutions"
REQUESTABLE = conditions.any_of(conditions.NO_ROW_YET, conditions.UNCONFIRMED)
CONFIRMABLE = conditions.all_of(
    conditions.SOMEBODY_ELSE,
    conditions.SAME_REQUESTER,
    conditions.UNCONFIRMED,
    conditions.SAME_MANIFEST,
    conditions.STILL_GOOD,
)


class DynamoDbResolutionStore:
    """`ResolutionStore` on DynamoDB."""

    def __init__(self, *, client: DynamoDBClient, table_name: str, meter: Meter = UNMETERED) -> None:
        self._client, self._table, self._meter = client, table_name, meter

    def request(self, resolution: Resolution) -> Resolution | None:
        """Write it in the place of any that nobody has confirmed. A resolution: a confirmed one stands there."""
        item = plan_rows.resolution_item(resolution)
        answer = self._write(
            "request",
            lambda: self._client.put_item(
                TableName=self._table,
                Item=item,
                ConditionExpression=REQUESTABLE,
                ExpressionAttributeNames=conditions.names([table.PK, "confirmer"]),
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            ),
            item,
        )
        return None if answer is None or answer.item is None else plan_rows.resolution_from_item(answer.item)

    def get(self, job_id: str, fence: int, only: str | None = None) -> Resolution | None:
        """What is asked for or confirmed about this failure of a job, or about one effect of it."""
        key = plan_rows.resolution_key(job_id, fence, only)
        answer = ask(PORT, lambda: self._client.get_item(TableName=self._table, Key=key, ConsistentRead=True))
        item = answer.get("Item")
        self._meter.read(PORT, "get", [item], consistent=True)
        return None if item is None else plan_rows.resolution_from_item(item)

    def confirm(self, resolution: Resolution, *, by: str, now: datetime, alone: bool) -> Resolution:
        """Say yes, if `by` did not ask for it and nothing has changed. Raises ResolutionMoved."""
        answer = self._write(
            "confirm",
            lambda: self._client.update_item(
                TableName=self._table,
                Key=plan_rows.resolution_key(resolution.job_id, resolution.fence, resolution.only),
                UpdateExpression="SET #confirmer = :me, #confirmed_at = :now",
                ConditionExpression=CONFIRMABLE,
                ExpressionAttributeNames=conditions.names(
                    ("confirmer", "confirmed_at", "requester", "count", "hash", "valid_until")
                ),
                ExpressionAttributeValues={
                    ":me": attributes.text(by),
                    ":asked_by": attributes.text(resolution.requester),
                    ":alone": attributes.whole(1 if alone else 0),
                    ":hash": attributes.text(resolution.hash),
                    ":now": attributes.time(now),
                },
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            ),
            None,
        )
        current = self.get(resolution.job_id, resolution.fence, resolution.only)
        if current is not None and current.confirmer == by and current.hash == resolution.hash:
            return current
        seen = None if answer is None or answer.item is None else plan_rows.resolution_from_item(answer.item)
        raise ResolutionMoved(resolution.job_id, seen or current)

    def _write(self, operation: str, call: Any, item: Item | None) -> ConditionFalse | None:
        answer = write_if(PORT, call)
        if isinstance(answer, ConditionFalse):
            self._meter.refused(PORT, operation, old=answer.item)
            return answer
        self._meter.write(PORT, operation, old=None, new=item or {})
        return None
