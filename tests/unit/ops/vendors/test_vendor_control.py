"""The simulator's own doors, and what is hardly HTTP: over real sockets."""

from __future__ import annotations

import socket

import httpx
import pytest

from ops.vendors.request import MAX_BODY_BYTES
from ops.vendors.server import VendorSimulator


def send(client: httpx.Client, key: str = "k1", text: str = "Hello") -> httpx.Response:
    return client.post("/helpdesk/conversations/c1/replies", json={"text": text}, headers={"Idempotency-Key": key})


def test_the_record_can_be_read_and_filtered(client: httpx.Client) -> None:
    """The record over HTTP has every request, without texts, filtered by vendor, number and key."""
    send(client, "k1", "CANARY")
    send(client, "k2", "CANARY")
    client.post("/openai/v1/responses", json={"model": "m", "input": "CANARY"})
    everything = client.get("/_sim/record")
    assert "CANARY" not in everything.text
    entries = everything.json()["entries"]
    assert [entry["seq"] for entry in entries] == [1, 2, 3]
    assert [entry["accepted"] for entry in entries] == [True, True, False]

    def numbers(**query: object) -> list[int]:
        answer = client.get("/_sim/record", params={name: str(value) for name, value in query.items()})
        return [entry["seq"] for entry in answer.json()["entries"]]

    assert numbers(vendor="helpdesk") == [1, 2]
    assert numbers(since=2) == [3]
    assert numbers(key="k2") == [2]


def test_reset_forgets_everything(client: httpx.Client) -> None:
    """A reset empties the record and restores the switches, unless told to keep them."""
    client.put("/_sim/config/helpdesk", json={"latency_s": 0.01, "requests_per_minute": 1})
    assert [send(client, key).status_code for key in ("a", "b")] == [201, 429]
    assert client.post("/_sim/reset", json={"keep_config": True}).status_code == 200
    assert [send(client, key).status_code for key in ("a", "b")] == [201, 429]
    assert client.post("/_sim/reset").status_code == 200
    assert client.get("/_sim/summary").json()["requests"] == 0
    assert client.get("/_sim/config/helpdesk").json()["requests_per_minute"] is None


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "word"),
    [
        ("PUT", "/_sim/config/helpdesk", b'{"nope": 1}', 400, "no field 'nope'"),
        ("PUT", "/_sim/config/helpdesk", b'{"outage": 3}', 400, "outage must be one of"),
        ("PUT", "/_sim/config/helpdesk", b"{", 400, "not valid JSON"),
        ("PUT", "/_sim/config/fax", b"{}", 400, "no vendor 'fax'"),
        ("DELETE", "/_sim/config/helpdesk", b"", 405, "takes GET or PUT"),
        ("GET", "/_sim/config", b"", 404, "no such path"),
        ("GET", "/_sim", b"", 404, "no such path"),
        ("GET", "/_sim/record?since=x", b"", 400, "since must be"),
        ("GET", "/_sim/summary?vendor=fax", b"", 400, "no vendor 'fax'"),
        ("POST", "/_sim/reset", b'{"what": 1}', 400, "keep_config"),
        ("GET", "/fax/send", b"", 404, "no such vendor"),
        ("GET", "/", b"", 404, "no such vendor"),
        ("GET", "/helpdesk/conversations/c1/replies", b"", 405, "POST"),
        ("DELETE", "/helpdesk/actions", b"", 405, "GET"),
        ("POST", "/helpdesk/conversations/c1/shouts", b"{}", 404, "no such path"),
        ("POST", "/helpdesk/conversations/c1/replies", b'{"tag": "x"}', 400, "text is missing"),
        ("POST", f"/helpdesk/conversations/{'c' * 201}/replies", b'{"text": "x"}', 400, "200"),
        ("GET", f"/helpdesk/actions?key={'k' * 256}", b"", 400, "255"),
        ("POST", "/helpdesk/conversations/c1/replies", b"x" * (MAX_BODY_BYTES + 1), 413, "bytes"),
        ("BREW", "/helpdesk/actions", b"", 405, "cannot be read"),
    ],
)
def test_a_bad_request_is_a_sentence(
    client: httpx.Client, vendor: VendorSimulator, method: str, path: str, body: bytes, status: int, word: str
) -> None:
    """What is wrong is said in JSON with the right status, and the next request is served."""
    answer = client.request(method, path, content=body)
    assert answer.status_code == status
    assert word in answer.json()["error"]
    assert vendor.record.accepts == ()
    assert client.get("/_sim/health").json()["status"] == "ok"


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"nonsense\r\n\r\n", b"400"),
        (b"GET /_sim/health HTTP/1.1\r\nno colon\r\n\r\n", b"400"),
        (b"GET /_sim/health HTTP/1.1\r\nBroken: o", b"400"),
        (b"GET /_sim/health HTTP/1.1\r\n" + b"A: b\r\n" * 101 + b"\r\n", b"431"),
        (b"GET /_sim/health HTTP/1.1\r\nA: " + b"x" * 70_000 + b"\r\n\r\n", b"431"),
        (b"GET / HTTP/9.9\r\n\r\n", b"505"),
        (b"GET /" + b"x" * 70_000 + b" HTTP/1.1\r\n\r\n", b"414"),
        (b"POST /helpdesk/actions HTTP/1.1\r\nContent-Length: minus\r\n\r\n", b"400"),
        (b"POST /helpdesk/actions HTTP/1.1\r\nContent-Length: 99999999999999\r\n\r\n", b"413"),
        (b"POST /helpdesk/actions HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", b"411"),
    ],
)
def test_bad_http_is_answered_in_json(vendor: VendorSimulator, sent: bytes, status: bytes) -> None:
    """Even what is hardly HTTP gets a status and a sentence, and no trace."""
    with socket.create_connection(("127.0.0.1", vendor.port), timeout=60) as connection:
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
        answer = b""
        while part := connection.recv(65_536):
            answer += part
    assert status in answer.split(b"\r\n")[0]
    assert b'{"error":' in answer


def test_a_client_may_ask_before_it_sends(vendor: VendorSimulator) -> None:
    """A client that waits for 100 Continue gets it, then its answer; one that wants to close is closed."""
    with socket.create_connection(("127.0.0.1", vendor.port), timeout=60) as connection:
        head = b"POST /helpdesk/conversations/c1/replies HTTP/1.1\r\nContent-Length: 14\r\n"
        connection.sendall(head + b"Expect: 100-continue\r\nConnection: close\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 100 ")
        connection.sendall(b'{"text": "Hi"}')
        answer = b""
        while part := connection.recv(65_536):
            answer += part
    assert answer.startswith(b"HTTP/1.1 201 ")
    assert len(vendor.record.accepts) == 1


def test_a_request_that_breaks_off_asks_for_nothing(vendor: VendorSimulator, client: httpx.Client) -> None:
    """Half a body is no request: nothing is accepted, and the simulator lives on."""
    with socket.create_connection(("127.0.0.1", vendor.port), timeout=60) as connection:
        head = b"POST /helpdesk/conversations/c1/replies HTTP/1.1\r\nContent-Length: 50\r\n\r\n"
        connection.sendall(head + b'{"text": "He')
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(1) == b""
    assert vendor.record.requests() == ()
    assert send(client).status_code == 201
