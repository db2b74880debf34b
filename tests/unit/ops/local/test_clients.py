"""Clients that reach one local stack and nothing else."""

from __future__ import annotations

import pytest
from botocore.exceptions import EndpointConnectionError

from ops.local.clients import Clients


def test_the_callers_aws_settings_play_no_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """A profile, keys, a proxy or endpoints of the caller change nothing."""
    monkeypatch.setenv("AWS_PROFILE", "one-that-is-not-there")
    monkeypatch.setenv("AWS_ENDPOINT_URL_SQS", "http://192.0.2.1:1")
    monkeypatch.setenv("HTTP_PROXY", "http://192.0.2.1:1")
    client = Clients(endpoint="http://127.0.0.1:9", access_key="OURS").of("sqs")
    assert client.meta.endpoint_url == "http://127.0.0.1:9"
    with pytest.raises(EndpointConnectionError, match=r"127\.0\.0\.1:9"):
        client.list_queues()
