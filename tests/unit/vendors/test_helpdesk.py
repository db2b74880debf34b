"""The help desk's adapter against a help desk over real sockets: one request, one verdict, never a retry."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings

from ops.vendors.server import VendorSimulator
from shared.adapters.vendors.helpdesk import HelpDesk, add_tag, assign, reply
from shared.adapters.vendors.http import found_or_absent
from shared.adapters.vendors.openai_chat import OpenAiChat, chat
from shared.core.account import Limit
from shared.core.effects import Absent, Accepted, Call, Effect, Found, Lookup, NoAnswer, Refused, Unknown
from shared.core.errors import BadInput, Unavailable
from shared.core.feedback import NOTHING
from shared.core.sensitive import MASK, Sensitive
from shared.core.vendor import VendorSpec
from tests.unit.core.strategies import identifiers
from tests.waiting import PATIENCE_S, until

HELLO = reply("c-1", Sensitive("Hello"))


@pytest.fixture
def simulator() -> Iterator[VendorSimulator]:
    with VendorSimulator(seed=7) as running:
        yield running


@pytest.fixture
def desk(simulator: VendorSimulator) -> Iterator[HelpDesk]:
    with contextlib.closing(a_desk(simulator)) as opened:
        yield opened


def a_desk(simulator: VendorSimulator, tokens: tuple[str, str] = ("old", "new"), **spec: object) -> HelpDesk:
    """A desk that is given the first token, and the second when it asks for a fresh one."""
    values = {"dedupe_window_s": 3600, "lookup": "exact", "read_timeout_s": 60, **spec}
    address = VendorSpec(name="helpdesk", kind="helpdesk", base_url=simulator.helpdesk_url, **values)  # type: ignore[arg-type]
    return HelpDesk(address, token=lambda fresh: tokens[fresh])


@pytest.mark.parametrize(
    ("effect", "action", "visible"),
    [(HELLO, "reply", True), (add_tag("c-1", "vip"), "tag", False), (assign("c-1", "billing"), "assign", False)],
)
def test_each_action_is_accepted_under_our_key(
    desk: HelpDesk, simulator: VendorSimulator, effect: Effect, action: str, visible: bool
) -> None:
    """The vendor's record holds the key and the target; the answer holds the vendor's id."""
    answer = desk.perform(effect, key="k-1", timeout_s=PATIENCE_S)
    assert isinstance(answer, Accepted)
    (accept,) = simulator.record.accepts
    assert (accept.key, accept.action, accept.conversation) == ("k-1", action, "c-1")
    assert (accept.vendor_id, effect.customer_visible) == (answer.vendor_id, visible)


@pytest.mark.req("C1")
def test_the_same_key_twice_is_one_action(desk: HelpDesk, simulator: VendorSimulator) -> None:
    """With a vendor that deduplicates, a second send is answered with the first one's id."""
    first, second = (desk.perform(HELLO, key="k-1", timeout_s=PATIENCE_S) for _ in range(2))
    assert isinstance(first, Accepted)
    assert isinstance(second, Accepted)
    assert first.vendor_id == second.vendor_id
    assert simulator.record.duplicates() == 0


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(target=identifiers)
def test_any_target_is_one_part_of_the_path(simulator: VendorSimulator, desk: HelpDesk, target: str) -> None:
    """Slashes and dots in an id cannot lead anywhere else."""
    assert isinstance(desk.perform(reply(target, Sensitive("x")), key=f"k-{target}", timeout_s=PATIENCE_S), Accepted)
    assert simulator.record.accepts[-1].conversation == target


VERDICTS = {
    "503": ({"script": [{"do": "status:503"}]}, Unknown("503")),
    "accepted, then 500": ({"script": [{"do": "accept_then_status:500"}]}, Unknown("500")),
    "dropped after": ({"script": [{"do": "drop_after_accept"}]}, Unknown("RemoteProtocolError")),
    "dropped before": ({"script": [{"do": "drop_before_accept"}]}, Unknown("RemoteProtocolError")),
    "422": ({"script": [{"do": "status:422"}]}, Refused("422", permanent=True)),
    "409": ({"script": [{"do": "status:409"}]}, Unknown("409")),
    "429": (
        {"script": [{"do": "status:429"}], "retry_after_s": 7},
        Refused("429", retry_after_s=7.0),
    ),
    "429 without a word": (
        {"script": [{"do": "status:429"}], "retry_after": "missing"},
        Refused("429", retry_after_s=30.0),
    ),
    "429 with nonsense": (
        {"script": [{"do": "status:429"}], "retry_after": "garbage"},
        Refused("429", retry_after_s=30.0),
    ),
}


@pytest.mark.fault("A8")
@pytest.mark.parametrize(("config", "wanted"), VERDICTS.values(), ids=VERDICTS)
def test_every_fault_has_its_verdict_after_one_request(
    desk: HelpDesk, simulator: VendorSimulator, config: dict[str, object], wanted: object
) -> None:
    """Client retries are off: whatever happens, the vendor saw one request."""
    simulator.configure("helpdesk", **config)
    assert replace(desk.perform(HELLO, key="k-1", timeout_s=PATIENCE_S), report=NOTHING) == wanted
    assert len(simulator.record.requests()) == 1


@pytest.mark.fault("A8")
def test_silence_is_unknown_after_the_read_timeout_and_one_request(simulator: VendorSimulator) -> None:
    """It may have accepted: nobody can tell, and nobody asks again."""
    simulator.configure("helpdesk", script=[{"do": f"hang:{PATIENCE_S}"}])
    with contextlib.closing(a_desk(simulator, read_timeout_s=0.4)) as desk:
        assert desk.perform(HELLO, key="k-1", timeout_s=PATIENCE_S) == Unknown("timeout")
    until(lambda: bool(simulator.record.requests()), "the request to arrive")
    assert len(simulator.record.requests()) == 1


def test_a_closed_port_is_a_certain_no(desk: HelpDesk, simulator: VendorSimulator) -> None:
    """Nothing was accepted, so the same intent may try again."""
    simulator.stop()
    assert desk.perform(HELLO, key="k-1", timeout_s=PATIENCE_S) == Refused("unreachable")


@pytest.mark.fault("G9")
def test_a_401_asks_for_a_fresh_token_once(desk: HelpDesk, simulator: VendorSimulator) -> None:
    """A rotated secret is fetched again; the second request is the only one accepted."""
    simulator.configure("helpdesk", valid_tokens=["new"])
    assert isinstance(desk.perform(HELLO, key="k-1", timeout_s=PATIENCE_S), Accepted)
    simulator.configure("helpdesk", valid_tokens=["other"])
    assert desk.perform(HELLO, key="k-2", timeout_s=PATIENCE_S) == Refused("401", auth=True)
    assert [entry.status for entry in simulator.record.requests()] == [401, 201, 401, 401]


def test_without_a_token_nothing_is_sent(simulator: VendorSimulator) -> None:
    """A secret that cannot be read is a refusal of our own: the jobs wait until it is mended."""

    def no_token(fresh: bool) -> str:
        raise Unavailable("secret", "AccessDenied")

    spec = VendorSpec(name="helpdesk", kind="helpdesk", base_url=simulator.helpdesk_url)
    with contextlib.closing(HelpDesk(spec, token=no_token)) as desk:
        answer = desk.perform(HELLO, key="k-1", timeout_s=PATIENCE_S)
        assert isinstance(answer, Refused)
        assert (answer.reason, answer.permanent, answer.auth) == ("AccessDenied", False, False)
        assert (answer.retry_after_s or 0) > 0
        assert desk.look_up("k-1", timeout_s=PATIENCE_S) == NoAnswer("unreadable")
    assert simulator.record.requests() == ()


def test_look_up_finds_what_was_accepted(desk: HelpDesk, simulator: VendorSimulator) -> None:
    """Also when the answer to the send was lost; a key that was never sent is absent."""
    simulator.configure("helpdesk", script=[{"match": {"method": "POST"}, "do": "drop_after_accept"}])
    assert isinstance(desk.perform(HELLO, key="k-1", timeout_s=PATIENCE_S), Unknown)
    assert desk.look_up("k-1", timeout_s=PATIENCE_S) == Found(simulator.record.accepts[0].vendor_id, times=1)
    assert desk.look_up("k-2", timeout_s=PATIENCE_S) == Absent()


@pytest.mark.req("C12")
def test_look_up_tells_how_often(desk: HelpDesk, simulator: VendorSimulator) -> None:
    """A key that was accepted twice is told as two; a vendor whose count is none says nothing about it."""
    simulator.configure("helpdesk", dedupe_by_key=False)
    for _ in range(2):
        desk.perform(HELLO, key="k-1", timeout_s=PATIENCE_S)
    assert desk.look_up("k-1", timeout_s=PATIENCE_S) == Found(simulator.record.accepts[0].vendor_id, times=2)
    for said in (None, True, 0, -1, "2", 1.0):
        assert found_or_absent({"found": True, "id": "r-1", "times": said}) == Found("r-1")
    assert found_or_absent({"found": True, "id": "r-1"}) == Found("r-1", times=None)


@pytest.mark.parametrize("config", [{"lookup": "none"}, {"outage": True}, {"outage": "refuse"}])
def test_a_look_up_that_fails_is_no_answer(
    desk: HelpDesk, simulator: VendorSimulator, config: dict[str, object]
) -> None:
    """Never absence: that would be a claim the vendor did not make."""
    simulator.configure("helpdesk", **config)
    assert isinstance(desk.look_up("k-1", timeout_s=PATIENCE_S), NoAnswer)


def test_what_it_can_do_is_what_its_settings_say(simulator: VendorSimulator) -> None:
    """The window and the kind of look-up are declared, not guessed; a window of 0 is none."""
    desk = a_desk(simulator)
    assert (desk.dedupes_by_key, desk.lookup) == (timedelta(hours=1), Lookup.EXACT)
    plain = a_desk(simulator, dedupe_window_s=0, lookup="none")
    assert (plain.dedupes_by_key, plain.lookup) == (None, Lookup.NONE)


def test_an_unknown_action_is_refused_before_anything_is_sent(desk: HelpDesk, simulator: VendorSimulator) -> None:
    """The error names the action and nothing of the body."""
    strange = Effect(vendor="helpdesk", action="delete", target="c", body=Sensitive({"a": "b"}), customer_visible=True)
    with pytest.raises(BadInput, match="'delete' is not one of vendor helpdesk's"):
        desk.perform(strange, key="k", timeout_s=PATIENCE_S)
    assert simulator.record.requests() == ()


# --------------------------------------------------------------------------------------------- inference
@pytest.fixture
def model(simulator: VendorSimulator) -> Iterator[OpenAiChat]:
    spec = VendorSpec(name="openai", kind="openai", base_url=simulator.openai_url)
    with contextlib.closing(OpenAiChat(spec, token=lambda fresh: "t")) as opened:
        yield opened


def test_a_completion_is_a_call_with_a_masked_answer(model: OpenAiChat, simulator: VendorSimulator) -> None:
    """It may be repeated, so it has no key; what comes back is sensitive."""
    simulator.configure("openai", canned_answers=[{"contains": "refund", "content": "billing"}])
    question = chat("small", [("system", Sensitive("Classify.")), ("user", Sensitive("a refund, please"))])
    assert isinstance(question, Call)
    assert MASK in repr(question)
    answer = model.perform(question, key=None, timeout_s=PATIENCE_S)
    assert isinstance(answer, Accepted)
    assert answer.body is not None
    assert answer.body.reveal()["choices"][0]["message"]["content"] == "billing"
    assert "billing" not in repr(answer)
    assert simulator.record.requests()[0].key == ""


def test_a_model_has_no_look_up(model: OpenAiChat) -> None:
    """And says so."""
    assert (model.lookup, model.dedupes_by_key) == (Lookup.NONE, None)
    assert model.look_up("k", timeout_s=1) == NoAnswer("no_lookup")


def test_a_rate_limited_model_says_when(model: OpenAiChat, simulator: VendorSimulator) -> None:
    """A 429 is a refusal with a time, not an error, and its headers tell the account's limits."""
    simulator.configure("openai", script=[{"do": "status:429"}], retry_after_s=3)
    question = chat("small", [("user", Sensitive("hi"))])
    answer = model.perform(question, key=None, timeout_s=PATIENCE_S)
    assert replace(answer, report=NOTHING) == Refused("429", retry_after_s=3.0)
    assert answer.report.retry_after_s == 3.0
    assert set(answer.report.limits) == {Limit.REQUESTS, Limit.TOKENS}
