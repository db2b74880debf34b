"""The verdict of a reply: decided by its status, whatever its body is."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.adapters.vendors.helpdesk import HelpDesk, reply
from shared.adapters.vendors.http import found_or_absent, verdict
from shared.core.effects import Absent, Accepted, Answer, Found, NoAnswer, Refused, Unknown
from shared.core.sensitive import Sensitive
from shared.core.vendor import VendorSpec
from tests.unit.core.strategies import few, json_values
from tests.unit.vendors import sockets
from tests.unit.vendors.sockets import RawServer, dripping
from tests.waiting import PATIENCE_S, with_time_enough

SECRET = "the customer's own words"


def raising(error: Exception) -> Callable[[], Any]:
    def body() -> Any:
        raise error

    return body


bodies = st.one_of(
    json_values.map(lambda value: lambda: value),
    st.sampled_from(
        [ValueError(SECRET), KeyError(SECRET), RecursionError(), UnicodeDecodeError("utf-8", b"", 0, 1, SECRET)]
    ).map(raising),
)


@pytest.mark.fault("A5")
@given(status=st.integers(200, 299), body=bodies, header=st.none() | st.text(max_size=20))
def test_any_2xx_is_accepted_whatever_the_body(status: int, body: Callable[[], Any], header: str | None) -> None:
    """Not JSON, not an object, endless, or an error while it is read: the vendor has taken it."""
    assert isinstance(verdict(status, header, body), Accepted)


@pytest.mark.fault("A5")
@given(status=st.integers(100, 999).filter(lambda s: not 200 <= s < 300))
def test_nothing_else_is_accepted_and_only_a_clear_no_is_refused(status: int) -> None:
    """4xx is a no, except those that do not say what became of the request; all else is unknown."""
    answer = verdict(status, None, raising(AssertionError("the body of a refusal is not read")))
    unclear = status in (408, 409, 425) or not 400 <= status < 500
    assert isinstance(answer, Unknown if unclear else Refused)
    if isinstance(answer, Refused):
        assert answer.auth == (status in (401, 403))
        assert (answer.retry_after_s is not None) == (status == 429)
        assert answer.permanent == (status not in (401, 403, 429))


@pytest.mark.fault("I8")
@few
@given(given_id=json_values | st.just(SECRET) | st.just({"text": SECRET}))
def test_a_vendors_id_is_an_id_or_nothing(given_id: object) -> None:
    """It goes into a row, so prose, objects and line breaks are not kept."""
    answers = (verdict(201, None, lambda: {"id": given_id}), found_or_absent({"found": True, "id": given_id}))
    for answer in answers:
        assert isinstance(answer, Accepted | Found)
        assert SECRET not in answer.vendor_id
        assert all(ch.isascii() and (ch.isalnum() or ch in "._:@+=/-") for ch in answer.vendor_id)
        assert len(answer.vendor_id) <= 128


@few
@given(content=json_values)
def test_a_look_up_that_says_neither_is_no_answer(content: object) -> None:
    """Only `found: true` is a record and only `found: false` is absence."""
    answer = found_or_absent(content)
    says = content.get("found") if isinstance(content, dict) else None
    assert isinstance(answer, Found if says is True else Absent if says is False else NoAnswer)


# ------------------------------------------------------------------------------------ over real sockets
def perform(server: RawServer, *, token: str = "t", body: object = "hello", timeout_s: float = PATIENCE_S) -> Answer:
    """One reply through the real adapter."""
    spec = VendorSpec(name="helpdesk", kind="helpdesk", base_url=server.url, read_timeout_s=60)
    request = reply("c-1", Sensitive(body))  # type: ignore[arg-type]
    with contextlib.closing(HelpDesk(spec, token=lambda fresh: token)) as desk:
        return desk.perform(request, key="k-1", timeout_s=timeout_s)


CREATED = {
    "json": [sockets.reply("201 Created", b'{"id": "rep_1"}')],
    "no body": [sockets.reply("204 No Content")],
    "not json": [sockets.reply("200 OK", b"<html>ok</html>")],
    "a list": [sockets.reply("200 OK", b"[1, 2]")],
    "half a body": [sockets.reply("201 Created", b'{"id": "re', length=500)],
    "garbled gzip": [sockets.reply("200 OK", b"not gzip at all", "Content-Encoding: gzip")],
    "not utf-8": [sockets.reply("200 OK", b'{"id": "\xff\xfe"}')],
    "broken chunks": [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"],
    "deep": [sockets.reply("200 OK", b"[" * 200_000)],
    "text where an id should be": [sockets.reply("200 OK", json.dumps({"id": {"text": SECRET}}).encode())],
    "slow": [sockets.reply("200 OK", b"", length=2), 0.05, b"{", 0.05, b"}"],
}


@pytest.mark.fault("A5")
@pytest.mark.parametrize("parts", CREATED.values(), ids=CREATED)
def test_once_the_status_says_2xx_nothing_undoes_it(parts: list[bytes | float]) -> None:
    """The reply may end early, be garbled or never make sense: accepted, and asked once."""
    with RawServer(lambda request: parts) as server:
        answer = perform(server)
        assert isinstance(answer, Accepted)
        assert SECRET not in repr(answer)
        assert len(server.requests) == 1


@pytest.mark.fault("A5")
def test_a_body_that_never_ends_is_cut_off() -> None:
    """A vendor that dribbles forever cannot hold a worker beyond its time, and has accepted all the same."""
    with RawServer(lambda request: dripping(sockets.reply("200 OK", b"", length=100_000))) as server:
        said = with_time_enough(lambda limit_s: perform(server, timeout_s=limit_s), Unknown("timeout"))
        assert isinstance(said, Accepted)


SILENT = {
    "closed at once": ([], Unknown),
    "half a head": ([b"HTTP/1.1 20"], Unknown),
    "not http": ([b"hello\r\n\r\n"], Unknown),
    "a redirect": ([sockets.reply("303 See Other", b"", "Location: /elsewhere")], Unknown),
    "continue and nothing": ([b"HTTP/1.1 100 Continue\r\n\r\n"], Unknown),
    "server error": ([sockets.reply("500 Oops", SECRET.encode())], Unknown),
    "refused with half a body": ([sockets.reply("422 No", SECRET.encode(), length=900)], Refused),
    "refused, garbled": ([sockets.reply("404 No", b"x", "Content-Encoding: gzip")], Refused),
}


@pytest.mark.fault("A8")
@pytest.mark.parametrize(("parts", "kind"), SILENT.values(), ids=SILENT)
def test_every_other_ending_has_its_verdict_and_one_request(parts: list[bytes], kind: type) -> None:
    """The client never repeats a request by itself, and no redirect is followed."""
    with RawServer(lambda request: parts) as server:
        answer = perform(server)
        assert isinstance(answer, kind)
        assert SECRET not in repr(answer)
        assert len(server.requests) == 1


def test_a_silent_vendor_is_unknown_after_the_read_timeout() -> None:
    """It may have accepted: nobody can tell."""
    with RawServer(lambda request: [PATIENCE_S]) as server:
        assert perform(server, timeout_s=0.3) == Unknown("timeout")


@pytest.mark.parametrize("token", ["abc\n", " abc", "abc\r\n"])
def test_a_token_pasted_with_a_line_break_still_works(token: str) -> None:
    """Blanks around a secret are not part of it."""
    with RawServer(lambda request: CREATED["json"]) as server:
        assert isinstance(perform(server, token=token), Accepted)
        assert b"Bearer abc\r\n" in server.requests[0]


def test_a_lane_without_a_token_sends_without_one() -> None:
    """No secret is configured: no header, and the request goes out."""
    with RawServer(lambda request: CREATED["json"]) as server:
        assert isinstance(perform(server, token=""), Accepted)
        assert b"authorization" not in server.requests[0].lower()


@pytest.mark.parametrize(
    ("token", "body"), [("a\nb: c", "x"), ("schlüssel", "x"), ("t", float("nan")), ("t", {1, 2}), ("t", "\ud800")]
)
def test_what_http_cannot_carry_is_refused_and_not_unknown(token: str, body: object) -> None:
    """Nothing was sent, so nobody needs to find out whether it arrived."""
    with RawServer(lambda request: CREATED["json"]) as server:
        answer = perform(server, token=token, body=body)
        assert isinstance(answer, Refused)
        assert answer.permanent
        assert server.requests == []
