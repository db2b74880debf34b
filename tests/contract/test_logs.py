"""The promises of `Logs`, kept by every adapter."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from shared.adapters.aws.logs import CloudWatchLogs
from shared.adapters.memory.logs import MemoryLogs
from shared.core.errors import Unavailable
from shared.core.logs import Logs

# CloudWatch takes no line that is older than two weeks.
AT = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=1)
GROUP = "/aws/lambda/penstock-dev-support-worker"
Write = Callable[[datetime, str], None]


@pytest.fixture(params=["memory", "moto"])
def logs(request: pytest.FixtureRequest) -> Iterator[tuple[Logs, Write]]:
    """Logs, and what a function does to them."""
    if request.param == "memory":
        memory = MemoryLogs()
        yield memory, lambda at, text: memory.write(GROUP, at, text)
        return
    with mock_aws():
        client = boto3.client("logs", "eu-central-1")
        client.create_log_group(logGroupName=GROUP)
        client.create_log_stream(logGroupName=GROUP, logStreamName="s")

        def write(at: datetime, text: str) -> None:
            event = {"timestamp": int(at.timestamp() * 1000), "message": text}
            client.put_log_events(logGroupName=GROUP, logStreamName="s", logEvents=[event])  # type: ignore[list-item]

        yield CloudWatchLogs(client=client), write


def test_lines_of_a_span_are_read_with_their_place(logs: tuple[Logs, Write]) -> None:
    """In the order of their time, both ends included, nothing before and nothing after."""
    port, write = logs
    for minute in range(5):
        write(AT + timedelta(minutes=minute), f"line {minute}")
    span = {"since": AT + timedelta(minutes=1), "until": AT + timedelta(minutes=3)}
    found = list(port.lines(GROUP, **span))
    assert [(line.text, line.stream) for line in found] == [(f"line {n}", "s") for n in (1, 2, 3)]
    assert found[0].at == AT + timedelta(minutes=1)


def test_a_group_that_is_not_there_was_not_read(logs: tuple[Logs, Write]) -> None:
    """Every function is deployed with its group: none is a gap, not an empty log."""
    port, _ = logs
    with pytest.raises(Unavailable, match="ResourceNotFoundException"):
        list(port.lines("/aws/lambda/nobody", since=AT, until=AT + timedelta(hours=1)))


def test_for_how_long_lines_are_kept() -> None:
    """By the group of that very name, not by one that begins with it."""
    with mock_aws():
        client = boto3.client("logs", "eu-central-1")
        port = CloudWatchLogs(client=client)
        client.create_log_group(logGroupName=f"{GROUP}-2")
        client.put_retention_policy(logGroupName=f"{GROUP}-2", retentionInDays=7)
        with pytest.raises(Unavailable, match="ResourceNotFoundException"):
            port.kept_days(GROUP)
        client.create_log_group(logGroupName=GROUP)
        assert port.kept_days(GROUP) is None
        client.put_retention_policy(logGroupName=GROUP, retentionInDays=30)
        assert port.kept_days(GROUP) == 30


class Paged:
    """CloudWatch as it is documented: pages may be empty and not the last."""

    def __init__(self, *pages: dict[str, Any]) -> None:
        self.pages, self.asked = list(pages), list[str | None]()

    def filter_log_events(self, **asked: Any) -> dict[str, Any]:
        self.asked.append(asked.get("nextToken"))
        return self.pages.pop(0)


def test_an_empty_page_is_not_the_end() -> None:
    """Every page is asked for until there is no other."""
    event = {"timestamp": 1_767_225_600_000, "message": "x", "logStreamName": "s"}
    client = Paged({"events": [], "nextToken": "a"}, {"events": [], "nextToken": "b"}, {"events": [event]})
    found = list(CloudWatchLogs(client=client).lines(GROUP, since=AT, until=AT))
    assert ([line.text for line in found], client.asked) == (["x"], [None, "a", "b"])


def test_what_may_not_be_read_is_said() -> None:
    """A missing permission is no empty log."""

    class Denied:
        def filter_log_events(self, **asked: Any) -> Any:
            raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": "text"}}, "FilterLogEvents")

    with pytest.raises(Unavailable, match="AccessDeniedException"):
        list(CloudWatchLogs(client=Denied()).lines(GROUP, since=AT, until=AT))
