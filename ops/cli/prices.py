"""List prices, what a job calls in its life, and what costs by the month without any job.

Write units are the engine's promised bounds; log bytes, read units and the stream's seconds are estimates.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from shared.adapters.meter import read_units, write_units
from shared.core.lane import MAX_ROW_PAYLOAD_BYTES

REGION = "us-east-1"
AS_OF = "2026-03"
"""On-demand list prices in US dollars as published up to then, typed in by hand: check before you budget."""

MILLION = 1_000_000

WRITE_UNIT = 0.625 / MILLION
READ_UNIT = 0.125 / MILLION
STREAM_READ = 0.0
"""Reading a stream costs nothing when Lambda does it."""
S3_PUT = 5.00 / MILLION
S3_GET = 0.40 / MILLION
SQS_REQUEST = 0.50 / MILLION
"""0.40 for a standard queue and 0.10 more where messages carry a group (fair queues), taken for every request."""
INVOCATION = 0.20 / MILLION
GB_SECOND = 0.0000133334
"""Lambda on arm64."""
LOG_GB = 0.50
KEY_MONTH = 1.00
SECRET_MONTH = 0.40
ALARM_METRIC_MONTH = 0.10
METRIC_MONTH = 0.30
DASHBOARD_MONTH = 3.00
SCHEDULE_RUN = 1.00 / MILLION
HOURS = 730
"""A month."""
POLLS_A_QUEUE = 5 * 3 * 60 * HOURS
"""Lambda asks a queue by five pollers, each for twenty seconds."""
RUN_GB_S = 0.1
"""A fifth of a second with half a gigabyte."""
WRITES_RUN, READS_RUN = 2, 1

WRITES_OPEN = 3
"""put, claim, settle."""
WRITES_WAITED = 8
"""At most, of a job that waits once: its place in the waiting index is written and removed, too."""
WRITES_EFFECT = 2
"""intent, record."""
READS_WAITED = 1.1
"""The dispatcher reads the row again; the index gives twenty entries a read unit."""
STREAM_CHANGES = 3
STREAM_SECONDS = 0.05
STREAM_GB = 0.5
LOG_BYTES_JOB = 700
LOG_BYTES_INVOCATION = 1_000
GB = 1_000_000_000

ROW_BYTES = 130
"""Of a payload's row beside its text: its key, its expiry, its names."""
DEFLATED = 0.6
"""Of a letter's bytes, what is left when it is deflated; a test counts some."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What is to be priced."""

    jobs: float
    effects: float = 1.0
    """Of each job, on average."""
    waits: float = 0.1
    """Share of jobs that wait once in the table."""
    batch: int = 10
    """Messages an invocation gets; fewer on a trickle."""
    parallel: int = 10
    job_s: float = 0.5
    """Seconds one job takes; most of it is waiting for the vendor."""
    memory_mb: int = 512
    payload_bytes: int = 1024
    """Of each job, on average; 0: it has none."""

    @property
    def in_rows(self) -> bool:
        """Small payloads are rows, others objects."""
        return self.payload_bytes <= MAX_ROW_PAYLOAD_BYTES

    @property
    def payload_units(self) -> tuple[int, int]:
        """Units that writing and reading a payload's row take: per started kilobyte, and per started four."""
        size = math.ceil(ROW_BYTES + DEFLATED * self.payload_bytes)
        return write_units(size), math.ceil(read_units(size, consistent=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What a stage has, by the month."""

    alarms: int
    alarm_metrics: int
    """Metrics that alarms look at: these are paid for."""
    metrics: int
    """Of our own, that something wrote."""
    dashboards: int
    secrets: int
    keys: int
    polled_queues: int
    runs: float
    """Of its schedules."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One line of the bill."""

    service: str
    what: str
    quantity: float
    price: float

    @property
    def usd(self) -> float:
        """What it costs."""
        return self.quantity * self.price

    @property
    def said(self) -> str:
        """Its price as price lists write it."""
        if self.price == 0:
            return "free"
        return f"{self.price:.2f} each" if self.price >= 0.01 else f"{self.price * MILLION:.3f} a million"


def bill(load: Load) -> list[Item]:
    """What the load costs, line by line."""
    jobs = load.jobs
    writes = jobs * (WRITES_OPEN + (WRITES_WAITED - WRITES_OPEN) * load.waits + WRITES_EFFECT * load.effects)
    batches = jobs / load.batch
    worker_s = batches * load.job_s * load.batch / min(load.batch, load.parallel)
    gb_s = worker_s * load.memory_mb / 1024 + batches * STREAM_SECONDS * STREAM_GB
    log_gb = (jobs * LOG_BYTES_JOB + 2 * batches * LOG_BYTES_INVOCATION) / GB
    return [
        Item(service="DynamoDB", what="write units", quantity=writes, price=WRITE_UNIT),
        Item(service="DynamoDB", what="read units", quantity=jobs * load.waits * READS_WAITED, price=READ_UNIT),
        Item(service="DynamoDB", what="stream records (by Lambda)", quantity=jobs * STREAM_CHANGES, price=STREAM_READ),
        *_payloads(load),
        Item(service="SQS", what="requests (send, receive, delete)", quantity=3 * batches, price=SQS_REQUEST),
        Item(service="Lambda", what="invocations (stream, worker)", quantity=2 * batches, price=INVOCATION),
        Item(service="Lambda", what="GB-seconds", quantity=gb_s, price=GB_SECOND),
        Item(service="CloudWatch", what="GB of logs", quantity=log_gb, price=LOG_GB),
    ]


def _payloads(load: Load) -> list[Item]:
    if not load.payload_bytes:
        return []
    if not load.in_rows:
        return [
            Item(service="S3", what="payloads written", quantity=load.jobs, price=S3_PUT),
            Item(service="S3", what="payloads read", quantity=load.jobs, price=S3_GET),
        ]
    written, read = load.payload_units
    return [
        Item(service="DynamoDB", what="payloads written, units", quantity=load.jobs * written, price=WRITE_UNIT),
        Item(service="DynamoDB", what="payloads read, units", quantity=load.jobs * read, price=READ_UNIT),
    ]


def monthly(has: Standing) -> list[Item]:
    """What the stage costs a month without any job, line by line."""
    return [
        Item(service="CloudWatch", what=f"metrics of {has.alarms} alarms", quantity=has.alarm_metrics,
             price=ALARM_METRIC_MONTH),
        Item(service="CloudWatch", what="metrics of our own", quantity=has.metrics, price=METRIC_MONTH),
        Item(service="CloudWatch", what="dashboards", quantity=has.dashboards, price=DASHBOARD_MONTH),
        Item(service="KMS", what="keys", quantity=has.keys, price=KEY_MONTH),
        Item(service="Secrets Manager", what="secrets", quantity=has.secrets, price=SECRET_MONTH),
        Item(service="SQS", what="polls of queues", quantity=has.polled_queues * POLLS_A_QUEUE, price=SQS_REQUEST),
        Item(service="Scheduler", what="runs", quantity=has.runs, price=SCHEDULE_RUN),
        Item(service="Lambda", what="runs", quantity=has.runs, price=INVOCATION),
        Item(service="Lambda", what="GB-seconds of runs", quantity=has.runs * RUN_GB_S, price=GB_SECOND),
        Item(service="DynamoDB", what="write units of runs", quantity=has.runs * WRITES_RUN, price=WRITE_UNIT),
        Item(service="DynamoDB", what="read units of runs", quantity=has.runs * READS_RUN, price=READ_UNIT),
    ]  # fmt: skip


IDLE_ASSUMPTIONS = (
    f"{REGION} list prices as known in {AS_OF}, no free tier, no discount: check them before you budget",
    "counted from the templates of the deployed stacks, and from the metrics that were written in the last three hours",
    "estimated, not measured: polls of an empty queue, the seconds and the calls of a run that finds nothing",
    "not counted: storage, recovery, logs, the second and third year of a rotated key, and every job",
)


def assumptions(load: Load) -> list[str]:
    """What the numbers rest on, in sentences."""
    return [
        f"{REGION} list prices as known in {AS_OF}, no free tier, no discount: check them before you budget",
        f"{WRITES_OPEN} write units for a job that runs at once, {WRITES_WAITED} for one that waits once"
        f" ({load.waits:.0%} do), {WRITES_EFFECT} more for each effect ({load.effects:g} a job); rows under 1 KB",
        *_of_payloads(load),
        f"{load.batch} messages an invocation, {min(load.batch, load.parallel)} at a time, {load.job_s:g} s a job,"
        f" {load.memory_mb} MB; with one message a batch, SQS and Lambda requests cost {load.batch} times as much",
        "estimated, not measured: log bytes, read units, the stream consumer's seconds",
        "not counted: storage, what a month costs without any job (keys, alarms, idle polling), and the vendors",
    ]


def _of_payloads(load: Load) -> list[str]:
    if not load.payload_bytes:
        return ["no payloads"]
    if not load.in_rows:
        return [f"payloads of {load.payload_bytes:,} bytes: more than {MAX_ROW_PAYLOAD_BYTES:,} are objects in S3"]
    written, _ = load.payload_units
    units = "one write unit" if written == 1 else f"{written} write units"
    return [
        f"payloads of {load.payload_bytes:,} bytes are rows of {units}: prose deflates to {DEFLATED:.0%} of its bytes,"
        " what is no prose may need more"
    ]
