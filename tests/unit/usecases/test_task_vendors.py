"""A task that does not call a vendor is not held by it: not by its switch, not by its account, and it costs no look."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

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
from shared.usecases.dispatch import LOOKS_PAST
from shared.usecases.explain import explain
from shared.usecases.run_attempt import Answer
from tests.builders import a_job, an_account
from tests.unit.usecases.desk import Desk
from tests.unit.usecases.redriving import RedriveDesk
from tests.unit.usecases.watch import QUIET, Watch

DESK, MODEL = an_account(), an_account(name="model", vendor="openai")
LANE: dict[str, Any] = {"vendors": ("helpdesk", "openai"), "task_vendors": {"reply": ("helpdesk",)}}


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


def test_a_job_behind_a_full_line_of_another_task_goes_on() -> None:
    """The dispatcher looks past jobs whose account is spent, a few of them; they wait, and cost no write."""
    desk = a_desk()
    spend(desk)
    at = desk.clock.now() - timedelta(seconds=1)
    held = "budget:model"
    for number in range(LOOKS_PAST):
        desk.put(a_job(task="ask_and_reply", key=f"a-{number:02d}", due=at, created_at=at, blocked_by=held))
    free = desk.put(a_job(key="z", due=desk.clock.now(), created_at=desk.clock.now(), blocked_by="backoff"))
    done = desk.dispatch()
    assert (done.sent, desk.queued_messages()) == (1, [free.job_id])


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
