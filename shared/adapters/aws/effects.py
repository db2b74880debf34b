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
from shared.core.effects import EffectRow, EffectState, with_acceptance
from shared.core.errors import EffectMoved

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

PORT = "effects"

KEPT_FROM_THE_FIRST = ("first_intent_at", table.TTL)
"""An intent after a refusal keeps the first one's time: the vendor's window and our expiry count from there."""
BEGUN = ("effect_id", "vendor", "fingerprint", "customer_visible", "state", "fence", "intent_at", *KEPT_FROM_THE_FIRST)
RESULT = ("recorded_at", "vendor_id", "reason")
BEGIN_ANEW = conditions.all_of(conditions.REFUSED_BEFORE, conditions.SAME_VENDOR, conditions.SAME_EFFECT)
NOT_BEGUN = conditions.any_of(conditions.NO_ROW_YET, BEGIN_ANEW)
STILL_OPEN = conditions.all_of(conditions.NO_RESULT_YET, conditions.SAME_FENCE)


class DynamoDbEffectStore:
    """`EffectStore` on DynamoDB."""

    def __init__(self, *, client: DynamoDBClient, table_name: str, meter: Meter = UNMETERED) -> None:
        self._client, self._table, self._meter = client, table_name, meter

    def intend(self, row: EffectRow) -> EffectRow | None:
        """Write the intent if there is no row or it was refused. None: it is yours. A row: what stands there."""
        item = rows.effect_item(row)
        begun = [name for name in BEGUN if name in item]
        values = {f":{name}": item[name] for name in begun}
        values |= {":refused": attributes.text(EffectState.REFUSED.value)}
        values |= {":fingerprint": attributes.text(row.fingerprint)}
        gone = (*RESULT, "taken_over")
        written = self._update(
            "intend",
            row,
            f"SET {', '.join(map(_begun, begun))} REMOVE {', '.join(f'#{name}' for name in gone)}",
            NOT_BEGUN,
            (*BEGUN, *gone, table.PK),
            values,
        )
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

    def accept(self, acceptance: EffectRow) -> EffectRow:
        """Write that the vendor took it, over or beside whatever stands there; the row as it stands then."""
        item = rows.effect_item(acceptance)
        told = [name for name in ("state", "recorded_at", "vendor_id") if name in item]
        values = {f":new_{name}": item[name] for name in told}
        for state in (EffectState.INTENT, EffectState.REFUSED):
            values[f":{state.value}"] = attributes.text(state.value)
        written = self._update(
            "accept",
            acceptance,
            "SET " + ", ".join(f"#{name} = :new_{name}" for name in told) + " REMOVE #taken_over",
            conditions.NOT_ACCEPTED_YET,
            (*told, "taken_over"),
            values,
            read_back=True,
        )
        if not isinstance(written, ConditionFalse):
            return rows.effect_from_item(written)
        current = self._found(acceptance, written)
        after = with_acceptance(current, acceptance)
        return after if after == current else self._beside(current, after)

    def _beside(self, current: EffectRow, after: EffectRow) -> EffectRow:
        """One more id for an effect that is accepted already."""
        values: Item = {":accepted": attributes.text(EffectState.ACCEPTED.value)}
        if after.also_accepted != current.also_accepted:
            # An addition to a set: whoever adds another id at the same time is not overwritten.
            update, condition, used = "ADD #also_accepted :ids", conditions.ACCEPTED_BEFORE, "also_accepted"
            values[":ids"] = attributes.text_set(set(after.also_accepted) - set(current.also_accepted))
        else:
            update, used = "SET #vendor_id = :new_vendor_id", "vendor_id"
            same = conditions.NO_VENDOR_ID if current.vendor_id is None else conditions.SAME_VENDOR_ID
            condition = conditions.all_of(conditions.ACCEPTED_BEFORE, same)
            values[":new_vendor_id"] = attributes.text(after.vendor_id or "")
            if current.vendor_id is not None:
                values[":seen"] = attributes.text(current.vendor_id)
        written = self._update("accept", after, update, condition, ("state", used), values, read_back=True)
        if isinstance(written, ConditionFalse):
            # Somebody else has named it meanwhile: look at that once more.
            return self.accept(after)
        return rows.effect_from_item(written)

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


def _begun(name: str) -> str:
    """The part of an intent's update that sets one attribute."""
    if name in KEPT_FROM_THE_FIRST:
        return f"#{name} = if_not_exists(#{name}, :{name})"
    return f"#{name} = :{name}"
