"""`BatchProvider` on the OpenAI Batch API, with the official SDK: a file of requests, a batch of it, two files of
results. The one module that loads the SDK; whoever has no batches does not import it.

The SDK retries nothing, follows nothing and is told how long to wait. It logs methods and statuses, no bodies; its
errors hold the provider's words and never leave this module.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import httpx2
import openai

from shared.adapters.vendors.batch_files import check_size, in_time, lines_of, within
from shared.adapters.vendors.batch_replies import (
    TIMEOUT,
    UNREACHABLE,
    UNREADABLE,
    Reply,
    certainly,
    failed,
    id_of,
    not_taken,
    number_of,
    refused,
)
from shared.adapters.vendors.http import KEEPALIVE_S, MAX_REPLY_BYTES, NO_TOKEN_S, Token
from shared.adapters.vendors.openai_batch_lines import shape_of
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
from shared.core.vendor import VendorSpec

TAG = "penstock_tag"
PAGE, MOST_PAGES = 100, 200
MOST_LINES, MOST_BYTES = 50_000, 200_000_000
FILES_KEPT_S = 14 * 86_400
"""The provider deletes what was sent and what it answered after this."""
LEAST_S = 1.0
"""With less time left, nothing is begun that must not be broken off."""
_SKEW = timedelta(hours=1)
_UNDER_WAY = ("validating", "in_progress", "finalizing", "cancelling")
_OVER = ("completed", "failed", "expired", "cancelled")

Send = Callable[[openai.OpenAI, dict[str, Any]], Any]


class OpenAiBatch:
    """Speaks files and batches."""

    most_lines, most_bytes = MOST_LINES, MOST_BYTES

    def __init__(self, spec: VendorSpec, *, token: Token, adapter_kind: str = "openai_chat") -> None:
        self.name = spec.name
        self._spec, self._token, self._shape = spec, token, shape_of(adapter_kind)
        self._lock = threading.Lock()
        self._client: openai.OpenAI | None = None

    def submit(self, tag: str, requests: Sequence[Request], *, timeout_s: float) -> Submission:
        """Upload the requests, then create the batch: only the second can leave a doubt."""
        if not 0 < len(requests) <= self.most_lines:
            return NotTaken("too_many_lines" if requests else "no_lines", permanent=True)
        data = b"".join(self._shape.line(request) for request in requests)
        if len(data) > self.most_bytes:
            return NotTaken("too_large", permanent=True)
        until_s = time.monotonic() + timeout_s
        uploaded = self._ask(
            lambda client, how: client.files.with_raw_response.create(
                file=("requests.jsonl", data, "application/jsonl"),
                purpose="batch",
                expires_after={"anchor": "created_at", "seconds": FILES_KEPT_S},
                **how,
            ),
            timeout_s,
        )
        file_id = id_of(within(uploaded.body, "id"))
        if file_id is None:
            return certainly(not_taken(uploaded))
        left_s = until_s - time.monotonic()
        said = self._create(tag, file_id, left_s) if left_s > LEAST_S else NotTaken(TIMEOUT)
        if isinstance(said, NotTaken):
            # A file without a batch is nobody's; when it cannot be deleted, it goes by itself.
            self._ask(lambda client, how: client.files.with_raw_response.delete(file_id, **how), LEAST_S)
        return said

    def _create(self, tag: str, file_id: str, timeout_s: float) -> Submission:
        created = self._ask(
            lambda client, how: client.batches.with_raw_response.create(
                input_file_id=file_id,
                endpoint=self._shape.endpoint,
                completion_window="24h",
                metadata={TAG: tag},
                output_expires_after={"anchor": "created_at", "seconds": FILES_KEPT_S},
                **how,
            ),
            timeout_s,
        )
        batch_id = id_of(within(created.body, "id"))
        return Taken(batch_id) if batch_id else not_taken(created)

    def find(self, tag: str, *, timeout_s: float, since: datetime | None = None) -> list[str] | NoWord:
        """Read the list, newest first, to its end or to a batch well older than the intent."""
        until_s, after, found = time.monotonic() + timeout_s, None, list[str]()
        for _ in range(MOST_PAGES):
            left_s = until_s - time.monotonic()
            if left_s <= 0:
                return NoWord(TIMEOUT)
            listed = self._ask(_page(after), left_s)
            batches, more = within(listed.body, "data"), within(listed.body, "has_more")
            if not isinstance(batches, list) or not isinstance(more, bool):
                return NoWord(listed.reason or UNREADABLE)
            for batch in batches:
                batch_id, carried = id_of(within(batch, "id")), within(batch, "metadata", TAG)
                if batch_id is None:
                    return NoWord(UNREADABLE)
                if carried == tag and batch_id not in found:
                    found.append(batch_id)
            last = batches[-1] if batches else None
            if not more or _older(within(last, "created_at"), since):
                return found[::-1]
            if last is None or last["id"] == after:
                break
            after = last["id"]
        return NoWord("endless_list")

    def progress(self, provider_id: str, *, timeout_s: float) -> Progress:
        """How far it is."""
        asked = self._ask(lambda client, how: client.batches.with_raw_response.retrieve(provider_id, **how), timeout_s)
        if asked.status in (404, 410) and asked.spoken:
            return Vanished()
        batch = asked.body
        if batch is None or batch.get("id") != provider_id:
            return NoWord(asked.reason or UNREADABLE)
        status, counts = batch.get("status"), batch.get("request_counts")
        if status in _UNDER_WAY:
            done = sum(number_of(within(counts, name)) or 0 for name in ("completed", "failed"))
            return UnderWay(status, done=done, total=number_of(within(counts, "total")) or 0)
        if status not in _OVER:
            return NoWord(UNREADABLE)
        if status == "failed":
            errors = within(batch, "errors", "data")
            return failed(within(errors[0] if isinstance(errors, list) and errors else None, "code"))
        return Over(
            status=status,
            output=id_of(batch.get("output_file_id")),
            errors=id_of(batch.get("error_file_id")),
        )

    def results(self, over: Over, *, timeout_s: float) -> Iterator[ResultLine]:
        """The lines of both files; `timeout_s` is what may be waited for each of them in all."""
        for file_id in (over.output, over.errors):
            if file_id is not None:
                for line in lines_of(self._chunks(file_id, timeout_s), self.most_bytes):
                    yield self._shape.result(line)

    def cancel(self, provider_id: str, *, timeout_s: float) -> None:
        """Ask it to stop."""
        self._ask(lambda client, how: client.batches.with_raw_response.cancel(provider_id, **how), timeout_s)

    def close(self) -> None:
        """Let go of its connections; the next request opens new ones."""
        with self._lock:
            if self._client is not None:
                self._client.close()
                self._client = None

    # ----------------------------------------------------------------------------------------------- one request
    def _ask(self, send: Send, timeout_s: float, *, fresh: bool = False) -> Reply:
        """One request, one reply. A 401 was certainly not accepted: once more, with a fresh token."""
        try:
            raw = send(self._open(), self._how(timeout_s, fresh=fresh))
            reply = Reply(status=int(raw.status_code), body=_object(raw.content))
        except Unavailable as exc:
            return Reply(reason=exc.reason, unsent=True, retry_after_s=NO_TOKEN_S)
        except openai.OpenAIError as exc:
            reply = _reply_to(exc)
        except (TypeError, ValueError):
            # A token or an id that HTTP cannot carry: nothing was sent, and the error may hold either.
            return Reply(reason="request_unsendable", unsent=True)
        return self._ask(send, timeout_s, fresh=True) if reply.status == 401 and not fresh else reply

    def _chunks(self, file_id: str, timeout_s: float) -> Iterator[bytes]:
        """A file's bytes as they come. Raises Unavailable when it cannot be read to its end."""
        try:
            how = self._how(timeout_s, fresh=False)
            with self._open().files.with_streaming_response.content(file_id, **how) as reply:
                check_size(reply.headers.get("content-length"), self.most_bytes)
                yield from in_time(reply.iter_bytes(), timeout_s)
        except openai.OpenAIError as exc:
            raise Unavailable("result file", _reply_to(exc).reason) from None
        except (httpx2.HTTPError, httpx2.StreamError) as exc:
            raise Unavailable("result file", type(exc).__name__) from None

    def _how(self, timeout_s: float, *, fresh: bool) -> dict[str, Any]:
        """What every request is given: its token and its time."""
        token = self._token(fresh).strip()
        connect = min(self._spec.connect_timeout_s, timeout_s / 3)
        wait = httpx2.Timeout(connect=connect, read=timeout_s - connect, write=timeout_s - connect, pool=connect)
        return {"timeout": wait, "extra_headers": {"Authorization": f"Bearer {token}" if token else openai.Omit()}}

    def _open(self) -> openai.OpenAI:
        with self._lock:
            if self._client is None:
                self._client = openai.OpenAI(
                    api_key="given with each request",
                    base_url=self._spec.base_url,
                    max_retries=0,
                    http_client=httpx2.Client(transport=_Bounded(), follow_redirects=False),
                )
            return self._client


class _Bounded(httpx2.HTTPTransport):
    """Answers that end: however slowly one comes, it is read for as long as one read may take, and no further than
    any answer goes. Files are bounded by who reads them."""

    def __init__(self) -> None:
        super().__init__(retries=0, limits=httpx2.Limits(keepalive_expiry=KEEPALIVE_S))

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        response = super().handle_request(request)
        if not (request.url.path.endswith("/content") and response.status_code == 200):
            read_s = float(request.extensions["timeout"]["read"])
            response.stream = _Ending(response.stream, time.monotonic() + read_s)  # type: ignore[arg-type]
        return response


class _Ending(httpx2.SyncByteStream):
    def __init__(self, stream: httpx2.SyncByteStream, until_s: float) -> None:
        self._stream, self._until_s = stream, until_s

    def __iter__(self) -> Iterator[bytes]:
        read = 0
        for chunk in self._stream:
            read += len(chunk)
            if read > MAX_REPLY_BYTES:
                raise httpx2.ReadError("the reply is too long")
            if time.monotonic() > self._until_s:
                raise httpx2.ReadTimeout("the reply does not end")
            yield chunk

    def close(self) -> None:
        self._stream.close()


def _page(after: str | None) -> Send:
    cursor: dict[str, Any] = {"after": after} if after else {}
    return lambda client, how: client.batches.with_raw_response.list(limit=PAGE, **cursor, **how)


def _reply_to(error: openai.OpenAIError) -> Reply:
    """What an error of the SDK's means. Its text is the provider's: it stays here."""
    if isinstance(error, openai.APIStatusError):
        return refused(error.status_code, error.body, error.response.headers.get("retry-after"))
    cause = error.__cause__
    if isinstance(cause, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.PoolTimeout):
        return Reply(reason=UNREACHABLE, unsent=True)
    if isinstance(error, openai.APITimeoutError):
        return Reply(reason=TIMEOUT)
    return Reply(reason=type(cause or error).__name__)


def _object(content: bytes) -> Mapping[str, Any] | None:
    with contextlib.suppress(ValueError, RecursionError):
        value = json.loads(content)
        return value if isinstance(value, dict) else None
    return None


def _older(created_at: object, since: datetime | None) -> bool:
    """Well older than that, clocks being what they are."""
    created = number_of(created_at)
    return since is not None and created is not None and created < (since - _SKEW).timestamp()
