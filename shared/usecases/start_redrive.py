"""Start a redrive, or abort it: everything that was true when it was planned is looked at again."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from shared.core.errors import BadInput, PlanMoved, UnreadableRow
from shared.core.job import Job
from shared.core.lane import LaneSpec
from shared.core.plan import Entry, Plan, PlanState, Progress, manifest_hash, said
from shared.core.plan_ports import PlanStore
from shared.core.ports import Clock, EffectStore, History, JobStore
from shared.core.switches import Switches, lane_scopes, scopes_of
from shared.usecases.approve_redrive import AGAIN, refusal
from shared.usecases.native_redrive import NativeDesk
from shared.usecases.persist import persist
from shared.usecases.plan_redrive import cause_of, obstacles, tell, the_plan
from shared.usecases.steer import reason_of


def start_redrive(
    plan_id: str,
    *,
    by: str,
    lane: LaneSpec,
    switches: Switches,
    jobs: JobStore,
    effects: EffectStore,
    plans: PlanStore,
    history: History,
    clock: Clock,
    native: NativeDesk | None = None,
    threads: int = 1,
) -> Plan:
    """Approved → running, if every prerequisite holds now; the executor's next run begins with the canary.

    Looked at again: the cause, the manifest against its hash and against the rows as they are, what the vendors know,
    the switches, the approval, and that no other plan has the lane.
    """
    plan, now = the_plan(plan_id, plans, clock), clock.now()
    if plan.state is not PlanState.APPROVED or plan.valid_until <= now:
        raise refusal(plan, plan, by, now, wanted=PlanState.APPROVED)
    cause_of(plan.cause)
    manifest = persist(lambda: plans.manifest(plan_id), clock)
    if manifest_hash(manifest) != plan.hash:
        raise BadInput("plan", f"{plan_id}: its manifest is not the one that was approved: {AGAIN}")
    rows = _rows(manifest, jobs, clock, threads)
    there = [job for job in rows if job is not None]
    scopes = dict.fromkeys(scope for job in there for scope in scopes_of(job, lane.vendors_of(job.task)))
    if plan.rate is None:
        # A job under a task or a tenant that is closed waits for its own; a moved letter would not.
        called = dict.fromkeys(vendor for job in there for vendor in lane.vendors_of(job.task))
        scopes = dict.fromkeys(lane_scopes(lane.name, called))
    standing = switches.standing(scopes)
    if standing.closes_admission:
        raise BadInput(
            "switches",
            f"{standing.scope} is {standing.level.word}: nothing would start. When the cause is gone, open it with"
            f" `penstock control set {standing.scope} route_only`, the safe level for a replay",
        )
    changed = [entry.job_id for entry, job in zip(manifest, rows, strict=True) if not entry.holds(job)]
    if changed:
        raise BadInput("plan", f"{plan_id}: {said(changed)} changed since it was planned: {AGAIN}")
    refused = obstacles(there, effects, clock, now, threads)
    if refused:
        job_id, why = next(iter(refused.items()))
        raise BadInput("plan", f"{plan_id}: {job_id} cannot be replayed: {why}; then {AGAIN}")
    if plan.rate is not None:
        if native is None:
            raise BadInput("plan", f"{plan_id} is a native redrive, which this stage has no move tasks for")
        native.check(manifest, plan.rate)
    _take_lane(plan, plans, clock)
    try:
        started = persist(lambda: plans.start(plan, by=by, now=now), clock)
    except PlanMoved as moved:
        raise refusal(plan, moved.current, by, now, wanted=PlanState.APPROVED) from None
    tell(started, "started", by, {"count": started.count}, history, clock)
    return started


def abort_redrive(plan_id: str, *, by: str, why: str, plans: PlanStore, history: History, clock: Clock) -> Plan:
    """Withdraw a plan. One that runs releases nothing more from the executor's next look on; what it has released goes
    on like any other job. Takes one person, always."""
    reason = reason_of(why)
    plan = the_plan(plan_id, plans, clock)
    ended = Progress(steps=persist(lambda: plans.steps(plan_id), clock)).ended
    if ended is not None:
        raise BadInput("plan", f"{plan_id} is over ({ended.ending}): there is nothing left to abort")
    try:
        aborted = persist(lambda: plans.abort(plan, by=by, why=reason, now=clock.now()), clock)
    except PlanMoved:
        raise BadInput("plan", f"{plan_id} was aborted before") from None
    tell(aborted, "aborted", by, {"why": reason, "was": plan.state.value}, history, clock)
    return aborted


def is_over(plan: Plan | None, progress: Progress) -> bool:
    """True for a plan that will release nothing more and has said so, or never began."""
    if plan is None or progress.ended is not None:
        return True
    return plan.state is PlanState.ABORTED and plan.started_at is None


def _take_lane(plan: Plan, plans: PlanStore, clock: Clock) -> None:
    first = holder = persist(lambda: plans.take_lane(plan.lane, plan.plan_id), clock)
    if first is None:
        return
    other = persist(lambda: plans.get(first), clock)
    if is_over(other, Progress(steps=persist(lambda: plans.steps(first), clock))):
        holder = persist(lambda: plans.take_lane(plan.lane, plan.plan_id, instead_of=first), clock)
        if holder is None:
            return
    raise BadInput(
        "plan",
        f"{holder} has lane {plan.lane}: two redrives at once are refused; watch it to its end, or abort it with"
        f" `penstock redrive abort {holder}`",
    )


def _rows(manifest: Sequence[Entry], jobs: JobStore, clock: Clock, threads: int) -> list[Job | None]:
    def row(entry: Entry) -> Job | None:
        try:
            return persist(lambda: jobs.get(entry.job_id), clock)
        except UnreadableRow:
            return None

    if threads > 1:
        with ThreadPoolExecutor(max_workers=threads) as pool:
            return list(pool.map(row, manifest))
    return list(map(row, manifest))
