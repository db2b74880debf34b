"""What a lane is: one stream of jobs with its worker, queue, dead letters and caps. Read by infra and runtime."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from shared.core.backoff import check_backoff
from shared.core.errors import BadInput
from shared.core.job import name_of

ADMISSIONS = ("on_enqueue", "fair", "scheduled")
POISON_RECEIVES = 8
"""Receives after which a job that was claimed before and never settled is failed without running it."""
KNOWN_EVENTS_DAYS = 6
"""How long an event's job is remembered at least: twice the three days for which senders usually try."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneSpec:
    """Everything that can be set for one lane. Each number has its unit in its name."""

    name: str
    tasks: tuple[str, ...]
    vendors: tuple[str, ...] = ()
    """Vendors its tasks may call: a closed switch on one of them holds the lane's jobs."""
    accounts: tuple[str, ...] = ()
    """Vendor accounts whose budgets its calls spend; one for a vendor at most."""
    admission: str = "on_enqueue"
    shards: int = 1
    """Partitions of the waiting index; one is enough below a thousand waiting writes a second."""

    max_attempts: int = 3
    retry_backoff_s: tuple[int, ...] = (30, 300)
    max_wait_s: int = 86_400

    function_timeout_s: int = 60
    visibility_s: int = 400
    max_receive_count: int = 10
    batch_size: int = 10
    parallel: int = 10
    memory_mb: int = 512
    job_timeout_s: int = 30
    send_budget_s: float = 10.0
    """Time an effect needs from intent to record; less than this left and nothing is sent."""
    lookup_grace_s: int = 300
    """How long a send with an unknown outcome is looked up again before an operator must decide."""

    floor: int = 2
    baseline: int = 2
    ceiling: int = 10
    policy: str = "conservative"
    """How its cap moves between floor and ceiling: an entry of `policies`."""
    trip_on_unstable: bool = True
    """An unstable vendor closes the lane to `route_only`; off for a lane that does nothing a customer sees."""
    queue_window_s: int = 120
    expected_job_s: float = 1.0

    completed_kept_days: int = 7
    failed_kept_days: int = 30
    source_retention_days: int = 4
    one_person_redrive: int = 0
    """Dead letters that one person may ask to replay and approve alone; 0: it always takes two."""
    secret: str | None = None
    """Name of the one secret its worker may read, under the stage's prefix."""
    intake: str | None = None
    """The task that an event from outside becomes; without it the lane has no address for events."""
    intake_per_s: int = 50
    """Events a second that its address takes; bursts of twice as many."""

    def __post_init__(self) -> None:
        _check(self)

    @property
    def claim_timeout_s(self) -> int:
        """A claim older than this belongs to a dead worker: its function cannot still be running."""
        return self.function_timeout_s + 30

    @property
    def queue_limit(self) -> int:
        """Messages the queue may hold: `queue_window_s` of work at the baseline cap."""
        return self.queue_limit_at(self.baseline)

    def queue_limit_at(self, cap: int) -> int:
        """Messages the queue may hold when `cap` invocations run at once."""
        return max(1, int(cap * self.parallel * self.queue_window_s / self.expected_job_s))

    @property
    def intake_at_once(self) -> int:
        """Intake functions at once, where the stage reserves: each event may take 0.4 s. None without an intake."""
        return 0 if self.intake is None else max(2, self.intake_per_s * 2 // 5)

    def shard_of(self, job_id: str) -> int:
        """Which partition of the waiting index a job stands in; the same for the job's whole life."""
        return zlib.crc32(job_id.encode()) % self.shards

    def to_mapping(self) -> dict[str, Any]:
        """Every setting that is not at its default, as plain values: `from_mapping` gives the same lane back."""
        return {
            field.name: list(value) if isinstance(value, tuple) else value
            for field in fields(self)
            if field.name != "name" and (value := getattr(self, field.name)) != field.default
        }

    @classmethod
    def from_mapping(cls, name: str, values: Mapping[str, Any]) -> LaneSpec:
        """The lane a configuration entry describes; an unknown or missing setting is named."""
        known = {field.name: field for field in fields(cls)}
        for setting in values:
            if setting not in known:
                raise BadInput(f"lanes.{name}", f"has an unknown setting {setting!r}")
        given: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}
        given["name"] = name
        given.setdefault("tasks", ())
        return cls(**given)


_WHOLE = (
    *("shards", "max_attempts", "max_wait_s", "function_timeout_s", "visibility_s", "max_receive_count"),
    *("batch_size", "parallel", "memory_mb", "job_timeout_s", "floor", "baseline", "ceiling", "queue_window_s"),
    *("completed_kept_days", "failed_kept_days", "source_retention_days", "intake_per_s"),
)
_SECONDS = ("send_budget_s", "expected_job_s")


def _check(spec: LaneSpec) -> None:
    """Cross-field rules; each sentence says what to change."""
    where = f"lanes.{spec.name}"

    def refuse(setting: str, problem: str) -> None:
        raise BadInput(f"{where}.{setting}", problem)

    name_of(where, spec.name)
    for setting in ("tasks", "vendors", "accounts", "retry_backoff_s"):
        if not isinstance(getattr(spec, setting), tuple):
            refuse(setting, "must be a list")
    for setting, listed in (("tasks", spec.tasks), ("vendors", spec.vendors), ("accounts", spec.accounts)):
        for name in listed:
            name_of(f"{where}.{setting}", name)
    if not spec.tasks:
        refuse("tasks", "is missing: name at least one task")
    if spec.admission not in ADMISSIONS:
        refuse("admission", f"must be one of {', '.join(ADMISSIONS)}")
    for setting in _WHOLE:
        if not _whole(getattr(spec, setting), 1):
            refuse(setting, "must be a whole number above 0")
    if not _whole(spec.lookup_grace_s, 0):
        refuse("lookup_grace_s", "must be a whole number of seconds, or 0")
    if not _whole(spec.one_person_redrive, 0):
        refuse("one_person_redrive", "must be a whole number of jobs, or 0")
    for setting in _SECONDS:
        value = getattr(spec, setting)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
            refuse(setting, "must be a number of seconds above 0")
    try:
        check_backoff(spec.max_attempts, spec.retry_backoff_s)
    except BadInput as exc:
        refuse(exc.field, exc.problem)
    trips: object = spec.trip_on_unstable
    if not isinstance(trips, bool):
        refuse("trip_on_unstable", "must be true or false")
    secret: object = spec.secret
    if secret is not None and (not isinstance(secret, str) or not secret):
        refuse("secret", "must be the name of a secret")
    if spec.intake is not None and spec.intake not in spec.tasks:
        refuse("intake", f"must be one of the lane's tasks: {', '.join(spec.tasks)}")
    if spec.intake is not None and spec.completed_kept_days < KNOWN_EVENTS_DAYS:
        refuse("completed_kept_days", f"must be at least {KNOWN_EVENTS_DAYS}: a sender of events tries for days")
    if spec.function_timeout_s > 120:
        refuse("function_timeout_s", "must be at most 120: longer work is submitted and collected")
    if spec.visibility_s < 6 * spec.function_timeout_s:
        refuse("visibility_s", "must be at least six function timeouts, or a slow batch is delivered twice")
    if spec.claim_timeout_s >= spec.visibility_s:
        refuse("visibility_s", "must exceed function_timeout_s + 30, so a redelivery meets a stale claim")
    if spec.max_receive_count < 10:
        refuse("max_receive_count", "must be at least 10: throttles use receives, too")
    if spec.batch_size > 10:
        refuse("batch_size", "must be at most 10")
    if not 2 <= spec.floor <= spec.baseline <= spec.ceiling <= 1000:
        refuse("ceiling", "must satisfy 2 <= floor <= baseline <= ceiling <= 1000")
    if spec.shards > 64:
        refuse("shards", "must be at most 64")
    if spec.send_budget_s + 1 > min(spec.job_timeout_s, spec.function_timeout_s * 0.8):
        # The last fifth of an invocation, at most ten seconds, is kept free for settling.
        refuse(
            "send_budget_s",
            "must leave a second of job_timeout_s and of 80 % of function_timeout_s, or nothing is sent",
        )
    if spec.source_retention_days >= 14:
        refuse("source_retention_days", "must be below 14, the retention of the dead-letter queue")


def _whole(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least
