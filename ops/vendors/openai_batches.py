"""The OpenAI-shaped files and batches.

POST   /openai/v1/files                    a form: purpose=batch, file
DELETE /openai/v1/files/{id}
GET    /openai/v1/files/{id}/content
POST   /openai/v1/batches                  {"input_file_id", "endpoint", "completion_window", "metadata"}
GET    /openai/v1/batches[?after=ID&limit=N]    newest first
GET    /openai/v1/batches/{id}
POST   /openai/v1/batches/{id}/cancel
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from ops.vendors.asks import Ask, Bad, Batching, Compute, Served
from ops.vendors.batch_config import UNPAID, BatchConfig, LineFault
from ops.vendors.batches import ENDED, TOKEN_LIMIT, Batch, BatchDesk, Line, Outcome
from ops.vendors.json_body import BodyError, read_object, required_text
from ops.vendors.multipart import read_form
from ops.vendors.record import VerdictKind
from ops.vendors.request import VendorRequest

Read = Callable[[dict[str, Any], bytes], Compute]
"""How the body of a line is read: as a request of its own would be."""
TAG = "penstock_tag"
MOST_LISTED = 100
TOO_LONG = "x" * 100_001
_OUTPUT, _ERRORS = "file-out-", "file-err-"
_REFUSALS = {
    LineFault.REFUSED: (400, "invalid_request"),
    LineFault.RATE_LIMITED: (429, "rate_limit_exceeded"),
    LineFault.SERVER_ERROR: (500, "server_error"),
}


def read_batching(request: VendorRequest, reads: Mapping[str, Read], config: BatchConfig) -> Ask:
    """What a request to these paths asks for. `reads` has a reader for each endpoint a batch may be for."""
    match (request.method, *request.segments[2:]):
        case ("POST", "files"):
            return _read_upload(request)
        case ("DELETE", "files", file_id):
            return _ask("file_delete", VerdictKind.COMPUTED, lambda desk, now, new: _delete(desk, file_id))
        case ("GET", "files", file_id, "content"):
            return _ask("file_read", VerdictKind.LOOKED_UP, lambda desk, now, new: _content(desk, now, file_id))
        case ("POST", "batches"):
            return _read_create(request, reads, config)
        case ("GET", "batches"):
            return _read_list(request)
        case ("GET", "batches", batch_id):
            return _ask("batch_read", VerdictKind.LOOKED_UP, lambda desk, now, new: _show(desk, now, batch_id))
        case ("POST", "batches", batch_id, "cancel"):
            return _ask("batch_cancel", VerdictKind.COMPUTED, lambda desk, now, new: _cancel(desk, now, batch_id))
    return Bad(status=404, sentence="files and batches have no such path")


def _ask(action: str, kind: VerdictKind, serve: Callable[[BatchDesk, datetime, str], Served], key: str = "") -> Ask:
    return Batching(action=action, kind=kind, serve=serve, key=key)


def _refuse(status: int, code: str | None, sentence: str) -> Served:
    error = {"message": sentence, "type": "invalid_request_error", "param": None, "code": code}
    return Served(status=status, body={"error": error})


# ------------------------------------------------------------------------------------------------------- files
def _read_upload(request: VendorRequest) -> Ask:
    try:
        form = read_form(request.headers.get("content-type", ""), request.body)
    except BodyError as exc:
        return Bad(status=400, sentence=str(exc))
    if form.get("purpose") != b"batch" or "file" not in form:
        return Bad(status=400, sentence="the form must have a file, and batch as its purpose")
    content = form["file"]

    def serve(desk: BatchDesk, now: datetime, new: str) -> Served:
        file_id = f"file-{new}"
        desk.files[file_id] = content
        body = {
            "id": file_id,
            "object": "file",
            "bytes": len(content),
            "created_at": int(now.timestamp()),
            "filename": "requests.jsonl",
            "purpose": "batch",
            "status": "processed",
        }
        return Served(body=body, vendor_id=file_id)

    return _ask("file", VerdictKind.COMPUTED, serve)


def _delete(desk: BatchDesk, file_id: str) -> Served:
    if desk.files.pop(file_id, None) is None:
        return _refuse(404, None, "there is no such file")
    return Served(body={"id": file_id, "object": "file", "deleted": True})


def _content(desk: BatchDesk, now: datetime, file_id: str) -> Served:
    if file_id in desk.files:
        return Served(content=desk.files[file_id])
    for prefix, errors in ((_OUTPUT, False), (_ERRORS, True)):
        batch = desk.get(file_id.removeprefix(prefix), now) if file_id.startswith(prefix) else None
        if batch is not None and batch.status(now) in ENDED:
            return Served(content=b"".join(_files(batch, now)[errors]))
    return _refuse(404, None, "there is no such file")


# ----------------------------------------------------------------------------------------------------- batches
def _read_create(request: VendorRequest, reads: Mapping[str, Read], config: BatchConfig) -> Ask:
    try:
        fields = read_object(request.body)
        file_id, endpoint = required_text(fields, "input_file_id"), required_text(fields, "endpoint")
        if fields.get("completion_window") != "24h":
            raise BodyError("completion_window must be 24h")
        if endpoint not in reads:
            raise BodyError(f"endpoint must be one of {', '.join(reads)}")
        metadata = fields.get("metadata") or {}
        if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
            raise BodyError("metadata must be an object of texts")
    except BodyError as exc:
        return Bad(status=400, sentence=str(exc))
    tag = metadata.get(TAG, "")

    def serve(desk: BatchDesk, now: datetime, new: str) -> Served:
        if file_id not in desk.files:
            return _refuse(400, "invalid_file", "there is no such file")
        lines, code = _lines(desk.files[file_id], endpoint, reads[endpoint])
        batch = desk.take(
            batch_id=f"batch_{new}",
            tag=tag,
            lines=lines,
            now=now,
            config=config,
            source=file_id,
            endpoint=endpoint,
            code=code,
        )
        if batch is None:
            return _refuse(400, TOKEN_LIMIT, "the enqueued tokens are used up")
        return Served(body=_shown(batch, now), vendor_id=batch.batch_id)

    return _ask("batch", VerdictKind.ACCEPTED, serve, key=tag)


def _lines(content: bytes, endpoint: str, read: Read) -> tuple[list[Line], str]:
    """The lines of an input file, or the code with which its batch fails."""
    lines: list[Line] = []
    for raw in content.splitlines():
        try:
            fields = read_object(raw)
            custom_id, body = required_text(fields, "custom_id"), fields.get("body")
            if fields.get("method") != "POST" or fields.get("url") != endpoint or not isinstance(body, dict):
                return [], "invalid_request"
            compute = read(body, hashlib.sha256(json.dumps(body, sort_keys=True).encode()).digest())
        except BodyError:
            return [], "invalid_json_line"
        lines.append(Line(custom_id=custom_id, tokens=compute.tokens, answer=compute.answer))
    if len({line.custom_id for line in lines}) < len(lines):
        return [], "duplicate_custom_id"
    return (lines, "") if lines else ([], "empty_file")


def _read_list(request: VendorRequest) -> Ask:
    limit, after = request.query.get("limit", "20"), request.query.get("after", "")
    if not (limit.isascii() and limit.isdigit() and 1 <= int(limit[:9]) <= MOST_LISTED):
        return Bad(status=400, sentence=f"limit must be a whole number from 1 to {MOST_LISTED}")

    def serve(desk: BatchDesk, now: datetime, new: str) -> Served:
        known = desk.known(now)[::-1]
        names = [batch.batch_id for batch in known]
        start = names.index(after) + 1 if after in names else 0
        if after and not start:
            return _refuse(400, None, "after is no batch")
        page = known[start : start + int(limit)]
        body = {
            "object": "list",
            "data": [_shown(batch, now) for batch in page],
            "first_id": page[0].batch_id if page else None,
            "last_id": page[-1].batch_id if page else None,
            "has_more": start + int(limit) < len(known),
        }
        return Served(body=body)

    return _ask("batch_list", VerdictKind.LOOKED_UP, serve)


def _show(desk: BatchDesk, now: datetime, batch_id: str) -> Served:
    batch = desk.get(batch_id, now)
    return _refuse(404, None, "there is no such batch") if batch is None else Served(body=_shown(batch, now))


def _cancel(desk: BatchDesk, now: datetime, batch_id: str) -> Served:
    batch = desk.get(batch_id, now)
    if batch is None:
        return _refuse(404, None, "there is no such batch")
    if batch.status(now) in ENDED:
        return _refuse(409, None, "the batch has ended")
    desk.cancel(batch, now)
    return Served(body=_shown(batch, now))


def _shown(batch: Batch, now: datetime) -> dict[str, object]:
    status = batch.status(now)
    faults = [outcome.fault for outcome in batch.outcomes(now)] if status in ENDED else []
    errors = any(fault in UNPAID for fault in faults)
    output = batch.config.unknown_lines > 0 or not all(fault in UNPAID | {LineFault.MISSING} for fault in faults)
    failed = [{"code": batch.code, "message": "the batch failed", "param": None, "line": None}]
    return {
        "id": batch.batch_id,
        "object": "batch",
        "endpoint": batch.endpoint,
        "errors": {"object": "list", "data": failed} if status == "failed" else None,
        "input_file_id": batch.source,
        "completion_window": "24h",
        "status": status,
        "output_file_id": f"{_OUTPUT}{batch.batch_id}" if output else None,
        "error_file_id": f"{_ERRORS}{batch.batch_id}" if errors else None,
        "created_at": int(batch.taken_at.timestamp()),
        "expires_at": int(batch.at(batch.config.expires_s).timestamp()),
        "request_counts": {"total": len(batch.lines), "completed": batch.done(now), "failed": 0},
        "metadata": {TAG: batch.tag} if batch.tag else {},
    }


# ------------------------------------------------------------------------------------------------ result files
def _files(batch: Batch, now: datetime) -> tuple[list[bytes], list[bytes]]:
    """The lines of its two files: answers and refusals."""
    output: list[bytes] = []
    errors: list[bytes] = []
    for outcome in batch.outcomes(now):
        if outcome.fault in UNPAID:
            errors.append(_refusal(outcome))
        else:
            output += _answers(outcome, now)
    for number in range(batch.config.unknown_lines if batch.lines else 0):
        output.append(_line(f"nobody-{number}.1", 200, _with_text(batch.lines[0].answer(now), "unasked")))
    return output, errors


def _answers(outcome: Outcome, now: datetime) -> list[bytes]:
    line, body = outcome.line, outcome.line.answer(now)
    good = _line(line.custom_id, 200, body)
    match outcome.fault:
        case LineFault.MISSING:
            return []
        case LineFault.DUPLICATE:
            return [good, good]
        case LineFault.CONFLICT:
            return [good, _line(line.custom_id, 200, _with_text(body, "another answer"))]
        case LineFault.MALFORMED:
            return [good[: len(good) // 2] + b"\n"]
        case LineFault.NAMELESS:
            return [b"{ no line\n"]
        case LineFault.TOO_LONG:
            return [_line(line.custom_id, 200, _with_text(body, TOO_LONG))]
    return [good]


def _refusal(outcome: Outcome) -> bytes:
    custom_id = outcome.line.custom_id
    if outcome.fault is LineFault.EXPIRED:
        error = {"code": "batch_expired", "message": "not begun before the completion window expired"}
        return _dump({"id": f"batch_req_{custom_id}", "custom_id": custom_id, "response": None, "error": error})
    status, code = _REFUSALS[outcome.fault or LineFault.REFUSED]
    return _line(custom_id, status, {"error": {"message": "refused", "type": "error", "param": None, "code": code}})


def _line(custom_id: str, status: int, body: Mapping[str, object]) -> bytes:
    response = {"status_code": status, "request_id": f"req_{custom_id}", "body": body}
    return _dump({"id": f"batch_req_{custom_id}", "custom_id": custom_id, "response": response, "error": None})


def _with_text(body: Mapping[str, Any], text: str) -> Mapping[str, Any]:
    changed = copy.deepcopy(dict(body))
    if "choices" in changed:
        changed["choices"][0]["message"]["content"] = text
    else:
        changed["output"][0]["content"][0]["text"] = text
    return changed


def _dump(line: Mapping[str, object]) -> bytes:
    return json.dumps(line, separators=(",", ":")).encode() + b"\n"
