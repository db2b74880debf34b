"""A plain batch endpoint, as one hosts oneself: a job with all its requests, found by its tag, one file of results.

POST   /plain/jobs                {"tag": …, "requests": [{"key", "model", "instructions", "text", "max_tokens"}]}
GET    /plain/jobs?tag=T          oldest first
GET    /plain/jobs/{id}
GET    /plain/jobs/{id}/results   one JSON line a request
DELETE /plain/jobs/{id}           stop
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from ops.vendors.asks import Ask, Bad, Batching, Served
from ops.vendors.batch_config import LineFault
from ops.vendors.batches import ENDED, TOKEN_LIMIT, Batch, BatchDesk, Line, Outcome
from ops.vendors.config import VendorConfig
from ops.vendors.json_body import BodyError, read_object, required_text
from ops.vendors.openai_answers import Format, answer_for, count_tokens
from ops.vendors.openai_batches import TOO_LONG
from ops.vendors.record import VerdictKind
from ops.vendors.request import VendorRequest

NAME = "plain"
_STATES = {
    "validating": "waiting",
    "in_progress": "running",
    "finalizing": "running",
    "cancelling": "stopping",
    "completed": "done",
    "cancelled": "stopped",
    "expired": "timed_out",
    "failed": "broken",
}
_REFUSALS = {
    LineFault.REFUSED: (400, "invalid_request"),
    LineFault.RATE_LIMITED: (429, "too_many"),
    LineFault.SERVER_ERROR: (500, "crashed"),
    LineFault.EXPIRED: (None, "timed_out"),
}


class PlainBatches:
    """The shape of the plain batch endpoint."""

    def read(self, request: VendorRequest, config: VendorConfig) -> Ask:
        """What the request asks for."""
        match (request.method, *request.segments[1:]):
            case ("POST", "jobs"):
                return _read_submit(request, config)
            case ("GET", "jobs"):
                tag = request.query.get("tag", "")
                return _ask("batch_list", VerdictKind.LOOKED_UP, lambda desk, now, new: _list(desk, now, tag))
            case ("GET", "jobs", job_id):
                return _of(job_id, "batch_read", VerdictKind.LOOKED_UP, lambda desk, batch, now: _show(batch, now))
            case ("GET", "jobs", job_id, "results"):
                return _of(job_id, "file_read", VerdictKind.LOOKED_UP, lambda desk, batch, now: _results(batch, now))
            case ("DELETE", "jobs", job_id):
                return _of(job_id, "batch_cancel", VerdictKind.COMPUTED, _stop)
        return Bad(status=404, sentence="there is no such path; there are jobs")

    def error(self, status: int, sentence: str) -> dict[str, object]:
        """A code and a sentence, side by side."""
        return {"code": "too_many" if status == 429 else "refused", "sentence": sentence}


def _ask(action: str, kind: VerdictKind, serve: Callable[[BatchDesk, datetime, str], Served], key: str = "") -> Ask:
    return Batching(action=action, kind=kind, serve=serve, key=key)


def _of(job_id: str, action: str, kind: VerdictKind, serve: Callable[[BatchDesk, Batch, datetime], Served]) -> Ask:
    def found(desk: BatchDesk, now: datetime, new: str) -> Served:
        batch = desk.get(job_id, now)
        if batch is None:
            return Served(status=404, body={"code": "unknown_job", "sentence": "there is no such job"})
        return serve(desk, batch, now)

    return _ask(action, kind, found)


def _read_submit(request: VendorRequest, config: VendorConfig) -> Ask:
    try:
        fields = read_object(request.body)
        tag, asked = required_text(fields, "tag"), fields.get("requests")
        if not isinstance(asked, list) or not asked or not all(isinstance(each, dict) for each in asked):
            raise BodyError("requests must be a list of objects that is not empty")
        lines = [_line_of(each, config) for each in asked]
        if len({line.custom_id for line in lines}) < len(lines):
            raise BodyError("each of requests must have a key of its own")
    except BodyError as exc:
        return Bad(status=400, sentence=str(exc))

    def serve(desk: BatchDesk, now: datetime, new: str) -> Served:
        batch = desk.take(batch_id=f"j-{new}", tag=tag, lines=lines, now=now, config=config.batches)
        if batch is None:
            return Served(status=400, body={"code": TOKEN_LIMIT, "sentence": "the tokens are used up"})
        return Served(status=201, body={"job": batch.batch_id}, vendor_id=batch.batch_id)

    return _ask("batch", VerdictKind.ACCEPTED, serve, key=tag)


def _line_of(fields: dict[str, Any], config: VendorConfig) -> Line:
    key, text = required_text(fields, "key"), required_text(fields, "text")
    instructions, most = required_text(fields, "instructions"), fields.get("max_tokens")
    made = answer_for(
        digest=hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).digest(),
        prompt=f"{instructions}\n{text}",
        form=Format(),
        max_tokens=most if isinstance(most, int) and most > 0 else None,
        canned=config.canned_answers,
        material=text,
    )
    tokens = count_tokens(instructions) + count_tokens(text) + made.tokens
    answer = {"text": made.text, "tokens": tokens, "cut": made.cut}
    return Line(custom_id=key, tokens=tokens, answer=lambda now: answer)


def _list(desk: BatchDesk, now: datetime, tag: str) -> Served:
    return Served(body={"jobs": [{"job": batch.batch_id} for batch in desk.known(now) if batch.tag == tag]})


def _show(batch: Batch, now: datetime) -> Served:
    state = _STATES[batch.status(now)]
    body = {"job": batch.batch_id, "state": state, "done": batch.done(now), "of": len(batch.lines)}
    return Served(body={**body, "code": batch.code if state == "broken" else None})


def _stop(desk: BatchDesk, batch: Batch, now: datetime) -> Served:
    desk.cancel(batch, now)
    return _show(batch, now)


def _results(batch: Batch, now: datetime) -> Served:
    if batch.status(now) not in ENDED:
        return Served(status=409, body={"code": "not_ended", "sentence": "the job has not ended"})
    lines = [line for outcome in batch.outcomes(now) for line in _lines(outcome, now)]
    extra = {"text": "unasked", "tokens": 1, "cut": False}
    lines += [_good(f"nobody-{number}.1", extra) for number in range(batch.config.unknown_lines)]
    return Served(content=b"".join(lines))


def _lines(outcome: Outcome, now: datetime) -> list[bytes]:
    key, answer = outcome.line.custom_id, outcome.line.answer(now)
    if outcome.fault in _REFUSALS:
        status, code = _REFUSALS[outcome.fault]
        return [_dump({"key": key, "ok": False, "status": status, "code": code})]
    good = _good(key, answer)
    match outcome.fault:
        case LineFault.MISSING:
            return []
        case LineFault.DUPLICATE:
            return [good, good]
        case LineFault.CONFLICT:
            return [good, _good(key, {**answer, "text": "another answer"})]
        case LineFault.MALFORMED:
            return [good[: len(good) // 2] + b"\n"]
        case LineFault.NAMELESS:
            return [b"{ no line\n"]
        case LineFault.TOO_LONG:
            return [_good(key, {**answer, "text": TOO_LONG})]
    return [good]


def _good(key: str, answer: Mapping[str, object]) -> bytes:
    return _dump({"key": key, "ok": True, **answer})


def _dump(line: Mapping[str, object]) -> bytes:
    return json.dumps(line, separators=(",", ":")).encode() + b"\n"
