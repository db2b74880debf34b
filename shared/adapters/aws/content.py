"""The content store: one bucket, encrypted by its own default key, objects by id."""

from __future__ import annotations

from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from shared.adapters.aws.errors import ask, code_of
from shared.adapters.meter import UNMETERED, Meter

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

PORT = "content"
ABSENT = frozenset({"404", "NoSuchKey", "NotFound"})


class S3ContentStore:
    """`ContentStore` on S3."""

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
