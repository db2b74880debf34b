"""The promises of `PlanStore` and `ResolutionStore`, kept by every adapter."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from shared.core.errors import PlanMoved, ResolutionMoved
from shared.core.plan import (
    Ending,
    Entry,
    Fate,
    Finding,
    Plan,
    PlanState,
    Resolution,
    Step,
    manifest_hash,
)
from tests.builders import NOW
from tests.contract.worlds import World

ADA, BOB, CAT = "arn:ada", "arn:bob", "arn:cat"
LATER = NOW + timedelta(minutes=5)
MANIFEST = tuple(
    Entry(job_id=f"job-{n}", fence=n % 3, category="auth", signature="vendor_auth:desk") for n in range(2500)
)


def a_plan(**overrides: Any) -> Plan:
    """Ada's plan."""
    values: dict[str, Any] = {
        "plan_id": "p1",
        "lane": "support",
        "requester": ADA,
        "cause": "the token had expired; renewed",
        "count": len(MANIFEST),
        "hash": manifest_hash(MANIFEST),
        "created_at": NOW,
        "valid_until": NOW + timedelta(hours=1),
        "chosen": {"category": "auth"},
        "estimate": {"usd": "0.1"},
    }
    return Plan(**{**values, **overrides})


def put(world: World, **overrides: Any) -> Plan:
    plan = a_plan(**overrides)
    world.plans.put(plan, MANIFEST)
    return plan


def approved(world: World, **overrides: Any) -> Plan:
    return world.plans.approve(put(world, **overrides), by=BOB, now=LATER, alone_up_to=0)


def test_a_plan_is_read_back_as_it_was_written(world: World) -> None:
    """The plan, and a manifest of more than one part, in its order; written again it is as before."""
    plan = put(world)
    world.plans.put(replace(plan, cause="another story"), MANIFEST[:1])
    assert world.plans.get("p1") == plan
    assert world.plans.manifest("p1") == MANIFEST
    assert world.plans.get("p2") is None
    assert world.plans.manifest("p2") == ()


@pytest.mark.req("C9")
@pytest.mark.fault("J6")
def test_nobody_approves_their_own_plan(world: World) -> None:
    """The condition is the database's: the requester is refused there, somebody else is not."""
    plan = put(world)
    with pytest.raises(PlanMoved) as refused:
        world.plans.approve(plan, by=ADA, now=LATER, alone_up_to=len(MANIFEST) - 1)
    assert refused.value.current == plan
    assert world.plans.get("p1") == plan
    done = world.plans.approve(plan, by=BOB, now=LATER, alone_up_to=0)
    assert (done.state, done.approver, done.approved_at) == (PlanState.APPROVED, BOB, LATER)
    assert world.plans.get("p1") == done


def test_one_person_may_where_the_stage_says_so(world: World) -> None:
    """For so few jobs and not for one more."""
    plan = put(world)
    assert world.plans.approve(plan, by=ADA, now=LATER, alone_up_to=len(MANIFEST)).approver == ADA


@pytest.mark.req("C9")
@pytest.mark.fault("J6")
@pytest.mark.parametrize("what", ["another manifest", "expired", "approved before", "aborted", "absent"])
def test_an_approval_is_of_what_stands_there(world: World, what: str) -> None:
    """A changed manifest, an expired request, one that is decided already or not there: refused."""
    plan = a_plan(plan_id="nobody") if what == "absent" else put(world)
    now = LATER
    if what == "another manifest":
        plan = replace(plan, hash="other")
    elif what == "expired":
        now = plan.valid_until
    elif what == "approved before":
        world.plans.approve(plan, by=CAT, now=LATER, alone_up_to=0)
    elif what == "aborted":
        world.plans.abort(plan, by=ADA, why="x", now=LATER)
    with pytest.raises(PlanMoved):
        world.plans.approve(plan, by=BOB, now=now, alone_up_to=0)


def test_what_was_applied_already_is_a_success(world: World) -> None:
    """Approve, start and abort, asked again by the same person after a lost reply."""
    plan = approved(world)
    assert world.plans.approve(plan, by=BOB, now=LATER + timedelta(seconds=1), alone_up_to=0) == plan
    running = world.plans.start(plan, by=CAT, now=LATER)
    assert world.plans.start(plan, by=CAT, now=LATER + timedelta(seconds=1)) == running
    gone = world.plans.abort(running, by=ADA, why="wrong", now=LATER)
    assert world.plans.abort(running, by=ADA, why="wrong", now=LATER + timedelta(seconds=1)) == gone
    assert (gone.state, gone.abort_why) == (PlanState.ABORTED, "wrong")
    with pytest.raises(PlanMoved):
        world.plans.abort(gone, by=BOB, why="me too", now=LATER)


@pytest.mark.req("C9")
def test_only_an_approved_plan_starts(world: World) -> None:
    """Not a planned one, not after its approval expired, not with another hash."""
    plan = put(world)
    with pytest.raises(PlanMoved):
        world.plans.start(plan, by=BOB, now=LATER)
    plan = world.plans.approve(plan, by=BOB, now=LATER, alone_up_to=0)
    with pytest.raises(PlanMoved):
        world.plans.start(plan, by=BOB, now=plan.valid_until)
    with pytest.raises(PlanMoved):
        world.plans.start(replace(plan, hash="other"), by=BOB, now=LATER)
    assert world.plans.start(plan, by=BOB, now=LATER).state is PlanState.RUNNING


def test_what_is_not_there_cannot_be_aborted(world: World) -> None:
    """And nothing is made by trying."""
    with pytest.raises(PlanMoved):
        world.plans.abort(a_plan(plan_id="nobody"), by=BOB, why="x", now=LATER)
    assert world.plans.get("nobody") is None


@pytest.mark.fault("F2")
def test_a_lane_has_one_plan(world: World) -> None:
    """The first takes it, and keeps it until the next one says that it is over."""
    assert world.plans.plan_of("support") is None
    assert world.plans.take_lane("support", "p1") is None
    assert world.plans.take_lane("support", "p1") is None
    assert world.plans.take_lane("support", "p2") == "p1"
    assert world.plans.take_lane("support", "p2", instead_of="p0") == "p1"
    assert world.plans.take_lane("mail", "p2") is None
    assert world.plans.take_lane("support", "p2", instead_of="p1") is None
    assert world.plans.plan_of("support") == "p2"


@pytest.mark.fault("F2")
def test_a_step_is_written_once(world: World) -> None:
    """In order, with every fate; another step under the same number is refused, the same one is not."""
    first = Step(number=0, at=NOW, tried=1, letters=3, waits_for="canary")
    last = Step(number=1, at=LATER, tried=2, fates={"a": Fate.RELAPSED, "b": Fate.COMPLETED}, ending=Ending.STOPPED)
    assert world.plans.add_step("p1", first)
    assert world.plans.add_step("p1", last)
    assert world.plans.add_step("p1", first)
    assert not world.plans.add_step("p1", replace(first, tried=2))
    assert world.plans.steps("p1") == (first, last)
    assert world.plans.steps("p2") == ()


def test_a_native_plan_and_its_steps_are_read_back(world: World) -> None:
    """Its rate, that its move task was started, and why it stops."""
    plan = put(world, rate=25)
    assert world.plans.get("p1") == plan
    steps = (
        Step(number=0, at=NOW, tried=2, begun=True, waits_for="move task"),
        Step(number=1, at=LATER, tried=2, begun=True, stopping="relapse: x", fates={"a": Fate.WITHDRAWN}),
    )
    assert all(world.plans.add_step("p1", step) for step in steps)
    assert world.plans.steps("p1") == steps


# ------------------------------------------------------------------------------------------- resolutions
def a_resolution(**overrides: Any) -> Resolution:
    """What Ada found out."""
    values: dict[str, Any] = {
        "job_id": "job-1",
        "fence": 2,
        "finding": Finding.NOT_SENT,
        "evidence": "case/12",
        "effects": ("reply",),
        "requester": ADA,
        "requested_at": NOW,
        "valid_until": NOW + timedelta(hours=1),
    }
    return Resolution(**{**values, **overrides})


@pytest.mark.fault("J6")
def test_a_resolution_takes_two(world: World) -> None:
    """Ada asks, Ada cannot confirm, Bob can; what he confirmed stands, and asking anew does not replace it."""
    asked = a_resolution()
    assert world.resolutions.request(asked) is None
    assert world.resolutions.get("job-1", 2) == asked
    with pytest.raises(ResolutionMoved) as refused:
        world.resolutions.confirm(asked, by=ADA, now=LATER, alone=False)
    assert refused.value.current == asked
    done = world.resolutions.confirm(asked, by=BOB, now=LATER, alone=False)
    assert (done.confirmer, done.confirmed_at) == (BOB, LATER)
    assert world.resolutions.confirm(asked, by=BOB, now=LATER, alone=False) == done
    assert world.resolutions.request(a_resolution(finding=Finding.ACCEPTED)) == done
    assert world.resolutions.get("job-1", 2) == done
    assert world.resolutions.get("job-1", 3) is None


@pytest.mark.fault("A1")
def test_each_effect_has_a_resolution_of_its_own(world: World) -> None:
    """Named, it stands beside that of another effect and beside one without a name, asked for and confirmed alone."""
    every, one, other = a_resolution(), a_resolution(only="reply"), a_resolution(only="tag", effects=("tag",))
    for asked in (every, one, other):
        assert world.resolutions.request(asked) is None
    done = world.resolutions.confirm(one, by=BOB, now=LATER, alone=False)
    assert (done.only, done.confirmer) == ("reply", BOB)
    found = [world.resolutions.get("job-1", 2, only) for only in (None, "reply", "tag", "note")]
    assert found == [every, done, other, None]


@pytest.mark.fault("J6", "J9")
def test_what_is_confirmed_is_what_was_asked(world: World) -> None:
    """Another finding or another evidence is another matter; so is a request that expired, or was never made."""
    asked = a_resolution()
    with pytest.raises(ResolutionMoved) as refused:
        world.resolutions.confirm(asked, by=BOB, now=LATER, alone=False)
    assert refused.value.current is None
    world.resolutions.request(a_resolution(evidence="old"))
    world.resolutions.request(asked)
    for said in (a_resolution(evidence="other"), a_resolution(finding=Finding.ACCEPTED)):
        with pytest.raises(ResolutionMoved):
            world.resolutions.confirm(said, by=BOB, now=LATER, alone=False)
    with pytest.raises(ResolutionMoved):
        world.resolutions.confirm(replace(asked, requester=CAT), by=BOB, now=LATER, alone=True)
    with pytest.raises(ResolutionMoved):
        world.resolutions.confirm(asked, by=BOB, now=asked.valid_until, alone=False)
    with pytest.raises(ResolutionMoved):
        world.resolutions.confirm(asked, by=BOB, now=asked.valid_until, alone=True)
    assert world.resolutions.confirm(asked, by=ADA, now=LATER, alone=True).confirmer == ADA
