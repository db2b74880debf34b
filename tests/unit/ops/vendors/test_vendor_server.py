"""The vendor simulator over real sockets: what a client sees, and what the record says of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import httpx
import pytest

from ops.vendors.record import Ending, VerdictKind
from ops.vendors.server import VendorSimulator
from tests.waiting import until


def send(client: httpx.Client, key: str = "k1", text: str = "Hello") -> httpx.Response:
    return client.post("/helpdesk/conversations/c1/replies", json={"text": text}, headers={"Idempotency-Key": key})


def test_a_reply_is_accepted_and_found(client: httpx.Client, vendor: VendorSimulator) -> None:
    """A send is answered 201 with an id, which the look-up and the record give again."""
    answer = send(client)
    assert answer.status_code == 201
    found = client.get("/helpdesk/actions", params={"key": "k1"}).json()
    assert (found["found"], found["id"]) == (True, answer.json()["id"])
    (accept,) = vendor.record.accepts
    assert (accept.vendor_id, accept.key, accept.text_length) == (found["id"], "k1", 5)


def test_one_connection_serves_many_requests(client: httpx.Client, vendor: VendorSimulator) -> None:
    """Keep-alive holds through sends, refusals and look-ups."""
    ports = set()
    for number in range(5):
        stream = send(client, f"k{number}").extensions["network_stream"]
        ports.add(stream.get_extra_info("client_addr")[1])
        client.post("/helpdesk/conversations/c1/replies", content=b"{")
        client.get("/helpdesk/nowhere")
    assert len(ports) == 1


def test_accepted_then_dropped_is_recorded_once(client: httpx.Client, vendor: VendorSimulator) -> None:
    """The client sees a broken connection, and the action has taken place exactly once."""
    vendor.configure("helpdesk", script=[{"match": {"key": "k1"}, "do": "drop_after_accept"}])
    with pytest.raises((httpx.RemoteProtocolError, httpx.ReadError)):
        send(client)
    (seen,) = vendor.record.requests()
    assert (seen.verdict, seen.ending, seen.status) == (VerdictKind.ACCEPTED, Ending.DROPPED, None)
    assert len(vendor.record.accepts) == 1


def test_dropped_before_accept_is_not_accepted(client: httpx.Client, vendor: VendorSimulator) -> None:
    """The client sees the same broken connection, and nothing has taken place."""
    vendor.configure("helpdesk", drop_before_accept_share=1)
    with pytest.raises((httpx.RemoteProtocolError, httpx.ReadError)):
        send(client)
    assert vendor.record.accepts == ()
    assert vendor.record.summary().by_verdict == {"dropped": 1}


@pytest.mark.parametrize("outage", [True, "refuse"])
def test_an_outage_accepts_nothing_and_ends(client: httpx.Client, vendor: VendorSimulator, outage: bool | str) -> None:
    """During an outage nothing is accepted, the other vendor works, and afterwards all is well."""
    vendor.configure("helpdesk", outage=outage)
    if outage == "refuse":
        with pytest.raises((httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError)):
            send(client)
    else:
        assert send(client).status_code == 503
    assert vendor.record.accepts == ()
    body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
    assert client.post("/openai/v1/chat/completions", json=body).status_code == 200
    vendor.configure("helpdesk", outage=False)
    assert send(client).status_code == 201


def test_a_stopped_simulator_refuses_connections(client: httpx.Client, vendor: VendorSimulator) -> None:
    """Stopped, its port refuses; started again, it has the port, the record and the switches it had."""
    send(client)
    vendor.configure("helpdesk", dedupe_by_key=False)
    vendor.stop()
    with pytest.raises(httpx.ConnectError), httpx.Client(base_url=vendor.url, trust_env=False) as other:
        send(other)
    vendor.start()
    with httpx.Client(base_url=vendor.url, trust_env=False) as other:
        assert send(other).status_code == 201
    assert vendor.record.duplicates() == 1


def test_a_hang_is_an_accept_that_the_client_never_hears(client: httpx.Client, vendor: VendorSimulator) -> None:
    """A read time-out falls after the accept; stopping does not wait for the hang."""
    vendor.configure("helpdesk", hang_s=600)
    with pytest.raises(httpx.ReadTimeout):
        client.post("/helpdesk/conversations/c1/replies", json={"text": "Hello"}, timeout=0.2)
    until(lambda: bool(vendor.record.accepts), "the accept")
    assert [entry.ending for entry in vendor.record.accepts] == [Ending.HUNG]
    started = time.monotonic()
    vendor.stop()
    assert time.monotonic() - started < 300


def test_a_hang_before_accept_accepts_nothing(client: httpx.Client, vendor: VendorSimulator) -> None:
    """A read time-out can also fall before the accept: then nothing has taken place, or ever will."""
    vendor.configure("helpdesk", hang_s=600, hang_before_accept=True)
    with pytest.raises(httpx.ReadTimeout):
        client.post("/helpdesk/conversations/c1/replies", json={"text": "Hello"}, timeout=0.05)
    vendor.configure("helpdesk", hang_s=0.2)
    with pytest.raises((httpx.RemoteProtocolError, httpx.ReadError)):
        send(client)
    assert vendor.record.accepts == ()


def test_latency_is_felt(client: httpx.Client, vendor: VendorSimulator) -> None:
    """An answer takes at least the latency; the accept stands before it."""
    vendor.configure("helpdesk", latency_s=0.1)
    started = time.monotonic()
    send(client)
    assert time.monotonic() - started >= 0.1


def test_lookups_follow_their_switch(
    client: httpx.Client, vendor: VendorSimulator, forward: Callable[[float], None]
) -> None:
    """None cannot be asked, eventual finds after its lag, exact at once."""
    send(client)

    def look_up() -> httpx.Response:
        return client.get("/helpdesk/actions", params={"key": "k1"})

    vendor.configure("helpdesk", lookup="none")
    assert look_up().status_code == 501
    vendor.configure("helpdesk", lookup="eventual", lookup_lag_s=10)
    assert look_up().json() == {"found": False}
    forward(10)
    assert look_up().json()["found"] is True
    vendor.configure("helpdesk", lookup="exact")
    assert look_up().json()["found"] is True


def test_dedupe_can_be_switched_over_http(client: httpx.Client) -> None:
    """Deduplication on: one accept. Off: two, and the summary says one duplicate."""
    assert [send(client).status_code for _ in range(2)] == [201, 200]
    assert client.put("/_sim/config/helpdesk", json={"dedupe_by_key": False}).status_code == 200
    assert [send(client, "k2").status_code for _ in range(2)] == [201, 201]
    summary = client.get("/_sim/summary").json()
    assert (summary["accepts"], summary["distinct_keys"], summary["duplicates"]) == (3, 2, 1)
    assert summary["by_verdict"] == {"accepted": 3, "deduped": 1}


def test_a_429_has_its_headers(client: httpx.Client, vendor: VendorSimulator, forward: Callable[[float], None]) -> None:
    """Over the limit comes a 429 with Retry-After and the limit; after that time, a 201."""
    vendor.configure("helpdesk", requests_per_minute=2)
    assert [send(client, key).status_code for key in ("a", "b")] == [201, 201]
    refused = send(client, "c")
    assert refused.status_code == 429
    assert refused.headers["x-ratelimit-limit-requests"] == "2"
    assert refused.headers["x-ratelimit-remaining-requests"] == "0"
    assert refused.headers["x-ratelimit-reset-requests"] == "1m0s"
    forward(int(refused.headers["retry-after"]))
    assert send(client, "c").status_code == 201


def test_an_unknown_token_is_401(client: httpx.Client, vendor: VendorSimulator) -> None:
    """With a set of tokens, only those are served; without one, anybody is."""
    vendor.configure("helpdesk", valid_tokens=["right"])
    path, body = "/helpdesk/conversations/c1/replies", {"text": "Hello"}
    wrong, right = ({"Authorization": f"Bearer {token}"} for token in ("wrong", "right"))
    assert client.post(path, json=body, headers=wrong).status_code == 401
    assert client.post(path, json=body).status_code == 401
    assert client.post(path, json=body, headers=right).status_code == 201
    assert vendor.record.summary().by_verdict == {"unauthorised": 2, "accepted": 1}


def test_two_simulators_do_not_meet() -> None:
    """Two at once have two ports, two records and their own switches."""
    with VendorSimulator(seed=1) as one, VendorSimulator(seed=2) as two:
        assert one.port != two.port
        one.configure("helpdesk", outage=True)
        statuses = []
        for simulator in (one, two):
            with httpx.Client(base_url=simulator.url, trust_env=False) as client:
                statuses.append(send(client).status_code)
        assert statuses == [503, 201]
        assert (len(one.record.accepts), len(two.record.accepts)) == (0, 1)


def test_a_taken_port_is_refused(vendor: VendorSimulator) -> None:
    """A second simulator on the same port says so instead of sharing it."""
    with pytest.raises(OSError, match="in use"):
        VendorSimulator(port=vendor.port).start()


def test_a_seed_replays_over_sockets() -> None:
    """Four threads with the same requests meet the same faults in two runs of one seed."""

    def run() -> dict[str, int]:
        heard: dict[str, int] = {}

        def work(part: int) -> None:
            with httpx.Client(base_url=simulator.url, trust_env=False) as client:
                for number in range(part, 40, 4):
                    heard[f"k{number}"] = send(client, f"k{number}").status_code

        with VendorSimulator(seed=11, configs={"helpdesk": shares}) as simulator:
            threads = [threading.Thread(target=work, args=(part,)) for part in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        return heard

    shares = {"error_429_share": 0.3, "error_5xx_share": 0.3}
    first = run()
    assert set(first.values()) == {201, 429, 503}
    assert run() == first
