"""The kinds of vendor there are, and the smallest tasks that use one."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from typing import Any

from shared.adapters.memory.vendor import MemoryVendor
from shared.core.effects import Call, Effect, Lookup, Withheld
from shared.core.job import Job
from shared.core.outcome import Done, Outcome
from shared.core.ports import Clock
from shared.core.sensitive import Sensitive
from shared.usecases.context import Context, Task
from shared.usecases.enqueue import Enqueue


class VendorKind(StrEnum):
    """What a vendor can do for us when an answer is lost."""

    DEDUPES = "dedupes"
    EXACT = "exact"
    EVENTUAL = "eventual"
    NEITHER = "neither"


def a_vendor(
    kind: VendorKind, clock: Clock, *, of: type[MemoryVendor] = MemoryVendor, **overrides: Any
) -> MemoryVendor:
    """A vendor of that kind."""
    abilities: dict[VendorKind, dict[str, Any]] = {
        VendorKind.DEDUPES: {"dedupes_by_key": timedelta(hours=24)},
        VendorKind.EXACT: {"lookup": Lookup.EXACT},
        VendorKind.EVENTUAL: {"lookup": Lookup.EVENTUAL, "lookup_lag_s": 20.0},
        VendorKind.NEITHER: {},
    }
    return of(clock=clock, **{**abilities[kind], **overrides})


def effect_of(action: str, job: Job) -> Effect:
    """An effect whose target tells job and action apart, so that the vendor's record can judge."""
    return Effect(
        vendor="helpdesk",
        action=action,
        target=f"{job.tenant}/{job.key}",
        body=Sensitive({}),
        customer_visible=True,
    )


def reply(job: Job, ctx: Context) -> Outcome:
    """Read the text, reply."""
    ctx.payload.reveal()
    made = ctx.effect("reply", effect_of("reply", job))
    return Done("withheld" if isinstance(made, Withheld) else "replied")


def reply_and_tag(job: Job, ctx: Context) -> Outcome:
    """Read the text, reply, tag."""
    ctx.payload.reveal()
    made = [ctx.effect(action, effect_of(action, job)) for action in ("reply", "tag")]
    return Done("withheld" if any(isinstance(one, Withheld) for one in made) else "replied")


def ask_and_reply(job: Job, ctx: Context) -> Outcome:
    """Ask the vendor something that may be asked again, then reply."""
    ctx.call(Call(vendor="helpdesk", action="classify", body=Sensitive({}), paid=False))
    made = ctx.effect("reply", effect_of("reply", job))
    return Done("withheld" if isinstance(made, Withheld) else "replied")


TASKS: Mapping[str, Task] = {"reply": reply, "reply_and_tag": reply_and_tag, "ask_and_reply": ask_and_reply}
_ACTIONS = {
    "reply": ("reply",),
    "reply_and_tag": ("reply", "tag"),
    "ask_and_reply": ("reply",),
    "handle_event": ("add_tag", "assign", "reply"),
}


def targets_of(request: Enqueue) -> list[str]:
    """What the vendor must have accepted once the job is completed."""
    key = request.key if isinstance(request.key, str) else "#".join(request.key)
    return [f"{action}:{request.tenant}/{key}" for action in _ACTIONS.get(request.task, ())]
