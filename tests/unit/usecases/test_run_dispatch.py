"""A run that has something to pace stays and paces it; one that has not is over at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from shared.core import feedback
from shared.core.message import Message
from shared.core.rate import SECOND, us_of
from shared.usecases.run_dispatch import HORIZON_S, run_dispatch
from tests.builders import a_job, an_account
from tests.unit.usecases.desk import Desk

RUN_S = 48


def a_backlog(desk: Desk, count: int, **job: object) -> None:
    """Jobs that wait for nothing but their turn."""
    for number in range(count):
        key = f"event-{number:05d}"
        desk.put(a_job(key=key, due=desk.clock.now(), blocked_by="budget:desk_account", **job))


def run(desk: Desk, run_s: float = RUN_S) -> dict[str, int]:
    return run_dispatch(
        desk.lanes,
        period_s=60,
        stop_at=desk.clock.now() + timedelta(seconds=run_s),
        jobs=desk.jobs,
        queues=desk.queues,
        viewer=desk.viewer,
        clock=desk.clock,
        telemetry=desk.telemetry,
    )


class Noted:
    """The lane's queues, noting the second at which each message will be seen by a worker."""

    def __init__(self, desk: Desk) -> None:
        self._desk, self._queues, self._began = desk, desk.queues, desk.clock.now()
        self.starts: Counter[int] = Counter()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._queues, name)

    def send(self, messages: Sequence[Message]) -> list[Message]:
        gone_s = (self._desk.clock.now() - self._began).total_seconds()
        self.starts.update(int(gone_s + message.delay_s) for message in messages)
        return self._queues.send(messages)


@pytest.mark.req("R17")
def test_a_backlog_is_given_out_at_the_pace_of_its_account() -> None:
    """600 a minute: a run of 48 s with the gap to the next one gives out about a minute's worth, evenly."""
    desk = Desk(account=an_account(requests_per_minute=600, tokens_per_minute=None), queue_window_s=100_000)
    a_backlog(desk, 2_000)
    noted = Noted(desk)
    desk.queues = noted  # type: ignore[assignment]
    counts = run(desk)
    assert counts["support.sent"] == pytest.approx(10 * (60 + HORIZON_S), rel=0.06)
    seconds = [noted.starts[second] for second in range(60)]
    assert sum(seconds) >= 590
    assert max(seconds) <= 12


def test_held_jobs_cost_no_write() -> None:
    """Whoever waits for its turn is not written again by any of the run's looks."""
    desk = Desk(account=an_account(requests_per_minute=60, tokens_per_minute=None), queue_window_s=100_000)
    a_backlog(desk, 200)
    before = {job.job_id: job.updated_at for job in desk.jobs.scan()}  # type: ignore[union-attr]
    run(desk, run_s=20)
    waiting = [job for job in desk.jobs.scan() if job.waits]  # type: ignore[union-attr]
    assert len(waiting) > 100
    assert all(job.updated_at == before[job.job_id] for job in waiting)  # type: ignore[union-attr]


def test_without_an_account_a_run_is_one_look() -> None:
    """Nothing to pace: no time passes."""
    desk = Desk(queue_window_s=100_000)
    a_backlog(desk, 50)
    began = desk.clock.now()
    assert run(desk)["support.sent"] == 50
    assert desk.clock.now() == began


def test_an_empty_lane_is_one_look() -> None:
    """A lane with an account and nothing waiting ends the run at once."""
    desk = Desk(account=an_account())
    began = desk.clock.now()
    run(desk)
    assert desk.clock.now() == began


def test_a_shut_account_is_given_one_probe_at_a_time() -> None:
    """During an outage about one job a second goes out, not the backlog; the gap before the next run has its own."""
    desk = Desk(account=an_account(requests_per_minute=6000, tokens_per_minute=None), queue_window_s=100_000)
    spec = desk.accounts["desk_account"]
    terms = desk.budget_ledger.read(spec).terms
    now_us = us_of(desk.clock.now())
    shut = feedback.shut_down(terms, feedback.OUTAGE, now_us, now_us)
    assert shut is not None
    desk.budget_ledger.change(spec, terms, shut)
    a_backlog(desk, 500)
    assert 55 <= run(desk, run_s=55)["support.sent"] <= 66


def test_a_promised_turn_stands_in_front() -> None:
    """A job with a turn of its own goes at it, although the line of the others is long."""
    desk = Desk(account=an_account(requests_per_minute=60, tokens_per_minute=None), queue_window_s=100_000)
    a_backlog(desk, 100)
    turn = desk.clock.now() + timedelta(seconds=10)
    desk.put(a_job(key="promised", due=turn, not_before_at=turn, permit_at=turn, blocked_by="budget:desk_account"))
    run(desk, run_s=20)
    assert desk.job(a_job(key="promised").job_id).job_id in desk.queued_messages()


def test_a_job_with_a_time_of_its_own_does_not_hold_up_the_others() -> None:
    """Due in three seconds, it takes its place in the pace, not the three seconds before it."""
    desk = Desk(account=an_account(requests_per_minute=60, tokens_per_minute=None), queue_window_s=100_000)
    later = desk.clock.now() + timedelta(seconds=3)
    desk.put(a_job(key="later", due=later, not_before_at=later))
    a_backlog(desk, 10)
    run(desk, run_s=10)
    assert len(desk.queued_messages()) >= 10


def test_a_turn_that_was_promised_is_kept_behind_a_long_backlog() -> None:
    """Refused a moment ago, a job stands in the index behind thousands that are due longer: it goes at its turn."""
    desk = Desk(account=an_account(requests_per_minute=60, tokens_per_minute=None), queue_window_s=100_000)
    a_backlog(desk, 400)
    desk.clock.advance(30)
    turn = desk.clock.now() + timedelta(seconds=3)
    promised = desk.put(a_job(key="promised", due=turn, not_before_at=turn, permit_at=turn))
    timed = desk.put(a_job(key="timed", due=turn, not_before_at=turn))
    run(desk, run_s=10)
    sent = desk.queued_messages()
    assert promised.job_id in sent
    assert timed.job_id not in sent


def test_jobs_that_cannot_go_yet_are_not_read() -> None:
    """A second of a run costs reads for what it gives out, not for what stands behind."""
    desk = Desk(account=an_account(requests_per_minute=600, tokens_per_minute=None), queue_window_s=100_000)
    a_backlog(desk, 2_000)
    counts = run(desk)
    assert counts["support.nominated"] <= counts["support.sent"] + 60


@pytest.mark.req("X9")
def test_lanes_that_share_an_account_come_first_in_turn() -> None:
    """Two lanes with a backlog each: both are given starts, neither less than a third."""
    desk = Desk(account=an_account(requests_per_minute=600, tokens_per_minute=None), queue_window_s=100_000)
    for name in ("alpha", "beta"):
        desk.add_lane(replace(desk.lane, name=name))
    for name in ("alpha", "beta"):
        for number in range(600):
            desk.put(a_job(lane=name, key=f"{name}-{number}", due=desk.clock.now(), blocked_by="budget:desk_account"))
    counts = run(desk)
    alpha, beta = counts["alpha.sent"], counts["beta.sent"]
    assert min(alpha, beta) >= (alpha + beta) / 3


@pytest.mark.req("X9")
def test_an_urgent_job_passes_the_line_and_many_do_not_starve_it() -> None:
    """Two hundred starts are promised: an urgent job goes within seconds; a flood of them takes half of the pace."""
    desk = Desk(account=an_account(requests_per_minute=60, tokens_per_minute=None), queue_window_s=100_000)
    spec, began = desk.accounts["desk_account"], desk.clock.now()
    desk.budget_ledger.reserve(spec, 200 * SECOND, not_before_us=us_of(began))
    urgent = desk.put(a_job(key="urgent", priority=0, due=began))
    assert desk.dispatch().sent == 1
    assert desk.queued_messages() == [urgent.job_id]
    for number in range(100):
        desk.put(a_job(key=f"flood-{number}", priority=0, due=began))
    assert 15 <= run(desk)["support.sent"] <= 35


def test_on_an_idle_account_a_small_burst_starts_at_once_and_then_at_its_pace() -> None:
    """Twelve jobs at one a second, no dispatcher in sight: admission gives each its second, and nobody waits in the
    table for the next minute; what comes after them stands behind."""
    desk = Desk(account=an_account(requests_per_minute=60, tokens_per_minute=None), queue_window_s=100_000)
    queues = Noted(desk)
    desk.queues = queues  # type: ignore[assignment]
    admitted = desk.admit(*[desk.put(a_job(key=f"event-{number}")) for number in range(12)])
    assert (admitted.sent, admitted.held) == (12, 0)
    assert max(queues.starts) <= 12
    assert max(queues.starts.values()) <= 4
    assert desk.budget_ledger.read(desk.accounts["desk_account"]).line_us > us_of(desk.clock.now())


def test_newcomers_go_behind_a_backlog() -> None:
    """Jobs wait in the table: a new one is not sent past them, although its account's line is short."""
    desk = Desk(account=an_account(requests_per_minute=60, tokens_per_minute=None), queue_window_s=100_000)
    first = desk.admit(*[desk.put(a_job(key=f"event-{number}")) for number in range(100)])
    assert first.held > 0
    desk.clock.advance(40)
    desk.viewer = desk.a_viewer()
    assert desk.admit(desk.put(a_job(key="new"))).held == 1
