"""`BatchProvider` on a plain batch endpoint, as one hosts oneself: no files, no SDK, no list of everything.

    POST   /jobs                {"tag": …, "requests": [{"key", "model", "instructions", "text", "max_tokens"}, …]}
    GET    /jobs?tag=           {"jobs": [{"job": id}, …]}, oldest first
    GET    /jobs/{id}           {"job": id, "state": …, "done": n, "of": m, "code": …}
    GET    /jobs/{id}/results   one JSON line a request, answered or refused
    DELETE /jobs/{id}           stop

Its states and its lines have names of their own: nothing of the port is OpenAI's but the words of its docstrings.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import quote

from shared.adapters.vendors.batch_files import (
    answered,
    check_size,
    fields_of,
    in_time,
    lines_of,
    unreadable,
    within,
)
from shared.adapters.vendors.batch_replies import (
    TIMEOUT,
    UNREACHABLE,
    UNREADABLE,
    Reply,
    declined,
    failed,
    id_of,
    not_taken,
    number_of,
    refused,
)
from shared.adapters.vendors.http import MAX_REPLY_BYTES, NO_TOKEN_S, HttpVendor
from shared.core.batch import (
    NotTaken,
    NoWord,
    Over,
    Progress,
    Request,
    ResultLine,
    Submission,
    Taken,
    UnderWay,
    Vanished,
)
from shared.core.errors import Unavailable

_UNDER_WAY = {"waiting": "validating", "running": "in_progress", "stopping": "cancelling"}
_OVER = {"done": "completed", "stopped": "cancelled", "timed_out": "expired", "broken": "failed"}
_CODES = {"timed_out": "batch_expired"}
"""This provider's codes, where the port has a word of its own for the same."""


class PlainBatch(HttpVendor):
    """Speaks jobs; tokens, time-outs and connections are those of any HTTP vendor."""

    most_lines, most_bytes = 10_000, 50_000_000

    def submit(self, tag: str, requests: Sequence[Request], *, timeout_s: float) -> Submission:
        """One request has it all, so its answer is the whole answer."""
        if not 0 < len(requests) <= self.most_lines:
            return NotTaken("too_many_lines" if requests else "no_lines", permanent=True)
        data = json.dumps({"tag": tag, "requests": [_asked(request) for request in requests]}).encode()
        if len(data) > self.most_bytes:
            return NotTaken("too_large", permanent=True)
        said = self._ask("POST", "/jobs", timeout_s, data=data)
        job_id = id_of(within(said.body, "job"))
        return Taken(job_id) if job_id else not_taken(said)

    def find(self, tag: str, *, timeout_s: float, since: datetime | None = None) -> list[str] | NoWord:
        """It keeps them by tag."""
        said = self._ask("GET", "/jobs", timeout_s, params={"tag": tag})
        jobs = within(said.body, "jobs")
        found = [id_of(within(job, "job")) for job in jobs] if isinstance(jobs, list) else [None]
        ids = [job_id for job_id in found if job_id is not None]
        return ids if len(ids) == len(found) else NoWord(said.reason or UNREADABLE)

    def progress(self, provider_id: str, *, timeout_s: float) -> Progress:
        """How far it is."""
        said = self._ask("GET", _path(provider_id), timeout_s)
        if said.status in (404, 410) and said.spoken:
            return Vanished()
        job, state = said.body, str(within(said.body, "state"))
        if job is None or job.get("job") != provider_id:
            return NoWord(said.reason or UNREADABLE)
        if state in _UNDER_WAY:
            done, total = number_of(job.get("done")), number_of(job.get("of"))
            return UnderWay(_UNDER_WAY[state], done=done or 0, total=total or 0)
        if state not in _OVER:
            return NoWord(UNREADABLE)
        return failed(job.get("code")) if state == "broken" else Over(status=_OVER[state], output=provider_id)

    def results(self, over: Over, *, timeout_s: float) -> Iterator[ResultLine]:
        """The lines of its one file; `timeout_s` is what may be waited for it in all."""
        if over.output is not None:
            for line in lines_of(self._chunks(over.output, timeout_s), self.most_bytes):
                yield _result(line)

    def cancel(self, provider_id: str, *, timeout_s: float) -> None:
        """Ask it to stop."""
        self._ask("DELETE", _path(provider_id), timeout_s)

    # ----------------------------------------------------------------------------------------------- one request
    def _ask(
        self,
        method: str,
        path: str,
        timeout_s: float,
        *,
        data: bytes | None = None,
        params: Mapping[str, str] | None = None,
        fresh: bool = False,
    ) -> Reply:
        """One request, one reply. A 401 was certainly not accepted: once more, with a fresh token."""
        import httpx

        heard: Reply | None = None
        try:
            headers = {"Content-Type": "application/json", **self._auth(fresh)}
            wait = self._timeout(timeout_s)
            with self._open().stream(method, path, content=data, params=params, headers=headers, timeout=wait) as reply:
                status = reply.status_code
                heard = Reply(status=status, reason="" if status < 300 else str(status))
                body = _object(b"".join(_bounded(in_time(reply.iter_bytes(), timeout_s))))
            told = reply.headers.get("Retry-After")
            heard = Reply(status=200, body=body) if status < 300 else refused(status, body, told)
        except Unavailable as exc:
            return heard or Reply(reason=exc.reason, unsent=True, retry_after_s=NO_TOKEN_S)
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout):
            return Reply(reason=UNREACHABLE, unsent=True)
        except httpx.TimeoutException:
            return heard or Reply(reason=TIMEOUT)
        except (httpx.LocalProtocolError, ValueError):
            # Before an answer: a token that HTTP cannot carry. After it: a body that does not end.
            return heard or Reply(reason="request_unsendable", unsent=True)
        except httpx.HTTPError as exc:
            return heard or Reply(reason=type(exc).__name__)
        if heard.status == 401 and not fresh:
            return self._ask(method, path, timeout_s, data=data, params=params, fresh=True)
        return heard

    def _chunks(self, job_id: str, timeout_s: float) -> Iterator[bytes]:
        """The file's bytes as they come. Raises Unavailable when it cannot be read to its end."""
        import httpx

        try:
            headers, wait = self._auth(False), self._timeout(timeout_s)
            with self._open().stream("GET", f"{_path(job_id)}/results", headers=headers, timeout=wait) as reply:
                if reply.status_code != 200:
                    raise Unavailable("result file", str(reply.status_code))
                check_size(reply.headers.get("Content-Length"), self.most_bytes)
                yield from in_time(reply.iter_bytes(), timeout_s)
        except httpx.HTTPError as exc:
            raise Unavailable("result file", type(exc).__name__) from None


def _asked(request: Request) -> dict[str, Any]:
    prompt = request.prompt
    return {
        "key": request.custom_id,
        "model": prompt.model,
        "instructions": prompt.instructions,
        "text": prompt.text.reveal(),
        "max_tokens": prompt.max_tokens,
    }


def _result(line: bytes) -> ResultLine:
    fields = fields_of(line)
    key, ok = id_of(within(fields, "key")), within(fields, "ok")
    if fields is None or key is None or not isinstance(ok, bool):
        return unreadable(line, "key")
    if ok:
        return answered(key, fields.get("text"), fields.get("tokens"), cut=fields.get("cut") is True)
    code = fields.get("code")
    return declined(key, number_of(fields.get("status")), _CODES.get(str(code), code))


def _path(job_id: str) -> str:
    return f"/jobs/{quote(job_id, safe='')}"


def _bounded(chunks: Iterator[bytes]) -> Iterator[bytes]:
    read = 0
    for chunk in chunks:
        read += len(chunk)
        if read > MAX_REPLY_BYTES:
            raise ValueError("the reply does not end")
        yield chunk


def _object(content: bytes) -> Mapping[str, Any] | None:
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
