"""A task that does not call a vendor is not held by it: not by its switch, not by its account, and it costs no look."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.adapters.memory.budgets import MemoryBudgetLedger
from shared.adapters.memory.vendor import Says
from shared.core.account import AccountSpec
from shared.core.admission import admit
from shared.core.errors import BadInput
from shared.core.job import Job, Status
from shared.core.message import QueueDepth
from shared.core.plan import PlanState
from shared.core.rate import SECOND, Budget, us_of
from shared.core.switches import Level
from shared.usecases.audit import UNTOUCHED_S, Fault
from shared.usecases.dispatch import LOOKS_PAST
from shared.usecases.explain import explain
from shared.usecases.run_attempt import Answer
from tests.builders import a_job, a_lane, an_account
from tests.unit.usecases.desk import Desk
from tests.unit.usecases.redriving import RedriveDesk
from tests.unit.usecases.watch import QUIET, Watch

DESK, MODEL = an_account(), an_account(name="model", vendor="openai")
LANE: dict[str, Any] = {"vendors": ("helpdesk", "openai"), "task_vendors": {"reply": ("helpdesk",)}}


task_vendors = st.dictionaries(st.sampled_from(["a", "b", "c"]), st.sampled_from([("x",), ("y",), ("x", "y"), ()]))


class Watched(MemoryBudgetLedger):
    """Knows which accounts were read."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def read(self, spec: AccountSpec) -> Budget:
        self.seen.append(spec.name)
        return super().read(spec)


def a_desk(kind: type[Desk] = Desk) -> Any:
    """`reply` calls the help desk alone, `ask_and_reply` the model, too."""
    desk = kind(**LANE, account=DESK)
    desk.accounts = {spec.name: spec for spec in (DESK, MODEL)}
    object.__setattr__(desk.lane, "accounts", tuple(desk.accounts))
    desk.budget_ledger = Watched()
    desk.viewer = desk.a_viewer()
    return desk


def both(desk: Desk, **more: Any) -> list[Job]:
    return [desk.put(a_job(task=task, **more)) for task in ("reply", "ask_and_reply")]


def spend(desk: Any) -> None:
    """Starts at the model's account are promised for ten minutes."""
    desk.budget_ledger.reserve(MODEL, 600 * SECOND, not_before_us=us_of(desk.clock.now()))
    desk.budget_ledger.seen.clear()


@pytest.mark.parametrize("level", [Level.NO_NEW_STARTS, Level.DRAIN, Level.HALT])
def test_a_closed_vendor_holds_the_tasks_that_call_it(level: Level) -> None:
    """At admission, and at the claim of a message that was sent before."""
    desk = a_desk()
    jobs = both(desk)
    desk.close("vendor/openai", level)
    assert (desk.admit(*jobs).sent, desk.job(jobs[1].job_id).blocked_by) == (1, "switches:vendor/openai")
    assert desk.queued_messages() == [jobs[0].job_id]
    if level >= Level.DRAIN:
        other = desk.put(a_job(task="ask_and_reply", key="sent"))
        assert [desk.work(jobs[0]), desk.work(other)] == [Answer.ACKNOWLEDGE] * 2
        assert desk.job(jobs[0].job_id).status is Status.COMPLETED
        held = desk.job(other.job_id)
        assert (held.status, held.blocked_by, held.attempt_count) == (Status.QUEUED, "switches:vendor/openai", 0)


def test_a_vendor_that_all_tasks_call_holds_them_before_any_claim() -> None:
    """One write, no fence raised."""
    desk = a_desk()
    jobs = both(desk)
    desk.close("vendor/helpdesk", Level.DRAIN)
    for job in jobs:
        assert desk.work(job) is Answer.ACKNOWLEDGE
        after = desk.job(job.job_id)
        assert (after.blocked_by, after.fence) == ("switches:vendor/helpdesk", 0)


@pytest.mark.fault("B12")
def test_an_account_that_is_spent_holds_the_tasks_that_spend_it() -> None:
    """In the stream consumer and in `jobs why`; the others do not even look at it."""
    desk = a_desk()
    spend(desk)
    jobs = both(desk)
    assert desk.admit(jobs[0]).sent == 1
    assert set(desk.budget_ledger.seen) == {"desk_account"}
    assert (desk.admit(jobs[1]).sent, desk.job(jobs[1].job_id).blocked_by) == (0, "budget:model")
    desk.clock.advance(3)
    depth, now = QueueDepth(visible=0, in_flight=0), desk.clock.now()
    said = [explain(job, desk.viewer.of("support", job.task), [], depth, now).verdict for job in jobs]
    assert [one.blocked.gate if one.blocked else None for one in said] == [None, "budget"]


def stand(desk: Any, task: str, count: int, since_s: int, **more: Any) -> list[Job]:
    """Jobs of a task that wait in the table since so many seconds."""
    at = desk.clock.now() - timedelta(seconds=since_s)
    more = {"due": at, "created_at": at, "blocked_by": "budget:model", **more}
    return [desk.put(a_job(task=task, key=f"{task}-{since_s}-{number:03d}", **more)) for number in range(count)]


@pytest.mark.req("X4")
def test_a_slow_accounts_jobs_hide_no_fast_ones() -> None:
    """However many wait before them, whatever their priority: one of the slow line is read, and costs no write."""
    desk = a_desk()
    spend(desk)
    stand(desk, "ask_and_reply", 300, 9, priority=1)
    free = stand(desk, "reply", 2, 1)
    done = desk.dispatch(limit=20)
    assert (done.sent, done.nominated) == (2, 3)
    assert sorted(desk.queued_messages()) == sorted(job.job_id for job in free)
    assert desk.dispatch(limit=20).paced


@pytest.mark.req("X8")
def test_who_stands_in_the_line_of_before_is_not_forgotten() -> None:
    """Jobs that waited before their task had a line of its own go out first; a few are looked past for each other."""
    desk = a_desk()
    spend(desk)
    own = dict(desk.lane.task_vendors)
    object.__setattr__(desk.lane, "task_vendors", {})
    stand(desk, "ask_and_reply", LOOKS_PAST, 9)
    before = stand(desk, "reply", 1, 8)
    object.__setattr__(desk.lane, "task_vendors", own)
    after = stand(desk, "reply", 1, 7)
    assert desk.dispatch().sent == 2
    assert desk.queued_messages() == [before[0].job_id, after[0].job_id]


def test_a_lane_whose_tasks_become_alike_forgets_no_line() -> None:
    """The other way round: what stands in the line of its task is looked at, whatever the tasks call."""
    desk = a_desk()
    stand(desk, "reply", 2, 9)
    object.__setattr__(desk.lane, "task_vendors", {})
    assert desk.dispatch().sent == 2


def test_the_line_of_a_task_that_is_gone_is_left_by_an_audit() -> None:
    """An hour later its jobs stand in the line of all, where they are taken like any of a task that nobody knows."""
    desk = a_desk()
    (job,) = stand(desk, "reply", 1, 9)
    object.__setattr__(desk.lane, "task_vendors", {"ask_and_reply": ("openai",)})
    object.__setattr__(desk.lane, "tasks", ("ask_and_reply", "tag"))
    assert desk.dispatch().sent == 0
    desk.clock.advance(UNTOUCHED_S)
    (finding,) = desk.auditor().run(repair=True).findings
    assert (finding.job_id, finding.fault, finding.repaired) == (job.job_id, Fault.NOT_IN_LINE, True)
    assert desk.dispatch().sent == 1


@given(before=task_vendors, after=task_vendors, task=st.sampled_from(["a", "b", "c", "d"]))
def test_no_change_of_what_tasks_call_hides_a_job(
    before: dict[str, tuple[str, ...]], after: dict[str, tuple[str, ...]], task: str
) -> None:
    """Whatever line it was put in, the lane looks there afterwards; and who stands in one line is held alike."""
    lane, later = (a_lane(tasks=("a", "b", "c"), vendors=("x", "y"), task_vendors=each) for each in (before, after))
    job = a_job(task=task)
    assert lane.line_of(job) in later.lines
    if before:
        others = [a_job(task=other) for other in ("a", "b", "c") if lane.vendors_of(other) != lane.vendors_of(task)]
        assert all(lane.line_of(other) != lane.line_of(job) for other in others)


def test_a_lane_whose_tasks_are_alike_does_not_look_past_a_full_line() -> None:
    """Behind the first whose turn is too far off nobody is read: that is what keeps a long backlog cheap."""
    desk = Desk(account=DESK)
    desk.budget_ledger.reserve(DESK, 600 * SECOND, not_before_us=us_of(desk.clock.now()))
    for number in range(20):
        desk.put(a_job(key=f"{number}", due=desk.clock.now(), not_before_at=desk.clock.now()))
    assert desk.dispatch().nominated == 1


def test_a_replay_is_refused_by_the_vendors_of_its_own_jobs() -> None:
    """A plan of jobs that never call the model starts while the model is closed."""
    for closed, starts in (("vendor/openai", True), ("vendor/helpdesk", False)):
        desk = a_desk(RedriveDesk)
        desk.fail(1, Says.REFUSE_PERMANENT)
        plan = desk.plan().plan
        desk.approve(plan)
        desk.close(closed, Level.HALT)
        if starts:
            assert desk.start(plan).state is PlanState.RUNNING
        else:
            with pytest.raises(BadInput, match=closed):
                desk.start(plan)


def test_the_gates_ask_for_the_jobs_own_task() -> None:
    """The same view of the whole lane gives each task its own verdict of the switches."""
    desk = a_desk()
    desk.close("vendor/openai", Level.HALT)
    view = desk.viewer.of("support")
    said = [admit(job, view, desk.clock.now()).gates[0].open for job in (a_job(), a_job(task="ask_and_reply"))]
    assert said == [True, False]


def test_a_halt_on_a_vendor_that_some_tasks_never_call_leaves_the_source_on() -> None:
    """One that all tasks call disables it, as a halt on the lane does."""
    for scope, enabled in (("vendor/openai", True), ("vendor/helpdesk", False), ("lane/support", False)):
        watch = Watch(**LANE)
        watch.desk.close(scope, Level.HALT)
        watch.look()
        assert watch.source.enabled is enabled, scope


@pytest.mark.req("C6")
@pytest.mark.parametrize(("scope", "raised"), [("", True), ("vendor/openai", False), ("vendor/helpdesk", False)])
def test_what_a_closed_vendor_holds_does_not_raise_the_cap(scope: str, raised: bool) -> None:
    """Its jobs grow old on purpose, whether all tasks call it or some; without it, old jobs do raise the cap."""
    watch = Watch(**LANE)
    if scope:
        watch.desk.close(scope, Level.NO_NEW_STARTS)
    watch.backlog()
    for _ in range(6):
        watch.saw(QUIET)
        watch.look()
    assert (watch.state.cap > watch.desk.lane.baseline) is raised
