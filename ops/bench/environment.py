"""One Lambda environment is one process: warm, with its clients built, asked for one run after the other.

The three ways are three processes that take turns, so that whatever else the machine does meets all of them.
A child's own output goes nowhere; it answers on a channel of its own.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from ops.bench import stub_aws, workload
from ops.bench.workload import BUCKET, LANE, VENDOR_URL, Invocation, Workload

ROOT = Path(__file__).resolve().parents[2]
OURS, SEQUENTIAL, THREADED = "ours", "sequential", "threaded"
JOBS = 100
"""Of each kind, in batches of ten."""

Handler = Callable[[dict[str, Any], Any], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One pass over the jobs of a kind."""

    jobs: int
    cpu_s: float
    """Of the process, all its threads."""
    wall_s: float
    calls: int
    """AWS and vendor calls together."""

    @property
    def cpu_ms_per_job(self) -> float:
        """Milliseconds of processor for one message."""
        return self.cpu_s / self.jobs * 1000

    @property
    def jobs_per_s(self) -> float:
        """Messages a second."""
        return self.jobs / self.wall_s


class Environment:
    """The parent's end: `with Environment(OURS) as one: one.run(ROUTED, delay_s=0.005, jobs=100)`."""

    def __init__(self, way: str) -> None:
        self.way = way
        self._child = subprocess.Popen(
            [sys.executable, "-m", "ops.bench.environment", way],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )

    def run(self, kind: str, *, delay_s: float, jobs: int) -> Run:
        """One run; raises when the child has died or a message was returned."""
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.write(json.dumps({"kind": kind, "delay_s": delay_s, "jobs": jobs}) + "\n")
        self._child.stdin.flush()
        answer = self._child.stdout.readline()
        if not answer:
            raise RuntimeError(f"the environment of {self.way} ended with {self._child.wait()}")
        return Run(**json.loads(answer))

    def __enter__(self) -> Environment:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._child.communicate()


@contextlib.contextmanager
def handler_of(way: str, work: Workload) -> Iterator[Handler]:
    """The way's Lambda handler, its clients answered by the workload's stub."""
    with stub_aws.surroundings(workload.ENVIRON), work.stub.vendor():
        yield _ours(work) if way == OURS else _standard(way, work)


def measure(handler: Handler, events: list[dict[str, Any]], stub: stub_aws.StubAws, *, delay_s: float) -> Run:
    """Hand the events to the handler, one invocation after the other."""
    stub.delay_s = delay_s
    stub.calls.clear()
    jobs = sum(len(event["Records"]) for event in events)
    cpu, wall = time.process_time(), time.perf_counter()
    answers = [handler(event, Invocation()) for event in events]
    run = Run(
        jobs=jobs,
        cpu_s=time.process_time() - cpu,
        wall_s=time.perf_counter() - wall,
        calls=sum(stub.calls.values()),
    )
    if any(answer != {"batchItemFailures": []} for answer in answers):
        raise RuntimeError("a message was returned to the queue: what was measured is not the job")
    return run


def serve(way: str) -> None:
    """The child: a warm-up of both kinds, then one run per line."""
    _on_one_core()
    with os.fdopen(os.dup(1), "w") as channel, open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        work = workload.workload(JOBS)
        batches_of = work.ours if way == OURS else work.standard
        events = {kind: batches_of(kind) for kind in (workload.ROUTED, workload.REPLIED)}
        with handler_of(way, work) as handler:
            for batches in events.values():
                measure(handler, batches[:2], work.stub, delay_s=0)
            for line in sys.stdin:
                asked = json.loads(line)
                batches = events[asked["kind"]][: asked["jobs"] // workload.BATCH]
                run = measure(handler, batches, work.stub, delay_s=asked["delay_s"])
                print(json.dumps(asdict(run)), file=channel, flush=True)


def _on_one_core() -> None:
    """A worker of 512 MB has less than one core on Lambda; several would only pass the interpreter's lock around."""
    if sys.platform == "linux":
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def _ours(work: Workload) -> Handler:
    """What `functions/support/handler.py` makes, with nothing cached from an earlier measurement."""
    from functions.support.tasks import TASKS
    from shared.adapters.aws.clients import client
    from shared.runtime.worker_door import worker_door

    for service in ("dynamodb", "s3"):
        work.stub.on(client(service, connections=LANE.parallel))
    # Signals are written by a client that never asks twice.
    work.stub.on(client("dynamodb", connections=LANE.parallel, tries=1))
    return worker_door(TASKS)


def _standard(way: str, work: Workload) -> Handler:
    import boto3

    from ops.bench.standard import StandardWorker

    dynamodb, s3 = boto3.client("dynamodb"), boto3.client("s3")
    work.stub.on(dynamodb)
    work.stub.on(s3)
    worker = StandardWorker(dynamodb=dynamodb, s3=s3, table_name="idempotency", bucket=BUCKET, vendor_url=VENDOR_URL)
    return worker.threaded if way == THREADED else worker.sequential


if __name__ == "__main__":
    serve(sys.argv[1])
