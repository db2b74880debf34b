"""The intake's door: a signed event becomes one job; whatever else comes in is answered, never raised."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.contract import metrics
from shared.core.job import MAX_PAYLOAD_BYTES, Status, job_id_of
from shared.core.webhook import MAX_BODY_BYTES
from shared.runtime.door import DoorFailed
from tests.functions.senders import DATA, KEY, OTHER, STAMP, Door, a_door, body_of, request, with_headers
from tests.functions.telemetry_lines import watched
from tests.unit.core.strategies import few, json_values
from tests.unit.usecases.desk import Flaky

REFUSED = (401, {"outcome": "refused"})
JOB = job_id_of("support", "acme", "answer_event", "evt-1")
anything = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.text(max_size=20),
    st.binary(max_size=20),
    st.lists(st.text(max_size=3), max_size=3),
    st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=3),
    st.sampled_from(["\ud800", "é" * 64, "v1=" + "0" * 64, "=", "AA==", "v1=é", "１" * 10, str(STAMP)]),
)


# ---------------------------------------------------------------------------------------------- good events
@pytest.mark.req("C1")
@pytest.mark.parametrize("encoded", [False, True])
def test_a_signed_event_becomes_one_job(encoded: bool) -> None:
    """Created with the first request, existing with every later one; its text is in the content store."""
    with a_door() as door:
        event = request(encoded=encoded)
        assert door.send(event) == (202, {"outcome": "created", "job_id": JOB})
        door.at(1)
        assert door.send(event) == (200, {"outcome": "existing", "job_id": JOB})
        (job,) = door.stage.jobs()
        assert (job.job_id, job.tenant, job.task, job.key, job.status) == (
            *(JOB, "acme", "answer_event"),
            *("evt-1", Status.QUEUED),
        )
        assert json.loads(door.stage.desk.content.get(job.payload_ref or "") or b"") == DATA


@pytest.mark.req("C1")
def test_an_event_is_the_job_a_producer_would_enqueue() -> None:
    """The same cause by two doors is one job."""
    with a_door() as door:
        ref = door.stage.desk.enqueue("answer_event", key="evt-1", tenant="acme", payload=DATA)
        assert door.send(request()) == (200, {"outcome": "existing", "job_id": ref.job_id})


@pytest.mark.fault("J2")
def test_a_replay_makes_no_second_job() -> None:
    """A recorded request is the same job for five minutes and refused after; signed anew, it is the job for days."""
    with a_door() as door:
        recorded = request()
        assert door.send(recorded)[0] == 202
        door.at(1)
        assert door.send(recorded) == (200, {"outcome": "existing", "job_id": JOB})
        door.at(360)
        assert door.send(recorded) == REFUSED
        door.at(3 * 86_400)
        assert door.send(recorded) == REFUSED
        assert door.send(request(at=STAMP + 3 * 86_400)) == (200, {"outcome": "existing", "job_id": JOB})
        assert len(door.stage.jobs()) == 1


@pytest.mark.req("C1")
@pytest.mark.fault("J2")
def test_the_same_id_with_another_payload_is_a_conflict() -> None:
    """The first job stands, with its own text."""
    with a_door() as door:
        door.send(request())
        assert door.send(request(body_of(topic="legal"))) == (409, {"outcome": "conflict", "job_id": JOB})
        (job,) = door.stage.jobs()
        assert json.loads(door.stage.desk.content.get(job.payload_ref or "") or b"") == DATA


# ------------------------------------------------------------------------------------------------- senders
@pytest.mark.fault("J1")
@pytest.mark.parametrize(
    "forged",
    [
        request(key=OTHER),
        request(key=b""),
        request(tenant="bolt"),
        request(tenant="stranger"),
        request(tenant="customer's words"),
        request(pathParameters=None),
        request(body=body_of("evt-2"), headers=request()["headers"]),
        request(at=STAMP - 301),
        request(at=STAMP + 301),
        request(headers=None),
        with_headers(request(), penstock_signature=None),
        with_headers(request(), penstock_signature="v1=" + "é" * 64),
        with_headers(request(), penstock_signature=request()["headers"]["penstock-signature"].upper()),
        with_headers(request(), penstock_timestamp=None),
        with_headers(request(), penstock_timestamp=f" {STAMP}"),
        with_headers(request(), penstock_timestamp="１" * 10),
        request(isBase64Encoded=True),
        request(body=None, isBase64Encoded=True) | {"body": "not base64 at all"},
        request() | {"body": None},
    ],
    ids=lambda event: None,
)
def test_whatever_is_doubtful_about_the_sender_gets_one_answer(forged: dict[str, Any]) -> None:
    """Byte for byte the same, and nothing is stored."""
    with a_door() as door:
        assert door.stage.invoke("intake", forged) == {
            "statusCode": 401,
            "headers": {"content-type": "application/json"},
            "body": '{"outcome": "refused"}',
        }
        assert door.stage.jobs() == []
        assert list(door.stage.desk.content.refs()) == []


@pytest.mark.fault("H1")
def test_the_tenant_is_whose_key_signed() -> None:
    """A tenant named beside or inside the data changes nothing; its own key is good for its own address alone."""
    with a_door() as door:
        body = json.dumps({"id": "evt-1", "tenant": "bolt", "data": DATA}).encode()
        assert door.send(request(body))[0] == 400
        assert door.send(request(body_of(tenant="bolt")))[0] == 202
        assert door.send(request(tenant="bolt", key=KEY)) == REFUSED
        assert [job.tenant for job in door.stage.jobs()] == ["acme"]
        assert door.send(request(body_of(tenant="acme"), tenant="bolt", key=OTHER))[0] == 202
        assert sorted(job.tenant for job in door.stage.jobs()) == ["acme", "bolt"]


def test_a_new_key_is_found_without_waiting_for_the_cache() -> None:
    """Before a signature is refused the keys are asked for once more; a good one costs no second look."""
    with a_door() as door:
        new = b"the-next-key-of-acme-has-forty-letters-too"
        door.send(request())
        assert (door.keys.asked, door.keys.asked_freshly) == (1, 0)
        door.keys.stored = {"acme": (new, KEY)}
        assert door.send(request(body_of("evt-2"), key=new))[0] == 202
        assert door.send(request(body_of("evt-3"), key=KEY))[0] == 202
        door.keys.stored = {"acme": (new,)}
        door.send(request(key=OTHER))
        assert door.send(request(body_of("evt-4"), key=KEY)) == REFUSED


@pytest.mark.fault("J5")
def test_the_secret_is_not_asked_for_what_is_refused_anyway() -> None:
    """Too large, too old or unsigned: no key is looked at."""
    with a_door() as door:
        door.send(request(bytes(MAX_BODY_BYTES + 1), encoded=True))
        door.send(request(at=STAMP - 301))
        door.send(with_headers(request(), penstock_signature="v1=short"))
        assert door.keys.asked == 0


# ---------------------------------------------------------------------------------------------- bad events
@pytest.mark.fault("J5")
@pytest.mark.parametrize("encoded", [False, True])
@pytest.mark.parametrize("size", [MAX_BODY_BYTES + 1, MAX_BODY_BYTES + 2, 10_000_000])
def test_a_body_too_large_is_not_even_decoded(size: int, encoded: bool) -> None:
    """Signed or not: 413, before anything is computed of it."""
    with a_door() as door:
        assert door.send(request(b"x" * size, encoded=encoded)) == (413, {"outcome": "too_large"})
        assert door.send(request(b"x" * size, encoded=encoded, headers={}))[0] == 413


@pytest.mark.fault("J5")
def test_a_body_at_the_limit_is_taken() -> None:
    """256 KB are allowed, to the byte."""
    with a_door() as door:
        room = MAX_BODY_BYTES - len(body_of(text=""))
        whole = body_of(text="x" * room)
        assert len(whole) == MAX_BODY_BYTES <= MAX_PAYLOAD_BYTES
        assert door.send(request(whole))[0] == 202


@pytest.mark.fault("J5", "H5")
@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"", "event: is not valid JSON"),
        (b"\xff\xfe", "event: is not UTF-8"),
        (b"\x1f\x8b\x08\x00", "event: is not UTF-8"),
        (b"[" * 100_000, "event: is nested deeper than 32 levels"),
        (b'{"id": "a", "id": "b", "data": {}}', "event: has the same field twice"),
        (b'{"id": "a", "data": {"x": NaN}}', "event: holds NaN or Infinity"),
        (b'{"id": "a", "data": {"x": 1e999}}', "event: holds a number too large to keep"),
        (b'{"id": "a", "data": {"x": "\\ud800"}}', "payload: holds text that is not valid Unicode"),
        (b"[]", "event: must be an object"),
        (b"null", "event: must be an object"),
        (b'{"id": "a"}', "data: is missing or not an object"),
        (b'{"id": "a", "data": []}', "data: is missing or not an object"),
        (b'{"data": {}}', "id: is missing or empty"),
        (b'{"id": 7, "data": {}}', "id: is missing or empty"),
        (b'{"id": "two words", "data": {}}', "id: may hold only"),
        (b'{"id": "' + b"x" * 129 + b'", "data": {}}', "id: has 129 characters"),
        (b'{"id": "a", "data": {}, "lane": "other"}', "event: has fields other than id and data"),
    ],
    ids=lambda value: None,
)
def test_a_known_sender_is_told_what_is_wrong(body: bytes, problem: str) -> None:
    """400 with a sentence of ours; nothing is stored."""
    with a_door() as door:
        status, told = door.send(request(body, encoded=True))
        assert (status, told["outcome"]) == (400, "malformed")
        assert told["problem"].startswith(problem)
        assert door.stage.jobs() == []


@pytest.mark.fault("J5")
def test_an_unknown_sender_is_not_told_what_is_wrong() -> None:
    """Nothing is parsed before the signature."""
    with a_door() as door:
        assert door.send(request(b"[" * 100_000, key=OTHER)) == REFUSED


@pytest.mark.fault("J1", "J5")
@few
@given(changes=st.dictionaries(st.sampled_from([*request(), "cookies"]), anything, max_size=4), signed=json_values)
def test_no_request_raises(changes: dict[str, Any], signed: Any) -> None:
    """Whatever API Gateway hands over, and whatever a known sender signs: an answer, and never a 5xx."""
    with a_door() as door:
        assert door.send({**request(), **changes})[0] in (200, 202, 400, 401, 413)
        assert door.send(request(json.dumps(signed).encode(), encoded=True))[0] == 400
        assert door.send(request(json.dumps({"id": "x", "data": signed}).encode()))[0] in (202, 400)


@pytest.mark.fault("J1")
@few
@given(timestamp=anything, signature=anything, name=st.sampled_from([str.lower, str.upper, str.title]))
def test_no_header_raises(timestamp: Any, signature: Any, name: Any) -> None:
    """Any value in the headers that are read, under any spelling of their names."""
    with a_door() as door:
        headers = {name("penstock-timestamp"): timestamp, name("penstock-signature"): signature, "x": None}
        assert door.send(request(headers=headers)) == REFUSED


# ------------------------------------------------------------------------------------------------- outages
@pytest.mark.parametrize("what", ["jobs", "content", "keys"])
def test_an_outage_asks_the_sender_to_come_again(what: str) -> None:
    """503 with a time to wait; no job half-way, and the next try is taken."""
    with a_door() as door:
        flaky = _broken(door, what)
        answer = door.stage.invoke("intake", request())
        assert (answer["statusCode"], answer["body"]) == (503, '{"outcome": "unavailable"}')
        assert answer["headers"]["retry-after"] == "5"
        assert door.stage.jobs() == []
        flaky.down = False
        door.at(60)
        assert door.send(request())[0] == 202


def _broken(door: Door, what: str) -> Any:
    if what == "keys":
        door.keys.down = True
        return door.keys
    flaky = Flaky(getattr(door.stage.desk, what), "put")
    flaky.down = True
    setattr(door.stage.desk, what, flaky)
    return flaky


@pytest.mark.parametrize("variable", ["PENSTOCK_SECRET_ARN", "PENSTOCK_SETTINGS", "PENSTOCK_LANE"])
def test_a_function_that_is_not_set_up_says_so_by_code(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not a word to the sender beyond API Gateway's own 500; the log has the code."""
    with a_door() as door:
        monkeypatch.setenv(variable, "")
        with pytest.raises(DoorFailed, match=r"^intake:bad_input$"):
            door.stage.invoke("intake", request())


# --------------------------------------------------------------------------------------------------- voice
def test_what_is_logged_and_counted() -> None:
    """An event name and ids; the address of a stranger is not among them."""
    with watched() as output, a_door() as door:
        door.send(request())
        door.send(request(tenant="stranger"))
        door.send(request(b"[]"))
        door.send(request(body_of(topic="legal")))
        door.keys.down = True
        door.send(request())
        told = [
            (line["message"], line.get("reason"), line.get("tenant"), line.get("error_code")) for line in output.logs
        ]
        assert told == [
            ("event_received", None, "acme", None),
            ("event_refused", "forged", None, None),
            ("event_refused", "bad_input", None, None),
            ("event_refused", "enqueue_conflict", None, None),
            ("event_unanswered", None, None, "unavailable"),
        ]
        assert {line["service"] for line in output.logs} == {"support-intake"}
        counted = [name for document in output.metrics for name in document if name in metrics.ALL]
        assert counted == [metrics.ENQUEUED, *[metrics.EVENTS_REFUSED] * 3, metrics.EVENTS_UNANSWERED]
        assert "stranger" not in output.text


@pytest.mark.fault("J7")
def test_a_sender_whose_tenant_has_a_slash_makes_no_job() -> None:
    """Also where its key stands in the secret: the answer says what to mend."""
    with a_door() as door:
        door.keys.seen["acme/b"] = (KEY,)
        status, told = door.send(request(tenant="acme/b"))
        assert (status, told["outcome"]) == (400, "malformed")
        assert "may not hold /" in told["problem"]
        assert door.stage.jobs() == []
