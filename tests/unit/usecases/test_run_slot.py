"""A scheduled run: once per slot however often it fires, with its record kept."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.contract import metrics
from shared.core.moment import parse
from shared.core.ports import RunRecord
from shared.usecases.run_slot import run_slot, slot_of
from tests.builders import NOW
from tests.unit.core.strategies import moments
from tests.unit.usecases.desk import Desk


def fire(desk: Desk, done: list[str], run_id: str, *, period_s: int = 60, schedule: str = "triage") -> RunRecord | None:
    """One firing of a schedule."""

    def work() -> Mapping[str, int]:
        done.append(run_id)
        desk.clock.advance(1)
        return {"support.depth": 3}

    return run_slot(
        schedule,
        period_s=period_s,
        run_id=run_id,
        work=work,
        ledger=desk.ledger,
        clock=desk.clock,
        telemetry=desk.telemetry,
    )


@pytest.mark.req("F8")
@pytest.mark.fault("D1")
def test_fired_three_times_it_runs_once() -> None:
    """The second and third find the slot taken: an event and a count, not an error."""
    desk, done = Desk(), []
    runs = [fire(desk, done, f"run-{n}") for n in range(3)]
    assert done == ["run-0"]
    assert [run is not None for run in runs] == [True, False, False]
    assert len(desk.telemetry.named("run_skipped")) == 2
    assert desk.telemetry.total(metrics.RUN_SKIPPED) == 2


@pytest.mark.req("F8")
def test_every_run_is_kept_with_its_counts() -> None:
    """Who, when, how long and what it counted, newest first."""
    desk, done = Desk(), []
    for n in range(3):
        fire(desk, done, f"run-{n}")
        desk.clock.advance_to(NOW + timedelta(seconds=60 * (n + 1)))
    runs = desk.ledger.runs("triage", limit=2)
    assert [run.run_id for run in runs] == ["run-2", "run-1"]
    assert runs[1] == RunRecord(
        schedule="triage",
        slot="2026-01-01T00:01:00.000Z",
        run_id="run-1",
        started_at=NOW + timedelta(seconds=60),
        finished_at=NOW + timedelta(seconds=61),
        counts={"support.depth": 3},
    )


@pytest.mark.req("F8")
def test_schedules_do_not_take_each_others_slots() -> None:
    """The key is the schedule and the slot."""
    desk, done = Desk(), []
    assert fire(desk, done, "a", schedule="triage") is not None
    assert fire(desk, done, "b", schedule="sweeper") is not None


@pytest.mark.fault("D1", "C3")
def test_a_run_that_lost_the_answer_to_its_opening_may_go_on() -> None:
    """Asking again with the same run is still the first."""
    desk, done = Desk(), []
    opened = RunRecord(schedule="triage", slot=slot_of(NOW, 60), run_id="run-1", started_at=NOW)
    assert desk.ledger.open_run(opened)
    assert fire(desk, done, "run-1") is not None
    assert fire(desk, done, "run-2") is None


@pytest.mark.fault("D1")
def test_a_run_that_died_keeps_its_slot() -> None:
    """The next slot is the next chance; nobody runs the same one a second time."""
    desk = Desk()

    def dies() -> Mapping[str, int]:
        raise RuntimeError

    with pytest.raises(RuntimeError):
        run_slot(
            "triage",
            period_s=60,
            run_id="r",
            work=dies,
            ledger=desk.ledger,
            clock=desk.clock,
            telemetry=desk.telemetry,
        )
    done: list[str] = []
    assert fire(desk, done, "r2") is None
    desk.clock.advance(60)
    assert fire(desk, done, "r3") is not None
    assert [run.finished_at is None for run in desk.ledger.runs("triage", limit=5)] == [False, True]


@pytest.mark.req("F8")
@given(at=moments, period_s=st.sampled_from([60, 300, 900, 3600]), late_s=st.integers(0, 59))
def test_a_slot_is_the_moment_cut_to_its_period(at: datetime, period_s: int, late_s: int) -> None:
    """A firing that comes late, but before the next, is the same slot; slots do not overlap."""
    slot = parse(slot_of(at, period_s))
    assert timedelta(0) <= at - slot < timedelta(seconds=period_s)
    assert slot_of(slot + timedelta(seconds=late_s), period_s) == slot_of(slot, period_s)
    assert slot_of(slot + timedelta(seconds=period_s), period_s) != slot_of(slot, period_s)
