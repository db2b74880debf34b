"""One look at a lane a minute: what is decided, written, asserted and told."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from shared.contract import metrics
from shared.core.capacity import CapacityState, EventSource, Reason
from shared.core.errors import Unavailable
from shared.core.severity import Severity
from shared.core.switches import Level
from shared.usecases.assert_cap import Asserted
from tests.builders import a_job, a_run_lane, a_switch
from tests.unit.usecases.watch import SPIKE, Watch


# ------------------------------------------------------------------------------------------- decide and assert
@pytest.mark.req("C4", "C3")
def test_a_backlog_raises_the_cap_of_the_event_source() -> None:
    """Decided, written and asserted in one look; then it waits for its interval."""
    watch = Watch()
    watch.backlog()
    first, again = watch.look(), watch.look()
    assert (first.decision.reason, watch.source, watch.state.cap) == (
        Reason.BACKLOG,
        EventSource(state="Enabled", cap=6),
        6,
    )
    assert (again.decision.reason, again.asserted) == (Reason.WAITS_FOR_INTERVAL, Asserted.STANDS)
    assert (watch.state.severity, watch.state.age_s) == (Severity.MODERATE, 300)


@pytest.mark.req("C4")
@pytest.mark.fault("E7")
def test_a_step_is_not_a_minute_late_because_the_tick_before_was_late() -> None:
    """A tick comes two seconds late, the one ten minutes on does not: it waits, and steps after ten minutes to the
    second, not after eleven and never sooner."""
    watch = Watch()
    watch.backlog()
    clock, lanes = watch.desk.clock, {"support": watch.desk.lane}
    clock.advance(2)
    watch.governor.run(lanes)
    stepped = clock.now()
    for _ in range(9):
        clock.advance(60)
        watch.governor.run(lanes)
    clock.advance(58)
    watch.governor.run(lanes)
    assert (clock.now() - stepped, watch.state.cap) == (timedelta(minutes=10), 8)


@pytest.mark.req("C5")
def test_a_spike_of_429s_halves_it() -> None:
    """Down to half, never below the floor."""
    watch = Watch(baseline=8)
    watch.saw(SPIKE)
    assert (watch.look().decision.reason, watch.source.cap) == (Reason.VENDOR_429_SPIKE, 4)


@pytest.mark.req("C3")
def test_a_standstill_is_seen_although_nothing_runs() -> None:
    """Nobody claims and messages are visible: the age grows from look to look."""
    watch = Watch()
    watch.look()
    job = watch.desk.put(a_job())
    watch.desk.admit(job)
    for _ in range(6):
        watch.desk.clock.advance(60)
        watch.look()
    assert (watch.state.age_s, watch.state.severity) == (360, Severity.SEVERE)


@pytest.mark.fault("E4")
def test_a_deploy_that_resets_the_cap_is_undone_by_the_next_look() -> None:
    """The wanted cap stands in the table; the pin of two is back within a tick, and never above."""
    watch = Watch()
    watch.look()
    watch.pin(2)
    watch.look()
    watch.actuator.sources["support"] = EventSource(state="Enabled", cap=4)
    assert watch.look().asserted is Asserted.ASKED
    assert watch.source.cap == 2


@pytest.mark.req("C7")
def test_no_row_makes_more_of_a_cap_than_the_ceiling() -> None:
    """Whatever somebody wrote there."""
    watch = Watch(ceiling=6)
    watch.desk.control.set_capacity("support", None, CapacityState(cap=900, version=1))
    watch.look()
    assert (watch.source.cap, watch.state.cap) == (6, 6)
    watch.pin(800)
    watch.look()
    assert watch.source.cap == 6


def test_nothing_is_asked_while_nothing_differs() -> None:
    """A look that changes nothing makes no call that changes anything."""
    watch = Watch()
    for _ in range(3):
        watch.look()
    assert watch.actuator.asked == []


# ------------------------------------------------------------------------------------------- in the way
@pytest.mark.fault("B9")
def test_a_source_that_is_being_changed_is_a_skipped_tick() -> None:
    """In use, or on its way: the cap stays, a metric and an event say so, nothing crashes, the next tick does it."""
    watch = Watch()
    watch.backlog()
    watch.actuator.busy = True
    assert watch.look().asserted is Asserted.SKIPPED
    watch.actuator.busy = False
    watch.actuator.sources["support"] = EventSource(state="Updating", cap=4)
    asked = len(watch.actuator.asked)
    assert watch.look().asserted is Asserted.SKIPPED
    assert (watch.source.cap, len(watch.actuator.asked)) == (4, asked), "not even asked"
    assert watch.desk.telemetry.total(metrics.CAP_SKIPPED) == 2
    watch.actuator.sources["support"] = EventSource(state="Enabled", cap=4)
    assert watch.look().asserted is Asserted.ASKED
    assert watch.source.cap == 6


@pytest.mark.fault("B10")
def test_a_source_somebody_else_disabled_is_told_and_not_enabled() -> None:
    """A metric at every look, for the alarm; who disabled it has to enable it."""
    watch = Watch()
    watch.actuator.sources["support"] = EventSource(state="Disabled", cap=4)
    for n in (1, 2):
        assert watch.look().asserted is Asserted.FOREIGN
        assert watch.desk.telemetry.total(metrics.SOURCE_CLOSED) == n
    assert not watch.source.enabled


@pytest.mark.fault("B10")
def test_a_lane_without_a_source_is_still_decided_for() -> None:
    """And told."""
    watch = Watch()
    watch.actuator.sources.clear()
    assert watch.look().asserted is Asserted.SKIPPED
    assert watch.desk.telemetry.total(metrics.SOURCE_CLOSED) == 1


def test_halt_disables_the_source_and_opening_enables_it_again() -> None:
    """Also when the source could not be changed in the tick that wanted to."""
    watch = Watch()
    watch.desk.control.set_switch(a_switch("all", Level.HALT))
    watch.look()
    assert (watch.source.enabled, watch.state.stopped, watch.state.cap) == (False, True, 4)
    watch.desk.control.set_switch(a_switch("all", Level.NORMAL))
    watch.actuator.busy = True
    watch.look()
    watch.actuator.busy = False
    watch.look()
    assert watch.source == EventSource(state="Enabled", cap=4)
    watch.look()
    assert not watch.state.stopped


def test_a_pin_of_nought_stops_the_lane_until_it_ends() -> None:
    """Then it begins at the floor."""
    watch = Watch()
    watch.look()
    watch.pin(0, minutes=2)
    watch.look()
    assert not watch.source.enabled
    watch.desk.clock.advance(180)
    watch.look()
    assert watch.source == EventSource(state="Enabled", cap=2)


# ------------------------------------------------------------------------------------------- who writes
@pytest.mark.fault("E1")
def test_a_pin_that_comes_between_look_and_write_wins() -> None:
    """The decision was made from a row that is no longer there: it is made again, from the pin."""
    watch = Watch()
    watch.look()
    watch.backlog()
    real, pinned = watch.governor.lookout.look, []

    def late(lane: Any, moved: Any) -> Any:
        if not pinned:
            pinned.append(True)
            watch.pin(3)
        return real(lane, moved)

    object.__setattr__(watch.governor, "lookout", _Looks(late))
    done = watch.look()
    assert (done.decision.reason, watch.state.cap, watch.source.cap) == (Reason.OPERATOR_PIN, 3, 3)
    assert watch.state.pin is not None


class _Looks:
    def __init__(self, look: Any) -> None:
        self.look = look


@pytest.mark.fault("E2")
def test_two_governors_make_one_decision_a_version() -> None:
    """Who was overtaken decides again from the newer row: no step is made twice."""
    watch = Watch()
    watch.backlog()
    other, real = watch.a_governor(), watch.governor.lookout.look

    def late(lane: Any, moved: Any) -> Any:
        object.__setattr__(watch.governor, "lookout", _Looks(real))
        other.govern(watch.desk.lane)
        watch.desk.clock.advance(1)
        return real(lane, moved)

    object.__setattr__(watch.governor, "lookout", _Looks(late))
    done = watch.look()
    assert (done.decision.reason, watch.state.cap, watch.state.version) == (Reason.WAITS_FOR_INTERVAL, 6, 2)
    assert [event.ids["version"] for event in watch.desk.telemetry.named("decision_overtaken")] == [0]


def test_a_row_that_others_keep_writing_loses_the_tick() -> None:
    """And nothing is asserted."""
    watch = Watch()
    watch.desk.control.set_capacity = lambda *_: False  # type: ignore[attr-defined]
    assert watch.governor.govern(watch.desk.lane) is None
    assert watch.governor.run(watch.desk.lanes) == {"support.lost": 1}


@pytest.mark.fault("E5")
def test_a_corrupt_row_keeps_the_last_good_cap_loudly() -> None:
    """The lane is not governed, its source is left as it is, and other lanes go on."""
    watch = Watch()
    watch.backlog()
    watch.look()
    watch.desk.control._target._caps["support"]["cap"] = {"S": "many"}
    assert watch.governor.run(watch.desk.lanes) == {"support.lost": 1}
    assert watch.source.cap == 6
    assert [event.code for event in watch.desk.telemetry.named("lane_not_governed")] == ["unreadable_row"]


@pytest.mark.fault("E5")
def test_corrupt_switches_keep_the_last_good_cap_loudly() -> None:
    """Nobody can tell whether the lane is closed: nothing is steered, the cap stands, and every look says so."""
    watch = Watch()
    watch.backlog()
    watch.look()
    corrupt = {"pk": {"S": "SWITCHES"}, "scopes": {"M": {"all": {"M": {"level": {"S": "open-ish"}}}}}}
    watch.desk.control._target._item = corrupt
    for times in (1, 2):
        assert watch.governor.run(watch.desk.lanes) == {"support.lost": 1}
        assert len(watch.desk.telemetry.named("lane_not_governed")) == times
    assert (watch.source.cap, watch.desk.control.capacity("support").cap) == (6, 6)


@pytest.mark.fault("E3")
def test_without_the_control_table_nothing_is_steered() -> None:
    """No decision without the switches: they are never assumed to be open."""
    watch = Watch()
    watch.desk.control.down = True
    with pytest.raises(Unavailable):
        watch.governor.govern(watch.desk.lane)
    assert watch.actuator.asked == []


def test_without_signals_the_cap_is_still_asserted() -> None:
    """Who cannot see does not steer, and holds what was wanted."""
    watch = Watch()
    watch.backlog()
    watch.look()
    watch.actuator.sources["support"] = EventSource(state="Enabled", cap=4)
    watch.desk.signals.down = True
    done = watch.look()
    assert (done.decision.reason, watch.source.cap) == (Reason.SIGNALS_UNKNOWN, 6)
    assert len(watch.desk.telemetry.named("signals_unreadable")) == 1


# ---------------------------------------------------------------------------------------------------- told
@pytest.mark.req("F5")
def test_every_decision_is_kept_logged_and_metered() -> None:
    """Changes and holds alike, in the same words, under one correlation id."""
    watch = Watch()
    watch.backlog()
    watch.look()
    watch.look()
    kept = watch.desk.history.of("capacity/support", limit=9)
    logged = watch.desk.telemetry.named("capacity_decided")
    words = {"timestamp", "fromCapacity", "toCapacity", "reasonCode", "guardrailState"}
    words |= {"operatorOverrideActive", "correlationId"}
    assert sorted(event.detail["reasonCode"] for event in kept) == ["backlog", "waits_for_interval"]
    for event, line in zip(reversed(kept), logged, strict=False):
        assert words <= set(event.detail) <= set(line.ids)
    assert {event.detail["correlationId"] for event in kept} == {line.ids["correlationId"] for line in logged}
    assert watch.desk.telemetry.counts[(metrics.CAP, "support")] == 12
    assert watch.desk.telemetry.total(metrics.CAP_CHANGED) == 1


def test_a_history_that_cannot_be_written_stops_nothing() -> None:
    """The decision stands and is logged."""
    watch = Watch()
    watch.backlog()

    def down(event: Any) -> None:
        raise Unavailable("history", "throttled")

    watch.desk.history.append = down  # type: ignore[method-assign]
    watch.look()
    assert watch.source.cap == 6
    assert len(watch.desk.telemetry.named("decision_unwritten")) == 1


def test_a_run_governs_every_lane_that_has_a_queue() -> None:
    """Counts by lane, for the run's record; a lane whose runs claim for themselves has no event source."""
    watch = Watch()
    watch.desk.add_lane(a_run_lane())
    counts = watch.governor.run(watch.desk.lanes)
    assert counts == {
        "support.cap": 4,
        "support.severity": 0,
        "support.changed": 0,
        "support.skipped": 0,
        "support.tripped": 0,
    }
