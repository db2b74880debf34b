"""Run jobs: a scheduled run works its jobs off itself, one call each, within its own time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from shared.core.errors import BadInput, ClaimLost, PenstockError
from shared.core.job import Job, Status
from shared.core.lane import run_of
from shared.core.run import Mode
from shared.usecases.deadline import Deadline
from shared.usecases.run_attempt import Worker, work_on
from shared.usecases.take_run import RunCounts, closed_by, take
from shared.usecases.tally import write_tally

Spread = Callable[[Callable[[Job], None], Iterable[Job], int], None]
"""How jobs are worked off: the work, the jobs, how many at once. All of it is over when it returns."""


def in_threads(one: Callable[[Job], None], jobs: Iterable[Job], parallel: int) -> None:
    """A job is claimed only when somebody is free for it."""
    if parallel <= 1:
        for job in jobs:
            one(job)
        return
    source = _Shared(jobs)

    def go_on() -> None:
        for job in source:
            one(job)

    with ThreadPoolExecutor(max_workers=parallel) as pool:
        for done in [pool.submit(go_on) for _ in range(parallel)]:
            done.result()


class _Shared:
    """One source of jobs for several threads."""

    def __init__(self, jobs: Iterable[Job]) -> None:
        self._jobs, self._lock = iter(jobs), threading.Lock()

    def __iter__(self) -> Iterator[Job]:
        while True:
            with self._lock:
                job = next(self._jobs, None)
            if job is None:
                return
            yield job


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRunner:
    """What a run that works jobs off itself works with."""

    worker: Worker
    model_of: Callable[[Job], str]
    """`provider/model` of a job, for the run's record; raises BadInput for a row that is none of the lane's."""
    spread: Spread = in_threads

    def run(self, run_id: str, deadline: Deadline) -> dict[str, int]:
        """The counts of one run."""
        counts, worker = RunCounts(), self.worker
        closed = closed_by(worker.lane, worker.board, paid=True)
        if closed is not None:
            counts.add("held")
            worker.telemetry.event("run_held", lane=worker.lane.name, run_id=run_id, by=closed)
            return counts.plain(run_of(worker.lane))
        # Who is claimed must have time to end.
        claiming = Deadline(at=deadline.at, clock=worker.clock).within(
            max(0.0, deadline.remaining_s - worker.lane.job_timeout_s)
        )
        jobs = take(
            worker.lane,
            Mode.ASYNC,
            run_id=run_id,
            deadline=claiming,
            jobs=worker.jobs,
            clock=worker.clock,
            telemetry=worker.telemetry,
        )
        self.spread(lambda job: self._one(job, deadline, counts), jobs, worker.lane.parallel)
        worker.budgets.give_back()
        write_tally(
            worker.tally,
            lane=worker.lane,
            signals=worker.signals,
            clock=worker.clock,
            telemetry=worker.telemetry,
        )
        return counts.plain(run_of(worker.lane))

    def _one(self, job: Job, deadline: Deadline, counts: RunCounts) -> None:
        model = self._model(job)
        counts.add("claimed", model=model)
        try:
            after = work_on(job, self.worker, deadline)
        except ClaimLost as exc:
            self.worker.telemetry.error("claim_lost", exc, job_id=job.job_id)
            return
        except PenstockError as exc:
            # Its claim stays; the sweeper brings it back.
            self.worker.telemetry.error("job_not_settled", exc, job_id=job.job_id)
            return
        name = {Status.COMPLETED: "succeeded", Status.FAILED: "failed"}.get(after.status, "requeued")
        counts.add(name, model=model)
        if (after.blocked_by or "").startswith("budget:"):
            counts.add("rate_limited")

    def _model(self, job: Job) -> str:
        try:
            return self.model_of(job)
        except BadInput:
            return ""
