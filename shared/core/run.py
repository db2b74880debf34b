"""A scheduled run: how much it may take, in which order, for how long. Every number is configuration (R6). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from shared.core.errors import BadInput

if TYPE_CHECKING:
    from shared.core.ports import WaitingEntry

LOOK_AHEAD = 4
"""So many times `max_jobs_per_run` entries of the index are looked at to find the oldest: the cost of a run grows with
what it takes, never with the backlog."""
FAR_AHEAD = timedelta(days=500)
"""Later than any job may be put off: `respect_not_before_at: false` looks until then."""


class Order(StrEnum):
    """Who is first."""

    CREATED = "created_at_asc"
    """The oldest, among those that have been due the longest."""
    DUE = "due_asc"
    """Who has been due the longest."""


class Mode(StrEnum):
    """How a job is executed (R12)."""

    ASYNC = "async"
    """One call to the provider each."""
    BATCH = "batch"
    """Many in one batch of the provider's."""


TAKEN_BY = {Mode.BATCH: "batch_submitter", Mode.ASYNC: "worker"}
"""Which of a lane's scheduled functions takes the jobs that are executed like this."""
COLLECTED_BY = "batch_collector"
"""Which of them ends what is in a batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConfig:
    """One lane's run configuration, in the words of its contract."""

    max_jobs_per_run: int = 25
    max_runtime_seconds: int = 240
    claim_timeout_seconds: int = 600
    order: Order = Order.CREATED
    eligible_statuses: tuple[str, ...] = ("queued",)
    respect_not_before_at: bool = True
    retry_backoff_seconds: tuple[int, ...] = (900, 7200)
    overflow_backoff_seconds: int = 60

    def __post_init__(self) -> None:
        for name, least, most in (
            *(("max_jobs_per_run", 1, 10_000), ("max_runtime_seconds", 10, 780)),
            *(("claim_timeout_seconds", 30, 86_400), ("overflow_backoff_seconds", 0, 86_400)),
        ):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
                raise BadInput(name, f"must be a whole number from {least} to {most:,}")
        if self.claim_timeout_seconds < self.max_runtime_seconds + GRACE_S:
            raise BadInput(
                "claim_timeout_seconds",
                f"must be at least max_runtime_seconds + {GRACE_S}, or a claim is taken from a run that still works",
            )
        if tuple(self.eligible_statuses) != ("queued",):
            raise BadInput("eligible_statuses", "may only be [queued]: whatever failed is replayed by a plan")
        respected: object = self.respect_not_before_at
        if not isinstance(respected, bool):
            raise BadInput("respect_not_before_at", "must be true or false")
        if not all(_is_pause(pause) for pause in self.retry_backoff_seconds):
            raise BadInput("retry_backoff_seconds", "must be a list of whole seconds above 0")

    @property
    def function_timeout_s(self) -> int:
        """What the platform gives a run: its own time and a margin to end well."""
        return self.max_runtime_seconds + GRACE_S // 2

    def look_until(self, now: datetime) -> datetime:
        """How far into the waiting index a run looks."""
        return now if self.respect_not_before_at else now + FAR_AHEAD

    def in_order(self, waiting: Iterable[WaitingEntry]) -> list[WaitingEntry]:
        """Those that the index nominates, in the order in which they are taken; a priority stands before the next."""
        return sorted(waiting, key=_created if self.order is Order.CREATED else _due)

    @classmethod
    def from_mapping(cls, where: str, values: Mapping[str, Any]) -> RunConfig:
        """The configuration an entry describes; an unknown or wrong setting is named."""
        known = {field.name for field in fields(cls)}
        for setting in values:
            if setting not in known:
                raise BadInput(where, f"has an unknown setting {setting!r}")
        given: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in values.items()
        }
        order = given.get("order", Order.CREATED)
        if order not in tuple(Order):
            raise BadInput(f"{where}.order", f"must be one of {', '.join(Order)}")
        for name in ("eligible_statuses", "retry_backoff_seconds"):
            if not isinstance(given.get(name, ()), tuple):
                raise BadInput(f"{where}.{name}", "must be a list")
        try:
            return cls(**{**given, "order": Order(order)})
        except BadInput as refused:
            raise BadInput(f"{where}.{refused.field}", refused.problem) from None

    def to_mapping(self) -> dict[str, Any]:
        """Every setting that is not at its default, as plain values."""
        plain = {field.name: (getattr(self, field.name), field.default) for field in fields(self)}
        return {
            name: list(value) if isinstance(value, tuple) else value.value if isinstance(value, Order) else value
            for name, (value, default) in plain.items()
            if value != default
        }


GRACE_S = 30
"""Between the end of a run's own time and the moment its claims may be called dead, at least."""


def _created(entry: WaitingEntry) -> tuple[int, datetime, str]:
    return entry.priority, entry.created, entry.job_id


def _due(entry: WaitingEntry) -> tuple[int, datetime, datetime, str]:
    return entry.priority, entry.due, entry.created, entry.job_id


def _is_pause(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0
