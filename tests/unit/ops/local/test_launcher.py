"""What stands between the emulator and its callers: the call recorder, and the quicker ways of the launcher."""

from __future__ import annotations

import asyncio
import io
import json
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ops.local.launcher import CallRecorder, OneWrite, UnpackedOnce, copied

Message = dict[str, Any]


def _scope(key: str, *, method: str = "POST", path: str = "/", target: str = "", service: str = "dynamodb") -> Message:
    credential = f"Credential={key}/20260101/us-east-1/{service}/aws4_request"
    headers = [(b"authorization", f"AWS4-HMAC-SHA256 {credential}, Signature=0".encode())]
    if target:
        headers.append((b"x-amz-target", target.encode()))
    return {"type": "http", "method": method, "path": path, "query_string": b"", "headers": headers}


class _World:
    """An emulator that reads the body, or does not, and remembers what reached it."""

    def __init__(self, *, reads: bool = True) -> None:
        self.out = io.StringIO()
        self.seen = b""
        self._reads = reads
        self._recorder = CallRecorder(self._emulator, account="000000000000", out=self.out)

    async def _emulator(self, scope: Message, receive: Any, send: Any) -> None:
        more = self._reads
        while more:
            message = await receive()
            self.seen += message.get("body", b"")
            more = message.get("more_body", False)

    def send(self, scope: Message, *chunks: bytes) -> None:
        waiting = [
            {"type": "http.request", "body": chunk, "more_body": position < len(chunks) - 1}
            for position, chunk in enumerate(chunks)
        ]

        async def receive() -> Message:
            return waiting.pop(0)

        async def reply(message: Message) -> None:
            raise AssertionError("nothing answers here")

        asyncio.run(self._recorder(scope, receive, reply))

    @property
    def lines(self) -> list[dict[str, str]]:
        return [json.loads(line) for line in self.out.getvalue().splitlines()]


def test_each_call_of_a_function_is_written_once() -> None:
    """The same function, action and resource make one line, however often they occur."""
    world = _World()
    for _ in range(3):
        scope = _scope("LAMBDA.penstock-local-stream", target="DynamoDB_20120810.GetItem")
        world.send(scope, b'{"TableName": "jo', b'bs"}')
    expected = [
        {
            "function": "penstock-local-stream",
            "action": "dynamodb:GetItem",
            "resource": "arn:aws:dynamodb:us-east-1:000000000000:table/jobs",
        }
    ]
    assert expected == world.lines


def test_the_emulator_gets_the_body_as_it_was_sent() -> None:
    """Listening changes nothing of what is heard."""
    world = _World()
    world.send(_scope("LAMBDA.f", target="DynamoDB_20120810.PutItem"), b'{"Table', b'Name": "t"}')
    assert world.seen == b'{"TableName": "t"}'


def test_a_request_whose_body_nobody_reads_is_recorded() -> None:
    """A GET counts too, although the emulator never asks for its body."""
    world = _World(reads=False)
    world.send(_scope("LAMBDA.f", method="GET", path="/bucket/key", service="s3"), b"")
    assert [(one["action"], one["resource"]) for one in world.lines] == [("s3:GetObject", "arn:aws:s3:::bucket/*")]


def test_other_callers_leave_no_line() -> None:
    """Tests, people and the command line call too; they are no function."""
    world = _World()
    world.send(_scope("PENSTOCKABC", target="DynamoDB_20120810.PutItem"), b'{"TableName": "t"}')
    world.send({"type": "http", "method": "GET", "path": "/", "query_string": b"", "headers": []}, b"")
    assert world.lines == []


def test_a_request_that_cannot_be_read_stops_nothing_and_is_seen() -> None:
    """A surprise in the recorder is a line of its own, never an error for the caller."""
    world = _World()
    scope = _scope("LAMBDA.f", target="DynamoDB_20120810.TransactWriteItems")
    world.send(scope, b'{"TransactItems": ["not an item"]}')
    assert [(one["action"], one["resource"]) for one in world.lines] == [("dynamodb:unreadable", "AttributeError")]


class _Wire:
    """A transport that keeps what it is given."""

    def __init__(self) -> None:
        self.sent: list[bytes | str] = []

    def write(self, data: bytes) -> None:
        self.sent.append(data)

    def close(self) -> None:
        self.sent.append("closed")

    def is_closing(self) -> bool:
        return False


def _written(*steps: tuple[str, bytes]) -> list[bytes | str]:
    wire = _Wire()

    async def turns() -> None:
        connection: Any = OneWrite(wire, asyncio.get_running_loop())  # type: ignore[arg-type]
        assert not connection.is_closing()
        for name, data in steps:
            match name:
                case "write":
                    connection.write(data)
                case "turn":
                    await asyncio.sleep(0)
                case "close":
                    connection.close()
        await asyncio.sleep(0)

    asyncio.run(turns())
    return wire.sent


def test_a_head_and_its_body_leave_together() -> None:
    """What is written in one turn of the loop is one write, in its order; the next turn has its own."""
    sent = _written(("write", b"head"), ("write", b"body"), ("turn", b""), ("write", b"another"))
    assert sent == [b"headbody", b"another"]


def test_what_was_written_is_sent_before_the_connection_closes() -> None:
    """And once only."""
    assert _written(("write", b"last words"), ("close", b"")) == [b"last words", "closed"]


def test_a_copied_row_shares_nothing() -> None:
    """Equal, and a change of the one is none of the other; what is no plain value is copied the general way."""
    row: dict[str, Any] = {
        "pk": {"S": "a"},
        "l": {"L": [{"N": "1"}, {"M": {"b": {"B": b"x"}}}]},
        "at": {"x": datetime(2026, 1, 1, tzinfo=UTC), "tags": {"a"}},
    }
    other = copied(row)
    assert other == row
    other["l"]["L"][1]["M"]["b"]["B"] = b"y"
    other["at"]["tags"].add("b")
    assert row["l"]["L"][1] == {"M": {"b": {"B": b"x"}}}
    assert row["at"]["tags"] == {"a"}


def test_a_package_is_unpacked_once_for_all_who_run_it(tmp_path: Path) -> None:
    """Each process has its folder, with the same files behind it; another package, or another version, is another."""

    def unpacked(process: str, code: str) -> Path:
        folder = tmp_path / process
        (folder / "code").mkdir(parents=True)
        with zipfile.ZipFile(folder / "code.zip", "w") as package:
            package.writestr(zipfile.ZipInfo("app/handler.py"), code)
        with UnpackedOnce(folder / "code.zip") as package:
            package.extractall(folder / "code")
        assert (folder / "code" / "app" / "handler.py").read_text() == code
        return (folder / "code").resolve()

    assert unpacked("one", "first") == unpacked("two", "first")
    assert unpacked("three", "second") != unpacked("four", "first")
    assert len([place for place in tmp_path.iterdir() if place.name.startswith("code-")]) == 2
