"""A native redrive: SQS moves every dead letter of the lane at a rate; reviewed, throttled, and stopping itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from shared.adapters.memory.vendor import Says
from shared.contract import envelope
from shared.core import lifecycle
from shared.core.errors import BadInput
from shared.core.job import NATIVE, Category, Status
from shared.core.native import MoveState
from shared.core.plan import Fate
from shared.core.switches import Level
from shared.usecases.run_attempt import Answer
from tests.builders import a_job, an_effect_row
from tests.unit.usecases.native import Native
from tests.unit.usecases.redriving import RedriveDesk


# ------------------------------------------------------------------------------------------------- plan
@pytest.mark.req("C10")
def test_a_native_plan_is_every_dead_letter_at_a_rate() -> None:
    """With the rate that was asked for, kept with the plan; nothing is released yet."""
    desk = Native()
    ids = desk.ready(3)
    planned = desk.plan_native(rate=7)
    stored = desk.plans.get(planned.plan.plan_id)
    assert stored is not None
    assert (stored.rate, stored.count) == (7, 3)
    assert desk.statuses(ids) == ["failed"] * 3
    assert desk.moves.started == 0


def _filtered(desk: Native) -> dict[str, Any]:
    return {"category": Category.AUTH}


def _unknown(desk: Native) -> dict[str, Any]:
    desk.effects.intend(an_effect_row(job_id=desk.failed[0], name="tag"))
    return {}


def _unreadable(desk: Native) -> dict[str, Any]:
    desk.dead_letters.add(desk.lane.name, "not ours")
    return {}


def _another(desk: Native) -> dict[str, Any]:
    done = desk.put(a_job(key="done", status=Status.COMPLETED))
    desk.dead_letters.add(desk.lane.name, envelope.encode_ticket(done.job_id, desk.lane.name))
    return {}


def _looked_at(desk: Native) -> dict[str, Any]:
    desk.dead_letters.receive(desk.lane.name, limit=1, hide_s=45)
    return {}


def _not_all_seen(desk: Native) -> dict[str, Any]:
    letters = desk.dead_letters
    receive = letters.receive
    desk.dead_letters = _Some(letters, lambda *args, **more: receive(*args, **more)[:-1])  # type: ignore[assignment]
    return {}


def _one_is_missing(desk: Native) -> dict[str, Any]:
    desk.letter_of(desk.job(desk.failed[0]))  # type: ignore[attr-defined]
    return {}


class _Some:
    """A queue of which one look does not see everything."""

    def __init__(self, target: Any, receive: Any) -> None:
        self._target, self.receive = target, receive

    def __getattr__(self, name: str) -> Any:
        return getattr(self._target, name)


def _not_held(desk: Native) -> dict[str, Any]:
    desk.pin(cap=desk.lane.baseline + 1)
    return {}


def _held_too_shortly(desk: Native) -> dict[str, Any]:
    desk.pin(minutes=4)
    return {}


def _no_canary(desk: Native) -> dict[str, Any]:
    desk.fail(1, says=Says.REFUSE_PERMANENT)
    return {}


def _old_canary(desk: Native) -> dict[str, Any]:
    desk.clock.advance(25 * 3600)
    desk.pin()
    return {}


@pytest.mark.req("C10")
@pytest.mark.fault("F4")
@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (_filtered, "leave the filters out"),
        (_unknown, "1 must not be replayed, as .* `penstock jobs resolve` it first"),
        (_unreadable, "1 messages cannot be read: triage puts them into quarantine"),
        (_another, "letters of other jobs do: "),
        (_looked_at, "somebody looks at 1 dead letters; try in a minute"),
        (_not_all_seen, "2 of 3 dead letters could be looked at; try in a minute"),
        (_one_is_missing, "the letters of .* do not: letters that are missing are sent again"),
        (_not_held, "held at its baseline cap of 2 until .* `penstock capacity pin support 2 --for 15m"),
        (_held_too_shortly, "held at its baseline cap of 2 until"),
        (_no_canary, "has no canary: replay one job with the error vendor_permanent/.* --job "),
        (_old_canary, "has no canary"),
    ],
)
def test_a_native_plan_that_a_move_task_would_not_keep_to(spoil: Any, says: str) -> None:
    """Left-out jobs, strange letters, a cap not held, an error not shown to be gone: refused, and what to do."""
    desk = Native()
    desk.failed = desk.ready(3)  # type: ignore[attr-defined]
    choice = spoil(desk)
    with pytest.raises(BadInput, match=says):
        desk.plan_native(**choice)


@pytest.mark.req("C10")
@pytest.mark.parametrize(("rate", "says"), [(0, "1 to 500"), (501, "1 to 500")])
def test_a_rate_that_sqs_does_not_know(rate: int, says: str) -> None:
    """At most 500 letters a second, at least one."""
    desk = Native()
    desk.ready(1)
    with pytest.raises(BadInput, match=says):
        desk.plan_native(rate=rate)


@pytest.mark.req("C11")
def test_the_start_looks_again() -> None:
    """A cap that was let go, or a dead letter more, since the plan was made: refused."""
    desk = Native()
    desk.ready(3)
    plan = desk.plan_native().plan
    desk.approve(plan)
    desk.pin(cap=desk.lane.baseline + 2)
    with pytest.raises(BadInput, match="held at its baseline"):
        desk.start_native(plan)
    desk.pin()
    desk.fail(1)
    with pytest.raises(BadInput, match="letters of other jobs do"):
        desk.start_native(plan)
    assert desk.moves.started == 0


# -------------------------------------------------------------------------------------------------- run
@pytest.mark.req("C10")
def test_a_native_redrive_to_its_end() -> None:
    """Every row first, then one move task at the plan's rate; every letter's job completes, and all of it is told."""
    desk = Native()
    ids = desk.ready(25)
    plan = desk.started_native(rate=5)
    before = desk.clock.now()
    desk.tick()
    desk.tick()
    assert desk.ending(plan) == ("finished", "")
    assert desk.progress(plan).fates == dict.fromkeys(ids, Fate.COMPLETED)
    assert [desk.job(job_id).replay_count for job_id in ids] == [1] * 25
    assert desk.moves.started == 1
    (task,) = desk.moves.of("support")
    assert (task.state, task.rate, task.moved) == (MoveState.COMPLETED, 5, 25)
    assert (desk.clock.now() - before).total_seconds() >= 5
    assert desk.dead_letters.depth("support").total == 0


@pytest.mark.req("C10")
@pytest.mark.fault("F7")
def test_rows_come_before_the_move() -> None:
    """While a row is still to be released there is no task; the stream sends none of them."""
    desk = Native()
    desk.ready(150)
    plan = desk.started_native()
    desk.one_look()
    assert desk.progress(plan).tried == 100
    assert desk.moves.started == 0
    desk.go_on()
    assert desk.queues.depth("support").total == 0
    rows = [job for job in desk.jobs.scan() if not isinstance(job, Exception)]
    assert sum(job.route == NATIVE and job.status is Status.QUEUED for job in rows) == 100
    desk.one_look()
    assert (desk.progress(plan).tried, desk.moves.started) == (150, 0)
    desk.one_look()
    assert desk.moves.started == 1


@pytest.mark.fault("F7")
def test_triage_leaves_the_letter_of_a_released_job_alone() -> None:
    """It is that job's ticket. One whose job was released the other way is of no use any more, and no failure."""
    native, other = Native(), RedriveDesk()
    (first,) = native.ready(1)
    native.started_native()
    native.one_look()
    native.triage().run(native.lane)
    assert native.statuses([first]) == ["queued"]
    assert native.dead_letters.depth("support").total == 1
    (second,) = other.fail(1)
    other.started()
    other.one_look()
    other.triage().run(other.lane)
    assert other.statuses([second]) == ["queued"]
    assert other.dead_letters.depth("support").total == 0


@pytest.mark.req("C10")
@pytest.mark.fault("F5")
def test_an_abort_cancels_the_move_and_takes_back_what_was_not_moved() -> None:
    """Nothing more is replayed: the rest stands as it stood, with its category, its error and its one letter."""
    desk = Native()
    ids = desk.ready(20)
    before = {job_id: desk.job(job_id) for job_id in ids}
    plan = desk.started_native(rate=1)
    desk.tick(run_s=5)
    desk.abort(plan)
    desk.tick(run_s=5)
    assert desk.ending(plan) == ("aborted", "aborted")
    (task,) = desk.moves.of("support")
    assert task.state is MoveState.CANCELLED
    desk.go_on()
    fates = desk.progress(plan).fates
    back = [job_id for job_id in ids if fates.get(job_id) is Fate.WITHDRAWN]
    assert 0 < len(back) < 20
    for job_id in back:
        job, was = desk.job(job_id), before[job_id]
        assert (job.status, job.category, job.signature, job.last_error_at, job.route) == (
            *(Status.FAILED, was.category, was.signature, was.last_error_at),
            None,
        )
    # One that was moved and not claimed yet has asked for itself.
    desk.restore_letters()
    assert sorted(desk.dead_letters.job_ids("support")) == sorted(back)
    assert {desk.job(job_id).status for job_id in ids if job_id not in back} == {Status.COMPLETED}


@pytest.mark.fault("F5")
def test_another_manifest_takes_back_what_was_released() -> None:
    """It is not the one that was approved: nothing is moved, and no row is left queued without a ticket."""
    desk = Native()
    ids = desk.ready(5)
    plan = desk.started_native()
    desk.one_look()
    assert desk.statuses(ids) == ["queued"] * 5
    manifest = desk.plans.manifest(plan.plan_id)
    changed = (*manifest[:-1], replace(manifest[-1], fence=99))
    desk.plans.manifest = lambda plan_id: changed  # type: ignore[method-assign]
    desk.one_look()
    assert desk.ending(plan) == ("stopped", "manifest")
    assert (desk.statuses(ids), desk.moves.started) == (["failed"] * 5, 0)


@pytest.mark.fault("F5")
@pytest.mark.parametrize("says", [Says.REFUSE_AUTH, Says.REFUSE_PERMANENT])
def test_a_native_redrive_stops_itself(says: Says) -> None:
    """A job that fails again, with the same error or another one: the move is cancelled, the rest taken back."""
    desk = Native()
    ids = desk.ready(30)
    plan = desk.started_native(rate=1)
    desk.vendor.script.extend([says])
    desk.tick()
    ending, why = desk.ending(plan)
    assert (ending, why) == ("stopped", "relapse" if says is Says.REFUSE_AUTH else "failures")
    (task,) = desk.moves.of("support")
    assert task.state is MoveState.CANCELLED
    assert desk.statuses(ids).count("failed") > 20


@pytest.mark.req("C10")
@pytest.mark.fault("F5")
@pytest.mark.parametrize("scope", ["lane/support", "task/support/reply", "tenant/support/tenant-1"])
def test_a_switch_that_lets_nobody_start_stops_the_move(scope: str) -> None:
    """The lane's, the task's or the tenant's: the move is cancelled, the rest taken back, and nothing is withheld. A
    start under such a switch is refused."""
    desk = Native()
    ids = desk.ready(60)
    plan = desk.plan_native(1).plan
    desk.approve(plan)
    desk.close(scope, Level.NO_NEW_STARTS)
    with pytest.raises(BadInput, match=f"{scope} is no_new_starts"):
        desk.start_native(plan)
    desk.open(scope)
    desk.start_native(plan)
    desk.tick(run_s=5)
    desk.close(scope, Level.NO_NEW_STARTS)
    desk.tick(run_s=5)
    assert desk.ending(plan) == ("stopped", "closed")
    (task,) = desk.moves.of("support")
    assert task.state is MoveState.CANCELLED
    desk.go_on()
    assert all(desk.job(job_id).withheld is None for job_id in ids)
    assert desk.statuses(ids).count("failed") > 5
    assert set(desk.statuses(ids)) <= {"failed", "completed", "queued"}


@pytest.mark.req("C10")
@pytest.mark.parametrize("scope", ["lane/support", "task/support/reply", "tenant/support/tenant-1"])
def test_a_moved_letter_waits_while_nobody_may_start(scope: str) -> None:
    """Its job asked no gate on its way: the worker holds it with the switch's name, and it runs when that is open."""
    desk = Native()
    (one,) = desk.ready(1)
    job = desk.job(one)
    desk.jobs.move(job, lifecycle.replayed(job, "p1", desk.clock.now(), route=NATIVE))
    desk.close(scope, Level.NO_NEW_STARTS)
    assert desk.work(desk.letter_of(desk.job(one))) is Answer.ACKNOWLEDGE
    held = desk.job(one)
    assert (held.status, held.blocked_by, held.waits, held.route) == (Status.QUEUED, f"switches:{scope}", True, None)
    desk.open(scope)
    desk.dispatch()
    desk.go_on()
    assert (desk.job(one).status, desk.job(one).withheld) == (Status.COMPLETED, None)


@pytest.mark.fault("F7")
@pytest.mark.parametrize("after", [1, 5])
def test_what_a_failed_task_leaves_behind_goes_on(after: int) -> None:
    """A task that fails half-way, or letters that somebody looked at: their jobs wait in the index like any other."""
    desk = Native()
    ids = desk.ready(10)
    plan = desk.started_native()
    desk.moves.fails_after = after
    for _ in range(3):
        desk.tick(run_s=20)
        desk.dispatch()
        desk.go_on()
    assert desk.ending(plan) == ("finished", "")
    assert desk.progress(plan).fates == dict.fromkeys(ids, Fate.COMPLETED)
    desk.settle_letters()
    assert desk.dead_letters.depth("support").total == 0


def test_somebody_elses_move_is_waited_for() -> None:
    """One of another rate is not the plan's: its own begins when that is over."""
    desk = Native()
    desk.ready(4)
    plan = desk.started_native(rate=10)
    desk.moves.start("support", rate=1)
    desk.one_look()
    desk.one_look()
    assert not any(step.begun for step in desk.progress(plan).steps)
    desk.tick()
    desk.tick()
    assert desk.moves.started == 2
    assert desk.ending(plan)[0] == "finished"


def test_a_moved_letter_of_a_queued_job_is_its_ticket() -> None:
    """A worker claims it and runs it, and the route is gone; a letter of a withdrawn job asks for itself."""
    desk = Native()
    one, two = desk.ready(2)
    for job_id in (one, two):
        job = desk.job(job_id)
        desk.jobs.move(job, lifecycle.replayed(job, "p1", desk.clock.now(), route=NATIVE))
    job = desk.job(two)
    desk.jobs.move(job, lifecycle.withdrawn(job, desk.lane, Category.AUTH, "x", desk.clock.now()))
    assert desk.work(desk.letter_of(desk.job(one))) is Answer.ACKNOWLEDGE
    assert (desk.job(one).status, desk.job(one).route) == (Status.COMPLETED, None)
    assert desk.work(desk.letter_of(desk.job(two))) is Answer.ACKNOWLEDGE
    assert (desk.job(two).status, desk.job(two).waits) == (Status.FAILED, True)
