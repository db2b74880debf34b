"""One client's connection: reads requests, lets the accounts decide, and acts the verdict out.

The connection waits, hangs, closes and answers; it decides nothing.
"""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import sys
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlsplit

from ops.vendors.accounts import Accounts
from ops.vendors.asks import Bad
from ops.vendors.control import PREFIX, handle_control
from ops.vendors.head import Head, HeadError, read_head
from ops.vendors.record import VerdictKind
from ops.vendors.request import MAX_BODY_BYTES, VendorRequest
from ops.vendors.verdict import Verdict

if TYPE_CHECKING:
    from ops.vendors.server import LoopbackServer

_LINGER_S = 1.0
_LINGER_BYTES = 16 * MAX_BODY_BYTES


class Connection(BaseHTTPRequestHandler):
    """HTTP/1.1 with keep-alive. Every answer is one write; every error is JSON with a sentence."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = 120  # an idle connection is closed after this many seconds
    server: LoopbackServer
    raw_requestline: bytes
    _head: Head

    def setup(self) -> None:
        """Let the server know the connection, so that stopping closes it."""
        super().setup()
        self.server.connections.add(self.connection)

    def finish(self) -> None:
        """The client may be gone: that is no error here."""
        self.server.connections.discard(self.connection)
        with contextlib.suppress(OSError, ValueError):
            super().finish()

    def handle(self) -> None:
        """Serve until either side closes. A client that goes away in the middle is everyday life."""
        with contextlib.suppress(ConnectionError, TimeoutError):
            super().handle()

    def parse_request(self) -> bool:
        """Read the head. False when it cannot be read, which has then been answered."""
        try:
            self._head = read_head(self.raw_requestline, self.rfile.readline)
        except HeadError as exc:
            self.send_error(exc.status, exc.sentence)
            return False
        self.command, self.path = self._head.method, self._head.target
        self.close_connection = not self._head.keep_alive
        if self._head.headers.get("expect", "").lower() == "100-continue":
            self.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        return True

    def serve(self) -> None:
        """Answer one request, whose head has been read."""
        request = self._request()
        accounts, now = self.server.accounts, self.server.clock
        vendor = accounts.vendor_of(request.path)
        if vendor is not None and vendor.turn_away(request, now()) is not None:
            self._reset()
            return
        body = self._body(request.most_bytes)
        if body is None:  # the client went away before the end: nothing was asked for
            self.close_connection = True
            return
        unread = body if isinstance(body, Bad) else None
        request = replace(request, body=b"" if isinstance(body, Bad) else body)
        try:
            verdict = (
                _without_vendor(accounts, request, unread, now())
                if vendor is None
                else vendor.handle(request, now(), unread=unread)
            )
        except Exception as exc:
            # A fault of the simulator's own must not look like one of the faults it simulates.
            print(f"vendor simulator failed on a request: {type(exc).__name__}", file=sys.stderr)
            self._answer(500, {"error": f"the simulator itself failed ({type(exc).__name__})"})
            return
        self._act_out(verdict)
        if unread is not None:
            self._linger()

    def _act_out(self, verdict: Verdict) -> None:
        stopped = verdict.wait_s > 0 and self.server.stopping.wait(verdict.wait_s)
        if stopped or verdict.status is None:
            self.close_connection = True
        else:
            self._answer(verdict.status, verdict.body, verdict.headers, content=verdict.content)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_OPTIONS = serve

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What is refused before anybody is asked: an unreadable head, an unknown method."""
        self.close_connection = True
        status = 405 if code == HTTPStatus.NOT_IMPLEMENTED else code
        self._answer(status, {"error": f"the request cannot be read: {message or _phrase(status)}", "status": status})

    def log_message(self, format: str, *args: object) -> None:
        """Silent: the record is the log."""

    def _request(self) -> VendorRequest:
        path, query = self.path, ""
        with contextlib.suppress(ValueError):
            parts = urlsplit(self.path)
            path, query = parts.path, parts.query
        fields: dict[str, str] = {}
        with contextlib.suppress(ValueError):  # more fields than the parser allows: none of ours
            for name, value in parse_qsl(query, keep_blank_values=True, max_num_fields=50):
                fields.setdefault(name, value)
        return VendorRequest(method=self.command, path=path, query=fields, headers=self._head.headers)

    def _body(self, most_bytes: int) -> bytes | Bad | None:
        """The whole body; or why it is not read, after which the connection ends; or none, broken off."""
        stated = self._head.headers.get("content-length", "0")
        if "transfer-encoding" in self._head.headers:
            refused = Bad(status=411, sentence="send a Content-Length: chunked bodies are not read here")
        elif not (stated.isascii() and stated.isdigit()):
            refused = Bad(status=400, sentence="Content-Length must be a number")
        elif len(stated) > 12 or int(stated) > most_bytes:
            refused = Bad(status=413, sentence=f"the body may have at most {most_bytes} bytes")
        else:
            body = self.rfile.read(int(stated))
            return body if len(body) == int(stated) else None
        self.close_connection = True
        return refused

    def _linger(self) -> None:
        """Read on for a while: closing while the client still sends would reset our answer away."""
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_WR)
            self.connection.settimeout(_LINGER_S)
            left = _LINGER_BYTES
            while left > 0 and (read := self.connection.recv(65_536)):
                left -= len(read)

    def _answer(
        self,
        status: int,
        body: Mapping[str, object],
        headers: Mapping[str, str] | None = None,
        *,
        content: bytes | None = None,
    ) -> None:
        kind = "application/json" if content is None else "application/octet-stream"
        content = json.dumps(body, separators=(",", ":")).encode() if content is None else content
        lines = [f"HTTP/1.1 {status} {_phrase(status)}", f"content-type: {kind}"]
        lines.append(f"content-length: {len(content)}")
        lines.append(f"date: {self.date_time_string()}")
        lines.extend(f"{name}: {value}" for name, value in (headers or {}).items())
        if self.close_connection:
            lines.append("connection: close")
        head = ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
        self.wfile.write(head if getattr(self, "command", None) == "HEAD" else head + content)

    def _reset(self) -> None:
        """Close at once, with a reset: the rest of the request stays unread."""
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Simulated"


def _without_vendor(accounts: Accounts, request: VendorRequest, unread: Bad | None, now: datetime) -> Verdict:
    """The answer to what goes to no vendor: the simulator's own doors, or nowhere. It is not recorded."""
    bad = unread
    if bad is None and request.segments[0] == PREFIX:
        answer = handle_control(accounts, request, now)
        return Verdict(kind=VerdictKind.LOOKED_UP, status=answer.status, body=answer.body)
    if bad is None:
        bad = Bad(status=404, sentence=f"there is no such vendor; there are {', '.join(accounts.vendors)}")
    body = {"error": bad.sentence, "status": bad.status}
    return Verdict(kind=VerdictKind.REFUSED_4XX, status=bad.status, body=body)
