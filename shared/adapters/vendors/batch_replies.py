"""What a batch provider's answer means, whoever the provider is: its status and a code, never its text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from shared.adapters.vendors.retry_after import retry_after_s
from shared.core.batch import Declined, NotTaken, NoWord, Over, Submission

LIMITS = frozenset(
    {"token_limit_exceeded", "rate_limit_exceeded", "insufficient_quota", "billing_hard_limit_reached", "batch_limit"}
)
"""Codes by which an account's limits say no, whatever the status beside them."""
EXPIRED = "batch_expired"
TIMEOUT, UNREACHABLE, UNREADABLE = "timeout", "unreachable", "unreadable"
_CODE = re.compile(r"[a-z][a-z0-9_]{1,59}")
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@+=/-]{0,199}")
_UNCERTAIN = (408, 409, 425)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One answer to one request. Status 0: there was none, and `reason` says why."""

    status: int = 0
    reason: str = ""
    """A code: the provider's where it has one, else the status."""
    body: Mapping[str, Any] | None = None
    """Of a 200: a JSON object, or None for anything else."""
    unsent: bool = False
    """The request certainly did not leave."""
    spoken: bool = False
    """A refusal in the provider's own form, not one of a gateway before it."""
    retry_after_s: float | None = None


def refused(status: int, error: object, retry_after: str | None) -> Reply:
    """The reply of any status but a 200; `error` is what the body has to say, if anything."""
    code = error.get("code") if isinstance(error, Mapping) else None
    return Reply(
        status=status,
        reason=code_of(code) or str(status),
        spoken=isinstance(error, Mapping),
        retry_after_s=retry_after_s(retry_after, datetime.now(UTC)) if status == 429 else None,
    )


def not_taken(reply: Reply) -> NotTaken | NoWord:
    """What a submission came to whose answer is not that it was taken."""
    status, reason = reply.status, reply.reason
    if reply.unsent:
        return NotTaken(reason, retry_after_s=reply.retry_after_s)
    if status == 429 or (reason in LIMITS and 400 <= status < 500):
        return NotTaken(reason, limited=True, retry_after_s=reply.retry_after_s)
    if status in (401, 403):
        return NotTaken(reason, auth=True)
    if 400 <= status < 500 and status not in _UNCERTAIN:
        return NotTaken(reason, permanent=True)
    # A redirect or a 200 of no known shape may well mean that it was taken.
    return NoWord(reason if status != 200 else UNREADABLE)


def certainly(said: Submission) -> Submission:
    """The same of a request that comes before the one that matters: whatever became of it, nothing was taken."""
    return NotTaken(said.reason) if isinstance(said, NoWord) else said


def failed(code: object) -> Over:
    """A batch that failed as a whole: there is nothing to read, only why."""
    reason = code_of(code) or "unnamed"
    return Over(status="failed", reason=reason, limited=reason in LIMITS)


def declined(custom_id: str, status: int | None, code: object) -> Declined:
    """A line that was refused; what may pass is neither permanent nor ours to mend."""
    reason = code_of(code) or ("" if status is None else str(status)) or "declined"
    return Declined(
        custom_id=custom_id,
        reason=reason,
        expired=reason == EXPIRED,
        limited=status == 429 or reason in LIMITS,
        auth=status in (401, 403),
        permanent=status is not None
        and 400 <= status < 500
        and status not in (401, 403, 429, *_UNCERTAIN)
        and reason not in LIMITS,
    )


def code_of(value: object) -> str:
    """A provider's code; what is none may be text."""
    return value if isinstance(value, str) and _CODE.fullmatch(value) else ""


def id_of(value: object) -> str | None:
    """A provider's or our own id; what is none may be text."""
    return value if isinstance(value, str) and _ID.fullmatch(value) else None


def number_of(value: object) -> int | None:
    """A count; a negative or broken one is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**12 else None
