"""Redrive plans in the history table: two pairs of eyes are a condition of the write, not a habit."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from shared.adapters import attributes, plan_rows
from shared.adapters.attributes import Item
from shared.adapters.aws import conditions
from shared.adapters.aws.errors import ConditionFalse, ask, write_if
from shared.adapters.aws.pages import pages
from shared.adapters.meter import UNMETERED, Meter
from shared.contract import table
from shared.core.errors import PlanMoved, Unavailable
from shared.core.plan import Entry, Plan, PlanState, Step

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mypy_boto3_dynamodb import DynamoDBClient

PORT = "plans"
APPROVABLE = conditions.all_of(
    conditions.SOMEBODY_ELSE, conditions.STILL_PLANNED, conditions.SAME_MANIFEST, conditions.STILL_GOOD
)
STARTABLE = conditions.all_of(conditions.STILL_APPROVED, conditions.SAME_MANIFEST, conditions.STILL_GOOD)


class DynamoDbPlanStore:
    """`PlanStore` on DynamoDB."""

    def __init__(self, *, client: DynamoDBClient, table_name: str, meter: Meter = UNMETERED) -> None:
        self._client, self._table, self._meter = client, table_name, meter

    def put(self, plan: Plan, manifest: Sequence[Entry]) -> None:
        """The manifest first: a plan that can be found is whole."""
        for item in plan_rows.manifest_items(plan.plan_id, manifest):
            self._put_once("put", item)
        self._put_once("put", plan_rows.plan_item(plan))

    def get(self, plan_id: str) -> Plan | None:
        """The plan as it stands now (a consistent read). Raises UnreadableRow."""
        item = self._get("get", plan_rows.plan_key(plan_id))
        return None if item is None else plan_rows.plan_from_item(item)

    def manifest(self, plan_id: str) -> tuple[Entry, ...]:
        """Its jobs, in their order."""
        return plan_rows.manifest_from_items(self._under("manifest", plan_id, table.MANIFEST))

    def approve(self, plan: Plan, *, by: str, now: datetime, alone_up_to: int) -> Plan:
        """Say yes, if `by` did not ask for it and nothing has changed. Raises PlanMoved."""
        values = {
            ":me": attributes.text(by),
            ":alone": attributes.whole(alone_up_to),
            ":planned": attributes.text(PlanState.PLANNED.value),
            ":hash": attributes.text(plan.hash),
            ":now": attributes.time(now),
            ":approved": attributes.text(PlanState.APPROVED.value),
        }
        update = "SET #state = :approved, #approver = :me, #approved_at = :now"
        used = ("state", "approver", "approved_at", "requester", "count", "hash", "valid_until")
        current = self._change("approve", plan, update, APPROVABLE, used, values)
        if current.state is PlanState.APPROVED and current.approver == by:
            return current
        raise PlanMoved(plan.plan_id, current)

    def take_lane(self, lane: str, plan_id: str, *, instead_of: str | None = None) -> str | None:
        """None: the lane is the plan's. A plan's id: it has the lane."""
        answer = write_if(
            PORT,
            lambda: self._client.update_item(
                TableName=self._table,
                Key=plan_rows.lane_key(lane),
                UpdateExpression="SET #plan_id = :mine",
                ConditionExpression=conditions.LANE_FREE,
                ExpressionAttributeNames=conditions.names(["plan_id"]),
                ExpressionAttributeValues={
                    ":mine": attributes.text(plan_id),
                    ":over": attributes.text(instead_of or plan_id),
                },
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            ),
        )
        if isinstance(answer, ConditionFalse):
            self._meter.refused(PORT, "take_lane", old=answer.item)
            if answer.item is None:
                raise Unavailable(PORT, "row_went_away")
            return plan_rows.holder_from_item(answer.item)
        self._meter.write(PORT, "take_lane", old=None, new={**plan_rows.lane_key(lane)})
        return None

    def plan_of(self, lane: str) -> str | None:
        """The plan that took the lane last."""
        item = self._get("plan_of", plan_rows.lane_key(lane))
        return None if item is None else plan_rows.holder_from_item(item)

    def start(self, plan: Plan, *, by: str, now: datetime) -> Plan:
        """Let an approved plan run, if it is unchanged and its approval still good. Raises PlanMoved."""
        values = {
            ":me": attributes.text(by),
            ":approved": attributes.text(PlanState.APPROVED.value),
            ":hash": attributes.text(plan.hash),
            ":now": attributes.time(now),
            ":running": attributes.text(PlanState.RUNNING.value),
        }
        update = "SET #state = :running, #started_by = :me, #started_at = :now"
        used = ("state", "started_by", "started_at", "hash", "valid_until")
        current = self._change("start", plan, update, STARTABLE, used, values)
        if current.state is PlanState.RUNNING and current.started_by == by:
            return current
        raise PlanMoved(plan.plan_id, current)

    def abort(self, plan: Plan, *, by: str, why: str, now: datetime) -> Plan:
        """Withdraw a plan in any state but aborted. Raises PlanMoved."""
        values = {
            ":me": attributes.text(by),
            ":why": attributes.text(why),
            ":now": attributes.time(now),
            ":aborted": attributes.text(PlanState.ABORTED.value),
        }
        update = "SET #state = :aborted, #aborted_by = :me, #aborted_at = :now, #abort_why = :why"
        used = ("state", "aborted_by", "aborted_at", "abort_why")
        current = self._change("abort", plan, update, conditions.NOT_ABORTED, used, values)
        if current.state is PlanState.ABORTED and current.aborted_by == by:
            return current
        raise PlanMoved(plan.plan_id, current)

    def add_step(self, plan_id: str, step: Step) -> bool:
        """Write one step; False when another one stands under its number."""
        item = plan_rows.step_item(plan_id, step)
        present = self._put_once("add_step", item)
        return present is None or present == item

    def steps(self, plan_id: str) -> tuple[Step, ...]:
        """Every step, in order (a consistent read)."""
        return tuple(map(plan_rows.step_from_item, self._under("steps", plan_id, table.STEPS)))

    def _change(
        self, operation: str, plan: Plan, update: str, condition: str, used: tuple[str, ...], values: Item
    ) -> Plan:
        """The plan after one conditional update, or as it stands when the condition is false."""
        answer = write_if(
            PORT,
            lambda: self._client.update_item(
                TableName=self._table,
                Key=plan_rows.plan_key(plan.plan_id),
                UpdateExpression=update,
                ConditionExpression=condition,
                ExpressionAttributeNames=conditions.names(used),
                ExpressionAttributeValues=values,
                ReturnValues="ALL_NEW",
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            ),
        )
        if isinstance(answer, ConditionFalse):
            self._meter.refused(PORT, operation, old=answer.item)
            if answer.item is None:
                raise PlanMoved(plan.plan_id, None)
            return plan_rows.plan_from_item(answer.item)
        item: Item = answer["Attributes"]
        self._meter.write(PORT, operation, old=None, new=item)
        return plan_rows.plan_from_item(item)

    def _put_once(self, operation: str, item: Item) -> Item | None:
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
            self._meter.refused(PORT, operation, old=answer.item)
            return answer.item
        self._meter.write(PORT, operation, old=None, new=item)
        return None

    def _get(self, operation: str, key: Item) -> Item | None:
        answer = ask(PORT, lambda: self._client.get_item(TableName=self._table, Key=key, ConsistentRead=True))
        item = answer.get("Item")
        self._meter.read(PORT, operation, [item], consistent=True)
        return item

    def _under(self, operation: str, plan_id: str, prefix: str) -> list[Item]:
        found: list[Item] = []

        def ask_page(start: Any) -> Any:
            return self._client.query(
                TableName=self._table,
                KeyConditionExpression="#pk = :pk AND begins_with(#sk, :prefix)",
                ExpressionAttributeNames=conditions.names([table.PK, table.SK]),
                ExpressionAttributeValues={
                    ":pk": attributes.text(table.plan_pk(plan_id)),
                    ":prefix": attributes.text(prefix),
                },
                ConsistentRead=True,
                **start,
            )

        for items in pages(PORT, ask_page):
            self._meter.read(PORT, operation, items, consistent=True)
            found += items
        return found
