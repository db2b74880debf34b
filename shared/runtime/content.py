"""The content store as a function reaches it: both parts, or only what it is granted."""

from __future__ import annotations

from shared.adapters.aws.clients import TRIES, client
from shared.adapters.aws.clock import SystemClock
from shared.adapters.aws.content import ContentByReference, DynamoDbContentStore, S3ContentStore
from shared.contract import env
from shared.core.lane import content_kept_days
from shared.core.ports import ContentStore
from shared.runtime.settings import Settings


def content(settings: Settings, connections: int = 10, *, tries: int = TRIES) -> ContentStore:
    """For those who read or write payloads."""
    rows = DynamoDbContentStore(
        client=client("dynamodb", connections=connections, tries=tries),
        table_name=settings.text(env.CONTENT_TABLE),
        clock=SystemClock(),
        kept_days=content_kept_days(settings.lanes.values()),
    )
    return ContentByReference(rows=rows, objects=content_objects(settings, connections, tries=tries))


def content_objects(settings: Settings, connections: int = 10, *, tries: int = TRIES) -> ContentStore:
    """For those who write what is no payload."""
    s3 = client("s3", connections=connections, tries=tries)
    return S3ContentStore(client=s3, bucket=settings.text(env.CONTENT_BUCKET))
