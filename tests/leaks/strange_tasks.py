"""Tasks that do everything wrong with a customer's text that a task can do."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from typing import Any

from shared.core.effects import Call, Effect
from shared.core.errors import BadInput, Unavailable
from shared.core.job import Category, Job, Status
from shared.core.outcome import Defer, Done, Fail, Retry, Submitted
from shared.core.sensitive import Sensitive
from shared.usecases.context import Context
from tests.leaks.sweep import CANARY

Strange = Callable[[Job, Context], Any]


class WithCode(Exception):
    """An error as SDKs have them: with a code, arguments and notes."""

    code = CANARY

    def __init__(self) -> None:
        super().__init__(CANARY, {"text": CANARY})
        self.add_note(CANARY)


def _raise(error: BaseException) -> Strange:
    def task(job: Job, ctx: Context) -> Any:
        text = CANARY  # A local variable, as a trace with locals would show it.
        raise error from ValueError(text)

    return task


def _effect(name: str, **overrides: Any) -> Strange:
    values: dict[str, Any] = {
        "vendor": "helpdesk",
        "action": "reply",
        "target": "c-1",
        "body": Sensitive({"text": CANARY}),
        "customer_visible": True,
    }
    return lambda job, ctx: ctx.effect(name, Effect(**{**values, **overrides})) and Done("sent")


TASKS: dict[str, Strange] = {
    "value_error": _raise(ValueError(CANARY)),
    "key_error": _raise(KeyError(CANARY)),
    "with_code": _raise(WithCode()),
    "system_exit": _raise(SystemExit(CANARY)),
    "bad_input": _raise(BadInput(CANARY, CANARY)),
    "unavailable": _raise(Unavailable(CANARY, CANARY)),
    "unicode_error": _raise(UnicodeDecodeError("utf-8", CANARY.encode(), 0, 1, CANARY)),
    "int": lambda job, ctx: int(ctx.payload.reveal()["text"]),
    "time": lambda job, ctx: datetime.fromisoformat(ctx.payload.reveal()["text"]),
    "enum": lambda job, ctx: Status(ctx.payload.reveal()["text"]),
    "missing": lambda job, ctx: {}[ctx.payload.reveal()["text"]],
    "not_json": lambda job, ctx: json.loads(ctx.payload.reveal()["text"]),
    "attribute": lambda job, ctx: getattr(job, ctx.payload.reveal()["text"]),
    "returns_text": lambda job, ctx: ctx.payload.reveal()["text"],
    "returns_payload": lambda job, ctx: ctx.payload.reveal(),
    "done_text": lambda job, ctx: Done(CANARY, CANARY),
    "retry_text": lambda job, ctx: Retry(CANARY),
    "defer_text": lambda job, ctx: Defer(ctx.now, CANARY),
    "fail_text": lambda job, ctx: Fail(Category.AUTH, CANARY),
    "fail_category": lambda job, ctx: Fail(CANARY, CANARY),  # type: ignore[arg-type]
    "submitted_text": lambda job, ctx: Submitted(CANARY),
    "keep_text": lambda job, ctx: Done("kept", ctx.keep("answer", CANARY.encode())),
    "keep_name": lambda job, ctx: Done("kept", ctx.keep(CANARY, b"x")),
    "effect_body": _effect("reply"),
    "effect_name": _effect(CANARY),
    "effect_vendor": _effect("reply", vendor=CANARY),
    "effect_action": _effect("reply", action=CANARY),
    "effect_target": _effect("reply", target=CANARY),
    "call_vendor": lambda job, ctx: ctx.call(Call(vendor=CANARY, action="x", body=Sensitive({}))),
    "call_body": lambda job, ctx: ctx.call(Call(vendor="helpdesk", action="reply", body=Sensitive({"t": CANARY}))),
    "wrong_door": lambda job, ctx: ctx.call(Effect),  # type: ignore[arg-type]
}
