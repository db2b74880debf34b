"""Runs the emulator on loopback and records who called what. Executed by the emulator's own interpreter:

    python -I ops/local/launcher.py --port 0 --port-file FILE --calls FILE

It adds four things. The socket is bound before the emulator is imported, so a port chosen by the kernel is never
lost to somebody else. And every Lambda gets an access key that names it, so the signature of each request says which
function sent it: production code needs no marker for that. And an event-source filter for an absent attribute matches
as it does on AWS. And how many invocations of a function were under way at once can be asked.

And it makes four things faster, with the same answers: a response leaves in one write, an expression of DynamoDB that
was seen before is not taken apart again, rows are copied without the bookkeeping of a general copy, and a package is
unpacked once for all processes that run it.
"""

from __future__ import annotations

import argparse
import asyncio
import copy
import hashlib
import importlib
import json
import os
import resource
import shutil
import socket
import sys
import zipfile
from collections.abc import Awaitable, Callable
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TextIO

ROOT = Path(__file__).resolve().parents[2]
# The project is importable only for this one line: what the emulator and its Lambdas import must come from
# the emulator's environment and the staged packages, never from the working copy.
sys.path.insert(0, str(ROOT))
from ops.local.actions import Request, actions, signature  # noqa: E402
from ops.local.peaks import Peaks  # noqa: E402

sys.path.remove(str(ROOT))

KEY_PREFIX = "LAMBDA."
Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]


class CallRecorder:
    """An ASGI layer that writes each new (function, action, resource) once."""

    def __init__(self, app: App, *, account: str, out: TextIO) -> None:
        self._app = app
        self._account = account
        self._out = out
        self._seen: set[tuple[str, str, str]] = set()

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        function = _sender(scope) if scope["type"] == "http" else None
        if function is None:
            await self._app(scope, receive, send)
            return
        chunks: list[bytes] = []
        noted = False

        def note() -> None:
            nonlocal noted
            if not noted:
                noted = True
                self._note(scope, b"".join(chunks), function)

        async def overheard() -> Message:
            message = await receive()
            if message["type"] == "http.request":
                chunks.append(message.get("body", b""))
                if not message.get("more_body"):
                    note()
            return message

        try:
            await self._app(scope, overheard, send)
        finally:
            note()  # the emulator never asks for the body of a GET

    def _note(self, scope: Message, body: bytes, function: str) -> None:
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        signer = signature(headers["authorization"])
        if signer is None:
            return
        request = Request(
            method=scope["method"],
            path=scope["path"],
            query=scope.get("query_string", b"").decode("latin-1"),
            headers=headers,
            body=body,
        )
        try:
            pairs = actions(request, service=signer.service, region=signer.region, account=self._account)
        except Exception as exc:  # a request nobody foresaw must not stop the emulator, nor go unseen
            pairs = {(f"{signer.service}:unreadable", type(exc).__name__)}
        for action, resource_arn in pairs:
            key = (function, action, resource_arn)
            if key not in self._seen:
                self._seen.add(key)
                line = {"function": function, "action": action, "resource": resource_arn}
                self._out.write(json.dumps(line) + "\n")
                self._out.flush()


def _sender(scope: Message) -> str | None:
    """The function that signed a request; None for everybody else."""
    for name, value in scope["headers"]:
        if name == b"authorization":
            signer = signature(value.decode("latin-1"))
            if signer and signer.access_key.startswith(KEY_PREFIX):
                return signer.access_key.removeprefix(KEY_PREFIX)
            return None
    return None


def name_functions() -> None:
    """Give each function's processes an access key that carries the function's name."""
    runtime: Any = importlib.import_module("ministack.core.lambda_runtime")
    service: Any = importlib.import_module("ministack.services.lambda_svc")
    given: Callable[[Message], dict[str, str]] = runtime.execution_credentials

    def named(config: Message) -> dict[str, str]:
        # Any key that is not twelve digits belongs to the emulator's one account.
        return {**given(config), "AWS_ACCESS_KEY_ID": KEY_PREFIX + config["FunctionName"]}

    for module in (runtime, service):
        if module.execution_credentials is not given:
            raise RuntimeError("the emulator hands out Lambda credentials another way than expected")
        module.execution_credentials = named


def match_absent_parts() -> None:
    """A filter that asks for an absent leaf matches on AWS when its whole branch is absent; here it would not."""
    service: Any = importlib.import_module("ministack.services.lambda_svc")
    given: Callable[[Message, Message], bool] = service._match_esm_filter

    def matches(record: Message, pattern: Message) -> bool:
        absent: Message = {key: {} for key, part in pattern.items() if isinstance(part, dict) and key not in record}
        return given({**record, **absent}, pattern)

    service._match_esm_filter = matches


def remember_expressions() -> None:
    """DynamoDB expressions come again and again: keep what their text alone decides, their words and their grammar."""
    service: Any = importlib.import_module("ministack.services.dynamodb")
    words = lru_cache(maxsize=4096)(service._tokenize)
    service._tokenize = lambda text: list(words(text))
    service._condition_syntax_error = lru_cache(maxsize=4096)(service._condition_syntax_error)


def copy_rows_plainly() -> None:
    """A row is a tree of maps, lists and plain values: it needs no memory of what was copied already."""
    service: Any = importlib.import_module("ministack.services.dynamodb")
    service.copy = SimpleNamespace(copy=copy.copy, deepcopy=copied)


def copied(value: Any) -> Any:
    """A copy that shares nothing that can be changed."""
    kind = type(value)
    if kind is dict:
        return {name: copied(part) for name, part in value.items()}
    if kind is list:
        return [copied(part) for part in value]
    return value if kind in (str, int, bool, bytes, float, type(None)) else copy.deepcopy(value)


class UnpackedOnce(zipfile.ZipFile):
    """A package whose files stand in one place, however many processes run it: nobody writes to its code on AWS. What
    Python compiled for the first stands there for the rest."""

    def extractall(self, path: Any = None, members: Any = None, pwd: Any = None) -> None:
        """Let `path`, an empty folder, lead to where the files are."""
        asked, package = Path(path), Path(str(self.filename))
        shared = package.parent.parent / f"code-{hashlib.sha256(package.read_bytes()).hexdigest()[:16]}"
        if not shared.exists():
            mine = package.parent / "unpacked"
            super().extractall(mine, members, pwd)
            try:
                mine.rename(shared)
            except OSError:  # another process was first
                shutil.rmtree(mine)
        asked.rmdir()
        asked.symlink_to(shared, target_is_directory=True)


def unpack_once() -> None:
    """Every process of a function unpacks its package anew: thousands of files, to write and to remove again."""
    runtime: Any = importlib.import_module("ministack.core.lambda_runtime")
    runtime.zipfile = SimpleNamespace(**{**vars(zipfile), "ZipFile": UnpackedOnce})


class OneWrite:
    """A connection that sends what is written in one turn of the loop in one go.

    The server writes a response's head and its body apart, and each would wake the caller.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._kept: list[bytes] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Keep it until the turn is over."""
        if not self._kept:
            self._loop.call_soon(self.flush)
        self._kept.append(data)

    def flush(self) -> None:
        """Send what was kept."""
        if self._kept:
            kept, self._kept = b"".join(self._kept), []
            self._transport.write(kept)

    def close(self) -> None:
        """What was written before is sent before."""
        self.flush()
        self._transport.close()


def one_write_protocol() -> type:
    """uvicorn's protocol with its C parser, on such connections."""
    given: Any = importlib.import_module("uvicorn.protocols.http.httptools_impl").HttpToolsProtocol

    class Protocol(given):  # type: ignore[misc]  # known at run time only
        def connection_made(self, transport: asyncio.Transport) -> None:
            super().connection_made(OneWrite(transport, self.loop))

    return Protocol


def main() -> None:
    """Bind, say where, serve until told to stop."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--port-file", type=Path, required=True)
    parser.add_argument("--calls", type=Path, required=True)
    chosen = parser.parse_args()

    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    listener.bind(("127.0.0.1", chosen.port))
    port = listener.getsockname()[1]
    os.environ["GATEWAY_PORT"] = str(port)  # read on import: by the queue URLs, and by the Lambdas' endpoint

    emulator = importlib.import_module("ministack.app")
    uvicorn = importlib.import_module("uvicorn")
    name_functions()
    match_absent_parts()
    remember_expressions()
    copy_rows_plainly()
    unpack_once()
    peaks = Peaks()
    peaks.watch(importlib.import_module("ministack.services.lambda_svc"))

    # Its pollers and the request loop share one interpreter: hand over sooner than after the usual 5 ms.
    sys.setswitchinterval(0.0005)
    # A burst of Lambdas opens more sockets than the usual soft limit of 1024.
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

    with chosen.calls.open("a", encoding="utf-8") as out:
        recorder = CallRecorder(emulator.app, account=os.environ["MINISTACK_ACCOUNT_ID"], out=out)
        draft = chosen.port_file.with_suffix(".draft")
        draft.write_text(f"{port}\n")
        draft.replace(chosen.port_file)
        # Served by uvicorn with its C parser: the emulator's own server spends more on HTTP than on the answer.
        config = uvicorn.Config(
            peaks.served(recorder),
            http=one_write_protocol(),
            loop="uvloop",
            ws="none",
            lifespan="on",
            log_level="warning",
            access_log=False,
            proxy_headers=False,
            date_header=False,  # the emulator writes its own
            timeout_keep_alive=75,
            timeout_graceful_shutdown=1,  # it holds nothing that outlives it
        )
        uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
