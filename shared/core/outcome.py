"""How a task ends: one value, the whole contract between a task and the engine."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from shared.core.job import Category


@dataclass(frozen=True, slots=True)
class Done:
    """The work is done. Ends `completed`; the attempt count stays as it was.

    `result` is a short code such as ``replied`` or ``withheld``, never text; what a task wrote for later
    readers goes to the content store and is named by `ref`.
    """

    result: str = "done"
    ref: str | None = None


@dataclass(frozen=True, slots=True)
class Retry:
    """A passing failure. One attempt is used; the job waits its backoff, or fails when none is left.

    `error` is a code such as ``vendor_timeout``. An exception in a task counts as `Retry` of its type.
    """

    error: str


@dataclass(frozen=True, slots=True)
class Defer:
    """Not now. No attempt is used; the job waits until `until` under the reason, the message is acknowledged."""

    until: datetime
    reason: str


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
