"""A sender of events to the local stack: over HTTP, signed as docs/intake.md says."""

from __future__ import annotations

import http.client
import json
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ops.local import doors
from ops.local.tokens import SENDERS
from shared.core.webhook import SIGNATURE_HEADER, TIMESTAMP_HEADER, signature_of

if TYPE_CHECKING:
    from tests.e2e.paths import LocalStage

LANE = "support"


def send_event(
    stage: LocalStage,
    event_id: str,
    *,
    tenant: str = "acme",
    key: str = SENDERS["acme"],
    at: int | None = None,
    content_type: str = "application/json",
    **data: Any,
) -> tuple[int, dict[str, Any]]:
    """The answer to one event: its status and its body."""
    body = json.dumps({"id": event_id, "data": {"conversation_id": f"c-{event_id}", **data}}).encode()
    stamp = int(time.time()) if at is None else at
    signed = {TIMESTAMP_HEADER: str(stamp), SIGNATURE_HEADER: signature_of(key.encode(), stamp, body)}
    return post(stage, f"/events/{tenant}", body, {"content-type": content_type, **signed})


def post(stage: LocalStage, path: str, body: bytes, headers: dict[str, str]) -> tuple[int, dict[str, Any]]:
    """One request to the lane's address."""
    endpoint, host = doors.events_address(stage.clients, stage.state.stage, LANE)
    connection = http.client.HTTPConnection(urlsplit(endpoint).netloc, timeout=40)
    try:
        connection.request("POST", path, body=body, headers={"host": host, **headers})
        reply = connection.getresponse()
        return reply.status, json.loads(reply.read() or b"{}")
    finally:
        connection.close()
