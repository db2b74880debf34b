"""Run once per slot: however often a schedule fires, one run does the work and keeps its record."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial

from shared.contract import metrics
from shared.core.moment import iso, parse
from shared.core.ports import Clock, Ledger, Telemetry
from shared.core.schedule import Overlap, RunRecord, ScheduleRule, is_going, made_up, missed, slot_at, slots_in_sight
from shared.usecases.persist import persist

BY_HAND = "+"
"""In the slot of a run that a person started, between its time and the id of the request."""
BY_RULE = ScheduleRule()
"""Missed slots stay missed and no two runs overlap."""


def slot_of(now: datetime, period_s: int) -> str:
    """The slot a moment falls in: derived from the time, since a schedule may fire late or twice."""
    return iso(slot_at(now, period_s))


def run_slot(
    schedule: str,
    *,
    period_s: int,
    time_limit_s: float,
    run_id: str,
    work: Callable[[], Mapping[str, int]],
    ledger: Ledger,
    clock: Clock,
    telemetry: Telemetry,
    rule: ScheduleRule = BY_RULE,
    manual: str | None = None,
) -> RunRecord | None:
    """The record of the run, or None when its slot was taken or the run before is still going (said as an event).

    `time_limit_s` is what the platform gives a run: a record without an end that is older belongs to a dead one.
    `manual`: the id of a person's request; such a run has a slot of its own and makes nothing up.
    """
    started = clock.now()
    slot = slot_of(started, period_s) if manual is None else f"{iso(started)}{BY_HAND}{manual}"
    run = RunRecord(schedule=schedule, slot=slot, run_id=run_id, started_at=started)
    if not persist(lambda: ledger.open_run(run), clock):
        _skipped(run, "slot_taken", telemetry)
        return None
    # Opened first, looked second: of two that start at once, at least one sees the other.
    seen = persist(lambda: ledger.runs(schedule, limit=slots_in_sight(period_s, time_limit_s)), clock)
    others = [other for other in seen if other.slot != run.slot]
    going = any(is_going(other.started_at, other.finished_at, started, time_limit_s) for other in others)
    if going and rule.overlap is Overlap.SKIP:
        _close(run, {"skipped": 1}, ledger, clock)
        _skipped(run, "still_going", telemetry)
        return None

    def finish(opened: RunRecord) -> RunRecord:
        counts = work()
        closed = _close(opened, counts, ledger, clock)
        telemetry.event("run_finished", schedule=schedule, slot=closed.slot, run_id=run_id, **dict(counts))
        return closed

    # The run's own record stays open meanwhile, so that the next one waits for all of it.
    for late in _made_up(run, others, period_s, rule, telemetry) if manual is None else ():
        again = replace(run, slot=iso(late), started_at=clock.now())
        if persist(partial(ledger.open_run, again), clock):
            finish(again)
    return finish(run)


def _made_up(
    run: RunRecord, others: Sequence[RunRecord], period_s: int, rule: ScheduleRule, telemetry: Telemetry
) -> list[datetime]:
    """The missed slots that the rule gives back; a gap is said in any case."""
    slot = parse(run.slot)
    slots = (parse(other.slot) for other in others if BY_HAND not in other.slot)
    last = max((earlier for earlier in slots if earlier < slot), default=None)
    count = missed(slot, last, period_s)
    late = made_up(slot, last, period_s, rule.misfire)
    if count:
        telemetry.event("run_missed", schedule=run.schedule, missed=count, made_up=len(late))
    return late


def _close(run: RunRecord, counts: Mapping[str, int], ledger: Ledger, clock: Clock) -> RunRecord:
    closed = replace(run, finished_at=clock.now(), counts=dict(counts))
    persist(lambda: ledger.close_run(closed), clock)
    return closed


def _skipped(run: RunRecord, reason: str, telemetry: Telemetry) -> None:
    telemetry.event("run_skipped", schedule=run.schedule, slot=run.slot, reason=reason)
    telemetry.count(metrics.RUN_SKIPPED)
