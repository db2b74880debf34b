"""Dispatch: bring back waiting jobs when they are due, by admission, without sending twice."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from heapq import merge
from itertools import chain

from shared.core import lifecycle
from shared.core.admission import BudgetGate, CapacityGate
from shared.core.admission import admit as ask
from shared.core.errors import UnknownLane, UnreadableRow
from shared.core.job import Job, Status
from shared.core.lane import LaneSpec
from shared.core.message import Message, message_of
from shared.core.ports import Clock, JobStore, LaneQueues, Telemetry, WaitingEntry
from shared.usecases.nominees import Nominees
from shared.usecases.persist import persist
from shared.usecases.try_move import try_move
from shared.usecases.view import Viewer

MAX_DELAY_S = 900
AGING_S = 60
"""A minute of waiting counts as one priority: urgent jobs jump ahead, none is starved."""
SEND_EACH = 10
LOOKS_PAST = 25
"""So many are looked at behind a full line that jobs of tasks with other accounts may stand in."""
TURNS_BACK_S = 10
"""So far back a run looks for promised turns behind a backlog: more than the pause between two runs."""


@dataclass(slots=True)
class Dispatched:
    """What one run did with one lane."""

    nominated: int = 0
    sent: int = 0
    held: int = 0
    stale_nominations: int = 0
    paced: int = 0
    """Held by nothing but the pace of an account: a little later they may go."""

    @property
    def busy(self) -> bool:
        """True when something was sent, or would be a little later."""
        return self.paced > 0 or self.sent > 0

    def counts(self) -> dict[str, int]:
        """For the run record."""
        return {
            "nominated": self.nominated,
            "sent": self.sent,
            "held": self.held,
            "stale_nominations": self.stale_nominations,
            "paced": self.paced,
        }


@dataclass(slots=True)
class Run:
    """What a run of several looks remembers of one lane."""

    sent: set[tuple[str, int, datetime]] = field(default_factory=set)
    """Rows whose message went out, by id, fence and last write: one that still stands so is not sent again."""
    passed: set[WaitingEntry] = field(default_factory=set)
    """Entries whose row nobody can act on: told once, and passed over from then on."""


def dispatch(
    lane: LaneSpec,
    *,
    look_ahead_s: float,
    horizon_s: float = 0,
    run: Run | None = None,
    limit: int,
    stop_at: datetime,
    jobs: JobStore,
    queues: LaneQueues,
    viewer: Viewer,
    clock: Clock,
    telemetry: Telemetry,
) -> Dispatched:
    """Hand off what is due now or before the next run, each with the delay that starts it at its second. A job whose
    turn at a vendor account comes within `horizon_s` goes with that delay; later ones wait, and cost no write.

    The index only nominates: each job is read again and asked for again. Its message is sent first and it leaves
    the index after that, so a crash in between sends once more, which the claim meets, and loses nothing.
    """
    done, run = Dispatched(), run or Run()
    now = clock.now()
    due_before = now + timedelta(seconds=look_ahead_s)
    lines = [_Line(name, lane, jobs, now, due_before, limit, run.passed) for name in lane.lines]
    turns: dict[str, WaitingEntry] = {}
    for line in lines:
        if lane.accounts and line.full:
            done.paced += 1
            turns |= _turns_behind(line, lane, now, horizon_s, limit, jobs)
    ready: list[tuple[Job, Message]] = []
    full: set[str] = set()
    """Tasks at the end of whose line a turn is too far off."""
    spent: set[str] = set()
    """Their lines."""
    looks = LOOKS_PAST if lane.task_vendors else 0
    given = (("", entry) for entry in turns.values())
    for line_name, entry in chain(given, merge(*lines, key=lambda one: _rank(one[1], now))):
        if clock.now() >= stop_at:
            break
        if lane.accounts and entry.due > now + timedelta(seconds=horizon_s):
            # Its turn cannot be known so early; the run looks again when it is near.
            done.paced += 1
            continue
        if line_name in spent and not entry.timed:
            # Behind one whose turn is too far off, and with no turn of its own: worth a read only in the line of all
            # tasks, where jobs may stand since before each had its own.
            if not looks or line_name != lane.name:
                done.paced += 1
                continue
            looks -= 1
        done.nominated += 1
        job = _nominee(entry, lane, run, viewer, jobs, clock, telemetry)
        if job is None:
            done.stale_nominations += 1
            continue
        if entry.job_id in turns and job.permit_at is None:
            # It has a time, but no turn: it stands behind the backlog, where its time puts it.
            continue
        now = clock.now()
        start = max(now, job.runnable_at)
        verdict = ask(job, viewer.of(lane.name, job.task), start)
        turn = verdict.starts_at(start, max(0.0, horizon_s - (start - now).total_seconds()))
        if turn is None:
            done.held += 1
            paced = verdict.blocked is not None and verdict.blocked.gate == BudgetGate.name
            done.paced += paced
            if paced and job.permit_at is None:
                full.add(job.task)
                spent.add(line_name)
            if job.blocked_by != verdict.reason:
                held = lifecycle.held(job, verdict.reason or "", now)
                try_move(job, held, jobs=jobs, clock=clock, telemetry=telemetry)
            if verdict.closed(CapacityGate.name):
                # The lane's queue is full for everybody: nobody behind is worth a read.
                break
            continue
        # Its own time, or a probe's, has to have come when it arrives; a turn may come a second early, that is what a
        # burst is for.
        early = turn != start and not (verdict.blocked is not None and verdict.blocked.stuck)
        wait_s = (math.floor if early else math.ceil)((turn - now).total_seconds())
        ready.append((job, message_of(job, delay_s=min(MAX_DELAY_S, wait_s))))
        viewer.sent(job, turn)
        if len(ready) == SEND_EACH:
            done.sent += _hand_off(ready, run, jobs, queues, clock, telemetry)
            ready = []
    done.sent += _hand_off(ready, run, jobs, queues, clock, telemetry)
    if done.paced:
        for task in full or (None,):
            viewer.left_behind(lane, task)
    viewer.write_lines(paces=True)
    if done.nominated:
        telemetry.event("dispatched", lane=lane.name, **done.counts())
    return done


def in_turn(entries: Sequence[WaitingEntry], now: datetime) -> list[WaitingEntry]:
    """Priorities merged with aging: each minute overdue outweighs one step of priority.

    Among jobs of one priority the index's order stays: due, then created, then id.
    """
    return sorted(entries, key=lambda entry: _rank(entry, now))


def _rank(entry: WaitingEntry, now: datetime) -> tuple[float, datetime]:
    overdue_s = max(0.0, (now - entry.due).total_seconds())
    return (entry.priority - overdue_s / AGING_S, entry.due)


class _Line:
    """One of the lane's lines, in turn. Each has a look of its own: a long one hides no other."""

    def __init__(
        self,
        name: str,
        lane: LaneSpec,
        jobs: JobStore,
        now: datetime,
        due_before: datetime,
        limit: int,
        passed: set[WaitingEntry],
    ) -> None:
        def look(most: int) -> list[WaitingEntry]:
            return in_turn(jobs.waiting(lane, due_before=due_before, limit=most, line=name), now)[:most]

        self.name, self._nominees = name, Nominees(look, limit, passed)

    @property
    def full(self) -> bool:
        """True when there may be more behind what was looked at."""
        return self._nominees.full

    @property
    def window(self) -> list[WaitingEntry]:
        """What was looked at."""
        return self._nominees.window

    def __iter__(self) -> Iterator[tuple[str, WaitingEntry]]:
        return ((self.name, entry) for entry in self._nominees)


def _turns_behind(
    line: _Line, lane: LaneSpec, now: datetime, horizon_s: float, limit: int, jobs: JobStore
) -> dict[str, WaitingEntry]:
    """Jobs that may have a turn about now, but stand in a line behind a backlog longer than one look."""
    known = {entry.job_id for entry in line.window}
    near = jobs.waiting(
        lane,
        due_after=now - timedelta(seconds=TURNS_BACK_S),
        due_before=now + timedelta(seconds=horizon_s),
        limit=limit,
        line=line.name,
    )
    return {entry.job_id: entry for entry in near if entry.timed and entry.job_id not in known}


def _nominee(
    entry: WaitingEntry,
    lane: LaneSpec,
    run: Run,
    viewer: Viewer,
    jobs: JobStore,
    clock: Clock,
    telemetry: Telemetry,
) -> Job | None:
    """The job, if there is something to do for it in this lane."""
    try:
        job = persist(lambda: jobs.get(entry.job_id), clock)
        if job is None or job.status is not Status.QUEUED or job.due != entry.due:
            return None
        if job.lane != lane.name:
            # It stands in a line that is not its own, where nobody asks its lane: that one takes it from here.
            viewer.lane(job.lane)
            own = lifecycle.held(job, job.blocked_by or "", clock.now())
            try_move(job, own, jobs=jobs, clock=clock, telemetry=telemetry)
            return None
    except (UnreadableRow, UnknownLane) as exc:
        telemetry.error("row_unreadable", exc, job_id=entry.job_id)
        run.passed.add(entry)
        return None
    if _as_sent(job) in run.sent:
        # Its hand-off was not written, and nobody has moved it: it is told, and waits for an operator.
        run.passed.add(entry)
        return None
    return job


def _as_sent(job: Job) -> tuple[str, int, datetime]:
    return job.job_id, job.fence, job.updated_at


def _hand_off(
    ready: list[tuple[Job, Message]],
    run: Run,
    jobs: JobStore,
    queues: LaneQueues,
    clock: Clock,
    telemetry: Telemetry,
) -> int:
    """Send, then let each sent job leave the index; a refused one stays and is nominated again."""
    if not ready:
        return 0
    refused = {message.job_id for message in persist(lambda: queues.send([message for _, message in ready]), clock)}
    for job, _ in ready:
        if job.job_id not in refused:
            run.sent.add(_as_sent(job))
            # A worker may have claimed it already: then it has left the index by that.
            gone = lifecycle.handed_off(job, clock.now())
            try_move(job, gone, jobs=jobs, clock=clock, telemetry=telemetry)
    return len(ready) - len(refused)
