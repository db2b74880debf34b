"""A scheduled run: once per slot however often it fires, with its record kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.adapters.memory.records import MemoryLedger
from shared.adapters.meter import Meter
from shared.contract import metrics
from shared.core.moment import parse
from shared.core.schedule import Misfire, Overlap, RunRecord, ScheduleRule
from shared.usecases.run_slot import BY_RULE, run_slot, slot_of
from tests.builders import NOW
from tests.unit.core.strategies import moments
from tests.unit.usecases.desk import Desk


def fire(
    desk: Desk,
    done: list[str],
    run_id: str,
    *,
    period_s: int = 60,
    time_limit_s: float = 50,
    schedule: str = "triage",
    rule: ScheduleRule = BY_RULE,
    meanwhile: Callable[[], object] = lambda: None,
) -> RunRecord | None:
    """One firing of a schedule; `meanwhile` happens in the middle of its work."""

    def work() -> Mapping[str, int]:
        done.append(run_id)
        meanwhile()
        desk.clock.advance(1)
        return {"support.depth": 3}

    return run_slot(
        schedule,
        period_s=period_s,
        time_limit_s=time_limit_s,
        run_id=run_id,
        work=work,
        ledger=desk.ledger,
        clock=desk.clock,
        telemetry=desk.telemetry,
        rule=rule,
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
            time_limit_s=50,
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


@pytest.mark.fault("D2")
@pytest.mark.parametrize(
    ("misfire", "slots_ago"),
    [
        ("skip", [0]),
        ("run_once", [1, 0]),
        ("catch_up(3)", [3, 2, 1, 0]),
        ("catch_up(5)", [5, 4, 3, 2, 1, 0]),
        ("catch_up(100)", [5, 4, 3, 2, 1, 0]),
    ],
)
def test_a_gap_of_five_periods_is_made_up_as_the_rule_says(misfire: str, slots_ago: list[int]) -> None:
    """None, one for all, or the newest few in their order; each missed slot has its record, and none runs twice."""
    desk, done = Desk(), []
    rule = ScheduleRule(misfire=Misfire.parse(misfire))
    assert fire(desk, done, "before", rule=rule) is not None
    back = NOW + timedelta(seconds=60 * 6)
    desk.clock.advance_to(back)
    for n in range(2):
        fire(desk, done, f"after-{n}", rule=rule)
    assert done == ["before"] + ["after-0"] * len(slots_ago)
    ran = [event.ids["slot"] for event in desk.telemetry.named("run_finished")][1:]
    assert ran == [slot_of(back - timedelta(seconds=60 * ago), 60) for ago in slots_ago]
    assert [(one.ids["missed"], one.ids["made_up"]) for one in desk.telemetry.named("run_missed")] == [
        (5, len(slots_ago) - 1)
    ]
    assert all(run.finished_at is not None for run in desk.ledger.runs("triage", limit=10))


@pytest.mark.fault("D2")
def test_a_schedule_that_never_ran_has_missed_nothing() -> None:
    """A first deployment makes nothing up."""
    desk, done = Desk(), []
    assert fire(desk, done, "first", rule=ScheduleRule(misfire=Misfire.parse("catch_up(10)"))) is not None
    assert done == ["first"]


@pytest.mark.fault("D2", "D1")
def test_a_late_firing_runs_the_slot_it_lands_in() -> None:
    """Fired for 00:01, delivered at 00:02:10: it is the run of 00:02, and the firing for 00:02 finds it taken."""
    desk, done = Desk(), []
    desk.clock.advance(130)
    late = fire(desk, done, "late")
    assert late is not None
    assert late.slot == "2026-01-01T00:02:00.000Z"
    assert fire(desk, done, "on time") is None


@pytest.mark.fault("D3")
@pytest.mark.parametrize("periods", [1, 2, 4])
def test_a_run_that_takes_longer_than_its_period_is_not_overlapped(periods: int) -> None:
    """Each firing meanwhile is skipped, as an event and a count; the first one after its end runs."""
    desk, done = Desk(), []

    def meanwhile() -> None:
        for n in range(periods):
            desk.clock.advance(60)
            assert fire(desk, done, f"meanwhile-{n}", time_limit_s=600) is None

    assert fire(desk, done, "long", time_limit_s=600, meanwhile=meanwhile) is not None
    assert done == ["long"]
    skipped = desk.telemetry.named("run_skipped")
    assert [event.ids["reason"] for event in skipped] == ["still_going"] * periods
    assert desk.telemetry.total(metrics.RUN_SKIPPED) == periods
    desk.clock.advance(60)
    assert fire(desk, done, "next", time_limit_s=600) is not None
    assert done == ["long", "next"]


@pytest.mark.fault("D3")
def test_of_two_that_start_at_once_not_both_run() -> None:
    """One opens its slot while the other is between opening and looking."""
    desk, done = Desk(), []
    late = RunRecord(schedule="triage", slot=slot_of(NOW, 60), run_id="late", started_at=NOW)

    class Racing:
        """The late firing of the slot before opens it after our opening and before our look."""

        def __getattr__(self, name: str) -> object:
            return getattr(ledger, name)

        def open_run(self, run: RunRecord) -> bool:
            opened = ledger.open_run(run)
            ledger.open_run(late)
            return opened

    ledger = desk.ledger
    desk.ledger = Racing()  # type: ignore[assignment]
    desk.clock.advance(60)
    late = RunRecord(schedule="triage", slot=late.slot, run_id="late", started_at=desk.clock.now())
    assert fire(desk, done, "on time") is None
    assert done == []


@pytest.mark.fault("D3")
def test_a_run_that_died_stands_in_nobodys_way_for_long() -> None:
    """Without an end, a record counts as going for the function's time limit and the skew of two clocks."""
    desk, done = Desk(), []
    dead = RunRecord(schedule="triage", slot=slot_of(NOW, 60), run_id="dead", started_at=NOW + timedelta(seconds=20))
    desk.ledger.open_run(dead)
    desk.clock.advance_to(NOW + timedelta(seconds=74))
    assert fire(desk, done, "early") is None
    desk.clock.advance_to(NOW + timedelta(seconds=120))
    assert fire(desk, done, "later") is not None


@pytest.mark.fault("D3")
def test_a_schedule_that_allows_it_overlaps() -> None:
    """The rule is the schedule's own."""
    desk, done = Desk(), []
    rule = ScheduleRule(overlap=Overlap.ALLOW)

    def meanwhile() -> None:
        desk.clock.advance(60)
        assert fire(desk, done, "beside", rule=rule, time_limit_s=600) is not None

    fire(desk, done, "long", rule=rule, time_limit_s=600, meanwhile=meanwhile)
    assert done == ["long", "beside"]


def test_a_run_costs_three_calls() -> None:
    """Open, one look, close; a slot that is taken costs one."""
    meter = Meter()
    desk, done = Desk(), []
    desk.ledger = MemoryLedger(meter=meter)
    fire(desk, done, "a")
    assert meter.total().calls == 3
    fire(desk, done, "b")
    assert meter.total().calls == 4
