"""How a task ends: one value, the whole contract between a task and the engine."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from shared.core.errors import BadInput
from shared.core.job import Category, utc

NOT_A_CODE = "not_a_code"
"""Kept instead of a code that was text: text of a customer's may be in it."""
MOST_DECIDED = 8
MOST_CODE = 96
_CODE = re.compile(rf"[A-Za-z0-9#][A-Za-z0-9._:@+=/#-]{{0,{MOST_CODE - 1}}}")
_REF = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@+=/-]{0,255}")


@dataclass(frozen=True, slots=True)
class Done:
    """The work is done. Ends `completed`; the attempt count stays as it was.

    `result` is a short code such as ``replied`` or ``withheld``, never text; what a task wrote for later
    readers goes to the content store and is named by `ref`. `routing` is what it decided, in codes. `withheld` says
    which switch kept it from what; the engine writes that down itself.
    """

    result: str = "done"
    ref: str | None = None
    routing: Mapping[str, str | bool] | None = None
    withheld: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Retry:
    """A passing failure. One attempt is used; the job waits its backoff, or fails when none is left.

    `error` is a code such as ``vendor_timeout``. An exception in a task counts as `Retry` of its type.
    """

    error: str


@dataclass(frozen=True, slots=True)
class Defer:
    """Not now. No attempt is used; the job waits until `until` under the reason, the message is acknowledged.

    `promised`: the time is the job's own turn at a vendor account; `tokens` and `requests` are what it needs there.
    """

    until: datetime
    reason: str
    promised: bool = False
    tokens: int | None = None
    requests: int | None = None


@dataclass(frozen=True, slots=True)
class Fail:
    """No further try would help. Ends `failed` under its category; an operator decides what follows."""

    category: Category
    error: str


@dataclass(frozen=True, slots=True)
class Submitted:
    """Handed to a provider's batch. Goes to `batch_submitted`; the collector ends it; no attempt is used."""

    batch: str


Outcome = Done | Retry | Defer | Fail | Submitted


def checked(outcome: object) -> Outcome:
    """What a task returned, as a row may keep it: codes that are codes, a time that has a zone.

    A task that reports an exception's message or a model's answer as its code loses that text here, and
    nothing else; one that returns no outcome at all, or a time nobody can tell, has failed as malformed.
    """
    match outcome:
        case Done(result=result, ref=ref, routing=routing):
            return Done(_code(result), ref if isinstance(ref, str) and _REF.fullmatch(ref) else None, _codes(routing))
        case Retry(error=error):
            return Retry(_code(error))
        case Defer(until=until, reason=reason):
            try:
                at = utc("until", until)
            except BadInput:
                at = None
            if at is None:
                return Fail(Category.MALFORMED, "bad_input:until")
            # Only the engine promises a turn: what a task says of one is not believed.
            return Defer(at, _code(reason))
        case Fail(category=category, error=error):
            known = category in tuple(Category)
            return Fail(Category(category) if known else Category.MALFORMED, _code(error))
        case Submitted(batch=batch):
            return Submitted(_code(batch))
    return Fail(Category.MALFORMED, "task_returned_no_outcome")


def is_code(text: object) -> bool:
    """True for a short code: no blanks, no line breaks, nothing a sentence needs."""
    return isinstance(text, str) and _CODE.fullmatch(text) is not None


def _codes(decided: object) -> dict[str, str | bool] | None:
    if not isinstance(decided, Mapping) or not decided or len(decided) > MOST_DECIDED:
        return None
    return {_code(name): value if isinstance(value, bool) else _code(value) for name, value in decided.items()}


def _code(text: object) -> str:
    return str(text) if is_code(text) else NOT_A_CODE
