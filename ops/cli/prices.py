"""List prices, and what a job calls in its life.

Write units are the engine's promised bounds; log bytes, read units and the stream's seconds are estimates.
"""

from __future__ import annotations

from dataclasses import dataclass

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
        Item(service="S3", what="payloads written", quantity=jobs, price=S3_PUT),
        Item(service="S3", what="payloads read", quantity=jobs, price=S3_GET),
        Item(service="SQS", what="requests (send, receive, delete)", quantity=3 * batches, price=SQS_REQUEST),
        Item(service="Lambda", what="invocations (stream, worker)", quantity=2 * batches, price=INVOCATION),
        Item(service="Lambda", what="GB-seconds", quantity=gb_s, price=GB_SECOND),
        Item(service="CloudWatch", what="GB of logs", quantity=log_gb, price=LOG_GB),
    ]


def assumptions(load: Load) -> list[str]:
    """What the numbers rest on, in sentences."""
    return [
        f"{REGION} list prices as known in {AS_OF}, no free tier, no discount: check them before you budget",
        f"{WRITES_OPEN} write units for a job that runs at once, {WRITES_WAITED} for one that waits once"
        f" ({load.waits:.0%} do), {WRITES_EFFECT} more for each effect ({load.effects:g} a job); rows under 1 KB",
        f"{load.batch} messages an invocation, {min(load.batch, load.parallel)} at a time, {load.job_s:g} s a job,"
        f" {load.memory_mb} MB; with one message a batch, SQS and Lambda requests cost {load.batch} times as much",
        "estimated, not measured: log bytes, read units, the stream consumer's seconds",
        "not counted: storage, what a month costs without any job (keys, alarms, idle polling), and the vendors",
    ]
