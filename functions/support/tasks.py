"""The lane's tasks: an inbound event is routed and, if allowed, answered through the help desk."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from functions.support.routing import route
from shared.adapters.vendors import helpdesk
from shared.core.effects import Withheld
from shared.core.errors import BadInput
from shared.core.job import Job, identifier
from shared.core.outcome import Done, Outcome
from shared.core.sensitive import Sensitive
from shared.usecases.context import Context, Task

ACKNOWLEDGEMENT = "Thank you for writing to us. We have your message and are looking into it."


def answer_event(job: Job, ctx: Context) -> Outcome:
    """Route one inbound event; reply unless its topic is Tier 0 or a switch withholds replies."""
    event = ctx.payload.reveal()
    conversation = identifier("conversation_id", event.get("conversation_id"), 128)
    where = route(_topic(event))
    if not where.auto_reply:
        return Done(f"routed:{where.team}")
    made = ctx.effect("reply", helpdesk.reply(conversation, Sensitive(ACKNOWLEDGEMENT)))
    return Done("withheld" if isinstance(made, Withheld) else "replied")


def _topic(event: Mapping[str, Any]) -> str:
    topic = event.get("topic", "general")
    if not isinstance(topic, str):
        raise BadInput("topic", "must be a word")
    return topic


TASKS: Mapping[str, Task] = {"answer_event": answer_event}
