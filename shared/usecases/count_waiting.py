"""Count what waits: how many jobs of each lane stand in the table for their time, for the dashboard."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from shared.contract import metrics
from shared.core.lane import LaneSpec
from shared.core.ports import Clock, JobStore, Telemetry

AT_MOST = 5_000
"""Of each priority: a backlog beyond it is shown as this many, and costs no more to look at."""
FAR = timedelta(days=3650)


def waiting_of(lane: str) -> str:
    """Under which name a run keeps how many waited: what a forecast looks back at."""
    return f"{lane}.waiting"


def count_waiting(lanes: Iterable[LaneSpec], *, jobs: JobStore, clock: Clock, telemetry: Telemetry) -> dict[str, int]:
    """One value a lane that spends an account: the jobs in its waiting index, whenever their time is."""
    counts: dict[str, int] = {}
    for lane in lanes:
        if lane.accounts and lane.admission != "fair":
            entries = jobs.waiting(lane, due_before=clock.now() + FAR, limit=AT_MOST)
            telemetry.count(metrics.WAITING, len(entries), lane=lane.name)
            counts[waiting_of(lane.name)] = len(entries)
    return counts
