"""The log groups of a stage, read from CloudWatch Logs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Any

from botocore.exceptions import ClientError

from shared.adapters.aws.errors import ask, code_of
from shared.core.errors import Unavailable
from shared.core.logs import LogLine

PORT = "logs"
GONE = "ResourceNotFoundException"


class CloudWatchLogs:
    """`Logs` on CloudWatch Logs."""

    def __init__(self, *, client: Any) -> None:
        self._client = client

    def lines(self, group: str, *, since: datetime, until: datetime) -> Iterator[LogLine]:
        """Every line, page by page: a page may be empty and not be the last."""
        wanted: dict[str, Any] = {
            "logGroupName": group,
            "startTime": int(since.timestamp() * 1000),
            "endTime": int(until.timestamp() * 1000),
        }
        while True:
            page = self._asked(partial(self._client.filter_log_events, **wanted))
            for event in page.get("events", ()):
                at = datetime.fromtimestamp(event["timestamp"] / 1000, tz=UTC)
                yield LogLine(at=at, stream=event.get("logStreamName", ""), text=event["message"])
            token = page.get("nextToken")
            if not token or token == wanted.get("nextToken"):
                return
            wanted["nextToken"] = token

    def kept_days(self, group: str) -> int | None:
        """As the group's retention says; its own name comes first among those that begin with it."""
        page = self._asked(partial(self._client.describe_log_groups, logGroupNamePrefix=group, limit=1))
        for found in page.get("logGroups", ()):
            if found["logGroupName"] == group:
                days: int | None = found.get("retentionInDays")
                return days
        raise Unavailable(PORT, GONE)

    def _asked(self, request: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        try:
            found: dict[str, Any] = ask(PORT, request)
        except ClientError as error:
            # Whoever sweeps must hear that nothing was read, whatever the reason is.
            raise Unavailable(PORT, code_of(error)) from None
        return found
