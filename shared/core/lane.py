"""What a lane is: one stream of jobs with its worker, queue, dead letters and caps. Read by infra and runtime."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from shared.core.backoff import check_backoff
from shared.core.errors import BadInput
from shared.core.job import CANARY, LONGEST_WAIT_DAYS, Job, name_of
from shared.core.routing import Routing
from shared.core.run import Mode, RunConfig

if TYPE_CHECKING:
    from shared.core.rewrite import RoutingPolicy

ADMISSIONS = ("on_enqueue", "fair", "scheduled")
MAX_ROW_PAYLOAD_BYTES = 4096
"""What a row may hold of text: one unit reads it, and beyond it an object is cheaper."""
POISON_RECEIVES = 8
"""Receives after which a job that was claimed before and never settled is failed without running it."""
LEAST_RUN_S = 30
"""A question to a provider may take twenty seconds, and what it answered is written down."""
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
    task_vendors: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)
    """task → those of the vendors that it calls, where that is not all of them: only they can hold its jobs."""
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
    cost_spike_per_hour: float | None = None
    """What its vendors may cost in an hour, in the currency of `prices`; above it an alarm rings. None: no alarm."""
    minute_s: int = 60
    """How long a minute of its counters is: what is judged by the minute is judged sooner where it is shorter."""

    row_payload_bytes: int = MAX_ROW_PAYLOAD_BYTES
    """Payloads up to so many bytes are kept as rows, larger ones as objects; 0: all of them as objects."""
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
    run: RunConfig | None = None
    """How much a scheduled run takes; for lanes that are admitted by runs, and only for them."""
    runs: Mapping[str, int] = field(default_factory=dict, hash=False)
    """Its scheduled functions: role → seconds between two runs, whole minutes."""
    router: RoutingPolicy | None = None
    """Where and how its jobs are executed, decided when they are enqueued, from facts alone."""
    routing: Routing | None = None
    """What its events may be about, who answers that, and what only people answer; its worker alone is told."""

    def __post_init__(self) -> None:
        _check(self)

    @property
    def has_canaries(self) -> bool:
        """True for a lane that serves jobs as they come; one that takes them by runs has its own times."""
        return self.admission != "scheduled" and self.router is None

    @property
    def backoff_s(self) -> tuple[int, ...]:
        """How long a job waits after its first, second, … failed try."""
        return self.retry_backoff_s if self.run is None else self.run.retry_backoff_seconds

    @property
    def claim_timeout_s(self) -> int:
        """A claim older than this belongs to a dead worker: its function cannot still be running."""
        return self.function_timeout_s + 30 if self.run is None else self.run.claim_timeout_seconds

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

    def vendors_of(self, task: str) -> tuple[str, ...]:
        """The vendors that a task may call: a closed switch on one of them holds its jobs. A canary calls nobody."""
        return () if task == CANARY else self.task_vendors.get(task, self.vendors)

    @property
    def shared_vendors(self) -> tuple[str, ...]:
        """The vendors that every task calls: a closed switch on one of them holds all jobs of the lane."""
        return tuple(one for one in self.vendors if all(one in self.vendors_of(task) for task in self.tasks))

    @property
    def lines(self) -> tuple[str, ...]:
        """Where its jobs wait in the index: where runs take them, in a line for each way to do so; else in one, and
        in one more for each of several tasks. Those are looked at whatever `task_vendors` says, so it may change while
        jobs wait."""
        if self.run is not None:
            return tuple(self.line(mode) for mode in Mode)
        return (self.name, *(self.line_of_task(task) for task in self.tasks)) if len(self.tasks) > 1 else (self.name,)

    def line(self, mode: Mode) -> str:
        """The line of the jobs that are executed in one way."""
        return f"{self.name}:{mode.value}"

    def line_of_task(self, task: str) -> str:
        """The line of a task, in a lane whose tasks do not all call the same vendors."""
        return f"{self.name}:{task}"

    def line_of(self, job: Job) -> str:
        """The line a job waits in: behind those that the same accounts hold, and behind nobody else."""
        if self.run is None:
            apart = bool(self.task_vendors) and job.task in self.tasks and len(self.tasks) > 1
            return self.line_of_task(job.task) if apart else self.name
        decided = (job.routing_decision or {}).get("execution_mode")
        return self.line(Mode.BATCH if decided == Mode.BATCH else Mode.ASYNC)

    @property
    def for_engine(self) -> LaneSpec:
        """The lane as everybody but its worker is told it."""
        return replace(self, routing=None)

    def shard_of(self, job_id: str) -> int:
        """Which partition of the waiting index a job stands in; the same for the job's whole life."""
        return zlib.crc32(job_id.encode()) % self.shards

    def to_mapping(self) -> dict[str, Any]:
        """Every setting that is not at its default, as plain values: `from_mapping` gives the same lane back."""
        told = {
            one.name: list(value) if isinstance(value, tuple) else value
            for one in fields(self)
            if one.name not in APART and (value := getattr(self, one.name)) != one.default
        }
        if self.task_vendors:
            told["task_vendors"] = {task: list(vendors) for task, vendors in self.task_vendors.items()}
        if self.routing is not None:
            told["routing"] = self.routing.to_mapping()
        if self.run is not None:
            told |= {"run": self.run.to_mapping(), "runs": dict(self.runs)}
        if self.router is not None:
            told["router"] = self.router.to_mapping()
        return told

    @classmethod
    def from_mapping(cls, name: str, values: Mapping[str, Any]) -> LaneSpec:
        """The lane a configuration entry describes; an unknown or missing setting is named."""
        known = {one.name for one in fields(cls)}
        for setting in values:
            if setting not in known:
                raise BadInput(f"lanes.{name}", f"has an unknown setting {setting!r}")
        given: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}
        given["name"] = name
        given.setdefault("tasks", ())
        if isinstance(told := given.get("task_vendors"), Mapping):
            given["task_vendors"] = {task: tuple(v) if isinstance(v, list) else v for task, v in told.items()}
        if given.get("routing") is not None:
            given["routing"] = Routing.from_mapping(f"lanes.{name}.routing", given["routing"])
        if isinstance(asked := given.get("run"), Mapping):
            given["run"] = RunConfig.from_mapping(f"lanes.{name}.run", asked)
            if "retry_backoff_s" in given:
                raise BadInput(f"lanes.{name}.retry_backoff_s", "is `run.retry_backoff_seconds` in a lane with runs")
        if isinstance(policy := given.get("router"), Mapping):
            # Only for the lanes that have one: a worker's cold start does not pay for it.
            from shared.core.rewrite import RoutingPolicy

            given["router"] = RoutingPolicy.from_mapping(policy, f"lanes.{name}.router")
        return cls(**given)


def content_kept_days(lanes: Iterable[LaneSpec]) -> int:
    """How long texts are kept: a job may wait with its own, fail, and be replayed for as long as its row is kept."""
    return max((lane.failed_kept_days for lane in lanes), default=30) + LONGEST_WAIT_DAYS


APART = ("name", "task_vendors", "routing", "run", "runs", "router")
"""Settings that are tables of their own."""


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
    if CANARY in spec.tasks:
        refuse("tasks", f"names {CANARY}, which every lane has already: give the task another name")
    _check_task_vendors(spec, refuse)
    _check_runs(spec, refuse)
    if spec.admission not in ADMISSIONS:
        refuse("admission", f"must be one of {', '.join(ADMISSIONS)}")
    for setting in _WHOLE:
        if not _whole(getattr(spec, setting), 1):
            refuse(setting, "must be a whole number above 0")
    if not _whole(spec.minute_s, 1) or 60 % spec.minute_s:
        refuse("minute_s", "must be 60 seconds, or a part of them: 1, 2, 3, 4, 5, 6, 10, 12, 15, 20 or 30")
    if not _whole(spec.lookup_grace_s, 0):
        refuse("lookup_grace_s", "must be a whole number of seconds, or 0")
    if not _whole(spec.row_payload_bytes, 0) or spec.row_payload_bytes > MAX_ROW_PAYLOAD_BYTES:
        refuse("row_payload_bytes", f"must be a whole number of bytes up to {MAX_ROW_PAYLOAD_BYTES}, or 0")
    if not _whole(spec.one_person_redrive, 0):
        refuse("one_person_redrive", "must be a whole number of jobs, or 0")
    for setting in _SECONDS:
        value = getattr(spec, setting)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
            refuse(setting, "must be a number of seconds above 0")
    try:
        check_backoff(spec.max_attempts, spec.backoff_s)
    except BadInput as exc:
        refuse("run.retry_backoff_seconds" if spec.run and exc.field == "retry_backoff_s" else exc.field, exc.problem)
    most: object = spec.cost_spike_per_hour
    amount = isinstance(most, int | float) and not isinstance(most, bool)
    if most is not None and not (amount and 0 < most < float("inf")):  # type: ignore[operator]
        refuse("cost_spike_per_hour", "must be an amount of money above 0, or null for no alarm")
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
    if spec.run is None and spec.claim_timeout_s >= spec.visibility_s:
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


def _check_runs(spec: LaneSpec, refuse: Callable[[str, str], None]) -> None:
    run: object = spec.run
    if (spec.admission == "scheduled") != isinstance(run, RunConfig):
        refuse("run", "must be given where admission is scheduled, and nowhere else")
    given: object = spec.runs
    if not isinstance(given, Mapping):
        refuse("runs", "must be a table: role → seconds between two runs")
    if bool(spec.runs) != (run is not None):
        refuse("runs", "must name the scheduled functions of a lane with `run`, and of no other")
    for provider in sorted(spec.router.providers if spec.router is not None else ()):
        if provider not in spec.vendors:
            refuse("router", f"decides for {provider!r}, which is none of the lane's vendors")
    for role, period in spec.runs.items():
        name_of(f"lanes.{spec.name}.runs", role)
        if not _whole(period, 60) or period % 60:
            refuse(f"runs.{role}", "must be whole minutes in seconds, at least 60")
    if isinstance(run, RunConfig) and run.max_runtime_seconds < max(LEAST_RUN_S, spec.job_timeout_s + 1):
        refuse(
            "run.max_runtime_seconds",
            f"must be at least {LEAST_RUN_S} and above job_timeout_s, or a run has no time to end what it takes",
        )


def _check_task_vendors(spec: LaneSpec, refuse: Callable[[str, str], None]) -> None:
    given: object = spec.task_vendors
    if not isinstance(given, Mapping):
        refuse("task_vendors", "must be a table: task → the vendors it calls")
    for task, called in spec.task_vendors.items():
        if task not in spec.tasks:
            refuse("task_vendors", f"names {task!r}, which is none of the lane's tasks")
        listed: object = called
        if not isinstance(listed, tuple) or any(vendor not in spec.vendors for vendor in listed):
            refuse(f"task_vendors.{task}", f"must be a list of the lane's vendors: {', '.join(spec.vendors)}")


def _whole(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def run_of(lane: LaneSpec) -> RunConfig:
    """The run configuration of a lane that has one."""
    assert lane.run is not None, "only lanes that are admitted by runs are run"
    return lane.run
