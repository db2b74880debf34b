"""The control table: one row with every switch, one row a lane with its wanted cap."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shared.adapters import attributes, rows
from shared.adapters.attributes import Item
from shared.adapters.aws import conditions
from shared.adapters.aws.errors import ConditionFalse, ask, write_if
from shared.adapters.meter import UNMETERED, Meter
from shared.contract import table
from shared.core.switches import Switch, Switches

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

PORT = "control"
_SWITCHES: Item = {table.PK: attributes.text(table.SWITCHES)}


class DynamoDbControlStore:
    """`ControlStore` on DynamoDB."""

    def __init__(self, *, client: DynamoDBClient, table_name: str, meter: Meter = UNMETERED) -> None:
        self._client, self._table, self._meter = client, table_name, meter

    def switches(self) -> Switches:
        """Every switch, in one consistent read. Raises Unavailable, or UnreadableRow naming the scope."""
        return rows.switches_from_item(self._get("switches", _SWITCHES))

    def set_switch(self, switch: Switch) -> None:
        """Set one scope; two people who set two scopes at once both succeed."""
        if self._set(switch):
            return
        # The first switch ever: an empty map that whoever came first has put there is left as it is.
        empty = ask(
            PORT,
            lambda: self._client.update_item(
                TableName=self._table,
                Key=_SWITCHES,
                UpdateExpression="SET #scopes = if_not_exists(#scopes, :empty)",
                ExpressionAttributeNames=conditions.names([rows.SCOPES]),
                ExpressionAttributeValues={":empty": {"M": {}}},
                ReturnValues="ALL_NEW",
            ),
        )
        self._meter.write(PORT, "set_switch", old=None, new=empty["Attributes"])
        self._set(switch)

    def cap(self, lane: str) -> int | None:
        """The lane's wanted cap, None when nobody set one."""
        return rows.cap_from_item(self._get("cap", {table.PK: attributes.text(table.cap_pk(lane))}))

    def _set(self, switch: Switch) -> bool:
        """False when there is no map yet to set it in."""
        entry = rows.switch_attribute(switch)
        values: dict[str, Any] = {} if entry is None else {"ExpressionAttributeValues": {":switch": entry}}
        answer = write_if(
            PORT,
            lambda: self._client.update_item(
                TableName=self._table,
                Key=_SWITCHES,
                UpdateExpression="REMOVE #scopes.#scope" if entry is None else "SET #scopes.#scope = :switch",
                ConditionExpression=conditions.HAS_SCOPES,
                ExpressionAttributeNames={**conditions.names([rows.SCOPES]), "#scope": switch.scope},
                ReturnValues="ALL_NEW",
                **values,
            ),
        )
        if isinstance(answer, ConditionFalse):
            self._meter.refused(PORT, "set_switch", old=None)
            return False
        self._meter.write(PORT, "set_switch", old=None, new=answer["Attributes"])
        return True

    def _get(self, operation: str, key: Item) -> Item | None:
        answer = ask(PORT, lambda: self._client.get_item(TableName=self._table, Key=key, ConsistentRead=True))
        item = answer.get("Item")
        self._meter.read(PORT, operation, [item], consistent=True)
        return item
