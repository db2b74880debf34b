"""What an account answers: a permit, or a turn of one's own."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from shared.core.errors import PenstockError


class OverLimit(PenstockError):
    """A request that no waiting can make fit; the sentence says what it needs and what there is."""

    code = "over_limit"


@dataclass(frozen=True, slots=True, kw_only=True)
class Permit:
    """One call may be made, from its moment on."""

    account: str
    tokens: int
    sent_us: int
    """When its request goes out, by the table's time."""
    wait_us: int = 0
    """Taken for a moment that was still so far ahead: it is waited for, and then looked at again before the call."""
    version: int = 0
    """Of the terms that it was taken under."""
    requests: int = 1
    probe: bool = False
    metered: bool = True
    """False: the account is not enforced; its answers are still heard."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Denied:
    """Not now: when, and what is missing until then. `until` is this job's own turn, promised to nobody else."""

    account: str
    limit: str
    deficit: int
    until: datetime
    tokens: int
    requests: int
    available_tokens: int | None
    available_requests: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """The answer to one check, and what the account had left as it was seen."""

    answer: Permit | Denied
    available_tokens: int | None
    available_requests: int | None
