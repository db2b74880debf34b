"""An account in this process: a stage's tables on moto, and the tables of the standard way, both counted.

moto keeps the rows and judges the conditions; what they cost is never asked of it, since it gets that wrong.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from botocore.exceptions import ClientError

from ops.bench import stub_aws
from ops.bench.lives import LANE, Tables
from shared.adapters.attributes import Item
from shared.adapters.aws.clients import settings
from shared.adapters.aws.effects import DynamoDbEffectStore
from shared.adapters.aws.jobs import DynamoDbJobStore
from shared.adapters.meter import Meter
from shared.contract import names, table

STAGE = "bench"
IDEMPOTENCY_TABLE = "idempotency"
PORT = "idempotency"


@contextlib.contextmanager
def account() -> Iterator[Any]:
    """A DynamoDB client of an empty account with every table."""
    import boto3
    from moto import mock_aws

    with stub_aws.surroundings({}), mock_aws():
        client = boto3.client("dynamodb", config=settings("dynamodb", validate=True))
        create_tables(client, STAGE)
        client.create_table(**_shape(IDEMPOTENCY_TABLE, ["id"]))
        yield client


def create_tables(client: Any, stage: str) -> None:
    """The two tables a job is written to, in the shape infra deploys them."""
    jobs = _shape(names.table(stage, "jobs"), [table.PK], also=(table.WAITING_PK, table.WAITING_SK))
    jobs["GlobalSecondaryIndexes"] = [
        {
            "IndexName": names.WAITING_INDEX,
            "KeySchema": _keys([table.WAITING_PK, table.WAITING_SK]),
            "Projection": {"ProjectionType": "KEYS_ONLY"},
        }
    ]
    client.create_table(**jobs)
    client.create_table(**_shape(names.table(stage, "effects"), [table.PK, table.SK]))


def tables_on(client: Any, stage: str = STAGE, meter: Meter | None = None) -> Tables:
    """The DynamoDB adapters on that account, counted."""
    meter, jobs = meter or Meter(), names.table(stage, "jobs")

    def row(job_id: str) -> Item | None:
        key = {table.PK: {"S": table.job_pk(job_id)}}
        item: Item | None = client.get_item(TableName=jobs, Key=key, ConsistentRead=True).get("Item")
        return item

    return Tables(
        jobs=DynamoDbJobStore(client=client, table_name=jobs, lanes={LANE.name: LANE}, meter=meter),
        effects=DynamoDbEffectStore(client=client, table_name=names.table(stage, "effects"), meter=meter),
        meter=meter,
        row=row,
    )


class CountedClient:
    """A DynamoDB client whose single-row writes are counted by the same rules as ours."""

    def __init__(self, client: Any, meter: Meter) -> None:
        self._client, self._meter = client, meter
        self.largest_row: Item = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def put_item(self, **asked: Any) -> Any:
        """Counted."""
        return self._write("put", self._client.put_item, {"id": asked["Item"]["id"]}, asked)

    def update_item(self, **asked: Any) -> Any:
        """Counted."""
        return self._write("update", self._client.update_item, asked["Key"], asked)

    def delete_item(self, **asked: Any) -> Any:
        """Counted."""
        return self._write("delete", self._client.delete_item, asked["Key"], asked)

    def get_item(self, **asked: Any) -> Any:
        """Counted."""
        answer = self._client.get_item(**asked)
        self._meter.read(PORT, "get", [answer.get("Item")], consistent=bool(asked.get("ConsistentRead")))
        return answer

    def _write(self, operation: str, call: Callable[..., Any], key: Item, asked: dict[str, Any]) -> Any:
        old = self._row(asked["TableName"], key)
        try:
            answer = call(**asked)
        except ClientError:
            self._meter.refused(PORT, operation, old=old)
            raise
        new = self._row(asked["TableName"], key)
        self._meter.write(PORT, operation, old=old, new=new)
        self.largest_row = new or self.largest_row
        return answer

    def _row(self, table_name: str, key: Item) -> Item | None:
        item: Item | None = self._client.get_item(TableName=table_name, Key=key, ConsistentRead=True).get("Item")
        return item


def _shape(name: str, keys: list[str], also: tuple[str, ...] = ()) -> dict[str, Any]:
    return {
        "TableName": name,
        "BillingMode": "PAY_PER_REQUEST",
        "KeySchema": _keys(keys),
        "AttributeDefinitions": [{"AttributeName": key, "AttributeType": "S"} for key in (*keys, *also)],
    }


def _keys(keys: list[str]) -> list[dict[str, str]]:
    return [{"AttributeName": key, "KeyType": kind} for key, kind in zip(keys, ("HASH", "RANGE"), strict=False)]
