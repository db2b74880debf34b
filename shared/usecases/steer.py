"""Steer: what an operator may do to one job, each a legal move with who and why."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import datetime

from shared.core import lifecycle
from shared.core.errors import BadInput, RowMoved, UnknownLane
from shared.core.job import Job, Status, utc
from shared.core.lane import LaneSpec
from shared.core.ports import Clock, ControlStore, EffectStore, History, HistoryEvent, JobStore
from shared.core.switches import Level, Switch, check_scope
from shared.usecases.persist import persist

MAX_WHY = 200


def cancel(
    job_id: str,
    *,
    by: str,
    why: str,
    jobs: JobStore,
    effects: EffectStore,
    history: History,
    lanes: Mapping[str, LaneSpec],
    clock: Clock,
) -> Job:
    """Withdraw a job. One with an intent to send is refused: it may have reached the vendor."""
    job = _job(job_id, jobs)
    if any(row.open for row in effects.of_job(job_id)):
        raise BadInput("job", f"{job_id} has an open effect: its outcome must be known before it is canceled")
    if job.status is Status.PROCESSING and effects.of_job(job_id):
        raise BadInput("job", f"{job_id} has begun to send and can no longer be canceled")
    after = lifecycle.canceled(job, _lane(job, lanes), by, clock.now())
    return _moved(job, after, "cancel", by, why, jobs, history, clock)


def schedule(
    job_id: str,
    at: datetime,
    *,
    by: str,
    why: str,
    jobs: JobStore,
    history: History,
    clock: Clock,
) -> Job:
    """Give a queued job another time; the past means now."""
    job = _job(job_id, jobs)
    moment = utc("at", at)
    if moment is None:
        raise BadInput("at", "is missing")
    if job.status is not Status.QUEUED:
        raise BadInput("job", f"{job_id} is {job.status}; only a queued job can be given another time")
    after = lifecycle.rescheduled(job, moment, f"scheduled:{by}", clock.now())
    return _moved(job, after, "schedule", by, why, jobs, history, clock)


def set_switch(
    scope: str,
    level: Level,
    *,
    automation_enabled: bool = True,
    by: str,
    why: str,
    control: ControlStore,
    history: History,
    clock: Clock,
) -> Switch:
    """Set one scope's switch, with who and why. Closing takes one person, always."""
    switch = Switch(
        scope=check_scope(scope),
        level=level,
        automation_enabled=automation_enabled,
        by=by,
        why=_reason(why),
        at=clock.now(),
    )
    control.set_switch(switch)
    _note(
        f"switch/{scope}",
        "switch",
        by,
        {"level": level.word, "automation_enabled": automation_enabled, "why": switch.why},
        history,
        clock,
    )
    return switch


def _moved(
    before: Job, after: Job, kind: str, by: str, why: str, jobs: JobStore, history: History, clock: Clock
) -> Job:
    reason = _reason(why)
    try:
        persist(lambda: jobs.move(before, after), clock)
    except RowMoved:
        raise BadInput("job", f"{before.job_id} changed meanwhile; look at it again") from None
    _note(f"job/{before.job_id}", kind, by, {"was": before.status.value, "why": reason}, history, clock)
    return after


def _note(subject: str, kind: str, by: str, detail: Mapping[str, object], history: History, clock: Clock) -> None:
    event = HistoryEvent(
        subject=subject, event_id=uuid.uuid4().hex, at=clock.now(), kind=kind, by=by, detail=dict(detail)
    )
    persist(lambda: history.append(event), clock)


def _reason(why: str) -> str:
    """Why a person did it: required, one line, bounded."""
    text = " ".join(why.split())
    if not text:
        raise BadInput("why", "is missing: say in a few words why")
    if len(text) > MAX_WHY:
        raise BadInput("why", f"has {len(text)} characters, at most {MAX_WHY} are allowed")
    return text


def _job(job_id: str, jobs: JobStore) -> Job:
    job = jobs.get(job_id)
    if job is None:
        raise BadInput("job", f"{job_id} does not exist in this stage")
    return job


def _lane(job: Job, lanes: Mapping[str, LaneSpec]) -> LaneSpec:
    lane = lanes.get(job.lane)
    if lane is None:
        raise UnknownLane(job.lane, tuple(sorted(lanes)))
    return lane
