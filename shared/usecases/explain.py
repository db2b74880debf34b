"""Explain: why has this job not run, when will it, and where does it stand? The same admission, asked aloud."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from shared.core import liveness
from shared.core.admission import Verdict, View, admit
from shared.core.effects import EffectRow
from shared.core.feeding import FeedTrouble
from shared.core.job import Job, Status
from shared.core.lane import LaneSpec
from shared.core.message import QueueDepth
from shared.core.moment import iso
from shared.core.run import COLLECTED_BY, TAKEN_BY, Mode
from shared.core.schedule import next_run


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """The schedule that moves a job of a lane with runs on."""

    schedule: str
    period_s: int
    last: datetime | None = None
    """When its schedule last started it."""

    def at(self, moment: datetime) -> datetime:
        """Its first run from a moment on."""
        return next_run(moment, self.period_s, self.last)


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Everything `penstock jobs why` says."""

    job: Job
    standing: str
    """One of waiting, in_queue, claimed, in_batch, effect_open, ended."""
    since: datetime
    sentence: str
    verdict: Verdict
    earliest: datetime | None
    """When it can run at the earliest; None when that depends on a person or is over."""
    turn: Turn | None = None
    """The run it waits for, in a lane with runs."""
    trouble: FeedTrouble | None = None
    """What keeps the lane's workers from getting anything, beside every gate."""

    @property
    def runs_now(self) -> bool:
        """True where nothing is in its way."""
        fed = self.trouble is None or not self.trouble.stops
        return self.verdict.runs and fed and not self.job.status.ended and self.turn is None


def role_for(job: Job, lane: LaneSpec) -> str | None:
    """Which of a lane's runs a job waits for; None where it waits for none."""
    if job.status is Status.BATCH_SUBMITTED:
        return COLLECTED_BY
    if job.status is not Status.QUEUED:
        return None
    return next(TAKEN_BY[mode] for mode in Mode if lane.line(mode) == lane.line_of(job))


def explain(
    job: Job,
    view: View,
    effects: list[EffectRow],
    depth: QueueDepth | None,
    now: datetime,
    turn: Turn | None = None,
    trouble: FeedTrouble | None = None,
) -> Explanation:
    """Where the job stands and what every gate says. In a lane with runs there is no queue, and `turn` says which run
    it waits for; elsewhere `trouble` says why the queue's messages reach no worker."""
    verdict = admit(job, view, now)
    standing, since, sentence = _standing(job, view, effects, depth, now, turn)
    blocked = verdict.blocked
    earliest: datetime | None = None
    if job.status is Status.QUEUED:
        if blocked is None:
            earliest = max(now, job.runnable_at)
        elif not blocked.stuck:
            earliest = blocked.retry_at
        if earliest is not None and turn is not None:
            earliest = turn.at(earliest)
        if trouble is not None and trouble.stops:
            # No time is known: somebody has to do something.
            earliest = None
    return Explanation(
        job=job,
        standing=standing,
        since=since,
        sentence=sentence,
        verdict=verdict,
        earliest=earliest,
        turn=turn,
        trouble=None if job.status.ended else trouble,
    )


def _standing(
    job: Job, view: View, effects: list[EffectRow], depth: QueueDepth | None, now: datetime, turn: Turn | None
) -> tuple[str, datetime, str]:
    open_rows = [row for row in effects if row.open]
    if job.status.ended:
        detail = f"{job.category}: {job.last_error}" if job.status is Status.FAILED else _result(job)
        return (
            "ended",
            job.updated_at,
            f"ended {job.status} at {iso(job.updated_at)} ({detail})".replace(" ()", ""),
        )
    if open_rows:
        row = open_rows[0]
        return (
            "effect_open",
            row.intent_at,
            f"effect {row.name!r} is open at {row.vendor} since {iso(row.intent_at)}: its outcome is not yet known",
        )
    if job.status is Status.PROCESSING:
        return "claimed", *_claimed(job, view, now)
    if job.status is Status.BATCH_SUBMITTED:
        return "in_batch", job.updated_at, f"in a provider's batch since {iso(job.updated_at)}{_collected(turn, now)}"
    if view.lane.run is not None:
        return "waiting", job.updated_at, _for_a_run(job, view, turn, now)
    if job.waits:
        return "waiting", job.updated_at, f"waiting in the table ({job.blocked_by or _until(job, now)})"
    if job.route is not None:
        return "in_queue", job.updated_at, f"released by plan {job.plan_id}: SQS moves its dead letter into the queue"
    ahead = "" if depth is None else f", about {depth.visible} ahead of it or beside it"
    return "in_queue", job.updated_at, f"in the queue since {iso(job.updated_at)}{ahead}"


def _for_a_run(job: Job, view: View, turn: Turn | None, now: datetime) -> str:
    """Nobody sends it: a run takes it, when it is due and its turn comes."""
    if not job.waits:
        return "not yet in line: the stream puts it there, and the auditor where the stream did not"
    until = f", {_until(job, now)}" if job.runnable_at > now else ""
    back = f" (back in line: {job.blocked_by})" if job.blocked_by not in (None, "run") else ""
    if turn is None:
        return f"waiting in the table for a run{until}{back}"
    when = iso(turn.at(max(now, job.runnable_at)))
    most = 0 if view.lane.run is None else view.lane.run.max_jobs_per_run
    each = f"each takes {most:,}, the oldest first"
    return f"waiting in the table for the next run of {turn.schedule}{until}: about {when}; {each}{back}"


def _collected(turn: Turn | None, now: datetime) -> str:
    return "" if turn is None else f"; {turn.schedule} looks next about {iso(turn.at(now))}"


def _result(job: Job) -> str:
    kept = [f"{what} withheld by {scope}" for what, scope in (job.withheld or {}).items()]
    return ", ".join([*([job.result] if job.result else []), *kept])


def _until(job: Job, now: datetime) -> str:
    return f"not before {iso(job.runnable_at)}" if job.runnable_at > now else "due"


def _claimed(job: Job, view: View, now: datetime) -> tuple[datetime, str]:
    since = job.claimed_at or job.updated_at
    if liveness.is_stale(job, view.lane, now):
        if view.lane.run is not None:
            rescue = "the sweeper brings it back, or the next run finds out what became of its batch"
            return since, f"claimed since {iso(since)} by a run that died; {rescue}"
        return since, f"claimed since {iso(since)} by a worker that died; its message brings it back"
    return since, f"claimed since {iso(since)} by {job.claimed_by}"
