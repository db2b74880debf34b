"""A backend that shows how jobs ended: it keeps the newest state of each, whatever order events come in.

They may come twice, too. One conditional write deals with both: a state is written over an older one only.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

NEWER = "attribute_not_exists(job_id) OR #position < :position"
"""Nothing is known of the job yet, or something older. A repeated event is as old as what it meets."""


def position(detail: Mapping[str, Any]) -> str:
    """Where a change stands among all changes of its job; text order is their order."""
    return f"{detail['created_at']}#{detail['sequence']:012d}"


def keep(detail: Mapping[str, Any], *, client: Any, table: str) -> bool:
    """Keep a state if it is newer than the one that is known. False: it was known, or overtaken."""
    try:
        client.update_item(
            TableName=table,
            Key={"job_id": {"S": detail["job_id"]}},
            UpdateExpression="SET #status = :status, #tenant = :tenant, #position = :position",
            ConditionExpression=NEWER,
            ExpressionAttributeNames={"#status": "status", "#tenant": "tenant", "#position": "position"},
            ExpressionAttributeValues={
                ":status": {"S": detail["status"]},
                ":tenant": {"S": detail["tenant"]},
                ":position": {"S": position(detail)},
            },
        )
    except client.exceptions.ConditionalCheckFailedException:
        return False
    return True


def handler(event: Mapping[str, Any], context: Any) -> None:
    """One event. An error is EventBridge's to try again, and ends in the dead-letter queue of the rule."""
    import boto3

    if keep(event["detail"], client=boto3.client("dynamodb"), table=os.environ["STATUS_TABLE"]):
        pass  # News for this tenant: push it to the browsers that show the job, over your own connection to them.
