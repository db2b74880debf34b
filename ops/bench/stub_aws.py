"""AWS and the help desk answered in process: the SDK and the HTTP client do all their work but the wire.

Every request is built, signed, answered here, and parsed by the same code as in an account. What is measured
is therefore the client's own cost, the same stub for both ways.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import time
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import httpx
from botocore.awsrequest import AWSResponse

from shared.adapters.attributes import Item

REGION = "eu-central-1"
ENVIRON = {
    # A key of its own, so that clients cached for anybody else are never the stubbed ones.
    "AWS_ACCESS_KEY_ID": "BENCH",
    "AWS_SECRET_ACCESS_KEY": "bench",
    "AWS_REGION": REGION,
    "AWS_DEFAULT_REGION": REGION,
    "AWS_EC2_METADATA_DISABLED": "true",
}
CONTENT_KEY = re.compile(r"/payload/([^/]+)/")


@dataclass(slots=True)
class StubAws:
    """Rows and objects to answer with. `delay_s` is slept in every AWS and vendor call."""

    jobs: Mapping[str, Item]
    """Key → the queued row a claim finds."""
    effect: Item
    """The effect row any write to it leaves."""
    content: Mapping[str, bytes]
    """Job id → its text."""
    delay_s: float = 0.0
    calls: Counter[str] = field(default_factory=Counter)
    """What was asked, by operation; counted for the footnotes and to see that nothing was left out."""

    def on(self, client: Any) -> None:
        """Answer everything this SDK client sends."""
        client.meta.events.register("before-send", self._send)

    @contextlib.contextmanager
    def vendor(self) -> Iterator[None]:
        """Answer everything httpx sends."""
        with mock.patch.object(httpx.HTTPTransport, "handle_request", lambda _, request: self._vendor(request)):
            yield

    def _send(self, request: Any, **_: Any) -> AWSResponse:
        target = request.headers.get("X-Amz-Target")
        if target is None:
            return self._object(request)
        operation = (target.decode() if isinstance(target, bytes) else target).partition(".")[2]
        self._take(operation)
        asked = json.loads(request.body)
        body = json.dumps(self._answer(operation, asked)).encode()
        # With its checksum, which the SDK verifies.
        return _response(request.url, body, {"x-amz-crc32": str(zlib.crc32(body)), "x-amzn-RequestId": "BENCH"})

    def _answer(self, operation: str, asked: Mapping[str, Any]) -> dict[str, Any]:
        match operation, asked.get("ReturnValues"):
            case "UpdateItem", "ALL_OLD":
                return {"Attributes": self.jobs[asked["Key"]["pk"]["S"]]}
            case "UpdateItem", "ALL_NEW":
                return {"Attributes": self.effect}
        # A plain write, or a row that is not there: no switch was ever set.
        return {}

    def _object(self, request: Any) -> AWSResponse:
        self._take("GetObject")
        found = CONTENT_KEY.search(request.url)
        body = self.content[found[1] if found else ""]
        return _response(request.url, body, {"ETag": '"bench"'})

    def _vendor(self, request: httpx.Request) -> httpx.Response:
        self._take("Vendor")
        request.read()
        return httpx.Response(200, json={"id": "reply-1"})

    def _take(self, operation: str) -> None:
        self.calls[operation] += 1
        if self.delay_s:
            time.sleep(self.delay_s)


def _response(url: str, body: bytes, headers: Any) -> AWSResponse:
    return AWSResponse(url, 200, {"Content-Length": str(len(body)), **headers}, _Body(body))  # type: ignore[arg-type]


class _Body:
    """As much of a urllib3 response as the SDK reads."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def read(self, amt: int | None = None, **_: Any) -> bytes:
        data, self._data = (self._data, b"") if amt is None else (self._data[:amt], self._data[amt:])
        return data

    def stream(self, *_: Any, **__: Any) -> Iterator[bytes]:
        yield self.read()

    def close(self) -> None:
        """Nothing is open."""


@contextlib.contextmanager
def surroundings(extra: Mapping[str, str]) -> Iterator[None]:
    """The environment of a function, with credentials that open nothing; put back afterwards."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "PENSTOCK_", "POWERTOOLS_"))
    }
    with mock.patch.dict(os.environ, {**kept, **ENVIRON, **extra}, clear=True):
        yield
