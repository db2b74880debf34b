"""What the model of lane `support` may answer: one intent of the list, or the event is for a person."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given

from functions.support.classify import SHOWN_TOKENS, intent_of, question, shown_of
from functions.support.tasks import TASKS
from shared.adapters.vendors.openai_chat import OpenAiChat
from shared.core.account import AccountSpec
from shared.core.errors import BadInput
from shared.core.job import Category, Status
from shared.core.ports import Clock
from shared.core.routing import UNCLEAR
from shared.core.tokens import text_tokens
from shared.core.vendor import VendorSpec
from tests.builders import a_ticket
from tests.functions.stage import a_stage
from tests.functions.supporting import NOT_ANSWERS, THE, Support, supporting
from tests.unit.core.strategies import few, json_values
from tests.unit.usecases.desk import Desk
from tests.unit.vendors import sockets
from tests.unit.vendors.sockets import RawServer


# ------------------------------------------------------------------------------------------- what is not understood
@pytest.mark.parametrize("answer", NOT_ANSWERS.values(), ids=NOT_ANSWERS)
def test_what_the_model_does_not_say_plainly_is_for_a_person(answer: str) -> None:
    """Tagged unclear, given to the default team, not answered; asked once, not until it says something else."""
    with supporting() as lane:
        lane.answers(answer)
        job = lane.handled()
        assert (job.status, job.result, job.attempt_count) == (Status.COMPLETED, "routed:front_desk", 0)
        assert job.routing_decision == {"intent": UNCLEAR, "team": "front_desk", "tier_0": False, "by": "model"}
        assert lane.done(job) == ["add_tag", "assign"]
        assert lane.model.answered == 1


@few
@given(reply=json_values)
def test_any_reply_has_a_meaning(reply: object) -> None:
    """A 200 with nonsense, an HTML page read as nothing, an error where an answer should be: unclear, never raised."""
    for shape in (
        reply,
        {"choices": reply},
        {"choices": [{"finish_reason": "stop", "message": {"content": reply}}]},
        {"choices": [{"finish_reason": reply, "message": {"content": '{"intent": "billing", "sure": true}'}}]},
    ):
        assert intent_of(THE, shape) == UNCLEAR or reply == "stop"


def test_an_event_without_text_asks_nobody() -> None:
    """Its sender's topic chooses the team; there is nothing a machine could have understood."""
    with supporting() as lane:
        job = lane.handled(None, topic="shipping")
        assert (job.result, lane.done(job)) == ("routed:logistics", ["add_tag", "assign"])
        assert lane.handled(None).result == "routed:front_desk"
        assert lane.model.answered == 0


def test_a_text_that_was_shown_in_part_is_for_a_person() -> None:
    """The model sees its beginning and chooses the team; rules read all of it."""
    with supporting() as lane:
        long = "billing " + "and so on " * 2_000
        job = lane.handled(long)
        assert (job.result, lane.done(job)) == ("routed:billing", ["add_tag", "assign"])
        assert lane.handled(f"{long} lawyer").result == "routed:specialists"


def test_a_question_fits_its_account() -> None:
    """A narrow limit shows less of a text, never a call that no waiting could make fit."""
    account = AccountSpec(name="openai", vendor="openai", requests_per_minute=60, tokens_per_minute=600)
    with supporting(account=account) as lane:
        job = lane.handled("billing " * 2_000)
        assert job.result == "routed:billing"
        assert max(lane.model.estimates) <= 600
    for text in ("word " * 9_000, "，。" * 9_000, "x" * 90_000):
        assert text_tokens(shown_of(THE, text, None)) <= SHOWN_TOKENS
        assert question(THE, shown_of(THE, text, 700)).tokens <= 700
    with pytest.raises(BadInput, match="besides its text"):
        shown_of(THE, "Hi", 50)


@pytest.mark.parametrize(
    ("payload", "error"),
    [
        ({"conversation_id": None}, "bad_input:conversation_id"),
        ({"text": ["a"]}, "bad_input:text"),
        ({"subject": 7}, "bad_input:subject"),
        ({"topic": {}}, "bad_input:topic"),
    ],
)
def test_what_cannot_be_read_fails_at_once(payload: Any, error: str) -> None:
    """Malformed, by its field; nobody is asked and nothing is sent."""
    with supporting() as lane:
        job = lane.handled(**{"text": "Hi", **payload})
        assert (job.status, job.category, job.last_error) == (Status.FAILED, Category.MALFORMED, error)
        assert (lane.model.answered, lane.accepts) == (0, [])


def test_a_lane_without_routing_says_so() -> None:
    """A configuration that lacks it fails with the setting's name, and sends nothing."""
    desk = Desk(tasks=TASKS)
    job_id = desk.enqueue("handle_event", payload={"conversation_id": "c-1", "text": "Hi"}).job_id
    desk.work(a_ticket(desk.job(job_id)))
    assert desk.job(job_id).last_error == "bad_input:routing"
    assert desk.vendor.accepts == []


OVER_THE_WIRE: dict[str, tuple[bytes, Status, str]] = {
    "nonsense": (sockets.reply("200 OK", b'{"choices": "yes"}'), Status.COMPLETED, "routed:front_desk"),
    "a page": (sockets.reply("200 OK", b"<html>Welcome</html>"), Status.COMPLETED, "routed:front_desk"),
    "nothing": (sockets.reply("204 No Content"), Status.COMPLETED, "routed:front_desk"),
    "a teapot": (sockets.reply("418 I am a teapot", b"short and stout"), Status.FAILED, "vendor_permanent:openai:418"),
    "a redirect": (sockets.reply("302 Found", b"", "Location: /login"), Status.QUEUED, "vendor_unavailable:openai:302"),
    "no sense at all": (b"220 smtp ready\r\n", Status.QUEUED, "vendor_unavailable:openai:RemoteProtocolError"),
}


@pytest.mark.parametrize(("reply", "status", "said"), OVER_THE_WIRE.values(), ids=OVER_THE_WIRE)
def test_whatever_the_model_replies_has_its_end(reply: bytes, status: Status, said: str) -> None:
    """Over real sockets: what counts as an answer is for a person, a clear no is a dead letter, the rest is tried
    again; nothing is answered by guess."""
    with RawServer(lambda request: [reply]) as server, a_stage(model=_over_the_wire(server)) as stage:
        lane = Support(stage, None)
        job = lane.handled()
        assert (job.status, job.result or job.last_error) == (status, said)
        assert "reply" not in lane.done(job)
        assert len(server.requests) == 1


@pytest.mark.fault("G7")
@pytest.mark.parametrize("paid", [False, True])
@pytest.mark.parametrize(
    "header", ["-5", "99999999999", "0", "soon", "Fri, 31 Dec 9999 23:59:59 GMT", "Thu, 01 Jan 1970 00:00:00 GMT"]
)
def test_a_wait_that_cannot_be_meant_is_bounded(header: str, paid: bool) -> None:
    """Negative, huge, a date long past or without end: deferred for a second to an hour, and no attempt is used."""
    account = AccountSpec(name="openai", vendor="openai", requests_per_minute=60, tokens_per_minute=30_000)
    limit = sockets.reply("429 Too Many Requests", b"", f"Retry-After: {header}")
    with (
        RawServer(lambda request: [limit]) as server,
        a_stage(model=_over_the_wire(server), account=account if paid else None) as stage,
    ):
        lane = Support(stage, None)
        job, began = lane.event(), stage.desk.clock.now()
        after = lane.ran(job)
        assert (after.status, after.attempt_count, lane.accepts) == (Status.QUEUED, 0, [])
        assert after.not_before_at is not None
        # An account's own turn comes a little after the quiet.
        assert 1 <= (after.not_before_at - began).total_seconds() <= 3600 * (1.1 if paid else 1)


def _over_the_wire(server: RawServer) -> Callable[[Clock], Any]:
    spec = VendorSpec(name="openai", kind="openai", base_url=server.url, read_timeout_s=60)
    return lambda clock: OpenAiChat(spec, token=lambda fresh: "token")
