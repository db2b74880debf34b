"""One HTTP vendor: one request, one verdict, client retries off. httpx and what reads an answer's headers are loaded
on first use."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import quote

from shared.core.effects import (
    Absent,
    Accepted,
    Answer,
    Call,
    Effect,
    Found,
    Lookup,
    LookupAnswer,
    NoAnswer,
    Refused,
    Unknown,
)
from shared.core.errors import BadInput, Unavailable
from shared.core.feedback import Report
from shared.core.sensitive import Sensitive
from shared.core.vendor import VendorSpec

if TYPE_CHECKING:
    import httpx

Token = Callable[[bool], str]
"""Gives the vendor's token; True asks for a fresh one after a 401."""
NO_TOKEN_S = 60.0
MAX_CONNECTIONS = 32
MAX_REPLY_BYTES = 4 * 1024 * 1024
_ID = re.compile(r"[A-Za-z0-9._:@+=/-]{1,128}")
KEEPALIVE_S = 2.0
"""Shorter than servers keep idle connections, so a send seldom meets one that was just closed."""


class HttpVendor:
    """What every HTTP vendor shares: the verdict of a reply. Subclasses name paths."""

    paths: ClassVar[Mapping[str, str]] = {}
    """action → path below the base address; `{target}` is filled with the request's target."""

    def __init__(self, spec: VendorSpec, *, token: Token) -> None:
        self.name = spec.name
        self.dedupes_by_key = timedelta(seconds=spec.dedupe_window_s) if spec.dedupe_window_s else None
        self.lookup = Lookup(spec.lookup)
        self._spec, self._token = spec, token
        self._lock = threading.Lock()
        self._client: httpx.Client | None = None

    def perform(self, request: Effect | Call, *, key: str | None, timeout_s: float) -> Answer:
        """One POST, one verdict; never raises for what the vendor does."""
        path = self.paths.get(request.action)
        if path is None:
            raise BadInput("action", f"{request.action!r} is not one of vendor {self.name}'s")
        if isinstance(request, Effect):
            path = path.format(target=quote(request.target, safe=""))
        headers = {} if key is None else {"Idempotency-Key": key}
        answer = self._post(path, request, headers, timeout_s, fresh_token=False)
        if isinstance(answer, Refused) and answer.auth:
            # The token may have been rotated: a 401 was certainly not accepted, so once more is safe.
            return self._post(path, request, headers, timeout_s, fresh_token=True)
        return answer

    def look_up(self, key: str, *, timeout_s: float) -> LookupAnswer:
        """Vendors without a look-up say so."""
        return NoAnswer("no_lookup")

    def close(self) -> None:
        """Let go of its connections; the next request opens new ones."""
        with self._lock:
            if self._client is not None:
                self._client.close()
                self._client = None

    def _post(
        self,
        path: str,
        request: Effect | Call,
        headers: dict[str, str],
        timeout_s: float,
        *,
        fresh_token: bool,
    ) -> Answer:
        import httpx

        try:
            sent = self._open().build_request(
                "POST",
                path,
                json=dict(request.body.reveal()),
                headers={**headers, **self._auth(fresh_token)},
                timeout=self._timeout(timeout_s),
            )
        except Unavailable as exc:
            # No token, so nothing was sent. The lane's secret must be mended; until then its jobs wait.
            return Refused(exc.reason, retry_after_s=NO_TOKEN_S, unsent=True)
        except (TypeError, ValueError):
            # A body or a token that HTTP cannot carry: nothing was sent, and the error may hold either.
            return Refused("request_unsendable", permanent=True, unsent=True)
        heard: Answer | None = None
        try:
            reply = self._open().send(sent, stream=True)
            try:
                # The status is the verdict. The body comes after it: cut off, late or garbled, it changes nothing.
                heard = verdict(
                    reply.status_code,
                    reply.headers.get("Retry-After"),
                    lambda: json.loads(_data(reply, timeout_s)),
                )
                heard = replace(heard, report=self._report(reply.headers, heard))
                if not reply.is_stream_consumed:
                    # Read to its end, a refusal leaves the connection open for the next request.
                    _data(reply, timeout_s)
            finally:
                reply.close()
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout):
            return heard or Refused("unreachable")
        except httpx.LocalProtocolError:
            return heard or Refused("request_unsendable", permanent=True, unsent=True)
        except httpx.TimeoutException:
            return heard or Unknown("timeout")
        except (httpx.HTTPError, ValueError) as exc:
            return heard or Unknown(type(exc).__name__)
        return heard

    def _report(self, headers: Mapping[str, str], heard: Answer) -> Report:
        """What the answer tells of the account: limits from its headers, use from its body."""
        from shared.adapters.vendors.rate_headers import report_of

        told = report_of(headers, datetime.now(UTC))
        if not isinstance(heard, Accepted) or heard.body is None:
            return told
        return replace(told, tokens_used=self.used_tokens(heard.body.reveal()))

    def used_tokens(self, content: Any) -> int | None:
        """The tokens an answer says it used; most vendors count none."""
        return None

    def _get(self, path: str, params: dict[str, str], timeout_s: float) -> Any:
        """The body of a 200, or None."""
        import httpx

        try:
            reply = self._open().get(path, params=params, headers=self._auth(False), timeout=self._timeout(timeout_s))
            return reply.json() if reply.status_code == 200 else None
        except (httpx.HTTPError, ValueError, Unavailable):
            return None

    def _auth(self, fresh: bool) -> dict[str, str]:
        # A secret pasted with a line break at its end is the commonest mistake there is.
        token = self._token(fresh).strip()
        # A vendor without a token is a vendor that asks for none; an empty one is no header HTTP can carry.
        return {"Authorization": f"Bearer {token}"} if token else {}

    def _timeout(self, timeout_s: float) -> httpx.Timeout:
        import httpx

        connect = min(self._spec.connect_timeout_s, timeout_s / 3)
        read = min(self._spec.read_timeout_s, timeout_s - connect)
        return httpx.Timeout(connect=connect, read=read, write=connect, pool=connect)

    def _open(self) -> httpx.Client:
        with self._lock:
            if self._client is None:
                import httpx

                self._client = httpx.Client(
                    base_url=self._spec.base_url,
                    transport=httpx.HTTPTransport(
                        retries=0,
                        limits=httpx.Limits(max_connections=MAX_CONNECTIONS, keepalive_expiry=KEEPALIVE_S),
                    ),
                    follow_redirects=False,
                )
            return self._client


def verdict(status: int, retry_after: str | None, body: Callable[[], Any]) -> Answer:
    """What a status code means. Reading the body comes after the verdict and cannot change it."""
    if 200 <= status < 300:
        return _accepted(body)
    if status == 429:
        from shared.adapters.vendors.retry_after import retry_after_s

        return Refused("429", retry_after_s=retry_after_s(retry_after, datetime.now(UTC)))
    if status in (401, 403):
        return Refused(str(status), auth=True)
    if status in (408, 409, 425) or not 400 <= status < 500:
        # A redirect after a POST may well mean that it was taken.
        return Unknown(str(status))
    return Refused(str(status), permanent=True)


def _accepted(body: Callable[[], Any]) -> Accepted:
    try:
        content = body()
    except Exception:
        # Whatever the vendor wrote, it has accepted; its text must not reach a log.
        return Accepted("")
    return Accepted(_vendor_id(content), Sensitive(content))


def _data(reply: httpx.Response, timeout_s: float) -> bytes:
    """The reply's body: bounded in size and in time, however slowly it comes."""
    data, until = b"", time.monotonic() + timeout_s
    for chunk in reply.iter_bytes():
        data += chunk
        if len(data) > MAX_REPLY_BYTES or time.monotonic() > until:
            raise ValueError("the reply does not end")
    return data


def _vendor_id(content: Any) -> str:
    """The id a reply gives; what is no id may be text, and a row keeps no text."""
    given = content.get("id") if isinstance(content, dict) else None
    text = str(given) if isinstance(given, str | int) else ""
    return text if _ID.fullmatch(text) else ""


def found_or_absent(content: Any) -> LookupAnswer:
    """The look-up's answer: `{"found": true, "id": …, "times": …}`; not every vendor says how often."""
    if not isinstance(content, dict) or not isinstance(content.get("found"), bool):
        return NoAnswer("unreadable")
    if not content["found"]:
        return Absent()
    times = content.get("times")
    told = isinstance(times, int) and not isinstance(times, bool) and times > 0
    return Found(_vendor_id(content), times=times if told else None)
