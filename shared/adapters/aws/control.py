"""The control table: one row with every switch, one row a lane with its wanted cap."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from shared.adapters import attributes, switch_rows
from shared.adapters.attributes import Item
from shared.adapters.aws import conditions
from shared.adapters.aws.errors import ConditionFalse, ask, code_of, write_if
from shared.adapters.meter import UNMETERED, Meter
from shared.contract import table
from shared.core.errors import UnreadableRow
from shared.core.switches import Level, Switch, Switches

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from shared.core.capacity import CapacityState

PORT = "control"
_SWITCHES: Item = {table.PK: attributes.text(table.SWITCHES)}


class DynamoDbControlStore:
    """`ControlStore` on DynamoDB."""

    def __init__(self, *, client: DynamoDBClient, table_name: str, meter: Meter = UNMETERED) -> None:
        self._client, self._table, self._meter = client, table_name, meter

    def switches(self) -> Switches:
        """Every switch, in one consistent read. Raises Unavailable, or UnreadableSwitches naming the scope."""
        return switch_rows.switches_from_item(self._get("switches", _SWITCHES))

    def set_switch(self, switch: Switch) -> None:
        """Set one scope; two people who set two scopes at once both succeed."""
        try:
            if self._set(switch):
                return
            self._have_map("set_switch")
            if self._set(switch):
                return
        except ClientError as error:
            # The request is well formed, as the first switch ever shows: the row would be larger than a row can be.
            if code_of(error) != "ValidationException":
                raise
        raise UnreadableRow(table.SWITCHES, f"{switch_rows.SCOPES} is not an object that can take another entry")

    def reset_switches(self, *switches: Switch) -> None:
        """One put, whatever stands there."""
        item = switch_rows.switches_item(*switches)
        ask(PORT, lambda: self._client.put_item(TableName=self._table, Item=item))
        self._meter.write(PORT, "reset_switches", old=None, new=item)

    def _have_map(self, operation: str) -> None:
        """The first switch ever: what whoever came first has put there is left as it is, also if nobody can read it. By
        an update, since the governor may put no row."""
        item = switch_rows.switches_item()
        answer = write_if(
            PORT,
            lambda: self._client.update_item(
                TableName=self._table,
                Key=_SWITCHES,
                UpdateExpression="SET #scopes = :scopes",
                ConditionExpression=conditions.NO_ROW_YET,
                ExpressionAttributeNames=conditions.names([table.PK, switch_rows.SCOPES]),
                ExpressionAttributeValues={":scopes": item[switch_rows.SCOPES]},
            ),
        )
        if isinstance(answer, ConditionFalse):
            self._meter.refused(PORT, operation, old=None)
        else:
            self._meter.write(PORT, operation, old=None, new=item)

    def open_switch(self, switch: Switch, seen: Switch) -> bool:
        """Set a scope whose entry still is `seen`; False, and nothing written, when somebody changed it meanwhile."""
        return self._set(switch, seen)

    def trip(self, switch: Switch) -> bool:
        """Close a scope that is open; False, and nothing written, when a person has closed or changed it meanwhile."""
        self._have_map("trip")
        entry = switch_rows.switch_attribute(switch)
        answer = write_if(
            PORT,
            lambda: self._client.update_item(
                TableName=self._table,
                Key=_SWITCHES,
                UpdateExpression="SET #scopes.#scope = :switch",
                ConditionExpression=conditions.all_of(conditions.HAS_SCOPES, conditions.NOT_CLOSED),
                ExpressionAttributeNames={
                    **conditions.names([switch_rows.SCOPES, "level", "automation_enabled"]),
                    "#scope": switch.scope,
                },
                ExpressionAttributeValues={
                    ":switch": entry or {"M": {}},
                    ":map": attributes.text("M"),
                    ":normal": attributes.text(Level.NORMAL.word),
                    ":automation_enabled": {"BOOL": switch.automation_enabled},
                },
                ReturnValues="ALL_NEW",
            ),
        )
        if isinstance(answer, ConditionFalse):
            self._meter.refused(PORT, "trip", old=None)
            return False
        self._meter.write(PORT, "trip", old=None, new=answer["Attributes"])
        return True

    def capacity(self, lane: str) -> CapacityState | None:
        """All that is kept of a lane's capacity, in one consistent read."""
        # Imported here: workers read switches, and do not pay for what only the governor and tools use.
        from shared.adapters import capacity_rows

        return capacity_rows.capacity_from_item(self._get("capacity", {table.PK: attributes.text(table.cap_pk(lane))}))

    def set_capacity(self, lane: str, seen: CapacityState | None, after: CapacityState) -> bool:
        """Write `after` if the row still has `seen`'s version; being applied already counts as success."""
        from shared.adapters import capacity_rows

        version = 0 if seen is None else seen.version
        item = capacity_rows.capacity_item(lane, after)
        told = [name for name in capacity_rows.ATTRIBUTES if name in item]
        gone = [name for name in capacity_rows.ATTRIBUTES if name not in item]
        sets = "SET " + ", ".join(f"#{name} = :{name}_now" for name in told)
        removes = " REMOVE " + ", ".join(f"#{name}" for name in gone) if gone else ""
        answer = write_if(
            PORT,
            lambda: self._client.update_item(
                TableName=self._table,
                Key={table.PK: item[table.PK]},
                UpdateExpression=sets + removes,
                ConditionExpression=conditions.SAME_CAPACITY if version else conditions.NO_CAPACITY_YET,
                ExpressionAttributeNames=conditions.names([*told, *gone]),
                ExpressionAttributeValues={
                    **{f":{name}_now": item[name] for name in told},
                    ":version": attributes.whole(version),
                },
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            ),
        )
        if isinstance(answer, ConditionFalse):
            self._meter.refused(PORT, "set_capacity", old=answer.item)
            return answer.item == item
        self._meter.write(PORT, "set_capacity", old=None, new=item)
        return True

    def reset_capacity(self, lane: str, state: CapacityState) -> None:
        """One put, whatever stands there."""
        from shared.adapters import capacity_rows

        item = capacity_rows.capacity_item(lane, state)
        ask(PORT, lambda: self._client.put_item(TableName=self._table, Item=item))
        self._meter.write(PORT, "reset_capacity", old=None, new=item)

    def _set(self, switch: Switch, seen: Switch | None = None) -> bool:
        """False when there is no map yet to set it in, or its entry is not `seen`."""
        entry, was = switch_rows.switch_attribute(switch), None if seen is None else switch_rows.switch_attribute(seen)
        told = {name: value for name, value in ((":switch", entry), (":seen", was)) if value is not None}
        told |= {":map": attributes.text("M")} if seen is None else {}
        values: dict[str, Any] = {"ExpressionAttributeValues": told} if told else {}
        operation = "set_switch" if seen is None else "open_switch"
        answer = write_if(
            PORT,
            lambda: self._client.update_item(
                TableName=self._table,
                Key=_SWITCHES,
                UpdateExpression="REMOVE #scopes.#scope" if entry is None else "SET #scopes.#scope = :switch",
                ConditionExpression=conditions.HAS_SCOPES if seen is None else conditions.SAME_SWITCH,
                ExpressionAttributeNames={**conditions.names([switch_rows.SCOPES]), "#scope": switch.scope},
                ReturnValues="ALL_NEW",
                **values,
            ),
        )
        if isinstance(answer, ConditionFalse):
            self._meter.refused(PORT, operation, old=None)
            return False
        self._meter.write(PORT, operation, old=None, new=answer["Attributes"])
        return True

    def _get(self, operation: str, key: Item) -> Item | None:
        answer = ask(PORT, lambda: self._client.get_item(TableName=self._table, Key=key, ConsistentRead=True))
        item = answer.get("Item")
        self._meter.read(PORT, operation, [item], consistent=True)
        return item
