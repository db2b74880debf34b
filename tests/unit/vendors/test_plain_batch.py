"""The plain batch adapter against answers no well-behaved endpoint gives, over real sockets. Never a retry."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from ops.vendors.server import VendorSimulator
from shared.adapters.vendors.plain_batch import PlainBatch
from shared.core.batch import (
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
from tests.unit.vendors.sockets import RawServer, reply
from tests.waiting import PATIENCE_S

REQUESTS = [a_request("job-1.1"), a_request("job-2.1")]
PAGE = b"<html><body>Bad gateway</body></html>"


def answer(status: str, body: object, *headers: str) -> bytes:
    return reply(status, json.dumps(body).encode(), *headers)


@pytest.fixture
def server() -> Iterator[RawServer]:
    with RawServer(lambda request: [answer("201 Created", {"job": "j-1"})]) as running:
        yield running


@pytest.fixture
def batches(server: RawServer) -> Iterator[PlainBatch]:
    made = an_adapter(server.url)
    yield made
    made.close()


def an_adapter(address: str, **tokens: str) -> PlainBatch:
    spec = VendorSpec(name="plain", kind="plain", base_url=address)
    return PlainBatch(spec, token=lambda fresh: tokens.get("new" if fresh else "old", "t"))


SUBMITTED = {
    "taken": (answer("201 Created", {"job": "j-1"}), Taken("j-1")),
    "token limit": (
        answer("400 No", {"code": "token_limit_exceeded", "sentence": SECRET}),
        NotTaken("token_limit_exceeded", limited=True),
    ),
    "a code that is text": (answer("400 No", {"code": f"a {SECRET}"}), NotTaken("400", permanent=True)),
    "429": (answer("429 Slow", {}, "Retry-After: 7"), NotTaken("429", limited=True, retry_after_s=7.0)),
    "403": (answer("403 No", {}), NotTaken("403", auth=True)),
    "409": (answer("409 Conflict", {}), NoWord("409")),
    "500": (answer("500 Oh", {"code": "crashed"}), NoWord("crashed")),
    "a redirect": (reply("302 Found", b"", "Location: http://127.0.0.1:1/"), NoWord("302")),
    "a page": (reply("200 OK", PAGE), NoWord("unreadable")),
    "no id": (answer("200 OK", {"job": 5}), NoWord("unreadable")),
    "cut off": (reply("200 OK", b'{"jo', length=500), NoWord("unreadable")),
    "dropped": (b"", NoWord("RemoteProtocolError")),
}


@pytest.mark.parametrize(("told", "means"), SUBMITTED.values(), ids=SUBMITTED)
def test_every_answer_to_a_submission_has_its_meaning(
    batches: PlainBatch, server: RawServer, told: bytes, means: object
) -> None:
    """One request, one verdict; what was heard of the status counts, also when the rest is lost."""
    server.answer(lambda request: [told])
    heard = batches.submit("tag", REQUESTS, timeout_s=PATIENCE_S)
    assert heard == means
    assert len(server.requests) == 1
    assert SECRET not in repr(heard)


def test_silence_is_no_word_and_a_closed_port_a_certain_no(batches: PlainBatch, server: RawServer) -> None:
    """Only what never left was certainly not taken."""
    server.answer(lambda request: [PATIENCE_S])
    assert batches.submit("tag", REQUESTS, timeout_s=1) == NoWord("timeout")
    assert an_adapter("http://127.0.0.1:9").submit("tag", REQUESTS, timeout_s=PATIENCE_S) == NotTaken("unreachable")


@pytest.mark.parametrize("token", ["a\nb", "ä\u20ac"])
def test_a_token_that_http_cannot_carry(server: RawServer, token: str) -> None:
    """Nothing is sent, and the token is in no answer."""
    heard = an_adapter(server.url, old=token, new=token).submit("tag", REQUESTS, timeout_s=PATIENCE_S)
    assert heard == NotTaken("request_unsendable")
    assert server.requests == []


def test_a_401_asks_for_a_fresh_token_once() -> None:
    """A rotated token is fetched again, for each kind of request."""
    with VendorSimulator(seed=7) as simulator:
        batches = an_adapter(simulator.plain_url, old="old", new="new")
        simulator.configure("plain", valid_tokens=["new"])
        taken = batches.submit("tag", REQUESTS, timeout_s=PATIENCE_S)
        assert isinstance(taken, Taken)
        assert batches.find("tag", timeout_s=PATIENCE_S) == [taken.provider_id]
        simulator.configure("plain", valid_tokens=["other"])
        assert batches.submit("tag", REQUESTS, timeout_s=PATIENCE_S) == NotTaken("refused", auth=True)


PROGRESS = {
    "waiting": ({"job": "j-1", "state": "waiting"}, UnderWay("validating")),
    "running": ({"job": "j-1", "state": "running", "done": 1, "of": 2}, UnderWay("in_progress", done=1, total=2)),
    "stopping": ({"job": "j-1", "state": "stopping", "done": "x"}, UnderWay("cancelling")),
    "done": ({"job": "j-1", "state": "done"}, Over(status="completed", output="j-1")),
    "stopped": ({"job": "j-1", "state": "stopped"}, Over(status="cancelled", output="j-1")),
    "timed out": ({"job": "j-1", "state": "timed_out"}, Over(status="expired", output="j-1")),
    "broken": ({"job": "j-1", "state": "broken", "code": "no_model"}, Over(status="failed", reason="no_model")),
    "broken in prose": (
        {"job": "j-1", "state": "broken", "code": f"a {SECRET}"},
        Over(status="failed", reason="unnamed"),
    ),
    "another": ({"job": "j-2", "state": "done"}, NoWord("unreadable")),
    "a state of tomorrow": ({"job": "j-1", "state": "paused"}, NoWord("unreadable")),
    "no state": ({"job": "j-1"}, NoWord("unreadable")),
}


@pytest.mark.parametrize(("told", "means"), PROGRESS.values(), ids=PROGRESS)
def test_every_state_has_its_meaning(
    batches: PlainBatch, server: RawServer, told: dict[str, Any], means: object
) -> None:
    """In the port's words; what is not known is no word."""
    server.answer(lambda request: [answer("200 OK", told)])
    assert batches.progress("j-1", timeout_s=PATIENCE_S) == means


def test_only_the_provider_says_that_a_batch_is_gone(batches: PlainBatch, server: RawServer) -> None:
    """A gateway's 404 is no such word."""
    server.answer(lambda request: [answer("404 No", {"code": "unknown_job"})])
    assert batches.progress("j-1", timeout_s=PATIENCE_S) == Vanished()
    server.answer(lambda request: [reply("404 No", PAGE)])
    assert batches.progress("j-1", timeout_s=PATIENCE_S) == NoWord("404")


@pytest.mark.parametrize("body", [b'{"jobs": {}}', b'{"jobs": [5]}', b'{"jobs": [{"job": "j-1"}, {}]}', PAGE, b"{}"])
def test_a_list_that_cannot_be_read_says_nothing(batches: PlainBatch, server: RawServer, body: bytes) -> None:
    """Least of all that there is no batch."""
    server.answer(lambda request: [reply("200 OK", body)])
    assert batches.find("tag", timeout_s=PATIENCE_S) == NoWord("unreadable")


def line(**fields: Any) -> bytes:
    return json.dumps({"key": "job-1.1", **fields}).encode()


LINES: dict[str, tuple[bytes, ResultLine]] = {
    "an answer": (
        line(ok=True, text="hello", tokens=3, cut=True),
        Answered(custom_id="job-1.1", text=Sensitive("hello"), tokens=3, cut=True),
    ),
    "no tokens": (line(ok=True, text="hello", tokens=-1), Answered(custom_id="job-1.1", text=Sensitive("hello"))),
    "no text": (line(ok=True), Unreadable(custom_id="job-1.1")),
    "neither": (line(text="hello"), Unreadable(custom_id="job-1.1")),
    "refused": (line(ok=False, status=422, code="bad"), Declined(custom_id="job-1.1", reason="bad", permanent=True)),
    "limited": (line(ok=False, status=429), Declined(custom_id="job-1.1", reason="429", limited=True)),
    "timed out": (
        line(ok=False, code="timed_out"),
        Declined(custom_id="job-1.1", reason="batch_expired", expired=True),
    ),
    "no reason": (line(ok=False), Declined(custom_id="job-1.1", reason="declined")),
    "no object": (b'"job-1.1"', Unreadable()),
}


@pytest.mark.parametrize(("told", "means"), LINES.values(), ids=LINES)
def test_every_line_has_its_meaning(batches: PlainBatch, server: RawServer, told: bytes, means: ResultLine) -> None:
    """In the port's words."""
    server.answer(lambda request: [reply("200 OK", told + b"\n")])
    assert list(batches.results(Over(status="completed", output="j-1"), timeout_s=PATIENCE_S)) == [means]


def test_a_file_that_is_none_is_not_taken_for_one(batches: PlainBatch, server: RawServer) -> None:
    """A page, a refusal, a file cut off or too large: an error that says so."""
    batches.most_bytes = 1000
    told = {
        "html": reply("200 OK", PAGE),
        "409": answer("409 Not yet", {}),
        "RemoteProtocolError": reply("200 OK", b"{}", length=50),
    }
    for word, one in told.items():
        server.answer(lambda request, one=one: [one])
        with pytest.raises(Unavailable, match=word):
            list(batches.results(Over(status="completed", output="j-1"), timeout_s=PATIENCE_S))
    server.answer(lambda request: [reply("200 OK", b"x" * 2000)])
    with pytest.raises(BadInput, match="larger"):
        list(batches.results(Over(status="completed", output="j-1"), timeout_s=PATIENCE_S))
