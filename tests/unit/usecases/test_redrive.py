"""A redrive from its plan to its end: reviewed, gradual, stopping itself, and each job released once."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from shared.adapters.memory.vendor import Says
from shared.core import lifecycle, rate
from shared.core.effects import EffectState
from shared.core.errors import BadInput, RowMoved
from shared.core.job import Category, Status
from shared.core.plan import Fate, PlanState, Step
from shared.core.rate import SECOND, us_of
from shared.core.switches import Level
from tests.builders import an_account, an_effect_row
from tests.unit.usecases.redriving import ADA, BOB, CAUSE, RedriveDesk, a_session
from tests.vendors_and_tasks import VendorKind


# ------------------------------------------------------------------------------------------------- plan
def test_a_plan_freezes_what_is_meant() -> None:
    """The chosen jobs, oldest first, with a hash, who, why and until when; nothing is released."""
    desk = RedriveDesk()
    ids = desk.fail(3)
    plan = desk.plan(category=Category.AUTH).plan
    assert (plan.count, plan.requester, plan.cause, plan.state) == (3, ADA, CAUSE, PlanState.PLANNED)
    assert [entry.job_id for entry in desk.plans.manifest(plan.plan_id)] == ids
    assert plan.valid_until - plan.created_at == timedelta(hours=24)
    assert plan.chosen == {"category": "auth"}
    assert desk.statuses(ids) == ["failed"] * 3
    (event,) = desk.history.of("redrive/support", limit=5)
    assert (event.kind, event.by, event.detail["plan"]) == ("planned", ADA, plan.plan_id)


@pytest.mark.parametrize(
    ("choice", "says"),
    [
        ({"category": Category.POISON}, "no failed job matches of lane support: see `penstock dlq list support`"),
        ({"job_id": "nobody"}, "job nobody is no failed job of lane support"),
        ({"cause": "  fixed "}, "say what was wrong and how it was put right"),
        ({"cause": "x" * 501}, "at most 500"),
    ],
)
def test_a_plan_that_cannot_be_made(choice: dict[str, Any], says: str) -> None:
    """An empty cohort, a job that is no dead letter, no cause: a sentence that says what to do."""
    desk = RedriveDesk()
    desk.fail(1)
    with pytest.raises(BadInput, match=says):
        desk.plan(**choice)


@pytest.mark.req("C9")
@pytest.mark.fault("F3", "A1")
def test_jobs_that_must_not_be_replayed_are_left_out_by_name() -> None:
    """Beyond the effect horizon, or with an outcome nobody knows; a plan of nothing else is refused."""
    desk = RedriveDesk()
    old, open_, fine = desk.fail(3)
    (row,) = desk.rows(old)
    desk.effects._write("plant", replace(row, first_intent_at=row.first_intent_at - timedelta(days=381)))
    desk.effects.intend(an_effect_row(job_id=open_, name="tag"))
    planned = desk.plan()
    assert [entry.job_id for entry in desk.plans.manifest(planned.plan.plan_id)] == [fine]
    refused = dict(planned.refused)
    assert "380 days" in refused[old]
    assert "nobody knows" in refused[open_]
    with pytest.raises(BadInput, match=f"{open_} cannot be replayed: nobody knows"):
        desk.plan(job_id=open_)


# ---------------------------------------------------------------------------------------------- approve
@pytest.mark.req("C9")
@pytest.mark.fault("J6")
def test_a_plan_is_not_approved_by_its_author() -> None:
    """Somebody else must; the sentence says so, and the plan stays as it was."""
    desk = RedriveDesk()
    desk.fail(2)
    plan = desk.plan().plan
    with pytest.raises(BadInput, match="was requested by you: somebody else must approve it"):
        desk.approve(plan, by=ADA)
    assert desk.plans.get(plan.plan_id) == plan
    assert desk.approve(plan, by=BOB).approver == BOB


@pytest.mark.req("C9")
@pytest.mark.fault("J9", "J6")
def test_a_second_name_does_not_approve() -> None:
    """The author's own session of another role, and a session whose name anybody may choose: the plan stays planned."""
    desk = RedriveDesk()
    desk.fail(2)
    plan = desk.plan().plan
    with pytest.raises(BadInput, match="was requested by you"):
        desk.approve(plan, by=a_session("penstock-dev-approver", "ada"))
    with pytest.raises(BadInput, match=r"assumed-role/Admin/bob may have chosen its name.*penstock-dev-approver"):
        desk.approve(plan, by=a_session("Admin", "bob"))
    with pytest.raises(BadInput, match="must request it again"):
        desk.approve(desk.plan(by=a_session("Admin", "cat")).plan, by=ADA)
    assert desk.plans.get(plan.plan_id) == plan
    assert desk.approve(plan, by=a_session("penstock-dev-approver", "bob")).approver is not None


def test_one_person_may_for_a_few_where_the_lane_says_so() -> None:
    """As many as the lane's setting, and not one more."""
    desk = RedriveDesk(one_person_redrive=2)
    desk.fail(2)
    assert desk.approve(desk.plan().plan, by=ADA).approver == ADA
    desk.fail(1)
    with pytest.raises(BadInput, match="requested by you"):
        desk.approve(desk.plan().plan, by=ADA)


@pytest.mark.fault("J6")
def test_what_cannot_be_approved() -> None:
    """An expired plan, one with a changed manifest, an unknown one, one that was decided before."""
    desk = RedriveDesk()
    desk.fail(2)
    with pytest.raises(BadInput, match="does not exist in this stage: see `penstock redrive list"):
        desk.approve("nobody")
    changed = desk.plan().plan
    desk.plans._manifests[changed.plan_id][0]["jobs"]["L"].pop()
    with pytest.raises(BadInput, match="its manifest is not the one it was made with: make a new plan"):
        desk.approve(changed)
    plan = desk.plan().plan
    desk.approve(plan)
    with pytest.raises(BadInput, match="is approved: make a new plan"):
        desk.approve(plan, by=BOB.replace("bob", "cat"))
    expired = desk.plan().plan
    desk.clock.advance(24 * 3600)
    with pytest.raises(BadInput, match=r"expired at .*: make a new plan"):
        desk.approve(expired)


# ------------------------------------------------------------------------------------------------ start
@pytest.mark.req("C9")
def test_a_start_looks_at_everything_again() -> None:
    """Not approved, expired, a switch that is closed, a job that changed, an outcome that became unknown: refused."""
    desk = RedriveDesk()
    ids = desk.fail(3)
    plan = desk.plan().plan
    with pytest.raises(BadInput, match="is planned; it must be approved first"):
        desk.start(plan)
    desk.approve(plan)
    desk.close("lane/support", Level.NO_NEW_STARTS)
    with pytest.raises(BadInput, match="lane/support is no_new_starts: nothing would start"):
        desk.start(plan)
    desk.open("lane/support")
    desk.effects.intend(an_effect_row(job_id=ids[1], name="tag"))
    with pytest.raises(BadInput, match=f"{ids[1]} cannot be replayed"):
        desk.start(plan)
    job = desk.job(ids[0])
    desk.jobs.move(job, lifecycle.canceled(job, desk.lane, "x", desk.clock.now()))
    with pytest.raises(BadInput, match=f"{ids[0]} changed since it was planned: make a new plan"):
        desk.start(plan)
    desk.clock.advance(24 * 3600)
    with pytest.raises(BadInput, match="expired"):
        desk.start(plan)
    assert desk.plans.plan_of("support") is None
    assert desk.tick() == {}


@pytest.mark.fault("J6")
def test_a_manifest_that_was_changed_does_not_start() -> None:
    """Its hash is part of what was approved; the executor looks at it, too."""
    desk = RedriveDesk()
    desk.fail(2)
    plan = desk.started()
    other = desk.plan(by=BOB).plan
    desk.approve(other, by=ADA)
    for one in (plan, other):
        desk.plans._manifests[one.plan_id][0]["jobs"]["L"].reverse()
    with pytest.raises(BadInput, match="is not the one that was approved"):
        desk.start(other)
    desk.one_look()
    assert desk.ending(plan) == ("stopped", "manifest")
    assert desk.vendor.accepts == []


@pytest.mark.req("C9")
@pytest.mark.fault("F2")
def test_two_redrives_at_once_are_refused() -> None:
    """The second is told which plan has the lane; once that is over, it may start."""
    desk = RedriveDesk()
    desk.fail(2)
    first = desk.started()
    desk.fail(1, says=Says.REFUSE_PERMANENT)
    second = desk.plan(category=Category.VENDOR_PERMANENT).plan
    desk.approve(second)
    with pytest.raises(BadInput, match=f"{first.plan_id} has lane support: two redrives at once are refused"):
        desk.start(second)
    desk.tick()
    assert desk.ending(first) == ("finished", "")
    desk.start(second)
    desk.tick()
    assert desk.ending(second) == ("finished", "")


def test_a_start_that_died_half_way_can_be_given_again() -> None:
    """The lane is taken, the plan not yet running: the same start goes on, another plan's is refused until then."""
    desk = RedriveDesk()
    desk.fail(1)
    plan, other = desk.plan().plan, desk.plan().plan
    desk.approve(plan)
    desk.approve(other)
    assert desk.plans.take_lane("support", plan.plan_id) is None
    with pytest.raises(BadInput, match=plan.plan_id):
        desk.start(other)
    assert desk.tick() == {}
    assert desk.start(plan).state is PlanState.RUNNING


def test_a_plan_that_was_withdrawn_before_its_start_holds_nobody_up() -> None:
    """It has the lane and is over."""
    desk = RedriveDesk()
    desk.fail(1)
    plan, other = desk.plan().plan, desk.plan().plan
    desk.approve(other)
    desk.plans.take_lane("support", plan.plan_id)
    desk.abort(plan)
    assert desk.start(other).state is PlanState.RUNNING


# -------------------------------------------------------------------------------------------------- run
@pytest.mark.req("C9")
@pytest.mark.req("C10")
def test_a_redrive_from_its_canary_to_its_end() -> None:
    """One job, then ten, then the rest, five under way at most (a quarter of its twenty slots); each ends completed
    once, and what became of it is written down."""
    desk = RedriveDesk()
    ids = desk.fail(30)
    plan = desk.started()
    waves: list[int] = []

    def count_and_go_on(seconds: float) -> None:
        waves.append(sum(desk.job(one).plan_id is not None for one in ids))
        desk.meanwhile(seconds)

    desk.clock.on_sleep = count_and_go_on
    desk.tick()
    assert waves == [1, 6, 11, 16, 21, 26, 30]
    assert desk.statuses(ids) == ["completed"] * 30
    assert len(desk.vendor.accepts) == 30
    assert desk.ending(plan) == ("finished", "")
    assert desk.progress(plan).fates == dict.fromkeys(ids, Fate.COMPLETED)
    job = desk.job(ids[0])
    assert (job.replay_count, job.plan_id, job.attempt_count) == (1, plan.plan_id, 0)
    kinds = sorted(event.kind for event in desk.history.of("redrive/support", limit=9))
    assert kinds == ["approved", "finished", "planned", "started"]
    desk.clock.advance(60)
    desk.triage().run(desk.lane)
    assert desk.dead_letters.job_ids("support") == []


def test_a_run_without_a_plan_does_nothing() -> None:
    """One read, no step."""
    desk = RedriveDesk()
    desk.fail(2)
    assert desk.tick() == {}
    plan = desk.plan().plan
    desk.approve(plan)
    assert desk.tick() == {}
    assert desk.progress(plan).steps == ()


@pytest.mark.req("C9")
def test_a_replayed_job_whose_effects_are_all_recorded_is_already_done() -> None:
    """It ends `completed`, result `already_done`, and the vendor is not called."""
    desk = RedriveDesk()
    (job_id,) = desk.fail(1)
    (row,) = desk.rows(job_id)
    desk.effects._write("plant", replace(row, state=EffectState.ACCEPTED, vendor_id="v-1", reason=None))
    desk.started()
    desk.vendor.script.append(Says.REFUSE_PERMANENT)
    desk.tick()
    assert (desk.job(job_id).status, desk.job(job_id).result) == (Status.COMPLETED, "already_done")
    assert list(desk.vendor.script) == [Says.REFUSE_PERMANENT], "the vendor was asked"


@pytest.mark.fault("F5")
def test_it_stops_when_the_same_error_returns() -> None:
    """The canary relapses: one job was tried, the others are as they were, and the next run does nothing."""
    desk = RedriveDesk()
    ids = desk.fail(20)
    plan = desk.started()
    desk.vendor.script.append(Says.REFUSE_AUTH)
    desk.tick()
    assert desk.ending(plan) == ("stopped", "relapse")
    assert desk.progress(plan).fates == {ids[0]: Fate.RELAPSED}
    assert [desk.job(one).replay_count for one in ids] == [1, *[0] * 19]
    assert desk.tick() == {}
    assert len(desk.plans.steps(plan.plan_id)) == 1


@pytest.mark.fault("F5")
def test_it_stops_when_other_jobs_fail() -> None:
    """Dead letters of the lane grow by more than a few while it runs."""
    desk = RedriveDesk()
    desk.fail(3)
    plan = desk.started()
    desk.one_look()
    desk.go_on()
    desk.fail(12, says=Says.REFUSE_PERMANENT)
    desk.one_look()
    assert desk.ending(plan) == ("stopped", "dead_letters")


@pytest.mark.req("C11")
@pytest.mark.fault("F5")
def test_it_stops_while_its_account_is_shut() -> None:
    """An account that takes no calls: nobody is released, and the plan is over."""
    account = an_account(requests_per_minute=6000)
    desk = RedriveDesk(account=account)
    ids = desk.fail(2, says=Says.REFUSE_PERMANENT)
    desk.clock.advance(3600)
    plan = desk.started()
    seen = desk.budget_ledger.read(account).terms
    now_us = us_of(desk.clock.now())
    shut = rate.Shut(reason="errors", since_us=now_us, probe_us=now_us + 3600 * SECOND, probe_every_s=60)
    desk.budget_ledger.change(account, seen, replace(seen, version=seen.version + 1, shut=shut))
    desk.one_look()
    assert desk.ending(plan) == ("stopped", "shut")
    assert desk.statuses(ids) == ["failed", "failed"]


@pytest.mark.req("C11")
def test_it_waits_for_others() -> None:
    """A switch, a full queue or a quiet account: it waits and says for what, and goes on when that is over."""
    account = an_account(requests_per_minute=6000)
    desk = RedriveDesk(account=account)
    ids = desk.fail(1, says=Says.REFUSE_PERMANENT)
    desk.clock.advance(3600)
    plan = desk.started()
    desk.close("lane/support", Level.NO_NEW_STARTS)
    desk.one_look()
    assert desk.progress(plan).steps[-1].waits_for == "switches:lane/support"
    desk.open("lane/support")
    seen = desk.budget_ledger.read(account).terms
    until_us = us_of(desk.clock.now()) + 10 * SECOND
    desk.budget_ledger.change(account, seen, replace(seen, version=seen.version + 1, quiet_until_us=until_us))
    desk.one_look()
    step = desk.progress(plan).steps[-1]
    assert (step.waits_for, step.quiet) == ("budget:desk_account", 1)
    assert desk.statuses(ids) == ["failed"]
    desk.clock.advance(11)
    desk.tick()
    assert desk.ending(plan) == ("finished", "")


def test_a_run_that_only_waits_writes_one_step() -> None:
    """Minutes of waiting for the same thing are one row."""
    desk = RedriveDesk()
    desk.fail(1)
    plan = desk.started()
    desk.close("all", Level.DRAIN)
    for _ in range(5):
        desk.one_look()
    assert len(desk.plans.steps(plan.plan_id)) == 1


@pytest.mark.req("C9")
def test_an_abort_stops_new_releases_at_the_next_look() -> None:
    """Nothing more is released; the plan is over and says what was under way."""
    desk = RedriveDesk()
    ids = desk.fail(20)
    plan = desk.started()

    def go_on_and_abort(seconds: float) -> None:
        desk.meanwhile(seconds)
        desk.abort(plan)

    desk.clock.on_sleep = go_on_and_abort
    desk.tick()
    assert desk.ending(plan) == ("aborted", "aborted")
    assert desk.statuses(ids) == ["completed", *["failed"] * 19]
    with pytest.raises(BadInput, match="is over"):
        desk.abort(plan)
    again = desk.plan().plan
    desk.approve(again)
    assert desk.start(again).count == 19


@pytest.mark.fault("F2")
def test_a_job_that_changed_is_left_alone() -> None:
    """Dismissed between start and its turn: not released, and written down as changed."""
    desk = RedriveDesk()
    ids = desk.fail(3)
    plan = desk.started()
    job = desk.job(ids[1])
    desk.jobs.move(job, lifecycle.canceled(job, desk.lane, "x", desk.clock.now()))
    desk.jobs.expire(ids[2])
    desk.tick()
    assert desk.ending(plan) == ("finished", "")
    assert desk.progress(plan).fates == {ids[0]: Fate.COMPLETED, ids[1]: Fate.CHANGED, ids[2]: Fate.GONE}


@pytest.mark.fault("F2", "F7")
def test_a_release_is_written_once() -> None:
    """An executor that stood still and comes back with what it had read cannot release a job that failed again."""
    desk = RedriveDesk()
    (job_id,) = desk.fail(1)
    before = desk.job(job_id)
    late = lifecycle.replayed(before, "p", desk.clock.now())
    desk.jobs.move(before, late)
    failed = lifecycle.failed_unclaimed(desk.job(job_id), desk.lane, desk.clock.now(), Category.INFRASTRUCTURE, "x")
    desk.jobs.move(desk.job(job_id), failed)
    with pytest.raises(RowMoved):
        desk.jobs.move(before, late)
    assert desk.job(job_id).replay_count == 1


@pytest.mark.fault("F2")
def test_a_step_of_another_run_wins() -> None:
    """Two runs of one plan at once: the one whose step stands has the say, and no job goes twice."""
    desk = RedriveDesk()
    ids = desk.fail(1)
    plan = desk.started()
    desk.plans.add_step(plan.plan_id, Step(number=1, at=desk.clock.now(), tried=0))
    desk.plans._steps[plan.plan_id][0] = desk.plans._steps[plan.plan_id].pop(1)
    desk.tick()
    assert desk.job(ids[0]).replay_count == 1


@pytest.mark.fault("F6")
def test_a_key_that_is_older_than_the_vendors_window_is_not_sent_again() -> None:
    """The vendor deduplicates for 24 hours. A day and an hour later the outcome is unknown, and no plan takes it."""
    desk = RedriveDesk(kind=VendorKind.DEDUPES)
    (job_id,) = desk.fail(1)
    (row,) = desk.rows(job_id)
    desk.effects._write("plant", replace(row, state=EffectState.INTENT, recorded_at=None, reason=None))
    desk.clock.advance(25 * 3600)
    with pytest.raises(BadInput, match="nobody knows"):
        desk.plan(job_id=job_id)
    # Even released by force, the engine itself does not send it.
    job = desk.job(job_id)
    desk.jobs.move(job, lifecycle.replayed(job, "p", desk.clock.now()))
    desk.go_on()
    assert (desk.job(job_id).status, desk.job(job_id).category) == (Status.FAILED, Category.OUTCOME_UNKNOWN)
    assert desk.vendor.accepts == []


# -------------------------------------------------------------------------------------- console redrive
@pytest.mark.req("C9")
@pytest.mark.fault("F4")
def test_a_message_moved_without_a_plan_changes_nothing() -> None:
    """It meets its failed job and is acknowledged; no send; its dead letter stands again after one sweep."""
    desk = RedriveDesk()
    (job_id,) = desk.fail(1)
    job = desk.job(job_id)
    letter = desk.letter_of(job)
    assert desk.dead_letters.job_ids("support") == []
    for _ in range(2):
        assert desk.work(letter).value == "acknowledge"
    after = desk.job(job_id)
    assert (after.status, after.fence, after.expires_at) == (Status.FAILED, job.fence, job.expires_at)
    assert desk.vendor.accepts == []
    assert desk.restore_letters() == 1
    assert desk.dead_letters.job_ids("support") == [job_id]
    assert desk.job(job_id) == job
    assert desk.restore_letters() == 0


def test_a_ticket_of_a_failed_job_brings_no_second_letter() -> None:
    """An ordinary duplicate is acknowledged, and nothing is written."""
    desk = RedriveDesk()
    (job_id,) = desk.fail(1)
    assert desk.work(job_id).value == "acknowledge"
    assert desk.restore_letters() == 0
    assert desk.dead_letters.job_ids("support") == [job_id]


def test_a_job_without_its_letter_can_be_replayed() -> None:
    """Moved by a console and planned meanwhile: it is released like any other, and asks for no letter any more."""
    desk = RedriveDesk()
    (job_id,) = desk.fail(1)
    desk.work(desk.letter_of(desk.job(job_id)))
    plan = desk.started()
    desk.tick()
    assert desk.ending(plan) == ("finished", "")
    assert desk.restore_letters() == 0
    assert desk.auditor().run(repair=False).conserved


def test_the_auditor_leaves_it_to_the_sweeper() -> None:
    """A letter that the sweeper is asked for is not sent by both."""
    desk = RedriveDesk()
    (job_id,) = desk.fail(1)
    desk.work(desk.letter_of(desk.job(job_id)))
    desk.clock.advance(600)
    desk.auditor().run(repair=True)
    desk.restore_letters()
    assert desk.dead_letters.job_ids("support") == [job_id]
