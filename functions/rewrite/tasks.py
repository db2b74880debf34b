"""The lane's task in its async form: one call to the provider, its answer kept. In a batch, nobody runs this."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from functions.rewrite.prompts import RESULT, accepted, prompt_of
from shared.adapters.vendors import openai_chat
from shared.core.effects import Withheld
from shared.core.job import Job
from shared.core.outcome import Defer, Done, Outcome, Retry
from shared.core.rewrite import RoutingDecision
from shared.core.sensitive import Sensitive
from shared.usecases.context import Context, Task

WITHHELD_S = 600


def complaint_rewrite(job: Job, ctx: Context) -> Outcome:
    """Rewrite one complaint for one recipient. The provider is the one that was decided: there is no other."""
    prompt = prompt_of(job, ctx.payload)
    reply = ctx.call(
        openai_chat.chat(
            prompt.model,
            [("system", Sensitive(prompt.instructions)), ("user", prompt.text)],
            vendor=RoutingDecision.from_mapping(job.routing_decision).provider,
            tokens=prompt.tokens,
            max_tokens=prompt.max_tokens,
        )
    )
    if isinstance(reply, Withheld):
        # Completed means rewritten: what may not be paid for now is asked for later.
        return Defer(ctx.now + timedelta(seconds=WITHHELD_S), f"switches:{reply.by}")
    text, cut = _answer(reply.reveal())
    kept = None if cut or text is None else accepted(Sensitive(text))
    if kept is None:
        return Retry("answer_cut" if cut else "answer_invalid")
    return Done(RESULT, ctx.keep(RESULT, kept))


def _answer(body: Any) -> tuple[str | None, bool]:
    """The text of a completion, and whether it was cut off."""
    try:
        choice = body["choices"][0]
        text, reason = choice["message"]["content"], choice.get("finish_reason")
    except (KeyError, IndexError, TypeError, AttributeError):
        return None, False
    return (text if isinstance(text, str) else None), reason == "length"


TASKS: Mapping[str, Task] = {"complaint_rewrite": complaint_rewrite}
