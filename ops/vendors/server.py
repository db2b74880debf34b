"""The vendor simulator as an HTTP server on loopback, in process or as a process of its own.

with VendorSimulator(seed=7) as vendor:
    httpx.post(f"{vendor.url}/helpdesk/conversations/c1/replies", json={"text": "Hello"})
    vendor.configure("helpdesk", outage=True)
    assert vendor.record.duplicates() == 0
"""

from __future__ import annotations

import contextlib
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from http.server import ThreadingHTTPServer
from pathlib import Path
from socketserver import TCPServer
from types import TracebackType
from typing import Any, Self

from ops.vendors.accounts import Accounts
from ops.vendors.config import VendorConfig
from ops.vendors.connection import Connection
from ops.vendors.journal import Journal
from ops.vendors.record import Record

HOST = "127.0.0.1"
Clock = Callable[[], datetime]


def steady_clock() -> Clock:
    """The time in UTC, which never goes back even if somebody sets the machine's clock."""
    started_at, started_s = datetime.now(UTC), time.monotonic()

    def now() -> datetime:
        return started_at + timedelta(seconds=time.monotonic() - started_s)

    return now


class LoopbackServer(ThreadingHTTPServer):
    """One thread a connection, all of them closed when the server is closed."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 256

    def __init__(self, *, port: int, accounts: Accounts, clock: Clock) -> None:
        self.accounts = accounts
        self.clock = clock
        self.stopping = threading.Event()
        self.connections: set[socket.socket] = set()
        super().__init__((HOST, port), Connection)

    def server_bind(self) -> None:
        """Bind without asking the resolver for this machine's name, which can take seconds."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = HOST, self.server_address[1]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A fault of the simulator itself: say its type on stderr, never a trace with a body in it."""
        print(f"vendor simulator failed on a request: {type(sys.exception()).__name__}", file=sys.stderr)

    def stop(self) -> None:
        """Refuse new connections, close the open ones, and wake whoever hangs."""
        self.stopping.set()
        self.shutdown()
        self.server_close()
        for connection in tuple(self.connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


class VendorSimulator:
    """Every vendor behind one port. `stop` and `start` keep the port, the record and the switches.

    While it is stopped, a connection to its port is refused by the operating system: the one failure
    that tells a caller for certain that nothing was accepted.
    """

    def __init__(
        self,
        *,
        port: int = 0,
        seed: int = 0,
        record_file: Path | None = None,
        configs: Mapping[str, Mapping[str, object]] | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._journal = Journal(record_file) if record_file else None
        entries = self._journal.load() if self._journal else ()
        self.accounts = Accounts(seed=seed, record=Record(entries=entries, sink=self._journal), configs=configs)
        self._clock = clock or steady_clock()
        self._port = port
        self._server: LoopbackServer | None = None

    @property
    def record(self) -> Record:
        """What was seen and accepted."""
        return self.accounts.record

    @property
    def port(self) -> int:
        """The port in use; known from the first start on."""
        return self._port

    @property
    def url(self) -> str:
        """The address of the simulator; a vendor's name follows it."""
        return f"http://{HOST}:{self._port}"

    @property
    def helpdesk_url(self) -> str:
        """The base address of the help desk."""
        return f"{self.url}/helpdesk"

    @property
    def openai_url(self) -> str:
        """The base address of the inference vendor, as its SDK wants it."""
        return f"{self.url}/openai/v1"

    @property
    def plain_url(self) -> str:
        """The base address of the plain batch endpoint."""
        return f"{self.url}/plain"

    def batches(self, vendor: str, tag: str = "") -> dict[str, Any]:
        """What batches an account took, by tag where one is named, and how often each custom id was paid for."""
        return self.accounts.vendor(vendor).batches(self._clock(), tag)

    def configure(self, vendor: str, **changes: object) -> VendorConfig:
        """Change some switches of one vendor at once. Raises ConfigError."""
        return self.accounts.configure(vendor, **changes)

    def reset(self, *, keep_config: bool = False) -> None:
        """Forget everything, and go back to the starting configuration."""
        self.accounts.reset(keep_config=keep_config)

    def start(self) -> None:
        """Listen. Raises OSError when the port is taken."""
        if self._server is not None:
            return
        server = LoopbackServer(port=self._port, accounts=self.accounts, clock=self._clock)
        self._server, self._port = server, server.server_port
        threading.Thread(
            target=server.serve_forever, kwargs={"poll_interval": 0.05}, name="vendors", daemon=True
        ).start()

    def stop(self) -> None:
        """Close the port and every connection. Nothing is forgotten."""
        if self._server is not None:
            self._server.stop()
            self._server = None

    def close(self) -> None:
        """Stop, and let go of the record file."""
        self.stop()
        if self._journal is not None:
            self._journal.close()
            self._journal = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
