"""The lane's tasks: an inbound event is given its intent, tag and team, and answered where a machine may answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from functions.support.classify import VENDOR, intent_of, question, shown_of
from shared.adapters.vendors import helpdesk
from shared.core.effects import Withheld
from shared.core.errors import BadInput
from shared.core.job import Job, identifier
from shared.core.outcome import Done, Outcome
from shared.core.routing import UNCLEAR, Routing, decide, decide_by_topic
from shared.core.sensitive import Sensitive
from shared.usecases.context import Context, Task

ACKNOWLEDGEMENT = "Thank you for writing to us. We have your message and are looking into it."
INTENT = "intent"
"""What the model understood is kept under this name: it is asked, and paid, once in the life of a job."""


def answer_event(job: Job, ctx: Context) -> Outcome:
    """An event whose sender says what it is about: routed by rules and, if that is listed and not Tier 0, answered. One
    effect."""
    event, routing = ctx.payload.reveal(), ctx.routing
    conversation = _conversation(event)
    _, mentioned, topic = _said(event, routing, absent="general")
    route = decide_by_topic(routing, mentioned=mentioned, topic=topic)
    if not route.reply:
        return Done(f"routed:{route.team}", routing=route.to_mapping())
    made = ctx.effect("reply", helpdesk.reply(conversation, Sensitive(ACKNOWLEDGEMENT)))
    return Done("withheld" if isinstance(made, Withheld) else "replied", routing=route.to_mapping())


def handle_event(job: Job, ctx: Context) -> Outcome:
    """An event of any kind: its intent is found by rules and by a model, then it is tagged, assigned and, if the model
    understood it and it is not Tier 0, answered. Three effects, each once."""
    event, routing = ctx.payload.reveal(), ctx.routing
    conversation = _conversation(event)
    text, mentioned, topic = _said(event, routing)
    route = decide(routing, mentioned=mentioned, topic=topic, answer=None)
    asked: str | Withheld | None = None
    if text and not route.tier_0:
        # What rules alone keep from the machine is neither paid for nor shown to a model.
        shown = shown_of(routing, text, ctx.largest_call(VENDOR))
        asked = _intent(ctx, shown)
        if isinstance(asked, str):
            route = decide(routing, mentioned=mentioned, topic=topic, answer=asked, whole=shown == text)
    ctx.effect("add_tag", helpdesk.add_tag(conversation, route.intent))
    ctx.effect("assign", helpdesk.assign(conversation, route.team))
    result = "withheld" if isinstance(asked, Withheld) else f"routed:{route.team}"
    if route.reply:
        made = ctx.effect("reply", helpdesk.reply(conversation, Sensitive(ACKNOWLEDGEMENT)))
        result = "withheld" if isinstance(made, Withheld) else "replied"
    return Done(result, routing=route.to_mapping())


def _intent(ctx: Context, shown: str) -> str | Withheld:
    """What the model understands; kept before the first effect: an event has one intent however often it runs."""
    kept = ctx.kept(INTENT)
    if kept is not None:
        name = kept.decode(errors="replace")
        return name if name in ctx.routing.intents else UNCLEAR
    reply = ctx.call(question(ctx.routing, shown))
    if isinstance(reply, Withheld):
        return reply
    intent = intent_of(ctx.routing, reply.reveal())
    ctx.keep(INTENT, intent.encode())
    return intent


def _conversation(event: Mapping[str, Any]) -> str:
    return identifier("conversation_id", event.get("conversation_id"), 128)


def _said(event: Mapping[str, Any], routing: Routing, absent: str = "") -> tuple[str, frozenset[str], str | None]:
    """What the customer wrote, the intents mentioned in that or in its topic, and the listed intent the topic names."""
    subject, text, topic = _text(event, "subject"), _text(event, "text"), _text(event, "topic", absent)
    return f"{subject}\n\n{text}".strip(), routing.mentioned_in(subject, text, topic), routing.topic(topic)


def _text(event: Mapping[str, Any], name: str, absent: str = "") -> str:
    value = event.get(name, absent)
    if not isinstance(value, str):
        raise BadInput(name, "must be a word" if name == "topic" else "must be text")
    return value


TASKS: Mapping[str, Task] = {"answer_event": answer_event, "handle_event": handle_event}
