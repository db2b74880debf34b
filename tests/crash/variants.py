"""Two engines that are not good enough, kept so that the exploration can show it would notice.

`naive` sends and then settles. `lease_style` guards the send with an idempotency record that is in progress until
an expiry, is deleted when the handler raises, and is completed afterwards: the common form of such a record.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from shared.core import lifecycle
from shared.core.effects import Accepted
from shared.core.job import Job
from shared.core.outcome import Done
from shared.core.ports import Claimed, Delivery
from shared.usecases.deadline import Deadline
from shared.usecases.persist import persist
from shared.usecases.run_attempt import Worker
from tests.processes import Process
from tests.vendors_and_tasks import effect_of
from tests.world import RunBatch


class NotSent(Exception):
    """The vendor said no, or nothing."""


@dataclass(slots=True)
class Lease:
    """One idempotency record."""

    done: bool
    until: datetime


class LeaseStore:
    """Idempotency records: at most one in progress, until it expires."""

    def __init__(self) -> None:
        self._leases: dict[str, Lease] = {}
        self._lock = threading.Lock()

    def begin(self, key: str, *, now: datetime, until: datetime) -> str:
        """`mine`, `done`, or `busy` when somebody else is at it."""
        with self._lock:
            lease = self._leases.get(key)
            if lease is None or (not lease.done and lease.until <= now):
                self._leases[key] = Lease(False, until)
                return "mine"
            return "done" if lease.done else "busy"

    def finish(self, key: str) -> None:
        """The handler returned."""
        with self._lock:
            self._leases[key] = Lease(True, datetime.max)

    def delete(self, key: str) -> None:
        """The handler raised: let it be tried again."""
        with self._lock:
            self._leases.pop(key, None)


def naive(process: Process) -> RunBatch:
    """Send, then settle."""

    def handle(job: Job, worker: Worker, deadline: Deadline) -> None:
        _send(job, worker)

    return _batch(handle)


def lease_style(process: Process) -> RunBatch:
    """Send under an idempotency record with an expiry, then settle."""
    leases: LeaseStore = process.port("leases")

    def handle(job: Job, worker: Worker, deadline: Deadline) -> None:
        until = deadline.at + timedelta(seconds=1)
        state = persist(lambda: leases.begin(job.job_id, now=worker.clock.now(), until=until), worker.clock)
        if state == "busy":
            raise NotSent("in_progress")
        if state == "done":
            return
        try:
            _send(job, worker)
        except Exception:
            persist(lambda: leases.delete(job.job_id), worker.clock)
            raise
        persist(lambda: leases.finish(job.job_id), worker.clock)

    return _batch(handle)


def _batch(handle: Callable[[Job, Worker, Deadline], None]) -> RunBatch:
    def run(deliveries: Sequence[Delivery], worker: Worker, *, invocation: str, deadline: Deadline) -> list[str]:
        returned: list[str] = []
        for delivery in deliveries:
            try:
                _one(delivery, worker, invocation, deadline, handle)
            except Exception:
                returned.append(delivery.message_id)
        return returned

    return run


def _one(
    delivery: Delivery,
    worker: Worker,
    invocation: str,
    deadline: Deadline,
    handle: Callable[[Job, Worker, Deadline], None],
) -> None:
    jobs, clock = worker.jobs, worker.clock
    job_id = delivery.job_id or ""
    job = persist(lambda: jobs.get(job_id), clock)
    if job is None or job.status.ended:
        return
    handle(job, worker, deadline)
    claim = persist(lambda: jobs.claim(job_id, by=invocation, now=clock.now()), clock)
    held: Any = claim.job
    if isinstance(claim, Claimed) or (held is not None and not held.status.ended):
        persist(lambda: jobs.move(held, lifecycle.settled(held, Done("replied"), worker.lane, clock.now())), clock)


def _send(job: Job, worker: Worker) -> None:
    answer = worker.vendors["helpdesk"].perform(effect_of("reply", job), key=None, timeout_s=5.0)
    if not isinstance(answer, Accepted):
        raise NotSent(answer.reason)


def fresh_leases() -> dict[str, Any]:
    """The port a world of leases needs beside the usual ones."""
    return {"leases": LeaseStore()}
