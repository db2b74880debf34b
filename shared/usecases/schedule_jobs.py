"""Schedule jobs: one new time for many queued jobs, each on its own, and every one of them accounted for."""

from __future__ import annotations

import hashlib
import re
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime

from shared.core import lifecycle
from shared.core.bulk import BulkRun, Fate, LineFate
from shared.core.errors import BadInput, RowMoved, Unavailable, UnknownLane, UnreadableRow
from shared.core.job import Status, utc
from shared.core.moment import iso
from shared.core.ports import Clock, History, JobStore
from shared.usecases.persist import persist
from shared.usecases.steer import note, reason_of

THREADS = 8
CHUNK = 200
"""Jobs between two looks at how it goes: what an interruption has to wait for, and what progress is told by."""
MAX_LINE = 64
"""Characters of a line that can still be an id."""
_RUN_ID = re.compile(r"[0-9a-f]{12}")


def schedule_jobs(
    given: Iterable[str],
    at: datetime,
    *,
    by: str,
    why: str,
    jobs: JobStore,
    history: History,
    clock: Clock,
    run_id: str | None = None,
    dry_run: bool = False,
    threads: int = THREADS,
    progress: Callable[[Mapping[str, int]], None] = lambda counts: None,
) -> BulkRun:
    """Give each queued job of `given`, one id a line, the time `at`; one read and at most one conditional write a job.

    A line that cannot be used harms no other. Given again with the same `at` nothing changes twice: a job that has
    the time is left, and with the same `run_id` so is one that this run moved and that went on since. The run ends
    early when a whole chunk got no answer, or by an interruption; what it did not reach is counted as such.

    The history keeps one event a run, under `bulk/<run id>`: who, why, the counts and a hash of the ids. Each
    changed row names the run in its moves. A dry run writes nothing.
    """
    moment = utc("at", at)
    if moment is None:
        raise BadInput("at", "is missing")
    reason = reason_of(why)
    change = _Change(at=moment, by=by, run_id=checked_run_id(run_id), dry_run=dry_run, jobs=jobs, clock=clock)
    lines, todo = _sorted_out(given)
    stopped = _work_through(todo, lines, change, threads, progress)
    for number, job_id in todo:
        lines.setdefault(number, LineFate(line=number, job_id=job_id, fate=Fate.NOT_REACHED))
    run = BulkRun(
        run_id=change.run_id,
        at=moment,
        lines=tuple(lines[number] for number in sorted(lines)),
        dry_run=dry_run,
        stopped=stopped,
    )
    if dry_run:
        return run
    try:
        _note(run, by, reason, ids_hash(job_id for _, job_id in todo), history, clock)
    except Unavailable as exc:
        # The rows say which run changed them; giving it again writes what is missing here.
        return replace(run, stopped=stopped or exc)
    return run


def checked_run_id(run_id: str | None) -> str:
    """A new run's id, or the given one if it can be one."""
    if run_id is None:
        return uuid.uuid4().hex[:12]
    if not _RUN_ID.fullmatch(run_id):
        raise BadInput("resume", "must be the 12 characters of an earlier run's id")
    return run_id


def ids_hash(ids: Iterable[str]) -> str:
    """What a set of ids is known by, whatever their order: 128 bits of SHA-256."""
    return hashlib.sha256("\n".join(sorted(set(ids))).encode()).hexdigest()[:32]


def whole_id(text: str) -> str | None:
    """A job's id in its one form; None for anything else."""
    try:
        return str(uuid.UUID(text.strip())) if len(text) <= MAX_LINE else None
    except ValueError:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Change:
    """What is done to each job."""

    at: datetime
    by: str
    run_id: str
    dry_run: bool
    jobs: JobStore
    clock: Clock

    def to(self, line: int, job_id: str) -> LineFate:
        """Read one job, and write it if there is something to change. Raises only what nobody expected."""

        def ends(fate: Fate, status: Status | None = None, writes: int = 0) -> LineFate:
            return LineFate(line=line, job_id=job_id, fate=fate, status=status, reads=1, writes=writes)

        try:
            job = persist(lambda: self.jobs.get(job_id), self.clock)
        except UnreadableRow:
            return ends(Fate.UNREADABLE)
        except Unavailable:
            return ends(Fate.UNAVAILABLE)
        if job is None:
            return ends(Fate.NOT_FOUND)
        if job.status is not Status.QUEUED:
            return ends(Fate.NOT_QUEUED, job.status)
        if job.not_before_at == self.at or any(move.reason == f"schedule:{self._name}" for move in job.moves):
            return ends(Fate.UNCHANGED)
        if self.dry_run:
            return ends(Fate.CHANGED)
        after = lifecycle.rescheduled(job, self.at, f"scheduled:{self.by}", self.clock.now(), detail=self._name)
        try:
            persist(lambda: self.jobs.move(job, after), self.clock)
        except RowMoved:
            return ends(Fate.CHANGED_MEANWHILE, writes=1)
        except UnknownLane:
            return ends(Fate.UNKNOWN_LANE)
        except UnreadableRow:
            # Another version wrote it since it was read.
            return ends(Fate.UNREADABLE, writes=1)
        except Unavailable:
            return ends(Fate.UNAVAILABLE, writes=1)
        return ends(Fate.CHANGED, writes=1)

    @property
    def _name(self) -> str:
        return f"bulk/{self.run_id}"


def _sorted_out(given: Iterable[str]) -> tuple[dict[int, LineFate], list[tuple[int, str]]]:
    """Lines whose fate needs no look at a job, and the others by number and id."""
    known: dict[int, LineFate] = {}
    todo: list[tuple[int, str]] = []
    seen: set[str] = set()
    for number, text in enumerate(given, start=1):
        if not text.strip():
            continue
        job_id = whole_id(text)
        if job_id is None:
            known[number] = LineFate(line=number, job_id="", fate=Fate.MALFORMED)
        elif job_id in seen:
            known[number] = LineFate(line=number, job_id=job_id, fate=Fate.DUPLICATE)
        else:
            seen.add(job_id)
            todo.append((number, job_id))
    return known, todo


def _work_through(
    todo: list[tuple[int, str]],
    lines: dict[int, LineFate],
    change: _Change,
    threads: int,
    progress: Callable[[Mapping[str, int]], None],
) -> BaseException | None:
    """Chunk by chunk, on a few threads. What ended it early, or None."""
    counts: Counter[str] = Counter(line.reason for line in lines.values())
    with ThreadPoolExecutor(max_workers=threads) as pool:
        for chunk in (todo[start : start + CHUNK] for start in range(0, len(todo), CHUNK)):
            asked = [pool.submit(change.to, number, job_id) for number, job_id in chunk]
            stopped: BaseException | None = None
            try:
                for answer in asked:
                    answer.result()
            except (KeyboardInterrupt, Exception) as exc:
                stopped = exc
                pool.shutdown(wait=True, cancel_futures=True)
            ended = list(_ended(chunk, asked))
            lines.update((line.line, line) for line in ended)
            counts.update(line.reason for line in ended)
            progress(counts)
            if stopped is not None:
                return stopped
            if all(line.fate is Fate.UNAVAILABLE for line in ended):
                return Unavailable("jobs", "no answer to a whole chunk")
    return None


def _ended(chunk: list[tuple[int, str]], asked: list[Future[LineFate]]) -> Iterator[LineFate]:
    for (number, job_id), answer in zip(chunk, asked, strict=True):
        if answer.cancelled():
            continue
        try:
            line = answer.result()
        except (KeyboardInterrupt, Exception):
            # An error nobody expected says nothing about what was written.
            line = LineFate(line=number, job_id=job_id, fate=Fate.UNAVAILABLE, reads=1)
        yield line


def _note(run: BulkRun, by: str, why: str, ids: str, history: History, clock: Clock) -> None:
    detail = {
        "at": iso(run.at),
        "why": why,
        "lines": len(run.lines),
        "counts": run.counts,
        "ids_hash": ids,
        "finished": run.finished,
    }
    note(f"bulk/{run.run_id}", "schedule_jobs", by, detail, history, clock)
