"""`penstock redrive`: replay dead letters under review. Plan, approve by somebody else, start, watch, abort."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ops.cli import redrive_pages as pages
from ops.cli.command import Asked, command, group
from ops.cli.dlq import CategoryOption, Lane, SignatureOption, SinceOption, TenantOption, UntilOption, chosen_of
from ops.cli.moments import span_of
from ops.cli.prices import Load, bill
from ops.cli.show import Column, ago, styled, table
from shared.core.errors import BadInput
from shared.core.job import Job
from shared.core.lane import LaneSpec

if TYPE_CHECKING:
    from ops.cli.stage import Stage
    from shared.core.plan import Plan
    from shared.usecases.native_redrive import NativeDesk

app = group("Replay dead letters under review: plan, approve, start, watch, abort.")

PlanId = Annotated[str, typer.Argument(metavar="PLAN", help="The plan's id.", show_default=False)]
THREADS = 8
WATCH_S = 2.0


@command(
    app,
    "plan",
    examples=(
        'penstock redrive plan support --category auth --cause "token had expired; renewed, checked by hand"',
        'penstock redrive plan support --job 3d0a… --cause "conversation was locked; the customer unlocked it"',
        'penstock redrive plan support --native --rate 5 --cause "token had expired; renewed, one replayed by hand"',
    ),
)
def plan(
    asked: Asked,
    lane: Lane,
    cause: Annotated[
        str, typer.Option("--cause", help="What was wrong, and how it was put right.", show_default=False)
    ],
    category: CategoryOption = None,
    signature: SignatureOption = None,
    tenant: TenantOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    job: Annotated[str | None, typer.Option("--job", metavar="ID", show_default=False, help="This one job.")] = None,
    valid: Annotated[
        str, typer.Option("--valid", metavar="SPAN", help="How long an approval is good; 24h at most.")
    ] = "24h",
    native: Annotated[
        bool, typer.Option("--native", help="Let SQS move every dead letter of the lane; no choice goes with it.")
    ] = False,
    rate: Annotated[
        int | None,
        typer.Option("--rate", metavar="N", show_default=False, help="With --native: letters a second, 500 at most."),
    ] = None,
) -> None:
    """Freeze which failed jobs are meant, with the root cause. Releases nothing.

    Jobs that must not be replayed are left out and named: an outcome that nobody knows (`penstock jobs resolve`), or a
    first effect so old that the record of it is soon gone.

    With --native SQS moves all letters itself, at a rate: for many jobs whose error a replay of one has shown to be
    gone, with the cap held at its baseline. Without --rate it is what the lane and its accounts have to spare.
    """
    from shared.usecases.plan_redrive import plan_redrive

    stage = asked.stage()
    spec = stage.lane(lane)
    chosen = chosen_of(stage.clock.now(), lane, category, signature, tenant, since, until, job)
    if job is not None and any(value is not None for value in (category, signature, tenant, since, until)):
        raise typer.BadParameter("--job is a plan of one: no other choice goes with it")
    if rate is not None and not native:
        raise typer.BadParameter("--rate goes with --native: other plans are paced by what the lane has to spare")
    desk = native_desk(spec, stage) if native else None
    with asked.out.working("reading failed jobs and their effects"):
        planned = plan_redrive(
            chosen,
            cause=cause,
            by=stage.caller.arn,
            jobs=stage.jobs,
            effects=stage.effects,
            plans=stage.plans,
            history=stage.history,
            clock=stage.clock,
            estimate=lambda jobs: estimate_of(jobs, spec, stage),
            native=None if desk is None else lambda planned: desk.planned(planned, rate),
            valid_for=span_of("valid", valid),
            threads=THREADS,
        )
    refused = [{"job_id": job_id, "why": why} for job_id, why in planned.refused]
    if asked.out.json:
        asked.out.document({"plan": planned.plan, "refused": refused})
        return
    asked.out.say(*pages.page(planned.plan, stage.clock.now(), spec), "")
    for one in refused[: pages.SHOWN]:
        asked.out.warn(f"left out: {one['job_id']}: {one['why']}")
    if len(refused) > pages.SHOWN:
        asked.out.warn(f"… and {len(refused) - pages.SHOWN:,} more are left out; --json lists them all")
    if planned.unreadable:
        asked.out.warn(f"{planned.unreadable:,} rows cannot be read, so nobody can tell what they are; see `audit`.")
    warn_unnamed(asked, stage)
    asked.out.say(f"Somebody else approves it with: penstock redrive approve {planned.plan.plan_id}")


def warn_unnamed(asked: Asked, stage: Stage) -> None:
    """Whoever asks hears at once when nobody will be able to agree."""
    if stage.people.named(stage.caller.arn) is None:
        asked.out.warn(
            f"You are {stage.caller.arn}, a name that anybody may choose: nobody's yes will count for what you ask."
            f" To ask in your own name, {stage.people.instead}."
        )


@command(app, "approve", examples=("penstock redrive approve 4f1c09aa7be2",))
def approve(asked: Asked, plan_id: PlanId) -> None:
    """Agree to a plan that somebody else made, exactly as it was written down.

    Who you are is what AWS says, under a name that you cannot choose: an IAM user's, an Identity Center session's, or
    that of a session of one of the stage's own roles. The yes of whoever asked is refused. A lane may allow one person
    for a few jobs (`one_person_redrive`); it is 0 unless a stage sets it.
    """
    from shared.usecases.approve_redrive import approve_redrive

    stage = asked.stage()
    seen = stage.plans.get(plan_id)
    lane = None if seen is None else stage.lane(seen.lane)
    approved = approve_redrive(
        plan_id,
        by=stage.caller.arn,
        people=stage.people,
        lane=lane,
        plans=stage.plans,
        history=stage.history,
        clock=stage.clock,
    )
    _tell(asked, stage, approved, f"approved {plan_id}. Start it with: penstock redrive start {plan_id}")


@command(app, "start", examples=("penstock redrive start 4f1c09aa7be2",))
def start(asked: Asked, plan_id: PlanId) -> None:
    """Let an approved plan run, if everything still is as it was planned.

    The next minute begins with one job; when that has ended well ten more go, then the rest, as fast as the lane and
    its vendors have room to spare. It stops itself when the same error comes back, vendors answer 429, or more jobs
    fail.
    """
    from shared.usecases.start_redrive import start_redrive

    stage = asked.stage()
    lane = _lane_of(plan_id, stage)
    with asked.out.working("looking at every job again"):
        started = start_redrive(
            plan_id,
            by=stage.caller.arn,
            lane=lane,
            switches=stage.control.switches(),
            jobs=stage.jobs,
            effects=stage.effects,
            plans=stage.plans,
            history=stage.history,
            clock=stage.clock,
            native=native_desk(lane, stage) if _is_native(plan_id, stage) else None,
            threads=THREADS,
        )
    _tell(asked, stage, started, f"started {plan_id}. See how it goes: penstock redrive watch {plan_id}")
    if not asked.out.json and not _safe(stage, started.lane):
        asked.out.warn(
            "Customer-visible effects are on. While you are not sure of the cause, withhold them:"
            f" penstock control safe-mode on lane/{started.lane} --why …"
        )


@command(app, "watch", examples=("penstock redrive watch 4f1c09aa7be2", "penstock redrive watch 4f1c09aa7be2 --follow"))
def watch(
    asked: Asked,
    plan_id: PlanId,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Look again until it is over.")] = False,
) -> None:
    """Show how far a plan came, and what became of each job."""
    from shared.core.plan import Progress

    stage = asked.stage()
    while True:
        plan = pages.plan_of(stage, plan_id)
        progress = Progress(steps=stage.plans.steps(plan_id))
        if asked.out.json:
            asked.out.line(pages.document(plan, progress))
        else:
            asked.out.say(*pages.progress_page(plan, progress, stage.clock.now(), stage.lanes.get(plan.lane)))
        if not follow or progress.ended is not None:
            break
        stage.clock.sleep(WATCH_S)


@command(app, "abort", examples=('penstock redrive abort 4f1c09aa7be2 --why "replies are wrong"',))
def abort(
    asked: Asked,
    plan_id: PlanId,
    why: Annotated[str, typer.Option("--why", help="Why, in a few words; kept with your name.", show_default=False)],
) -> None:
    """Release nothing more. What was released goes on like any other job; one person is enough."""
    from shared.usecases.start_redrive import abort_redrive

    stage = asked.stage()
    aborted = abort_redrive(
        plan_id, by=stage.caller.arn, why=why, plans=stage.plans, history=stage.history, clock=stage.clock
    )
    _tell(asked, stage, aborted, f"aborted {plan_id}: nothing more is released")


@command(app, "list", examples=("penstock redrive list support",))
def list_plans(
    asked: Asked,
    lane: Lane,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=100, help="Stop after so many.")] = 20,
) -> None:
    """Show a lane's plans, the newest first."""
    from shared.core.plan import Progress
    from shared.usecases.plan_redrive import subject_of

    stage = asked.stage()
    stage.lane(lane)
    events = stage.history.of(subject_of(lane), limit=20 * limit)
    ids = list(dict.fromkeys(str(event.detail.get("plan", "")) for event in events))[:limit]
    found = [(plan, Progress(steps=stage.plans.steps(plan.plan_id))) for one in ids if (plan := stage.plans.get(one))]
    if asked.out.json:
        for plan, progress in found:
            asked.out.line(pages.document(plan, progress))
        return
    if not found:
        asked.out.say(f"No redrive of lane {lane} was ever planned.")
        return
    now = stage.clock.now()
    columns: list[str | Column] = [Column(header="plan", whole=True), "is", Column(header="jobs", right=True)]
    rows = [
        (
            plan.plan_id,
            pages.standing(plan, progress, now),
            f"{plan.count:,}",
            ago(plan.created_at, now),
            plan.requester,
            plan.cause,
        )
        for plan, progress in found
    ]
    asked.out.say(table([*columns, "made", "by", "cause"], rows))


def estimate_of(jobs: Sequence[Job], lane: LaneSpec, stage: Stage) -> Mapping[str, str]:
    """What a replay costs on AWS, what it asks of the accounts its jobs spend, and how long it takes at the least."""
    from shared.core.rate import want_of
    from shared.core.redrive import drain_s

    # The payloads are there already: nothing is written to the content store.
    load = Load(jobs=len(jobs), waits=1.0, batch=lane.batch_size, parallel=lane.parallel, memory_mb=lane.memory_mb)
    usd = sum(item.usd for item in bill(load) if item.what != "payloads written")
    called = {vendor for job in jobs for vendor in lane.vendors_of(job.task)}
    every = [stage.accounts[name] for name in lane.accounts if name in stage.accounts]
    accounts = [account for account in every if account.vendor in called]
    told = {"usd": f"{usd:.4f}", "at_least_s": f"{drain_s(len(jobs), lane, accounts):.0f}"}
    wants = [want_of(job) for job in jobs]
    told |= {f"{account.name}.requests": str(sum(want.requests for want in wants)) for account in accounts}
    if tokens := sum(want.tokens for want in wants):
        told["tokens"] = str(tokens)
    return told


def native_desk(lane: LaneSpec, stage: Stage) -> NativeDesk:
    """What a native plan is checked against. Raises BadInput where there are no move tasks."""
    from ops.cli.stage import LOCAL
    from shared.usecases.native_redrive import NativeDesk

    if stage.name == LOCAL:
        raise BadInput("native", "is not for the local stage, whose SQS has no move tasks: leave --native out")
    return NativeDesk(
        lane=lane,
        dead_letters=stage.dead_letters,
        control=stage.control,
        plans=stage.plans,
        history=stage.history,
        clock=stage.clock,
        accounts=tuple(stage.accounts[name] for name in lane.accounts if name in stage.accounts),
    )


def _is_native(plan_id: str, stage: Stage) -> bool:
    return pages.plan_of(stage, plan_id).rate is not None


def _lane_of(plan_id: str, stage: Stage) -> LaneSpec:
    plan = pages.plan_of(stage, plan_id)
    return stage.lane(plan.lane)


def _safe(stage: Stage, lane: str) -> bool:
    return stage.control.switches().standing(("all", f"lane/{lane}")).withholds_effects


def _tell(asked: Asked, stage: Stage, plan: Plan, sentence: str) -> None:
    if asked.out.json:
        document: dict[str, Any] = {"plan": plan}
        asked.out.document(document)
        return
    asked.out.say(styled(sentence, "green"))
