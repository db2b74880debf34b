"""A server that answers with exactly the bytes it was given, for replies no well-behaved vendor sends."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Self

from tests.waiting import PATIENCE_S

Script = Callable[[bytes], Iterable[bytes | float]]
"""Request → parts of the answer: bytes are sent, a number is a pause in seconds, over when the client goes; then the
connection is closed."""


class RawServer:
    """One connection at a time on loopback; keeps what it was sent."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self.requests: list[bytes] = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._ended, self._end = socket.socketpair()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    def answer(self, script: Script) -> None:
        """Another script from the next request on."""
        self._script = script

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # A listening socket that is only closed may leave `accept` waiting; a shut one wakes it.
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._end.close()
        self._thread.join(PATIENCE_S)
        self._ended.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection, contextlib.suppress(OSError):
                connection.settimeout(PATIENCE_S)
                request = _read(connection)
                if not request:
                    continue
                self.requests.append(request)
                for part in self._script(request):
                    if isinstance(part, bytes):
                        connection.sendall(part)
                    else:
                        select.select([connection, self._ended], [], [], part)


def _read(connection: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        part = connection.recv(65_536)
        if not part:
            return b""
        data += part
    head, _, body = data.partition(b"\r\n\r\n")
    lengths = [int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")]
    while len(body) < sum(lengths):
        body += connection.recv(65_536)
    return head + b"\r\n\r\n" + body


def reply(status: str, body: bytes = b"", *headers: str, length: int | None = None) -> bytes:
    """A whole HTTP reply; `length` may lie."""
    stated = len(body) if length is None else length
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {stated}", "Connection: close", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def dripping(head: bytes) -> Iterator[bytes | float]:
    """A body that comes blank by blank, until the client has enough of it."""
    yield head
    while True:
        yield b" "
        yield 0.05
