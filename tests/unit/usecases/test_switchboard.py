"""The switches as a function sees them: fresh within ten seconds, trusted for a minute, then sends stop."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.core.errors import ControlUnreadable
from shared.core.job import Status
from shared.core.switches import Level
from shared.usecases.run_attempt import Answer
from tests.builders import a_job, a_switch
from tests.unit.usecases.desk import Desk


@pytest.mark.fault("C7")
@given(steps=st.lists(st.floats(0, 4), max_size=30))
def test_the_table_is_read_at_most_every_five_seconds(steps: list[float]) -> None:
    """However often a worker asks: twelve reads a minute, not one per job."""
    desk = Desk()
    for step in steps:
        desk.clock.advance(step)
        desk.board.read()
    passed_s = sum(steps)
    assert desk.control.calls <= 1 + passed_s / 5


@pytest.mark.req("C2")
def test_a_change_is_felt_within_ten_seconds_without_a_deploy() -> None:
    """A look just before the change is the worst case."""
    desk = Desk()
    assert desk.board.read().entries == {}
    desk.control.set_switch(a_switch("all", Level.ROUTE_ONLY))
    desk.clock.advance(10)
    assert desk.board.read().standing(["all"]).level is Level.ROUTE_ONLY


@pytest.mark.fault("E3")
@given(outage_s=st.integers(0, 200))
def test_the_last_value_counts_for_a_minute_and_no_longer(outage_s: int) -> None:
    """While the table cannot be read; an open state is never assumed after that."""
    desk = Desk()
    desk.close("all", Level.ROUTE_ONLY)
    desk.board.read()
    desk.control.down = True
    desk.clock.advance(outage_s)
    if outage_s <= 60:
        assert desk.board.read().standing(["all"]).level is Level.ROUTE_ONLY
    else:
        with pytest.raises(ControlUnreadable):
            desk.board.read()


@pytest.mark.fault("E3")
def test_what_was_never_read_is_not_assumed() -> None:
    """A worker that starts during the outage sends nothing."""
    desk = Desk()
    desk.control.down = True
    with pytest.raises(ControlUnreadable):
        desk.board.read()


@pytest.mark.fault("E3", "E5")
def test_a_row_nobody_can_read_counts_as_no_answer() -> None:
    """A poisoned row keeps the last good value for its minute, then stops sends; it never opens anything."""
    desk = Desk()
    desk.close("all", Level.DRAIN)
    desk.board.read()
    desk.control._item = {"pk": {"S": "SWITCHES"}, "scopes": {"M": {"all": {"M": {"level": {"S": "open-ish"}}}}}}
    desk.control._target._item = desk.control._item
    desk.clock.advance(30)
    assert desk.board.read().standing(["all"]).level is Level.DRAIN
    desk.clock.advance(31)
    with pytest.raises(ControlUnreadable):
        desk.board.read()


@pytest.mark.fault("E3")
@pytest.mark.req("M9")
def test_ten_minutes_without_switches_send_nothing_and_fail_nothing() -> None:
    """Messages are returned unclaimed; when the table answers again, the job runs and no attempt was used."""
    desk = Desk()
    job = desk.put(a_job())
    desk.control.down = True
    for _ in range(10):
        desk.clock.advance(60)
        assert desk.work(job) is Answer.RETURN
    assert desk.job(job.job_id).status is Status.QUEUED
    assert (desk.vendor.requests, desk.dead_letters.depth("support").total) == (0, 0)
    desk.control.down = False
    assert desk.work(job) is Answer.ACKNOWLEDGE
    after = desk.job(job.job_id)
    assert (after.status, after.attempt_count, len(desk.vendor.accepts)) == (Status.COMPLETED, 0, 1)


def test_a_recovered_table_is_believed_at_once() -> None:
    """The first answer after an outage counts."""
    desk = Desk()
    desk.board.read()
    desk.control.down = True
    desk.clock.advance(61)
    with pytest.raises(ControlUnreadable):
        desk.board.read()
    desk.control.down = False
    desk.control.set_switch(a_switch("all", Level.HALT))
    assert desk.board.read().standing(["all"]).level is Level.HALT
