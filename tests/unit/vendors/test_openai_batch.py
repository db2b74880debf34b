"""The OpenAI Batch adapter against answers no well-behaved provider gives, over real sockets. Never a retry."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ops.vendors.server import VendorSimulator
from shared.adapters.vendors.batch_files import LONGEST_LINE
from shared.adapters.vendors.openai_batch import OpenAiBatch
from shared.core.batch import (
    MAX_ANSWER_CHARS,
    Answered,
    Declined,
    NotTaken,
    NoWord,
    Over,
    ResultLine,
    Taken,
    UnderWay,
    Unreadable,
    Vanished,
)
from shared.core.errors import BadInput, Unavailable
from shared.core.sensitive import Sensitive
from shared.core.vendor import VendorSpec
from tests.contract.providers import SECRET, a_request
from tests.unit.vendors.sockets import RawServer, dripping, reply
from tests.waiting import PATIENCE_S, with_time_enough

REQUESTS = [a_request("job-1.1"), a_request("job-2.1")]
TAG = "penstock/local/run-1/001"
FILE = reply("200 OK", b'{"id": "file-1", "object": "file"}', "Content-Type: application/json")
BATCH = {"id": "batch_1", "object": "batch", "status": "validating", "metadata": {"penstock_tag": TAG}}
PAGE = b"<html><body>Bad gateway</body></html>"


def answer(status: str, body: object, *headers: str) -> bytes:
    return reply(status, json.dumps(body).encode(), "Content-Type: application/json", *headers)


def refusal(status: str, code: object, *headers: str) -> bytes:
    error = {"message": f"{SECRET} in the provider's words", "type": "invalid_request_error", "code": code}
    return answer(status, {"error": error}, *headers)


@pytest.fixture
def server() -> Iterator[RawServer]:
    with RawServer(lambda request: [answer("200 OK", BATCH)]) as running:
        yield running


@pytest.fixture
def batches(server: RawServer) -> Iterator[OpenAiBatch]:
    made = an_adapter(f"{server.url}/v1")
    yield made
    made.close()


def an_adapter(address: str, token: Callable[[bool], str] = lambda fresh: "t") -> OpenAiBatch:
    return OpenAiBatch(VendorSpec(name="openai", kind="openai", base_url=address), token=token)


def doors(server: RawServer) -> list[str]:
    """The first lines of what the server was asked."""
    return [request.split(b" HTTP")[0].decode() for request in server.requests]


def with_file(created: bytes | float) -> Callable[[bytes], list[bytes | float]]:
    """The upload works; the batch is answered so."""

    def script(request: bytes) -> list[bytes | float]:
        if request.startswith(b"POST /v1/files"):
            return [FILE]
        return [answer("200 OK", {"deleted": True})] if request.startswith(b"DELETE") else [created]

    return script


CREATED = {
    "taken": (answer("200 OK", BATCH), Taken("batch_1")),
    "token limit": (refusal("400 Bad Request", "token_limit_exceeded"), NotTaken("token_limit_exceeded", limited=True)),
    "a bad file": (refusal("400 Bad Request", "invalid_file"), NotTaken("invalid_file", permanent=True)),
    "a code that is text": (refusal("400 Bad Request", f"{SECRET} again"), NotTaken("400", permanent=True)),
    "no access": (refusal("403 Forbidden", None), NotTaken("403", auth=True)),
    "429": (
        refusal("429 Too Many Requests", "rate_limit_exceeded", "Retry-After: 7"),
        NotTaken("rate_limit_exceeded", limited=True, retry_after_s=7.0),
    ),
    "429 of a gateway": (reply("429 Too Many", PAGE), NotTaken("429", limited=True, retry_after_s=30.0)),
    "unprocessable": (refusal("422 Unprocessable", None), NotTaken("422", permanent=True)),
    "conflict": (refusal("409 Conflict", None), NoWord("409")),
    "request timeout": (refusal("408 Request Timeout", None), NoWord("408")),
    "500": (refusal("500 Oh", "server_error"), NoWord("server_error")),
    "a gateway's 502": (reply("502 Bad Gateway", PAGE, "Content-Type: text/html"), NoWord("502")),
    "a redirect": (reply("302 Found", b"", "Location: http://127.0.0.1:1/"), NoWord("302")),
    "a page": (reply("200 OK", PAGE, "Content-Type: text/html"), NoWord("unreadable")),
    "no object": (answer("200 OK", ["batch_1"]), NoWord("unreadable")),
    "no id": (answer("200 OK", {"object": "batch"}), NoWord("unreadable")),
    "an id that is text": (answer("200 OK", {"id": f"a {SECRET}"}), NoWord("unreadable")),
    "cut off": (reply("200 OK", b'{"id": "bat', length=500), NoWord("RemoteProtocolError")),
    "dropped": (b"", NoWord("RemoteProtocolError")),
    "nonsense": (b"\x00\x01\x02 no HTTP\r\n\r\n", NoWord("RemoteProtocolError")),
}


@pytest.mark.parametrize(("created", "said"), CREATED.values(), ids=CREATED)
def test_every_answer_to_a_submission_has_its_meaning(
    batches: OpenAiBatch, server: RawServer, created: bytes, said: object
) -> None:
    """One upload, one create, one verdict; a file whose batch was certainly not taken is deleted, no other is."""
    server.answer(with_file(created))
    heard = batches.submit(TAG, REQUESTS, timeout_s=PATIENCE_S)
    assert heard == said
    asked = doors(server)
    assert asked[:2] == ["POST /v1/files", "POST /v1/batches"]
    assert asked[2:] == (["DELETE /v1/files/file-1"] if isinstance(said, NotTaken) else [])
    assert SECRET not in repr(heard)


UPLOADED = {
    "a page": (reply("200 OK", PAGE), NotTaken("unreadable")),
    "503": (refusal("503 Down", None), NotTaken("503")),
    "dropped": (b"", NotTaken("RemoteProtocolError")),
    "too large": (refusal("413 Too Large", None), NotTaken("413", permanent=True)),
    "429": (refusal("429 Slow", None, "Retry-After: 3"), NotTaken("429", limited=True, retry_after_s=3.0)),
}


@pytest.mark.parametrize(("uploaded", "said"), UPLOADED.values(), ids=UPLOADED)
def test_a_failed_upload_is_a_certain_no(
    batches: OpenAiBatch, server: RawServer, uploaded: bytes, said: object
) -> None:
    """Without a file there can be no batch, whatever became of the upload: there is no doubt to settle."""
    server.answer(lambda request: [uploaded])
    assert batches.submit(TAG, REQUESTS, timeout_s=PATIENCE_S) == said
    assert doors(server) == ["POST /v1/files"]


def test_an_answer_that_does_not_come_in_time(batches: OpenAiBatch, server: RawServer) -> None:
    """Silence after the batch was sent is no word; so is an answer that drips for ever."""
    server.answer(with_file(PATIENCE_S))
    said = with_time_enough(lambda limit_s: batches.submit(TAG, REQUESTS, timeout_s=limit_s), NotTaken("timeout"))
    assert said == NoWord("timeout")

    server.answer(lambda request: dripping(reply("200 OK", b"", "Content-Type: application/json", length=10_000)))
    assert batches.progress("batch_1", timeout_s=1.0) == NoWord("timeout")


def test_a_batch_is_not_begun_without_the_time_to_hear_of_it(
    batches: OpenAiBatch, server: RawServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An upload that took all the time is no reason to make a doubt: nothing is created, the file is deleted."""
    server.answer(with_file(answer("200 OK", BATCH)))
    monkeypatch.setattr("shared.adapters.vendors.openai_batch.LEAST_S", PATIENCE_S)
    assert batches.submit(TAG, REQUESTS, timeout_s=PATIENCE_S) == NotTaken("timeout")
    assert doors(server) == ["POST /v1/files", "DELETE /v1/files/file-1"]


def test_a_closed_port_is_a_certain_no() -> None:
    """Nothing was sent."""
    assert an_adapter("http://127.0.0.1:9/v1").submit(TAG, REQUESTS, timeout_s=PATIENCE_S) == NotTaken("unreachable")


@pytest.mark.parametrize("token", ["a\nb", "ä\u20ac", "a\x00b"])
def test_a_token_that_http_cannot_carry(server: RawServer, token: str) -> None:
    """Nothing is sent, and the token is in no answer."""
    heard = an_adapter(f"{server.url}/v1", token=lambda fresh: token).submit(TAG, REQUESTS, timeout_s=PATIENCE_S)
    assert isinstance(heard, NotTaken)
    assert (token not in repr(heard), server.requests) == (True, [])


def test_without_a_token_nothing_is_sent(server: RawServer) -> None:
    """A secret that cannot be read is no refusal of the provider's: it is asked again a minute later."""

    def no_token(fresh: bool) -> str:
        raise Unavailable("secret", "AccessDenied")

    batches = an_adapter(f"{server.url}/v1", token=no_token)
    assert batches.submit(TAG, REQUESTS, timeout_s=PATIENCE_S) == NotTaken("AccessDenied", retry_after_s=60.0)
    assert batches.find(TAG, timeout_s=PATIENCE_S) == NoWord("AccessDenied")
    assert batches.progress("batch_1", timeout_s=PATIENCE_S) == NoWord("AccessDenied")
    batches.cancel("batch_1", timeout_s=PATIENCE_S)
    with pytest.raises(Unavailable):
        list(batches.results(Over(status="completed", output="file-1"), timeout_s=PATIENCE_S))
    assert server.requests == []


def test_a_401_asks_for_a_fresh_token_once() -> None:
    """A rotated token is fetched again; one that is refused twice is the token's fault."""
    with VendorSimulator(seed=7) as simulator:
        batches = an_adapter(simulator.openai_url, token=lambda fresh: "new" if fresh else "old")
        simulator.configure("openai", valid_tokens=["new"])
        assert isinstance(batches.submit(TAG, REQUESTS, timeout_s=PATIENCE_S), Taken)
        assert len(simulator.batches("openai", TAG)["batches"]) == 1
        simulator.configure("openai", valid_tokens=["other"])
        assert batches.submit(TAG, REQUESTS, timeout_s=PATIENCE_S) == NotTaken("401", auth=True)


def test_an_account_without_a_token_is_sent_none(batches: OpenAiBatch, server: RawServer) -> None:
    """An empty token is no header; the SDK's own habits do not put one in its place."""
    an_adapter(f"{server.url}/v1", token=lambda fresh: "").progress("batch_1", timeout_s=PATIENCE_S)
    assert b"authorization" not in server.requests[0].lower()


def test_what_is_sent_is_the_batch_api(batches: OpenAiBatch, server: RawServer) -> None:
    """Purpose, endpoint, window, tag, and one line a request with its text in it; kept no longer than needed."""
    server.answer(with_file(answer("200 OK", BATCH)))
    batches.submit(TAG, REQUESTS, timeout_s=PATIENCE_S)
    upload, create = server.requests
    assert b'name="purpose"\r\n\r\nbatch' in upload
    lines = [
        json.loads(line)
        for line in upload.split(b"\r\n")
        if line.startswith(b'{"custom_id"')
        for line in line.splitlines()
    ]
    assert [line["custom_id"] for line in lines] == ["job-1.1", "job-2.1"]
    assert {(line["method"], line["url"]) for line in lines} == {("POST", "/v1/chat/completions")}
    assert lines[0]["body"]["messages"][1] == {"role": "user", "content": f"{SECRET} of job-1.1"}
    sent = json.loads(create.partition(b"\r\n\r\n")[2])
    assert sent["metadata"] == {"penstock_tag": TAG}
    assert (sent["input_file_id"], sent["completion_window"]) == ("file-1", "24h")
    assert sent["output_expires_after"]["seconds"] == 14 * 86_400
    assert SECRET.encode() not in create


# ---------------------------------------------------------------------------------------------------- progress
def batch(**fields: Any) -> bytes:
    return answer("200 OK", {**BATCH, **fields})


PROGRESS = {
    "validating": (batch(), UnderWay("validating")),
    "in progress": (
        batch(status="in_progress", request_counts={"total": 9, "completed": 3, "failed": 1}),
        UnderWay("in_progress", done=4, total=9),
    ),
    "broken counts": (
        batch(status="in_progress", request_counts={"total": "x", "completed": -3}),
        UnderWay("in_progress"),
    ),
    "finalizing": (batch(status="finalizing"), UnderWay("finalizing")),
    "cancelling": (batch(status="cancelling"), UnderWay("cancelling")),
    "completed": (
        batch(status="completed", output_file_id="file-o", error_file_id=None),
        Over(status="completed", output="file-o"),
    ),
    "expired": (
        batch(status="expired", output_file_id="file-o", error_file_id="file-e"),
        Over(status="expired", output="file-o", errors="file-e"),
    ),
    "cancelled": (batch(status="cancelled"), Over(status="cancelled")),
    "failed": (
        batch(status="failed", errors={"data": [{"code": "token_limit_exceeded", "message": SECRET}]}),
        Over(status="failed", reason="token_limit_exceeded", limited=True),
    ),
    "failed for no reason": (batch(status="failed", errors=SECRET), Over(status="failed", reason="unnamed")),
    "failed in prose": (
        batch(status="failed", errors={"data": [{"code": f"See {SECRET}"}]}),
        Over(status="failed", reason="unnamed"),
    ),
    "a status of tomorrow": (batch(status="paused"), NoWord("unreadable")),
    "no status": (batch(status=None), NoWord("unreadable")),
    "another batch": (batch(id="batch_2"), NoWord("unreadable")),
    "gone": (refusal("404 Not Found", None), Vanished()),
    "a gateway's 404": (reply("404 Not Found", PAGE), NoWord("404")),
    "500": (refusal("500 Oh", None), NoWord("500")),
    "401": (refusal("401 No", "invalid_api_key"), NoWord("invalid_api_key")),
    "a page": (reply("200 OK", PAGE), NoWord("unreadable")),
    "dropped": (b"", NoWord("RemoteProtocolError")),
}


@pytest.mark.parametrize(("told", "means"), PROGRESS.values(), ids=PROGRESS)
def test_every_status_has_its_meaning(batches: OpenAiBatch, server: RawServer, told: bytes, means: object) -> None:
    """Only the provider itself can say that a batch is gone; whatever cannot be read is no word."""
    server.answer(lambda request: [told])
    heard = batches.progress("batch_1", timeout_s=PATIENCE_S)
    assert heard == means
    assert SECRET not in repr(heard)


# -------------------------------------------------------------------------------------------------------- find
def page(*ids: object, more: object = False, tag: str = TAG) -> bytes:
    data = [{"id": name, "created_at": 1, "metadata": {"penstock_tag": tag}} for name in ids]
    return answer("200 OK", {"object": "list", "data": data, "has_more": more})


LISTS = {
    "none": (page(), []),
    "of other tags": (page("batch_1", tag="other"), []),
    "newest first": (page("batch_2", "batch_1"), ["batch_1", "batch_2"]),
    "a page": (reply("200 OK", PAGE), NoWord("unreadable")),
    "no list": (answer("200 OK", {"data": {}, "has_more": False}), NoWord("unreadable")),
    "no end told": (answer("200 OK", {"data": []}), NoWord("unreadable")),
    "an id that is none": (page(5), NoWord("unreadable")),
    "more of nothing": (page(more=True), NoWord("endless_list")),
    "the same page for ever": (page("batch_1", more=True), NoWord("endless_list")),
    "500": (refusal("500 Oh", None), NoWord("500")),
    "gone": (refusal("404 Not Found", None), NoWord("404")),
}


@pytest.mark.fault("G1")
@pytest.mark.parametrize(("told", "means"), LISTS.values(), ids=LISTS)
def test_absence_is_only_what_a_whole_list_says(
    batches: OpenAiBatch, server: RawServer, told: bytes, means: object
) -> None:
    """A list that cannot be read to its end says nothing: to take it for empty would mean to pay twice."""
    server.answer(lambda request: [told])
    assert batches.find(TAG, timeout_s=PATIENCE_S) == means


# ----------------------------------------------------------------------------------------------------- results
def result(**fields: Any) -> bytes:
    return json.dumps({"id": "r", "custom_id": "job-1.1", "response": None, "error": None, **fields}).encode()


def chat(content: object, *, finish: str = "stop", status: object = 200, **message: Any) -> bytes:
    choice = {"message": {"content": content, **message}, "finish_reason": finish}
    body = {"choices": [choice], "usage": {"total_tokens": 12}}
    return result(response={"status_code": status, "body": body})


def refused_line(status: int, code: object = None) -> bytes:
    return result(response={"status_code": status, "body": {"error": {"code": code, "message": SECRET}}})


HELLO = Answered(custom_id="job-1.1", text=Sensitive("hello"), tokens=12)
NAMED, NAMELESS = Unreadable(custom_id="job-1.1"), Unreadable()
LINES: dict[str, tuple[bytes, ResultLine]] = {
    "an answer": (chat("hello"), HELLO),
    "cut": (
        chat("hello", finish="length"),
        Answered(custom_id="job-1.1", text=Sensitive("hello"), tokens=12, cut=True),
    ),
    "filtered": (
        chat(None, finish="content_filter"),
        Declined(custom_id="job-1.1", reason="content_filter", permanent=True),
    ),
    "refused by the model": (
        chat(None, refusal=f"I cannot: {SECRET}"),
        Declined(custom_id="job-1.1", reason="refusal", permanent=True),
    ),
    "no content": (chat(None), NAMED),
    "blank": (chat("  \n"), NAMED),
    "content that is no text": (chat({"a": SECRET}), NAMED),
    "too long": (chat("x" * (MAX_ANSWER_CHARS + 1)), NAMED),
    "as long as allowed": (
        chat("€" * MAX_ANSWER_CHARS),
        Answered(custom_id="job-1.1", text=Sensitive("€" * MAX_ANSWER_CHARS), tokens=12),
    ),
    "a status that is none": (chat("hello", status="200"), NAMED),
    "no choices": (result(response={"status_code": 200, "body": {"choices": []}}), NAMED),
    "no body": (result(response={"status_code": 200}), NAMED),
    "nothing": (result(), NAMED),
    "429": (refused_line(429), Declined(custom_id="job-1.1", reason="429", limited=True)),
    "500": (refused_line(500, "server_error"), Declined(custom_id="job-1.1", reason="server_error")),
    "400": (
        refused_line(400, "context_length"),
        Declined(custom_id="job-1.1", reason="context_length", permanent=True),
    ),
    "404": (refused_line(404), Declined(custom_id="job-1.1", reason="404", permanent=True)),
    "422 in prose": (refused_line(422, f"{SECRET}!"), Declined(custom_id="job-1.1", reason="422", permanent=True)),
    "401": (refused_line(401), Declined(custom_id="job-1.1", reason="401", auth=True)),
    "403": (refused_line(403), Declined(custom_id="job-1.1", reason="403", auth=True)),
    "408": (refused_line(408), Declined(custom_id="job-1.1", reason="408")),
    "expired": (
        result(error={"code": "batch_expired", "message": SECRET}),
        Declined(custom_id="job-1.1", reason="batch_expired", expired=True),
    ),
    "cancelled": (result(error={"code": "batch_cancelled"}), Declined(custom_id="job-1.1", reason="batch_cancelled")),
    "an error without a code": (result(error={}), Declined(custom_id="job-1.1", reason="declined")),
    "cut off": (chat("hello")[:60], NAMED),
    "no JSON": (b"hello " + SECRET.encode(), NAMELESS),
    "no object": (b'["job-1.1"]', NAMELESS),
    "no id": (chat("hello").replace(b"custom_id", b"customer"), NAMELESS),
    "an id that is text": (result(custom_id=f"a {SECRET}"), NAMELESS),
    "an id that is a number": (result(custom_id=7), NAMELESS),
    "nested too deeply": (b"[" * 100_000, NAMELESS),
    "binary": (bytes(range(1, 10)) + b"\xff\xfe", NAMELESS),
    "a line without an end": (chat("x" * (LONGEST_LINE + 100_000)), NAMED),
}


def read(batches: OpenAiBatch, server: RawServer, content: bytes, *headers: str) -> list[ResultLine]:
    server.answer(lambda request: [reply("200 OK", content, *headers)])
    return list(batches.results(Over(status="completed", output="file-o"), timeout_s=PATIENCE_S))


@pytest.mark.parametrize(("line", "means"), LINES.values(), ids=LINES)
def test_every_line_has_its_meaning(batches: OpenAiBatch, server: RawServer, line: bytes, means: ResultLine) -> None:
    """Answered, declined or unreadable, and the line after it is read as if nothing had been."""
    after = chat("next").replace(b"job-1.1", b"job-2.1")
    heard = read(batches, server, line + b"\n\n" + after)
    assert heard == [means, Answered(custom_id="job-2.1", text=Sensitive("next"), tokens=12)]
    assert SECRET not in repr(heard)
    assert "hello" not in repr(heard)


BAD_FILES = {
    "a gateway's page": ([reply("200 OK", PAGE)], Unavailable, "html"),
    "not there": ([refusal("404 Not Found", None)], Unavailable, "404"),
    "a refusal": ([refusal("403 No", "no_access")], Unavailable, "no_access"),
    "trouble": ([refusal("500 Oh", None)], Unavailable, "500"),
    "cut off": ([reply("200 OK", chat("hello"), length=5000)], Unavailable, "RemoteProtocolError"),
    "dropped": ([b""], Unavailable, "RemoteProtocolError"),
    "too large, as it says": ([reply("200 OK", b"", length=2_000_000)], BadInput, "larger than 1000000 bytes"),
    "too large": (
        [reply("200 OK", (b"x" * 999 + b"\n") * 1200, "X-Is: long").replace(b"Content-Length: 1200000\r\n", b"")],
        BadInput,
        "larger",
    ),
}


@pytest.mark.parametrize(("told", "kind", "word"), BAD_FILES.values(), ids=BAD_FILES)
def test_a_file_that_is_none_is_not_taken_for_one(
    batches: OpenAiBatch, server: RawServer, told: list[bytes | float], kind: type[Exception], word: str
) -> None:
    """Of the wrong shape or size, or cut off: an error that says so, never a file in which lines are missing."""
    batches.most_bytes = 1_000_000
    server.answer(lambda request: told)
    with pytest.raises(kind, match=word) as raised:
        list(batches.results(Over(status="completed", output="file-o"), timeout_s=PATIENCE_S))
    assert SECRET not in repr(raised.value)
    assert raised.value.__cause__ is None


def test_a_file_that_drips_for_ever_is_given_up(batches: OpenAiBatch, server: RawServer) -> None:
    """After the time for it, whatever has come so far."""
    server.answer(lambda request: dripping(reply("200 OK", b"", length=10_000)))
    with pytest.raises(Unavailable, match="timeout"):
        list(batches.results(Over(status="completed", output="file-o"), timeout_s=1))


def test_both_files_are_read_and_none_where_there_is_none(batches: OpenAiBatch, server: RawServer) -> None:
    """Answers first, refusals after; a batch without files asks for none."""
    files = {b"file-o": chat("hello"), b"file-e": refused_line(500).replace(b"job-1.1", b"job-2.1")}

    def script(request: bytes) -> list[bytes | float]:
        return [next(reply("200 OK", content) for name, content in files.items() if name in request)]

    server.answer(script)
    both = list(batches.results(Over(status="completed", output="file-o", errors="file-e"), timeout_s=PATIENCE_S))
    assert both == [HELLO, Declined(custom_id="job-2.1", reason="500")]
    assert list(batches.results(Over(status="cancelled"), timeout_s=PATIENCE_S)) == []
    assert len(server.requests) == 2


def test_lines_come_one_by_one(batches: OpenAiBatch, server: RawServer) -> None:
    """A long file is not held: the first line is there before the last is sent, and a reader may stop."""
    whole = b"".join(chat("hello") + b"\n" for _ in range(20_000))
    server.answer(lambda request: [reply("200 OK", whole[:100_000], length=len(whole)), 0.3, whole[100_000:]])
    lines = batches.results(Over(status="completed", output="file-o"), timeout_s=PATIENCE_S)
    assert next(iter(lines)) == HELLO
    lines.close()  # type: ignore[attr-defined]  # it is a generator


def test_an_unknown_kind_of_adapter_is_refused() -> None:
    """The error names those there are."""
    spec = VendorSpec(name="openai", kind="openai", base_url="https://api.openai.com/v1")
    with pytest.raises(BadInput, match="openai_chat, openai_responses"):
        OpenAiBatch(spec, token=lambda fresh: "t", adapter_kind="gemini")


def test_nobody_else_loads_the_sdk() -> None:
    """A lane without batches has no such package: its worker, and everything shared but this adapter, do without."""
    code = (
        "import sys, importlib, pathlib\n"
        "names = ['.'.join(p.with_suffix('').parts) for room in ('shared', 'functions/support', 'functions/extraction')"
        " for p in sorted(pathlib.Path(room).rglob('*.py')) if p.stem not in ('openai_batch', '__init__')]\n"
        "[importlib.import_module(name) for name in names]\n"
        "assert 'shared.runtime.wiring' in sys.modules and 'functions.support.handler' in sys.modules\n"
        "sys.exit('openai' in sys.modules or 'httpx2' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
