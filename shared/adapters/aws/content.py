"""The content store: a bucket and, for small payloads, a table; both encrypted by one key of their own."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from shared.adapters import attributes, content_rows
from shared.adapters.aws.errors import ask, code_of
from shared.adapters.meter import UNMETERED, Meter
from shared.contract import table
from shared.contract.references import row_key
from shared.core.errors import BadInput
from shared.core.lane import MAX_ROW_PAYLOAD_BYTES
from shared.core.ports import Clock, ContentStore

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_s3 import S3Client

PORT = "content"
ABSENT = frozenset({"404", "NoSuchKey", "NotFound"})


class ContentByReference:
    """`ContentStore` of both: the reference says where a text is, so each is asked for in one place."""

    def __init__(self, *, rows: ContentStore, objects: ContentStore) -> None:
        self._rows, self._objects = rows, objects

    def put(self, ref: str, data: bytes) -> None:
        """Store; the same ref and bytes may be stored again."""
        self._of(ref).put(ref, data)

    def get(self, ref: str) -> bytes | None:
        """Read; None when it is not there."""
        return self._of(ref).get(ref)

    def delete(self, ref: str) -> None:
        """Remove; what is not there is no error."""
        self._of(ref).delete(ref)

    def _of(self, ref: str) -> ContentStore:
        return self._objects if row_key(ref) is None else self._rows


class DynamoDbContentStore:
    """`ContentStore` on DynamoDB, for references that name a row."""

    def __init__(
        self, *, client: DynamoDBClient, table_name: str, clock: Clock, kept_days: int, meter: Meter = UNMETERED
    ) -> None:
        self._client, self._table, self._meter = client, table_name, meter
        self._clock, self._kept = clock, timedelta(days=kept_days)

    def put(self, ref: str, data: bytes) -> None:
        """Store, or store again, which keeps it for longer. Raises BadInput for more than a row may hold."""
        if len(data) > MAX_ROW_PAYLOAD_BYTES:
            raise BadInput("payload", f"has {len(data)} bytes, at most {MAX_ROW_PAYLOAD_BYTES} are kept as a row")
        item = content_rows.payload_item(_key(ref), data, self._clock.now() + self._kept)
        ask(PORT, lambda: self._client.put_item(TableName=self._table, Item=item))
        self._meter.write(PORT, "put", old=None, new=item)

    def get(self, ref: str) -> bytes | None:
        """Read, as it stands now: a worker may be faster than a copy."""
        answer = ask(
            PORT,
            lambda: self._client.get_item(
                TableName=self._table, Key={table.PK: attributes.text(_key(ref))}, ConsistentRead=True
            ),
        )
        item = answer.get("Item")
        self._meter.read(PORT, "get", [item], consistent=True)
        return None if item is None else content_rows.payload_from_item(item, self._clock.now())

    def delete(self, ref: str) -> None:
        """Remove; what is not there is no error."""
        ask(
            PORT,
            lambda: self._client.delete_item(TableName=self._table, Key={table.PK: attributes.text(_key(ref))}),
        )
        self._meter.write(PORT, "delete", old=None, new=None)


class S3ContentStore:
    """`ContentStore` on S3, for references that name an object."""

    def __init__(self, *, client: S3Client, bucket: str, meter: Meter = UNMETERED) -> None:
        self._client, self._bucket, self._meter = client, bucket, meter

    def put(self, ref: str, data: bytes) -> None:
        """Store; the same ref and bytes may be stored again."""
        self._meter.call(PORT, "put")
        ask(PORT, lambda: self._client.put_object(Bucket=self._bucket, Key=ref, Body=data))

    def get(self, ref: str) -> bytes | None:
        """Read; None when it is not there.

        S3 says so only to a caller who may list the bucket; to others an absent object is a denied one.
        """
        self._meter.call(PORT, "get")
        try:
            # The body is read inside: a connection lost half-way is the service not answering.
            return ask(PORT, lambda: self._client.get_object(Bucket=self._bucket, Key=ref)["Body"].read())
        except ClientError as error:
            if code_of(error) in ABSENT:
                return None
            raise

    def delete(self, ref: str) -> None:
        """Remove; what is not there is no error."""
        self._meter.call(PORT, "delete")
        ask(PORT, lambda: self._client.delete_object(Bucket=self._bucket, Key=ref))

    def under(self, place: str) -> Iterator[str]:
        """The reference of every object that begins so."""
        pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=place)
        for page in ask(PORT, lambda: list(pages)):
            self._meter.call(PORT, "list")
            yield from (one["Key"] for one in page.get("Contents", ()))


def _key(ref: str) -> str:
    key = row_key(ref)
    if not key:
        raise BadInput("ref", "does not name a row of the content table")
    return key
