"""Senders of events: requests as API Gateway hands them over, signed or not, and an intake in memory to take them."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from shared.contract import env
from shared.core.errors import Unavailable
from shared.core.webhook import SIGNATURE_HEADER, TIMESTAMP_HEADER, signature_of
from shared.runtime import wiring
from shared.usecases.receive_event import Intake
from tests.builders import NOW
from tests.functions.stage import LANE, Stage, a_stage
from tests.settings import settings_file

KEY, OTHER = b"acme-signs-with-this-key-of-forty-letters", b"bolt-signs-with-this-key-of-forty-letters"
STAMP = int(NOW.timestamp())
DATA = {"conversation_id": "c-1", "topic": "billing"}


@dataclass
class MemoryKeys:
    """`SenderKeys` in memory; a rotation is seen when the keys are asked for freshly."""

    seen: dict[str, tuple[bytes, ...]] = field(default_factory=lambda: {"acme": (KEY,), "bolt": (OTHER,)})
    stored: dict[str, tuple[bytes, ...]] = field(default_factory=dict)
    down: bool = False
    asked: int = 0
    asked_freshly: int = 0

    def of(self, tenant: str, *, fresh: bool = False) -> tuple[bytes, ...]:
        self.asked += 1
        self.asked_freshly += fresh
        if self.down:
            raise Unavailable("secret", "down")
        if fresh and self.stored:
            self.seen = self.stored
        return self.seen.get(tenant, ())


@dataclass
class Door:
    """A lane's intake with everything behind it in memory."""

    stage: Stage
    keys: MemoryKeys

    def send(self, event: Any) -> tuple[int, dict[str, Any]]:
        """The answer to one request: its status and its body."""
        answer = self.stage.invoke("intake", event)
        assert set(answer) == {"statusCode", "headers", "body"}
        assert answer["headers"]["content-type"] == "application/json"
        return answer["statusCode"], json.loads(answer["body"])

    def at(self, seconds: float) -> None:
        """Move the clock to so many seconds after the first event."""
        self.stage.desk.clock.advance(seconds - (self.stage.desk.clock.now() - NOW).total_seconds())


@contextmanager
def a_door(**stage: Any) -> Iterator[Door]:
    """The real handler on memory adapters."""
    keys = MemoryKeys()
    with a_stage(**stage) as built, pytest.MonkeyPatch.context() as patch:
        desk = built.desk

        def intake(settings: Any, telemetry: Any) -> Intake:
            assert settings.secret_arn
            return Intake(
                lane=settings.lane,
                task=settings.task,
                jobs=desk.jobs,
                content=desk.content,
                keys=keys,
                clock=desk.clock,
                telemetry=telemetry,
            )

        patch.setattr(wiring, "intake", intake)
        patch.setenv(env.SECRET_ARN, "arn:aws:secretsmanager:eu-central-1:111122223333:secret:x")
        told = {**LANE, "tasks": list(desk.lane.tasks), "intake": desk.lane.tasks[0]}
        patch.setenv(env.SETTINGS, settings_file(lanes={desk.lane.name: told}))
        yield Door(built, keys)


def body_of(event_id: str = "evt-1", **data: Any) -> bytes:
    """An event as its sender writes it."""
    return json.dumps({"id": event_id, "data": {**DATA, **data}}).encode()


def request(
    body: bytes | None = None,
    *,
    tenant: Any = "acme",
    key: bytes = KEY,
    at: int = STAMP,
    encoded: bool = False,
    **changes: Any,
) -> dict[str, Any]:
    """What API Gateway hands over for a signed event, in payload format 2.0."""
    body = body_of() if body is None else body
    text = base64.b64encode(body).decode() if encoded else body.decode()
    event = {
        "version": "2.0",
        "routeKey": "POST /events/{tenant}",
        "rawPath": f"/events/{tenant}",
        "headers": {
            "content-type": "application/json",
            TIMESTAMP_HEADER: str(at),
            SIGNATURE_HEADER: signature_of(key, at, body),
        },
        "pathParameters": {"tenant": tenant},
        "requestContext": {"requestId": "r-1", "http": {"method": "POST", "sourceIp": "192.0.2.1"}},
        "body": text,
        "isBase64Encoded": encoded,
    }
    return {**event, **changes}


def with_headers(event: dict[str, Any], **headers: Any) -> dict[str, Any]:
    """The same request with other headers; None takes one away. `_` stands for `-`."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    kept = {**event["headers"], **named}
    return {**event, "headers": {name: value for name, value in kept.items() if value is not None}}
