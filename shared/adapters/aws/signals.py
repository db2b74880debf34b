"""The signals on the ledger table: one row per lane and minute, added to without a read."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from shared.adapters import attributes, signal_rows
from shared.adapters.aws import conditions
from shared.adapters.aws.errors import ask
from shared.adapters.aws.pages import pages
from shared.adapters.meter import UNMETERED, Meter
from shared.contract import table
from shared.core.moment import iso
from shared.core.signals import MINUTE_S, Counts, Minute, minute_of

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

PORT = "signals"


class DynamoDbSignalLedger:
    """`SignalLedger` on DynamoDB. Its client must not try twice: a write that is sent again counts twice."""

    def __init__(self, *, client: DynamoDBClient, table_name: str, meter: Meter = UNMETERED) -> None:
        self._client, self._table, self._meter = client, table_name, meter

    def add(self, lane: str, at: datetime, counts: Counts, *, minute_s: int = MINUTE_S) -> None:
        """Add what happened to the minute `at` is in: one write."""
        more = signal_rows.added(counts)
        if not more:
            return
        sums = {f"#s{number}": name for number, name in enumerate(more)}
        values = {f":s{number}": value for number, value in enumerate(more.values())}
        adds = ", ".join(f"#s{number} :s{number}" for number in range(len(more)))
        key = signal_rows.minute_key(lane, at, minute_s)
        ask(
            PORT,
            lambda: self._client.update_item(
                TableName=self._table,
                Key=key,
                UpdateExpression=f"ADD {adds} SET #{table.TTL} = :{table.TTL}",
                ExpressionAttributeNames={**sums, **conditions.names([table.TTL])},
                ExpressionAttributeValues={**values, f":{table.TTL}": signal_rows.expiry_of(at)},
            ),
        )
        self._meter.write(PORT, "add", old=None, new={**key, **more, table.TTL: signal_rows.expiry_of(at)})

    def minutes(self, lane: str, *, since: datetime) -> list[Minute]:
        """The minutes from `since` on of which anything is known, oldest first."""
        found: list[Minute] = []
        for items in pages(
            PORT,
            lambda start: self._client.query(
                TableName=self._table,
                KeyConditionExpression="#pk = :pk AND #sk >= :since",
                ExpressionAttributeNames=conditions.names([table.PK, table.SK]),
                ExpressionAttributeValues={
                    ":pk": attributes.text(table.signals_pk(lane)),
                    ":since": attributes.text(iso(minute_of(since))),
                },
                ConsistentRead=True,
                **start,
            ),
        ):
            self._meter.read(PORT, "minutes", items, consistent=True)
            found += map(signal_rows.minute_from_item, items)
        return found
