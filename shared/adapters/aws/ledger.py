"""The ledger table: one row per schedule and slot."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shared.adapters import attributes, record_rows
from shared.adapters.aws import conditions
from shared.adapters.aws.errors import ConditionFalse, write_if
from shared.adapters.aws.pages import pages
from shared.adapters.meter import UNMETERED, Meter
from shared.contract import table
from shared.core.schedule import RunRecord

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

PORT = "ledger"


class DynamoDbLedger:
    """`Ledger` on DynamoDB."""

    def __init__(self, *, client: DynamoDBClient, table_name: str, meter: Meter = UNMETERED) -> None:
        self._client, self._table, self._meter = client, table_name, meter

    def open_run(self, run: RunRecord) -> bool:
        """True for the first to open this slot (asking again with the same run_id is still True)."""
        item = record_rows.run_item(run)
        answer = write_if(
            PORT,
            lambda: self._client.put_item(
                TableName=self._table,
                Item=item,
                ConditionExpression=conditions.NO_ROW_YET,
                ExpressionAttributeNames=conditions.names([table.PK]),
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            ),
        )
        if not isinstance(answer, ConditionFalse):
            self._meter.write(PORT, "open_run", old=None, new=item)
            return True
        self._meter.refused(PORT, "open_run", old=answer.item)
        return answer.item is not None and answer.item.get("run_id") == attributes.text(run.run_id)

    def close_run(self, run: RunRecord) -> None:
        """Write the counts of a run this caller opened; a slot that belongs to another run is left as it is."""
        item = record_rows.run_item(run)
        told = [name for name in ("finished_at", "counts") if name in item]
        if not told:
            return
        answer = write_if(
            PORT,
            lambda: self._client.update_item(
                TableName=self._table,
                Key={name: item[name] for name in (table.PK, table.SK)},
                UpdateExpression="SET " + ", ".join(f"#{name} = :{name}" for name in told),
                ConditionExpression=conditions.SAME_RUN,
                ExpressionAttributeNames=conditions.names([*told, "run_id"]),
                ExpressionAttributeValues={f":{name}": item[name] for name in (*told, "run_id")},
            ),
        )
        if isinstance(answer, ConditionFalse):
            self._meter.refused(PORT, "close_run", old=None)
        else:
            self._meter.write(PORT, "close_run", old=None, new=item)

    def runs(self, schedule: str, *, limit: int) -> list[RunRecord]:
        """The newest runs first."""
        found: list[RunRecord] = []
        for items in pages(
            PORT,
            lambda start: self._client.query(
                TableName=self._table,
                KeyConditionExpression="#pk = :pk",
                ExpressionAttributeNames=conditions.names([table.PK]),
                ExpressionAttributeValues={":pk": attributes.text(table.run_pk(schedule))},
                ScanIndexForward=False,
                ConsistentRead=True,
                Limit=limit,
                **start,
            ),
        ):
            self._meter.read(PORT, "runs", items, consistent=True)
            found += map(record_rows.run_from_item, items)
            if len(found) >= limit:
                break
        return found[:limit]
