"""Steer: what an operator may do to one job, each a legal move with who and why."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from shared.core import lifecycle, liveness
from shared.core.effects import EffectRow, EffectState
from shared.core.errors import BadInput, RowMoved, UnknownLane
from shared.core.history import HistoryEvent
from shared.core.job import Job, Status, check_wait, one_line, time_after, utc
from shared.core.lane import LaneSpec
from shared.core.moment import iso
from shared.core.ports import Clock, EffectStore, History, JobStore
from shared.usecases.persist import persist

MAX_WHY = 200
HELD_FOR_A_CANCEL = timedelta(minutes=10)
"""How long a job waits for the second half of its cancel, once its worker is gone, before it runs again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Withdrawal:
    """What became of a wish to cancel."""

    job: Job
    begun: tuple[str, ...] = ()
    """What its worker began to send before it was stopped: such a job cannot be canceled, it goes on by itself."""
    again_at: datetime | None = None
    """When its worker is certainly gone: it is canceled by asking again then. None: it is canceled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenBack:
    """A job taken back from its worker, and the effects whose intent appeared while that was done."""

    job: Job
    begun: tuple[str, ...] = ()


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
) -> Withdrawal:
    """Withdraw a job for which nothing was done. One that has acted, or may have, is refused with the effects' names.

    From a worker that runs it is taken back: that one can no longer settle it, but what it begins to send in this very
    moment nobody can stop. What it has begun is named. Nothing begun, the job is held, and is canceled by asking again
    once every worker that had it is certainly gone.
    """
    job, now = _job(job_id, jobs), clock.now()
    lane, reason = _lane(job, lanes), reason_of(why)
    after = lifecycle.canceled(job, lane, by, now)
    _not_in_a_run(job)
    gone_at = liveness.workers_gone_at(job, lane)
    if gone_at is None or gone_at <= now or job.status not in (Status.QUEUED, Status.PROCESSING):
        check_gone(job, lane, now)
        _nothing_done(job, effects, clock)
        return Withdrawal(job=_moved(job, after, "cancel", by, why, jobs, history, clock))
    _nothing_done(job, effects, clock)
    held, mark, running = job, f"cancel:{by}", job.status is Status.PROCESSING
    if running or job.blocked_by != mark:
        hold = lifecycle.taken_back if running else lifecycle.rescheduled
        held = hold(job, gone_at + HELD_FOR_A_CANCEL, mark, now)
        _write(job, held, jobs, clock)
    begun = tuple(row.name for row in _acts(job_id, effects, clock))
    if held is not job:
        detail: dict[str, object] = {"was": job.status.value, "why": reason, "until": iso(gone_at), **_named(begun)}
        note(f"job/{job_id}", "cancel_begun", by, detail, history, clock)
    return Withdrawal(job=held, begun=begun, again_at=gone_at)


def check_gone(job: Job, lane: LaneSpec, now: datetime) -> None:
    """Refuse to close a job while a worker that had it may still begin to send."""
    gone_at = liveness.workers_gone_at(job, lane)
    if gone_at is not None and now < gone_at:
        raise BadInput("job", f"{job.job_id}: a worker may still begin to send it; again after {iso(gone_at)}")


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
    """Give a queued job another time; the past means now. For a delay, see `core.job.time_after`."""
    job = _job(job_id, jobs)
    moment = utc("at", at)
    if moment is None:
        raise BadInput("at", "is missing")
    if job.status is not Status.QUEUED:
        raise BadInput("job", f"{job_id} is {job.status}; only a queued job can be given another time")
    if job.payload_ref is not None and moment > clock.now():
        check_wait("at", moment, job.created_at)
    after = lifecycle.rescheduled(job, moment, f"scheduled:{by}", clock.now())
    return _moved(job, after, "schedule", by, why, jobs, history, clock)


def reset_to_pending(
    job_id: str,
    delay_seconds: float = 0,
    *,
    by: str,
    why: str,
    jobs: JobStore,
    effects: EffectStore,
    history: History,
    clock: Clock,
) -> TakenBack:
    """Take a running job back from its worker: queued again, no attempt used, due in `delay_seconds`. It runs once that
    worker is certainly gone, too: until then whoever claims it puts it back.

    The fence rises with the move, so the worker that has the job can no longer settle it. A job with an open
    intent is refused: somebody must first learn what the vendor said.

    The worker may write its intent after the effects were read and before, or even after, the row is moved: an
    intent does not ask for the job's fence. Nothing is sent twice by that, and no end is written over it: when the
    next attempt begins, what the first worker did stands there, and it does what it may do about any open intent:
    ask a vendor that deduplicates by our key, look it up, or park. What was begun before the second look is named
    in the answer and in the history.
    """
    now = clock.now()
    at = time_after("delay_seconds", delay_seconds, now)
    reason = reason_of(why)
    job = _job(job_id, jobs)
    if job.status is not Status.PROCESSING:
        raise BadInput("job", f"{job_id} is {job.status}; only a running job can be taken back")
    _not_in_a_run(job)
    if _open_effects(job_id, effects, clock):
        raise BadInput("job", f"{job_id} has an open effect: its outcome must be known before it is taken back")
    after = lifecycle.taken_back(job, at, f"reset:{by}", now)
    _write(job, after, jobs, clock)
    begun = _open_effects(job_id, effects, clock)
    detail: dict[str, object] = {"was": job.status.value, "why": reason, "until": iso(at), **_named(begun)}
    note(f"job/{job_id}", "reset", by, detail, history, clock)
    return TakenBack(job=after, begun=begun)


def _not_in_a_run(job: Job) -> None:
    """What a run has claimed may be part of a batch that its provider has: nobody takes it from there."""
    if job.status is Status.PROCESSING and job.waits:
        raise BadInput(
            "job",
            f"{job.job_id} is in the hands of a scheduled run, perhaps part of a batch: it ends, or is queued again, by"
            " itself; close the lane's switch to keep it from starting once more",
        )


def _moved(
    before: Job, after: Job, kind: str, by: str, why: str, jobs: JobStore, history: History, clock: Clock
) -> Job:
    reason = reason_of(why)
    _write(before, after, jobs, clock)
    note(f"job/{before.job_id}", kind, by, {"was": before.status.value, "why": reason}, history, clock)
    return after


def _write(before: Job, after: Job, jobs: JobStore, clock: Clock) -> None:
    try:
        persist(lambda: jobs.move(before, after), clock)
    except RowMoved:
        raise BadInput("job", f"{before.job_id} changed meanwhile; look at it again") from None


def _nothing_done(job: Job, effects: EffectStore, clock: Clock) -> None:
    """Canceled means that nothing was done: an effect that stands, or may stand, is no such thing. A failed job is
    closed over what it did; only what nobody knows must be known first."""
    acts = _acts(job.job_id, effects, clock)
    if any(row.open for row in acts):
        raise BadInput("job", f"{job.job_id} has an open effect: its outcome must be known before it is canceled")
    if acts and job.status is not Status.FAILED:
        raise BadInput(
            "job",
            f"{job.job_id} has made {', '.join(row.name for row in acts)} and can no longer be canceled: it ends by"
            " itself, or close the switch of its task or its tenant",
        )


def _acts(job_id: str, effects: EffectStore, clock: Clock) -> list[EffectRow]:
    """What stands at a vendor, or may."""
    return [row for row in persist(lambda: effects.of_job(job_id), clock) if row.state is not EffectState.REFUSED]


def _named(begun: tuple[str, ...]) -> dict[str, object]:
    return {"begun": list(begun)} if begun else {}


def _open_effects(job_id: str, effects: EffectStore, clock: Clock) -> tuple[str, ...]:
    return tuple(row.name for row in persist(lambda: effects.of_job(job_id), clock) if row.open)


def note(subject: str, kind: str, by: str, detail: Mapping[str, object], history: History, clock: Clock) -> None:
    """Keep who did what, and why."""
    event = HistoryEvent(
        subject=subject, event_id=uuid.uuid4().hex, at=clock.now(), kind=kind, by=by, detail=dict(detail)
    )
    persist(lambda: history.append(event), clock)


def reason_of(why: str) -> str:
    """Why a person did it: required, one line, bounded."""
    text = one_line("why", why, MAX_WHY)
    if not text:
        raise BadInput("why", "is missing: say in a few words why")
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
