"""What travels in a queue: ids and codes only, strictly read."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from typing import Any

from shared.contract import strict_json

VERSION = 1
MAX_BYTES = 4096


class BadEnvelope(ValueError):
    """The body is not one of ours; the message says why and holds none of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket:
    """A job's ticket to its worker."""

    job_id: str
    lane: str


def encode_ticket(job_id: str, lane: str) -> str:
    """The body of a lane queue's message."""
    return json.dumps({"v": VERSION, "job": job_id, "lane": lane}, separators=(",", ":"))


def decode_ticket(body: str) -> Ticket:
    """The ticket in a body, or BadEnvelope. A dead letter's body reads as a ticket, too."""
    fields = _read(body)
    return Ticket(job_id=_job_id(fields), lane=_text(fields, "lane", 32))


def encode_dead_letter(*, job_id: str, lane: str, category: str, signature: str, at: str) -> str:
    """The body of a dead letter."""
    letter = {
        "v": VERSION,
        "job": job_id,
        "lane": lane,
        "category": category,
        "signature": signature,
        "at": at,
    }
    return json.dumps(letter, separators=(",", ":"))


def is_dead_letter(body: str) -> bool:
    """True for the body of a dead letter, which a ticket's is not."""
    try:
        return "category" in _read(body)
    except BadEnvelope:
        return False


def _read(body: str) -> dict[str, Any]:
    try:
        fields = strict_json.loads(body, max_bytes=MAX_BYTES, max_depth=2)
    except strict_json.NotStrict as exc:
        raise BadEnvelope(f"envelope {exc}") from None
    if not isinstance(fields, dict):
        raise BadEnvelope("envelope is not an object")
    version = fields.get("v")
    if type(version) is not int or version != VERSION:
        raise BadEnvelope(f"envelope version is not {VERSION}")
    return fields


def _job_id(fields: dict[str, Any]) -> str:
    job_id = _text(fields, "job", 36)
    try:
        if str(uuid.UUID(job_id)) != job_id:
            raise ValueError
    except ValueError:
        raise BadEnvelope("envelope field job is not a job id") from None
    return job_id


def _text(fields: dict[str, Any], name: str, max_length: int) -> str:
    value = fields.get(name)
    if not isinstance(value, str) or not value:
        raise BadEnvelope(f"envelope field {name} is missing")
    if len(value) > max_length:
        raise BadEnvelope(f"envelope field {name} is too long")
    return value
