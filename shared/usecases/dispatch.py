"""Dispatch: bring back waiting jobs when they are due, by admission, without sending twice."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from shared.core import lifecycle
from shared.core.admission import admit as ask
from shared.core.errors import RowMoved, UnreadableRow
from shared.core.job import Job, Status
from shared.core.lane import LaneSpec
from shared.core.ports import Clock, JobStore, LaneQueues, Message, Telemetry, WaitingEntry, message_of
from shared.usecases.persist import persist
from shared.usecases.view import Viewer

MAX_DELAY_S = 900
AGING_S = 60
"""A minute of waiting counts as one priority: urgent jobs jump ahead, none is starved."""
SEND_EACH = 10


@dataclass(slots=True)
class Dispatched:
    """What one run did with one lane."""

    nominated: int = 0
    sent: int = 0
    held: int = 0
    stale_nominations: int = 0

    def counts(self) -> dict[str, int]:
        """For the run record."""
        return {
            "nominated": self.nominated,
            "sent": self.sent,
            "held": self.held,
            "stale_nominations": self.stale_nominations,
        }


def dispatch(
    lane: LaneSpec,
    *,
    look_ahead_s: int,
    limit: int,
    stop_at: datetime,
    jobs: JobStore,
    queues: LaneQueues,
    viewer: Viewer,
    clock: Clock,
    telemetry: Telemetry,
) -> Dispatched:
    """Hand off what is due now or before the next run, each with the delay that starts it at its second.

    The index only nominates: each job is read again and asked for again. Its message is sent first and it leaves
    the index after that, so a crash in between sends once more, which the claim meets, and loses nothing.
    """
    done = Dispatched()
    now = clock.now()
    entries = jobs.waiting(lane, due_before=now + timedelta(seconds=look_ahead_s), limit=limit)
    ready: list[tuple[Job, Message]] = []
    for entry in in_turn(entries, now)[:limit]:
        if clock.now() >= stop_at:
            break
        done.nominated += 1
        job = _nominee(entry, jobs, clock, telemetry)
        if job is None:
            done.stale_nominations += 1
            continue
        now = clock.now()
        start = max(now, job.runnable_at)
        verdict = ask(job, viewer.of(lane.name), start)
        if not verdict.runs:
            done.held += 1
            if job.blocked_by != verdict.reason:
                _move(job, lifecycle.held(job, verdict.reason or "", now), jobs, clock)
            continue
        delay = min(MAX_DELAY_S, math.ceil((start - now).total_seconds()))
        ready.append((job, message_of(job, delay_s=delay)))
        viewer.sent(lane.name)
        if len(ready) == SEND_EACH:
            done.sent += _hand_off(ready, jobs, queues, clock)
            ready = []
    done.sent += _hand_off(ready, jobs, queues, clock)
    if done.nominated:
        telemetry.event("dispatched", lane=lane.name, **done.counts())
    return done


def in_turn(entries: Sequence[WaitingEntry], now: datetime) -> list[WaitingEntry]:
    """Priorities merged with aging: each minute overdue outweighs one step of priority."""

    def rank(entry: WaitingEntry) -> tuple[float, datetime, str]:
        overdue_s = max(0.0, (now - entry.due).total_seconds())
        return (entry.priority - overdue_s / AGING_S, entry.due, entry.job_id)

    return sorted(entries, key=rank)


def _nominee(entry: WaitingEntry, jobs: JobStore, clock: Clock, telemetry: Telemetry) -> Job | None:
    try:
        job = persist(lambda: jobs.get(entry.job_id), clock)
    except UnreadableRow as exc:
        telemetry.error("row_unreadable", exc, job_id=entry.job_id)
        return None
    if job is None or job.status is not Status.QUEUED or job.due != entry.due:
        return None
    return job


def _hand_off(ready: list[tuple[Job, Message]], jobs: JobStore, queues: LaneQueues, clock: Clock) -> int:
    """Send, then let each sent job leave the index; a refused one stays and is nominated again."""
    if not ready:
        return 0
    refused = {message.job_id for message in persist(lambda: queues.send([message for _, message in ready]), clock)}
    for job, _ in ready:
        if job.job_id not in refused:
            # A worker may have claimed it already: then it has left the index by that.
            _move(job, lifecycle.handed_off(job, clock.now()), jobs, clock)
    return len(ready) - len(refused)


def _move(before: Job, after: Job, jobs: JobStore, clock: Clock) -> None:
    try:
        persist(lambda: jobs.move(before, after), clock)
    except RowMoved:
        return
