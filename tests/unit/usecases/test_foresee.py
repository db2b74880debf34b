"""Foresee: the same admission, the lane's own counts, and nothing written."""

from __future__ import annotations

from datetime import timedelta

from shared.adapters.memory.signals import MemorySignalLedger
from shared.core.forecast import Outlook
from shared.core.schedule import RunRecord
from shared.core.signals import Counts
from shared.core.switches import Level
from shared.usecases.count_waiting import waiting_of
from shared.usecases.foresee import Forecaster
from tests.builders import a_job, an_account
from tests.unit.usecases.desk import Desk

MINUTE = timedelta(minutes=1)


def a_forecaster(desk: Desk, signals: MemorySignalLedger | None = None) -> Forecaster:
    return Forecaster(
        jobs=desk.jobs,
        queues=desk.queues,
        signals=signals or MemorySignalLedger(),
        ledger=desk.ledger,
        control=desk.control,
        viewer=desk.a_viewer(),
        clock=desk.clock,
    )


def a_desk(waiting: int, **account: int | None) -> Desk:
    desk = Desk(account=an_account(tokens_per_minute=None, **account), parallel=10, expected_job_s=1.0, ceiling=20)
    for number in range(waiting):
        desk.put(a_job(key=f"event-{number}", due=desk.clock.now()))
    return desk


def test_a_backlog_clears_at_the_pace_of_its_account() -> None:
    """Sixty a minute pass whatever the cap is: a hundred and twenty jobs need two minutes."""
    desk = a_desk(120, requests_per_minute=60)
    found = a_forecaster(desk).foresee(desk.lane)
    assert (found.outlook, found.backlog, found.limited_by) == (Outlook.CLEARS, 120, "budget")
    assert found.by == desk.clock.now() + 2 * MINUTE
    assert a_forecaster(desk).foresee(desk.lane, cap=12).by == found.by


def test_what_was_done_and_what_came_are_looked_back_at() -> None:
    """Thirty a minute done while the backlog stood still: as many come, it will not drain."""
    desk, signals = a_desk(120, requests_per_minute=600), MemorySignalLedger()
    began = desk.clock.now()
    desk.ledger.open_run(RunRecord(schedule="dispatcher", slot="1", run_id="r", started_at=began))
    closed = RunRecord(
        schedule="dispatcher",
        slot="1",
        run_id="r",
        started_at=began,
        finished_at=began,
        counts={waiting_of("support"): 120},
    )
    desk.ledger.close_run(closed)
    for minute in range(5):
        signals.add("support", began + minute * MINUTE, Counts(claims=30, completed=30))
    desk.clock.advance(300)
    found = a_forecaster(desk, signals).foresee(desk.lane)
    assert (found.outlook, found.arrivals_per_s) == (Outlook.WILL_NOT_DRAIN, 0.5)


def test_a_closed_switch_stalls_it() -> None:
    """The gate that holds it is named."""
    desk = a_desk(5, requests_per_minute=60)
    desk.close("lane/support", Level.NO_NEW_STARTS)
    found = a_forecaster(desk).foresee(desk.lane)
    assert (found.outlook, found.limited_by) == (Outlook.STALLED, "switches:lane/support")


def test_an_empty_lane_is_cleared_and_nothing_is_written() -> None:
    """Looking costs no write."""
    desk = a_desk(0, requests_per_minute=60)
    assert a_forecaster(desk).foresee(desk.lane).outlook is Outlook.CLEARED
    assert desk.budget_ledger.writes == 0
