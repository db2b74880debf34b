"""Take: what a scheduled run claims, in its order, up to its limit; everything else is left untouched."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Sized
from dataclasses import dataclass, field

from shared.contract import metrics
from shared.core.errors import UnreadableRow
from shared.core.job import Job
from shared.core.lane import LaneSpec, run_of
from shared.core.ports import Claimed, Clock, JobStore, NotClaimed, Telemetry, WaitingEntry
from shared.core.run import LOOK_AHEAD, Mode, RunConfig
from shared.core.switches import lane_scopes
from shared.usecases.deadline import Deadline
from shared.usecases.nominees import Nominees
from shared.usecases.persist import persist
from shared.usecases.switchboard import SwitchBoard


@dataclass(slots=True)
class RunCounts:
    """What a run counts (R13): in all, and by provider and model."""

    totals: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, name: str, count: int = 1, *, model: str = "") -> None:
        """Count; with `model`, given as `provider/model`, also under its name."""
        with self._lock:
            self.totals[name] += count
            if model:
                self.totals[f"{model}.{name}"] += count

    def plain(self, run: RunConfig) -> dict[str, int]:
        """As the run's record keeps it: the four of every run always, in one order."""
        always = {"max_jobs_per_run": run.max_jobs_per_run, "claimed": 0, "succeeded": 0, "failed": 0, "requeued": 0}
        return dict(sorted({**always, **{name: count for name, count in self.totals.items() if count}}.items()))


def has_work(lane: LaneSpec, mode: Mode, *, jobs: JobStore, clock: Clock) -> bool:
    """True when a run would find somebody to take: one small read, and nothing is claimed."""
    run = run_of(lane)
    until = run.look_until(clock.now())
    return bool(persist(lambda: jobs.waiting(lane, due_before=until, limit=1, line=lane.line(mode)), clock))


def closed_by(lane: LaneSpec, board: SwitchBoard, *, paid: bool) -> str | None:
    """The scope that keeps a run from taking anybody, if there is one."""
    standing = board.read().standing(lane_scopes(lane.name, lane.shared_vendors))
    if standing.closes_admission:
        return standing.scope
    return standing.paid_calls_closed_by if paid else None


def take(
    lane: LaneSpec,
    mode: Mode,
    *,
    run_id: str,
    deadline: Deadline,
    jobs: JobStore,
    clock: Clock,
    telemetry: Telemetry,
    spared: Sized = (),
) -> Iterator[Job]:
    """Claim one after the other, oldest first, at most `max_jobs_per_run`, while there is time. Each is one write; who
    is not claimed is not written to. Somebody else's claim is passed over, not waited for. `spared`: those of them that
    the caller has put back at once because a switch holds them; others go in their place."""
    run = run_of(lane)
    now = clock.now()
    until, line = run.look_until(now), lane.line(mode)
    nominees = Nominees(
        lambda most: run.in_order(persist(lambda: jobs.waiting(lane, due_before=until, limit=most, line=line), clock)),
        LOOK_AHEAD * run.max_jobs_per_run,
    )
    seen: set[str] = set()
    claimed = 0
    for entry in nominees:
        if claimed - len(spared) >= run.max_jobs_per_run:
            return
        if deadline.remaining_s <= 0:
            telemetry.event("run_out_of_time", lane=lane.name, run_id=run_id)
            return
        if entry.job_id in seen:
            # The index was changing while it was read: one job, one claim.
            continue
        seen.add(entry.job_id)
        claim = _claim(lane, entry, run, run_id, jobs, clock, telemetry)
        if claim is None:
            nominees.passed.add(entry)
        if isinstance(claim, Claimed):
            claimed += 1
            telemetry.count(metrics.ADMITTED, lane=lane.name)
            yield claim.job


def _claim(
    lane: LaneSpec,
    entry: WaitingEntry,
    run: RunConfig,
    run_id: str,
    jobs: JobStore,
    clock: Clock,
    telemetry: Telemetry,
) -> Claimed | NotClaimed | None:
    """None for a row that nobody can read: it is told, and left for an operator; those behind it go on."""
    early = not run.respect_not_before_at
    try:
        return persist(lambda: jobs.claim_in_run(lane, entry, by=run_id, now=clock.now(), early=early), clock)
    except UnreadableRow as exc:
        telemetry.error("row_unreadable", exc, job_id=entry.job_id)
        return None
