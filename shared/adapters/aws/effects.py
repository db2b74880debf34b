"""The effects table: one row per effect, written three times at most, deleted by nobody."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from shared.adapters import attributes, rows
from shared.adapters.attributes import Item
from shared.adapters.aws import conditions
from shared.adapters.aws.errors import ConditionFalse, write_if
from shared.adapters.aws.pages import pages
from shared.adapters.meter import UNMETERED, Meter
from shared.contract import table
from shared.core.effects import EffectRow, EffectState
from shared.core.errors import EffectMoved

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

PORT = "effects"

BEGIN = (
    "SET #effect_id = :effect_id, #vendor = :vendor, #state = :state, #fence = :fence,"
    " #intent_at = :intent_at, #first_intent_at = if_not_exists(#first_intent_at, :first_intent_at),"
    " #expires_at = if_not_exists(#expires_at, :expires_at)"
    " REMOVE #recorded_at, #vendor_id, #reason, #taken_over"
)
"""An intent after a refusal keeps the first one's time: the vendor's window and our expiry count from there."""
BEGUN = ("effect_id", "vendor", "state", "fence", "intent_at", "first_intent_at", table.TTL)
RESULT = ("recorded_at", "vendor_id", "reason")
NOT_BEGUN = conditions.any_of(conditions.NO_ROW_YET, conditions.REFUSED_BEFORE)
STILL_OPEN = conditions.all_of(conditions.NO_RESULT_YET, conditions.SAME_FENCE)


class DynamoDbEffectStore:
    """`EffectStore` on DynamoDB."""

    def __init__(self, *, client: DynamoDBClient, table_name: str, meter: Meter = UNMETERED) -> None:
        self._client, self._table, self._meter = client, table_name, meter

    def intend(self, row: EffectRow) -> EffectRow | None:
        """Write the intent if there is no row or it was refused. None: it is yours. A row: what stands there."""
        item = rows.effect_item(row)
        values = {f":{name}": item[name] for name in BEGUN}
        values[":refused"] = attributes.text(EffectState.REFUSED.value)
        written = self._update("intend", row, BEGIN, NOT_BEGUN, (*BEGUN, *RESULT, "taken_over", table.PK), values)
        if not isinstance(written, ConditionFalse):
            return None
        current = self._found(row, written)
        mine = current.open and current.fence == row.fence and current.intent_at == row.intent_at
        return None if mine else current

    def take_over(self, row: EffectRow, *, fence: int, now: datetime) -> EffectRow:
        """Put `fence` on an open intent, if it is still as read, and return it. Raises EffectMoved."""
        written = self._update(
            "take_over",
            row,
            "SET #fence = :new_fence, #intent_at = :now, #taken_over = :yes",
            conditions.all_of(STILL_OPEN, conditions.SAME_INTENT_TIME),
            ("state", "fence", "intent_at", "taken_over"),
            {
                ":intent": attributes.text(EffectState.INTENT.value),
                ":fence": attributes.whole(row.fence),
                ":intent_at": attributes.time(row.intent_at),
                ":new_fence": attributes.whole(fence),
                ":now": attributes.time(now),
                ":yes": {"BOOL": True},
            },
            read_back=True,
        )
        if not isinstance(written, ConditionFalse):
            return rows.effect_from_item(written)
        current = self._found(row, written)
        if current.open and current.taken_over and current.fence == fence:
            # Our fence is on it already: an earlier try was applied and its reply lost.
            return current
        raise EffectMoved(row.effect_id, current)

    def record(self, row: EffectRow, result: EffectRow) -> None:
        """Write the result if the row has `row`'s fence and no result yet. Raises EffectMoved."""
        item = rows.effect_item(result)
        told = ("state", *(name for name in RESULT if name in item))
        values = {f":new_{name}": item[name] for name in told}
        values[":intent"] = attributes.text(EffectState.INTENT.value)
        values[":fence"] = attributes.whole(row.fence)
        written = self._update(
            "record",
            row,
            "SET " + ", ".join(f"#{name} = :new_{name}" for name in told),
            STILL_OPEN,
            (*told, "fence"),
            values,
        )
        if not isinstance(written, ConditionFalse):
            return
        current = self._found(row, written)
        same = current.state is result.state and current.vendor_id == result.vendor_id
        if not (same and current.fence == row.fence):
            raise EffectMoved(row.effect_id, current)

    def of_job(self, job_id: str) -> list[EffectRow]:
        """Every effect of a job (a consistent read)."""
        found: list[EffectRow] = []
        for items in pages(
            PORT,
            lambda start: self._client.query(
                TableName=self._table,
                KeyConditionExpression="#pk = :pk AND begins_with(#sk, :effect)",
                ExpressionAttributeNames=conditions.names([table.PK, table.SK]),
                ExpressionAttributeValues={
                    ":pk": attributes.text(table.job_pk(job_id)),
                    ":effect": attributes.text(table.effect_sk("")),
                },
                ConsistentRead=True,
                **start,
            ),
        ):
            self._meter.read(PORT, "of_job", items, consistent=True)
            found += map(rows.effect_from_item, items)
        return found

    def _update(
        self,
        operation: str,
        row: EffectRow,
        update: str,
        condition: str,
        used: tuple[str, ...],
        values: Item,
        *,
        read_back: bool = False,
    ) -> Item | ConditionFalse:
        """One conditional update; the row after it, if it is asked for."""
        answer = write_if(
            PORT,
            lambda: self._client.update_item(
                TableName=self._table,
                Key={
                    table.PK: attributes.text(table.job_pk(row.job_id)),
                    table.SK: attributes.text(table.effect_sk(row.name)),
                },
                UpdateExpression=update,
                ConditionExpression=condition,
                ExpressionAttributeNames=conditions.names(used),
                ExpressionAttributeValues=values,
                ReturnValues="ALL_NEW" if read_back or self._meter.counts else "NONE",
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            ),
        )
        if isinstance(answer, ConditionFalse):
            self._meter.refused(PORT, operation, old=answer.item)
            return answer
        item: Item = answer.get("Attributes", {})
        self._meter.write(PORT, operation, old=None, new=item)
        return item

    def _found(self, row: EffectRow, answer: ConditionFalse) -> EffectRow:
        if answer.item is None:
            raise EffectMoved(row.effect_id, None)
        return rows.effect_from_item(answer.item)
