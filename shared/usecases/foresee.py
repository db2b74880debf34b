"""Foresee: gather what a forecast is made of. It asks the same admission as everybody; it only reads."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from shared.core import rate
from shared.core.account import PACED
from shared.core.admission import AccountView, admit
from shared.core.capacity import cap_wanted
from shared.core.errors import BadInput
from shared.core.forecast import Forecast, Line, Seen, forecast, forecast_runs
from shared.core.job import Job
from shared.core.lane import LaneSpec, run_of
from shared.core.ports import Clock, ControlStore, JobStore, LaneQueues, Ledger, SignalLedger
from shared.core.run import TAKEN_BY, Mode
from shared.core.signals import MINUTE_S, minute_of
from shared.usecases.count_waiting import AT_MOST, FAR, waiting_of
from shared.usecases.look import NO_QUEUE
from shared.usecases.view import Viewer

LOOKS_BACK = 15
"""Minutes whose counts and backlogs are looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecaster:
    """What a forecast needs."""

    jobs: JobStore
    queues: LaneQueues
    signals: SignalLedger
    ledger: Ledger
    control: ControlStore
    viewer: Viewer
    clock: Clock

    def foresee(self, lane: LaneSpec, *, cap: int | None = None) -> Forecast:
        """What becomes of the lane's backlog; with `cap`, what would under that cap."""
        now = self.clock.now()
        entries = self.jobs.waiting(lane, due_before=now + FAR, limit=AT_MOST)
        oldest = self.jobs.get(min(entries, key=lambda one: one.due).job_id) if entries else None
        queue = NO_QUEUE if lane.run is not None else self.queues.depth(lane.name)
        seen = Seen(
            backlog=len(entries) + queue.total,
            done=self._done(lane, now),
            backlogs=self._backlogs(lane, now),
            cap=min(cap_wanted(self.control.capacity(lane.name), lane), lane.ceiling),
            pace_per_s=self._pace_per_s(lane, oldest, now),
            blocked_by=None if oldest is None else self._held(oldest, lane, now),
        )
        if lane.run is None:
            return forecast(seen, lane, now, cap=cap)
        if cap is not None:
            raise BadInput("cap", f"is not what limits lane {lane.name}: each of its runs takes max_jobs_per_run")
        return forecast_runs(seen, self._lines(lane, now), now)

    def _lines(self, lane: LaneSpec, now: datetime) -> list[Line]:
        """What waits for each kind of run; every run takes its most, from the next slot on."""
        most = run_of(lane).max_jobs_per_run
        return [
            Line(
                waiting=len(self.jobs.waiting(lane, due_before=now + FAR, limit=AT_MOST, line=lane.line(mode))),
                a_run=most,
                period_s=lane.runs[TAKEN_BY[mode]],
            )
            for mode in Mode
            if TAKEN_BY[mode] in lane.runs
        ]

    def _done(self, lane: LaneSpec, now: datetime) -> list[int]:
        """Jobs that ended in each full minute, the newest first; as many as a whole minute like it would have had."""
        minute, present = timedelta(seconds=lane.minute_s), minute_of(now, lane.minute_s)
        known = {one.at: one.counts for one in self.signals.minutes(lane.name, since=present - LOOKS_BACK * minute)}
        counts = [known.get(present - back * minute) for back in range(1, LOOKS_BACK + 1)]
        return [0 if one is None else (one.completed + one.failed) * MINUTE_S // lane.minute_s for one in counts]

    def _backlogs(self, lane: LaneSpec, now: datetime) -> list[tuple[datetime, int]]:
        """What the dispatcher's runs saw waiting."""
        runs = self.ledger.runs("dispatcher", limit=LOOKS_BACK)
        name, since = waiting_of(lane.name), now - timedelta(minutes=LOOKS_BACK)
        return [(run.started_at, run.counts[name]) for run in runs if name in run.counts and run.started_at >= since]

    def _held(self, job: Job, lane: LaneSpec, now: datetime) -> str | None:
        """A gate that time alone does not open: a switch, or an account that is shut."""
        verdict = admit(job, self.viewer.of(lane.name, job.task), max(now, job.runnable_at))
        blocked = verdict.blocked
        stuck = blocked is not None and (blocked.stuck or blocked.gate == "switches")
        return verdict.reason if stuck else None

    def _pace_per_s(self, lane: LaneSpec, job: Job | None, now: datetime) -> float | None:
        """Jobs like the oldest that the lane's accounts let pass in a second."""
        view = self.viewer.of(lane.name, None if job is None else job.task)
        paces = [pace for account in view.accounts if (pace := _pace(account, job, now)) is not None]
        return min(paces, default=None)


def _pace(account: AccountView, job: Job | None, now: datetime) -> float | None:
    spec, terms = account.spec, account.budget.terms
    if not rate.enforced(spec, terms):
        return None
    want = rate.Want() if job is None else rate.want_of(job, account.budget)
    limits = [(rate.limit_of(spec, terms, limit, rate.us_of(now)), want.of(limit)) for limit in PACED]
    return min((most / 60 / amount for most, amount in limits if most is not None and amount), default=None)
