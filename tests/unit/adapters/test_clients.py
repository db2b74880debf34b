"""How SDK clients are built, and the machine's clock."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.awsrequest import AWSPreparedRequest, AWSResponse

from shared.adapters.aws.clients import client, settings
from shared.adapters.aws.clock import SystemClock


def test_a_client_gives_up_soon_and_has_a_connection_a_thread() -> None:
    """Short time-outs, three tries, no parameter validation (its errors print what it was given)."""
    config: Any = client("dynamodb", connections=25).meta.config
    given: Any = settings("dynamodb")
    assert (config.connect_timeout, config.read_timeout) == (1, 3)
    assert config.retries == {"mode": "standard", "total_max_attempts": 3}
    assert config.max_pool_connections == 25
    assert given.parameter_validation is False
    assert type(client("dynamodb", connections=25)._serializer).__name__ == "JSONSerializer"  # type: ignore[attr-defined]
    assert config.tcp_keepalive is True
    slower: Any = settings("s3")
    assert slower.read_timeout > given.read_timeout


def test_a_client_is_built_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same one for the same service and surroundings; another endpoint or account is another client."""
    first = client("sqs")
    assert client("sqs") is first
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    other = client("sqs")
    assert other is not first
    assert other.meta.endpoint_url == "http://127.0.0.1:1"
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    assert client("sqs") is first


def test_a_small_body_is_sent_at_once() -> None:
    """A put does not ask first whether its body would be taken: that is a round trip."""
    s3: Any = client("s3")
    asked: list[str | None] = []

    def answer(request: AWSPreparedRequest, **_: Any) -> AWSResponse:
        asked.append(request.headers.get("Expect"))
        response = AWSResponse(request.url, 200, {}, None)
        response._content = b""
        return response

    s3.meta.events.register_first("before-send.s3", answer)
    try:
        s3.put_object(Bucket="a-bucket", Key="k", Body=b"text")
    finally:
        s3.meta.events.unregister("before-send.s3", answer)
    assert asked == [None]


def test_importing_the_module_does_not_load_the_sdk() -> None:
    """The SDK is loaded when the first client is built."""
    code = "import sys, shared.adapters.aws.clients; sys.exit('boto3' in sys.modules or 'botocore' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_clock_tells_what_a_row_can_hold() -> None:
    """Now, in UTC, in whole milliseconds."""
    before = datetime.now(UTC)
    now = SystemClock().now()
    assert now.tzinfo is UTC
    assert now.microsecond % 1000 == 0
    assert abs((now - before).total_seconds()) < 5
    SystemClock().sleep(0)
