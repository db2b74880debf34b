"""What the functions of a local stack wrote to their logs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from botocore.exceptions import ClientError

from ops.local.clients import Clients
from ops.local.state import StackState


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """One line of one function."""

    function: str
    at: datetime
    """When its invocation ended: the emulator writes an invocation's lines together."""
    text: str


def functions(state: StackState) -> list[str]:
    """Every function of the stack."""
    pages = _clients(state).of("lambda").get_paginator("list_functions").paginate()
    return sorted(one["FunctionName"] for page in pages for one in page["Functions"])


def log_lines(state: StackState, function: str, since: datetime | None = None) -> Iterator[LogLine]:
    """The function's lines, oldest first; START, END and REPORT lines are the emulator's, as on AWS."""
    clients = _clients(state)
    found = clients.of("lambda").get_function_configuration(FunctionName=function)
    group = found.get("LoggingConfig", {}).get("LogGroup") or f"/aws/lambda/{function}"
    arguments: dict[str, object] = {"logGroupName": group}
    if since is not None:
        arguments["startTime"] = int(since.timestamp() * 1000)
    try:
        for page in clients.of("logs").get_paginator("filter_log_events").paginate(**arguments):
            for event in page["events"]:
                at = datetime.fromtimestamp(event["timestamp"] / 1000, tz=UTC)
                yield LogLine(function=function, at=at, text=event["message"])
    except ClientError as exc:
        # A function that never ran has no group of its own yet.
        if exc.response.get("Error", {}).get("Code") != "ResourceNotFoundException":
            raise


def _clients(state: StackState) -> Clients:
    return Clients(endpoint=state.endpoint, access_key=state.access_key, region=state.region, account=state.account)
