"""Approve a redrive: a second person says yes to exactly what was written down."""

from __future__ import annotations

from datetime import datetime

from shared.core.errors import BadInput, PlanMoved
from shared.core.lane import LaneSpec
from shared.core.moment import iso
from shared.core.people import People
from shared.core.plan import Plan, PlanState, manifest_hash
from shared.core.plan_ports import PlanStore
from shared.core.ports import Clock, History
from shared.usecases.persist import persist
from shared.usecases.plan_redrive import tell, the_plan

AGAIN = "make a new plan with `penstock redrive plan`"


def approve_redrive(
    plan_id: str,
    *,
    by: str,
    people: People,
    lane: LaneSpec | None = None,
    plans: PlanStore,
    history: History,
    clock: Clock,
) -> Plan:
    """Planned → approved. Refused for its own requester under any name (unless the lane lets one person do it for so
    few), for a plan that expired, and for one whose manifest is not what its hash says. The database keeps the same
    conditions."""
    plan, now = the_plan(plan_id, plans, clock), clock.now()
    if manifest_hash(persist(lambda: plans.manifest(plan_id), clock)) != plan.hash:
        raise BadInput("plan", f"{plan_id}: its manifest is not the one it was made with: {AGAIN}")
    alone_up_to = 0 if lane is None else lane.one_person_redrive
    if plan.count > alone_up_to:
        people.check_second("plan", plan_id, asked=plan.requester, agrees=by, verb="approve")
    try:
        approved = persist(lambda: plans.approve(plan, by=by, now=now, alone_up_to=alone_up_to), clock)
    except PlanMoved as moved:
        raise refusal(plan, moved.current, by, now, wanted=PlanState.PLANNED) from None
    tell(approved, "approved", by, {"hash": approved.hash, "count": approved.count}, history, clock)
    return approved


def refusal(plan: Plan, current: Plan | None, by: str, now: datetime, *, wanted: PlanState) -> BadInput:
    """The sentence for a plan that does not allow what was asked, and what to do instead."""
    if current is None:
        return BadInput("plan", f"{plan.plan_id} is gone: {AGAIN}")
    if current.hash != plan.hash:
        return BadInput("plan", f"{plan.plan_id} has another manifest than the one you saw: {AGAIN}")
    if current.state is not wanted:
        needs = {PlanState.APPROVED: "; it must be approved first: `penstock redrive approve`"}
        waits = needs.get(wanted, "") if current.state is PlanState.PLANNED else f": {AGAIN}"
        return BadInput("plan", f"{plan.plan_id} is {current.state}{waits}")
    if current.valid_until <= now:
        return BadInput("plan", f"{plan.plan_id} expired at {iso(current.valid_until)}: {AGAIN}")
    if current.requester == by:
        return BadInput("plan", f"{plan.plan_id} was requested by you: somebody else must approve it")
    return BadInput("plan", f"{plan.plan_id} changed meanwhile: look at it again")
