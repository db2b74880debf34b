"""Run once per slot: however often a schedule fires, one run does the work and keeps its record."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime

from shared.contract import metrics
from shared.core.moment import from_epoch_s, iso
from shared.core.ports import Clock, Ledger, RunRecord, Telemetry
from shared.usecases.persist import persist


def slot_of(now: datetime, period_s: int) -> str:
    """The slot a moment falls in: derived from the time, since a schedule may fire late or twice."""
    return iso(from_epoch_s(int(now.timestamp()) // period_s * period_s))


def run_slot(
    schedule: str,
    *,
    period_s: int,
    run_id: str,
    work: Callable[[], Mapping[str, int]],
    ledger: Ledger,
    clock: Clock,
    telemetry: Telemetry,
) -> RunRecord | None:
    """The record of the run, or None when this slot has been run already (said as an event, not an error)."""
    started = clock.now()
    run = RunRecord(schedule=schedule, slot=slot_of(started, period_s), run_id=run_id, started_at=started)
    if not persist(lambda: ledger.open_run(run), clock):
        telemetry.event("run_skipped", schedule=schedule, slot=run.slot, reason="slot_taken")
        telemetry.count(metrics.RUN_SKIPPED)
        return None
    counts = work()
    closed = replace(run, finished_at=clock.now(), counts=dict(counts))
    persist(lambda: ledger.close_run(closed), clock)
    telemetry.event("run_finished", schedule=schedule, slot=run.slot, run_id=run_id, **dict(counts))
    return closed
