"""Batches in the ledger table: those under way under one prefix, those that ended under another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from shared.adapters import attributes, batch_rows
from shared.adapters.attributes import Item
from shared.adapters.aws import conditions
from shared.adapters.aws.errors import ConditionFalse, ask, write_if
from shared.adapters.aws.pages import pages
from shared.adapters.meter import UNMETERED, Meter
from shared.contract import table
from shared.core.batch import Batch, BatchState, Member
from shared.core.errors import BatchMoved

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

PORT = "batches"


class DynamoDbBatchStore:
    """`BatchStore` on DynamoDB."""

    def __init__(self, *, client: DynamoDBClient, table_name: str, meter: Meter = UNMETERED) -> None:
        self._client, self._table, self._meter = client, table_name, meter

    def intend(self, batch: Batch, members: Sequence[Member]) -> Batch | None:
        """The members first: a batch that can be found is whole."""
        for part in batch_rows.member_items(batch, members):
            self._put_once(part)
        item = batch_rows.batch_item(batch)
        present = self._put_once(item)
        return None if present is None or present == item else batch_rows.batch_from_item(present)

    def members(self, tag: str) -> tuple[Member, ...]:
        """Who is in it, in its order."""
        return batch_rows.members_from_items(self._under("members", table.members_pk(tag), table.MANIFEST))

    def move(self, before: Batch, after: Batch) -> None:
        """Write `after` if the row still has `before`'s state.

        A batch that ends is remembered first and marked then: a crash in between leaves it under way, and whoever looks
        ends it again.
        """
        wanted = batch_rows.batch_item(after)
        if after.state is BatchState.ENDED:
            self._put(batch_rows.ended_item(after))
        answer = write_if(
            PORT,
            lambda: self._client.put_item(
                TableName=self._table,
                Item=wanted,
                ConditionExpression=conditions.SAME_BATCH_STATE,
                ExpressionAttributeNames=conditions.names(["state"]),
                ExpressionAttributeValues={":was": attributes.text(before.state.value)},
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            ),
        )
        if not isinstance(answer, ConditionFalse):
            self._meter.write(PORT, "move", old=None, new=wanted)
            return
        self._meter.refused(PORT, "move", old=answer.item)
        if answer.item != wanted:
            raise BatchMoved(before.tag, None if answer.item is None else batch_rows.batch_from_item(answer.item))

    def under_way(self, lane: str, *, run_id: str = "", readable: bool = False) -> list[Batch]:
        """Batches that have not ended, oldest first (a consistent read). Raises UnreadableRow unless told otherwise."""
        items = self._under("under_way", table.batch_pk(lane), table.OPEN_BATCH)
        return batch_rows.under_way(items, run_id=run_id, readable=readable)

    def ended(self, lane: str, *, limit: int) -> list[Batch]:
        """Those that have ended, the one that was begun last first."""
        items = self._under("ended", table.batch_pk(lane), table.ENDED_BATCH, newest=limit)
        return [batch_rows.batch_from_item(item) for item in items]

    def _put(self, item: Item) -> None:
        ask(PORT, lambda: self._client.put_item(TableName=self._table, Item=item))
        self._meter.write(PORT, "move", old=None, new=item)

    def _put_once(self, item: Item) -> Item | None:
        """None: written. An item: it stood there before."""
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
        if isinstance(answer, ConditionFalse):
            self._meter.refused(PORT, "intend", old=answer.item)
            return answer.item
        self._meter.write(PORT, "intend", old=None, new=item)
        return None

    def _under(self, operation: str, pk: str, prefix: str, *, newest: int | None = None) -> list[Item]:
        found: list[Item] = []
        limit: dict[str, Any] = {} if newest is None else {"Limit": newest, "ScanIndexForward": False}
        for items in pages(
            PORT,
            lambda start: self._client.query(
                TableName=self._table,
                KeyConditionExpression="#pk = :pk AND begins_with(#sk, :prefix)",
                ExpressionAttributeNames=conditions.names([table.PK, table.SK]),
                ExpressionAttributeValues={":pk": attributes.text(pk), ":prefix": attributes.text(prefix)},
                ConsistentRead=True,
                **limit,
                **start,
            ),
        ):
            self._meter.read(PORT, operation, items, consistent=True)
            found += items
            if newest is not None and len(found) >= newest:
                return found[:newest]
        return found
