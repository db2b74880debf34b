"""The history table: written once, never changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shared.adapters import attributes, record_rows
from shared.adapters.aws import conditions
from shared.adapters.aws.errors import ConditionFalse, write_if
from shared.adapters.aws.pages import pages
from shared.adapters.meter import UNMETERED, Meter
from shared.contract import table
from shared.core.history import HistoryEvent

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

PORT = "history"


class DynamoDbHistory:
    """`History` on DynamoDB."""

    def __init__(self, *, client: DynamoDBClient, table_name: str, meter: Meter = UNMETERED) -> None:
        self._client, self._table, self._meter = client, table_name, meter

    def append(self, event: HistoryEvent) -> None:
        """Write once; the same event again is a no-op, and nothing written is ever replaced."""
        item = record_rows.history_item(event)
        answer = write_if(
            PORT,
            lambda: self._client.put_item(
                TableName=self._table,
                Item=item,
                ConditionExpression=conditions.NO_ROW_YET,
                ExpressionAttributeNames=conditions.names([table.PK]),
            ),
        )
        if isinstance(answer, ConditionFalse):
            self._meter.refused(PORT, "append", old=item)
        else:
            self._meter.write(PORT, "append", old=None, new=item)

    def of(self, subject: str, *, limit: int) -> list[HistoryEvent]:
        """The newest first."""
        found: list[HistoryEvent] = []
        for items in pages(
            PORT,
            lambda start: self._client.query(
                TableName=self._table,
                KeyConditionExpression="#pk = :pk",
                ExpressionAttributeNames=conditions.names([table.PK]),
                ExpressionAttributeValues={":pk": attributes.text(subject)},
                ScanIndexForward=False,
                ConsistentRead=True,
                Limit=limit,
                **start,
            ),
        ):
            self._meter.read(PORT, "of", items, consistent=True)
            found += map(record_rows.history_from_item, items)
            if len(found) >= limit:
                break
        return found[:limit]
