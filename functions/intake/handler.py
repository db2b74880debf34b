"""The door for events from outside: an HTTP API's request becomes an answer, sent only after the job is stored."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Mapping
from functools import cache
from typing import Any

from shared.contract import env, metrics, names
from shared.core.webhook import MAX_BODY_BYTES, SIGNATURE_HEADER, TIMESTAMP_HEADER
from shared.runtime import wiring
from shared.runtime.door import door
from shared.runtime.intake_settings import IntakeSettings
from shared.runtime.telemetry import PowertoolsTelemetry
from shared.usecases.receive_event import Intake, Received, Reception, Webhook, receive_event

STATUS: Mapping[Reception, int] = {
    Reception.CREATED: 202,
    Reception.EXISTING: 200,
    Reception.MALFORMED: 400,
    Reception.REFUSED: 401,
    Reception.CONFLICT: 409,
    Reception.TOO_LARGE: 413,
    Reception.UNAVAILABLE: 503,
}
RETRY_AFTER_S = 5
ENOUGH = MAX_BODY_BYTES + 3
"""As much of a body as tells that it is too large, also when the last base64 group of it is cut off."""


@cache
def telemetry() -> PowertoolsTelemetry:
    """The intake's voice."""
    lane = os.environ.get(env.LANE) or metrics.NO_STAGE
    return PowertoolsTelemetry(names.intake(lane), stage=os.environ.get(env.STAGE) or metrics.NO_STAGE)


@cache
def _intake() -> Intake:
    return wiring.intake(IntakeSettings.from_env(os.environ), telemetry())


def webhook_of(event: Mapping[str, Any]) -> Webhook:
    """A request in payload format 2.0, whatever stands in its fields."""
    headers = {str(name).lower(): value for name, value in _table(event.get("headers")).items()}
    return Webhook(
        tenant=_table(event.get("pathParameters")).get("tenant"),
        body=_raw(event.get("body"), encoded=event.get("isBase64Encoded") is True),
        timestamp=headers.get(TIMESTAMP_HEADER),
        signature=headers.get(SIGNATURE_HEADER),
    )


def _raw(body: object, *, encoded: bool) -> bytes:
    """The bytes that were signed. Never more than enough is decoded; what cannot be decoded is no body."""
    if not isinstance(body, str):
        return b""
    if not encoded:
        return body[:ENOUGH].encode(errors="surrogatepass")
    try:
        return base64.b64decode(body[: ENOUGH // 3 * 4], validate=True)
    except ValueError:
        return b""


def _table(value: object) -> Mapping[Any, Any]:
    return value if isinstance(value, Mapping) else {}


def answer_to(received: Received) -> dict[str, Any]:
    """The answer: a word, the job's id, a sentence of ours. One and the same for every doubt about the sender."""
    told = {"outcome": received.reception.value, "job_id": received.job_id, "problem": received.problem}
    headers = {"content-type": "application/json"}
    if received.reception is Reception.UNAVAILABLE:
        headers["retry-after"] = str(RETRY_AFTER_S)
    return {
        "statusCode": STATUS[received.reception],
        "headers": headers,
        "body": json.dumps({name: value for name, value in told.items() if value is not None}),
    }


@door(telemetry, names.INTAKE)
def handler(event: Mapping[str, Any], context: Any) -> dict[str, Any]:
    """Raises for no request: only when the function itself is not set up or not allowed to write."""
    return answer_to(receive_event(webhook_of(event), _intake()))
