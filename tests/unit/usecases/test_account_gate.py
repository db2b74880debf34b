"""The account gate in the stream consumer and the dispatcher: one account's trouble is nobody else's; the flag."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest

from shared.adapters.memory.budgets import MemoryBudgetLedger
from shared.adapters.memory.queues import MemoryLaneQueues
from shared.adapters.memory.stores import MemoryJobStore
from shared.core import feedback
from shared.core.account import AccountSpec
from shared.core.errors import Unavailable, UnreadableRow
from shared.core.job import Job, Status
from shared.core.message import Message
from shared.core.rate import SECOND, Budget, at_us, us_of
from shared.usecases.run_dispatch import run_dispatch
from shared.usecases.view import CACHED_S, Viewer
from tests.builders import a_job, a_lane, an_account
from tests.unit.usecases.desk import Desk

DESK, MODEL = an_account(), an_account(name="model", vendor="openai")


class Spoilt(MemoryBudgetLedger):
    """A ledger in which some accounts cannot be read or written."""

    def __init__(self, trouble: Exception) -> None:
        super().__init__()
        self.trouble = trouble
        self.accounts: set[str] = set()

    def read(self, spec: AccountSpec) -> Budget:
        """Raises for a spoilt account."""
        self._check(spec)
        return super().read(spec)

    def reserve(self, spec: AccountSpec, span_us: int, *, not_before_us: int, backlog_us: int = 0) -> int:
        """Raises for a spoilt account."""
        self._check(spec)
        return super().reserve(spec, span_us, not_before_us=not_before_us, backlog_us=backlog_us)

    def _check(self, spec: AccountSpec) -> None:
        if spec.name in self.accounts:
            raise self.trouble


TROUBLES = [UnreadableRow("BUDGET#model", "version is not a number"), Unavailable("budgets", "throttled")]


def two_lanes(trouble: Exception) -> tuple[Desk, Spoilt]:
    """Support spends the help desk's account, mail the model's."""
    desk = Desk(account=DESK)
    desk.accounts = {spec.name: spec for spec in (DESK, MODEL)}
    mail = a_lane(name="mail", vendors=("openai",), accounts=("model",))
    desk.lanes = {"support": desk.lane, "mail": mail}
    desk.jobs = MemoryJobStore(lanes=desk.lanes, clock=desk.clock)
    desk.queues = MemoryLaneQueues(clock=desk.clock, lanes=desk.lanes, dead_letters=desk.dead_letters)
    desk.budget_ledger = ledger = Spoilt(trouble)
    desk.viewer = desk.a_viewer()
    return desk, ledger


def run(desk: Desk) -> dict[str, int]:
    """One run of the dispatcher over every lane."""
    return run_dispatch(
        desk.lanes,
        period_s=60,
        stop_at=desk.clock.now() + timedelta(seconds=5),
        jobs=desk.jobs,
        queues=desk.queues,
        viewer=desk.viewer,
        clock=desk.clock,
        telemetry=desk.telemetry,
    )


@pytest.mark.fault("B12")
@pytest.mark.parametrize("trouble", TROUBLES, ids=lambda one: type(one).__name__)
def test_an_account_that_cannot_be_read_holds_up_its_own_jobs_only(trouble: Exception) -> None:
    """The stream goes on: the other lane's jobs are sent, this one's wait under the account's name; it is said once a
    look, and when the account can be read again they go."""
    desk, ledger = two_lanes(trouble)
    ledger.accounts = {"model"}
    jobs = [desk.put(a_job(key=f"{n}", lane=lane)) for n in range(3) for lane in ("mail", "support")]
    done = desk.admit(*jobs)
    assert (done.sent, done.held) == (3, 3)
    held = [desk.job(job.job_id) for job in jobs if job.lane == "mail"]
    assert {(job.status, job.blocked_by, job.attempt_count) for job in held} == {(Status.QUEUED, "budget:model", 0)}
    (said,) = desk.telemetry.named("budget_unreadable")
    assert (said.ids["account"], said.error) == ("model", type(trouble).__name__)
    desk.clock.advance(CACHED_S)
    assert run(desk)["mail.sent"] == 0
    ledger.accounts = set()
    assert run(desk)["mail.sent"] == 3


@pytest.mark.parametrize("trouble", TROUBLES, ids=lambda one: type(one).__name__)
def test_a_run_of_the_dispatcher_survives_an_account_it_cannot_read(trouble: Exception) -> None:
    """The lanes behind it in the run are served as always."""
    desk, ledger = two_lanes(trouble)
    ledger.accounts = {"desk_account"}
    for lane in ("support", "mail"):
        desk.put(a_job(lane=lane, due=desk.clock.now(), not_before_at=desk.clock.now()))
    counts = run(desk)
    assert (counts["support.sent"], counts["mail.sent"]) == (0, 1)


@pytest.mark.parametrize("trouble", TROUBLES, ids=lambda one: type(one).__name__)
def test_a_promise_that_cannot_be_written_is_lost_and_nothing_else(trouble: Exception) -> None:
    """The jobs are sent, the run ends well, and somebody is told."""
    desk = Desk(account=DESK)
    desk.budget_ledger = ledger = Spoilt(trouble)
    desk.viewer = desk.a_viewer()
    desk.put(a_job(due=desk.clock.now(), not_before_at=desk.clock.now()))
    desk.viewer.of("support")
    ledger.accounts = {"desk_account"}
    assert desk.dispatch().sent == 1
    assert [event.ids["account"] for event in desk.telemetry.named("budget_unreadable")] == ["desk_account"]
    ledger.accounts = set()
    desk.viewer.write_lines()
    assert ledger.read(DESK).line_us == 0


# ------------------------------------------------------------------------------------------------------- promises
def test_the_open_path_writes_nothing_to_an_account() -> None:
    """Admission counts what starts at once for its own next look, and tells nobody: no job costs a write for it."""
    desk = Desk(account=DESK)
    jobs = [desk.put(a_job(key=f"{n}")) for n in range(2)]
    assert desk.admit(*jobs).sent == 2
    desk.viewer.write_lines()
    assert desk.budget_ledger.writes == 0
    (account,) = desk.viewer.of("support").accounts
    assert account.line_us == us_of(desk.clock.now()) + 2 * SECOND


def test_a_batch_of_the_stream_that_promises_starts_tells_an_account_once() -> None:
    """What does not start at once stands in the account's line, one write for all of it; the next batch behind it."""
    desk = Desk(account=DESK)
    jobs = [desk.put(a_job(key=f"{n}")) for n in range(20)]
    assert desk.admit(*jobs).sent == 20
    assert desk.budget_ledger.writes == 1
    assert desk.budget_ledger.read(DESK).line_us > us_of(desk.clock.now()) + 10 * SECOND


def test_a_spent_account_gives_out_its_starts_one_by_one() -> None:
    """Jobs that come while it is spent are not all sent for the moment at which it has room again."""
    desk = Desk(account=DESK)
    desk.budget_ledger.spent(DESK, us_of(desk.clock.now() + timedelta(seconds=30)))
    sent: list[Message] = []
    desk.queues.send = lambda messages: sent.extend(messages) or []  # type: ignore[method-assign, func-returns-value]
    desk.admit(*[desk.put(a_job(key=f"{n}")) for n in range(40)])
    starts = Counter(message.delay_s for message in sent)
    assert len(sent) > 20
    assert max(starts.values()) <= 3, starts


def test_the_dispatcher_tells_an_account_once_what_it_promised() -> None:
    """One write a run, however many jobs; a run that promises nothing writes nothing."""
    desk = Desk(account=an_account(requests_per_minute=600))
    for n in range(20):
        desk.put(a_job(key=f"{n}", due=desk.clock.now()))
    assert desk.dispatch().sent == 20
    assert desk.budget_ledger.writes == 1
    assert desk.budget_ledger.read(desk.accounts["desk_account"]).line_us == us_of(desk.clock.now()) + 2 * SECOND
    desk.dispatch()
    assert desk.budget_ledger.writes == 1


def starts_of(desk: Desk, viewer: Viewer, count: int, every_s: float = 0.5) -> list[float]:
    """When a process gives out so many starts, in seconds from now; it tells the account after each."""
    began, starts = desk.clock.now(), []
    for number in range(count):
        job = a_job(key=f"{number}")
        (account,) = viewer.of("support").accounts
        start = max(desk.clock.now(), at_us(account.line_us))
        viewer.sent(job, start)
        viewer.left_behind(desk.lane)
        viewer.write_lines(paces=True)
        starts.append((start - began).total_seconds())
        desk.clock.advance(every_s)
    return starts


@pytest.mark.req("X3")
def test_a_backlog_is_promised_ten_seconds_at_once() -> None:
    """Sixty starts that are given out one by one cost a tenth as many writes, and stand a second apart."""
    desk = Desk(account=an_account(requests_per_minute=60, tokens_per_minute=None))
    starts = starts_of(desk, desk.viewer, 60)
    assert [later - start for start, later in pairwise(starts)] == [1.0] * 59
    assert desk.budget_ledger.writes <= 7


@pytest.mark.req("X3")
@pytest.mark.req("X9")
def test_no_part_of_a_line_is_promised_to_nobody() -> None:
    """Jobs come faster than an account takes them: admission promises the starts that it gives out, whichever process
    does it and however many batches follow, and the dispatcher goes on where it stopped. None of the pace is lost, and
    a write of the dispatcher's tells ten seconds of it."""
    desk = Desk(account=an_account(requests_per_minute=60, tokens_per_minute=None))
    began_us, sent = us_of(desk.clock.now()), 0
    for batch in range(20):
        desk.viewer = desk.a_viewer() if batch % 5 == 0 else desk.viewer
        sent += desk.admit(*[desk.put(a_job(key=f"{batch}-{n}")) for n in range(10)]).sent
    assert sent >= 60
    assert desk.viewer.backlog(desk.lane)
    line_us = desk.budget_ledger.read(desk.accounts["desk_account"]).line_us
    assert line_us <= began_us + sent * SECOND
    desk.clock.advance(58)
    desk.viewer, writes = desk.a_viewer(), desk.budget_ledger.writes
    for second in range(30):
        sent += desk.dispatch().sent
        assert us_of(desk.clock.now()) + 3 * SECOND <= began_us + sent * SECOND, f"idle after {second} s"
        desk.clock.advance(1)
        desk.viewer.look_again()
    assert desk.budget_ledger.writes - writes <= 4


@pytest.mark.req("X9")
def test_who_is_refused_at_a_fast_account_stands_close_behind_the_backlog() -> None:
    """What is promised ahead is a few calls there, not ten seconds: the last jobs of a backlog wait for no starts that
    nobody uses. A write still serves a second's starts."""
    desk = Desk(account=an_account(requests_per_minute=3_000, tokens_per_minute=None))
    spec, last = desk.accounts["desk_account"], desk.clock.now()
    for number in range(100):
        (account,) = desk.viewer.of("support").accounts
        last = max(desk.clock.now(), at_us(account.line_us))
        desk.viewer.sent(a_job(key=f"{number}"), last)
    desk.viewer.left_behind(desk.lane)
    desk.viewer.write_lines(paces=True)
    assert desk.budget_ledger.writes == 1
    assert desk.budget_ledger.read(spec).line_us <= us_of(last) + SECOND // 2


@pytest.mark.req("X3")
def test_a_backlog_is_told_with_the_line_and_ends_with_the_backlog() -> None:
    """While jobs wait it costs no write of its own; once nobody waits, starts that are promised do not keep it up."""
    desk = Desk(account=an_account(requests_per_minute=20, tokens_per_minute=None))
    starts_of(desk, desk.viewer, 60, every_s=3.0)
    assert desk.budget_ledger.writes <= 16
    desk.clock.advance(100)
    for _ in range(3):
        assert not desk.viewer.backlog(desk.lane)
        desk.viewer.of("support")
        desk.viewer.sent(a_job(), desk.clock.now() + timedelta(seconds=5))
        desk.viewer.write_lines()
    assert not desk.viewer.backlog(desk.lane)


@pytest.mark.req("X4")
def test_no_start_of_a_block_is_anybody_elses() -> None:
    """Two processes that each promise what comes next: all starts differ, and together they leave no second out."""
    desk = Desk(account=an_account(requests_per_minute=60, tokens_per_minute=None))
    other = desk.a_viewer()
    starts = [start for _ in range(4) for viewer in (desk.viewer, other) for start in starts_of(desk, viewer, 6)]
    began = [number // 6 * 3.0 for number in range(len(starts))]
    at = sorted(round(start + begin, 3) for start, begin in zip(starts, began, strict=True))
    assert all(later - start >= 1.0 for start, later in pairwise(at)), at


# ------------------------------------------------------------------------------------------------------- the flag
def a_backlog(desk: Desk, count: int) -> list[Job]:
    return [desk.put(a_job(key=f"{n}")) for n in range(count)]


def flag(desk: Desk, enforced: bool | None) -> None:
    """An operator's word, live."""
    terms = desk.budget_ledger.read(DESK).terms
    now_us = us_of(desk.clock.now())
    desk.budget_ledger.change(DESK, terms, feedback.changed(terms, now_us, enforced=enforced))
    desk.clock.advance(CACHED_S)


@pytest.mark.req("X8")
def test_turned_off_in_the_configuration_admission_lets_everything_through() -> None:
    """`enforced: false`: a spent account holds nobody; the same account enforced holds all of them."""
    until_us = us_of(Desk().clock.now() + timedelta(hours=1))
    for enforced, sent in ((True, 0), (False, 5), (True, 0)):
        spec = replace(DESK, enforced=enforced)
        desk = Desk(account=spec)
        desk.budget_ledger.spent(spec, until_us)
        assert desk.admit(*a_backlog(desk, 5)).sent == sent


@pytest.mark.req("X8")
def test_turned_off_live_the_waiting_jobs_go_and_turned_on_the_next_ones_wait() -> None:
    """No deploy either way, and what went while it was off is not counted against those who come after."""
    desk = Desk(account=DESK)
    desk.budget_ledger.spent(DESK, us_of(desk.clock.now() + timedelta(seconds=63)))
    waiting = a_backlog(desk, 100)
    assert desk.admit(*waiting).held == 100
    flag(desk, enforced=False)
    assert desk.dispatch().sent == 100
    flag(desk, enforced=True)
    late = desk.put(a_job(key="late"))
    assert desk.admit(late).held == 1
    desk.clock.advance(58)
    desk.viewer.look_again()
    assert desk.dispatch().sent == 1, "the hundred that went while nobody counted do not stand in front of it"
