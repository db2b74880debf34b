"""Run the dispatch: every lane once; then again each second for the lanes that only the pace of an account holds back.

A schedule cannot fire more often than once a minute, and a minute is too coarse to follow a vendor: so a run that has
something to pace stays and paces it, a few seconds ahead, and leaves the gap until the next run well supplied.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta

from shared.core.account import AccountSpec, Limit
from shared.core.lane import LaneSpec
from shared.core.ports import Clock, JobStore, LaneQueues, Telemetry
from shared.usecases.dispatch import Dispatched, Run, dispatch
from shared.usecases.view import Viewer

STEP_S, STEP_SHUT_S = 1.0, 0.5
"""Between two looks; sooner while an account is shut, so that its jobs go on soon after the probe that opens it."""
HORIZON_S = 4.0
"""Starts are given out so far ahead: long enough to reach a worker in time, short enough to follow a changed limit."""
LINGER_S = 10.0
"""What was just sent may be refused and come back for its turn: a run stays so long after the last it had to do."""
LOOK_AHEAD_MARGIN_S = 15
"""A run looks this far past its own next tick, so nothing due between two runs starts late."""
DISPATCH_LIMIT = 2000


def run_dispatch(
    lanes: Mapping[str, LaneSpec],
    *,
    period_s: int,
    stop_at: datetime,
    jobs: JobStore,
    queues: LaneQueues,
    viewer: Viewer,
    clock: Clock,
    telemetry: Telemetry,
) -> dict[str, int]:
    """The counts of one run, by lane; lanes whose jobs are taken by runs of their own are left to those."""
    lanes = {name: lane for name, lane in lanes.items() if lane.run is None}
    counts: Counter[str] = Counter()
    runs = {name: Run() for name in lanes}
    next_run = clock.now() + timedelta(seconds=period_s)

    def once(lane: LaneSpec, horizon_s: float) -> Dispatched:
        done = dispatch(
            lane,
            look_ahead_s=period_s + LOOK_AHEAD_MARGIN_S,
            horizon_s=horizon_s,
            run=runs[lane.name],
            # As many as the task that is held back least could start.
            limit=max(_limit(viewer.accounts_of(lane, task), horizon_s, clock.now()) for task in lane.tasks),
            stop_at=stop_at,
            jobs=jobs,
            queues=queues,
            viewer=viewer,
            clock=clock,
            telemetry=telemetry,
        )
        counts.update({f"{lane.name}.{name}": count for name, count in done.counts().items()})
        return done

    def busy(lane: LaneSpec, horizon_s: float) -> bool:
        # What was sent a little ago may be refused and come back: while a backlog was known, somebody is there for it.
        return once(lane, horizon_s).busy or viewer.backlog(lane)

    busy_at = {lane.name: clock.now() for lane in lanes.values() if busy(lane, HORIZON_S) and lane.accounts}
    last = False
    while busy_at and not last:
        clock.sleep(STEP_SHUT_S if any(viewer.shut(lanes[name]) for name in busy_at) else STEP_S)
        viewer.look_again()
        now = clock.now()
        last = now + timedelta(seconds=STEP_S) >= stop_at
        horizon_s = (next_run - now).total_seconds() + HORIZON_S if last else HORIZON_S
        # In turn: of lanes that share an account, each comes first now and then.
        first = next(iter(busy_at))
        busy_at[first] = busy_at.pop(first)
        for name in list(busy_at):
            if busy(lanes[name], horizon_s):
                busy_at[name] = now
            elif now - busy_at[name] > timedelta(seconds=LINGER_S):
                del busy_at[name]
    return dict(counts)


def _limit(accounts: tuple[AccountSpec, ...], horizon_s: float, now: datetime) -> int:
    """How many jobs are worth looking at: twice what the configured pace lets start within the horizon."""
    paces = [most / 60 for account in accounts if (most := account.configured(Limit.REQUESTS)) is not None]
    return min(DISPATCH_LIMIT, *(int(2 * pace * horizon_s) + 50 for pace in paces)) if paces else DISPATCH_LIMIT
