"""What is shown of a redrive plan: its page, where it stands, and what became of its jobs."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from ops.cli.show import Column, ago, pairs, span, styled, table
from shared.core.errors import BadInput
from shared.core.moment import iso
from shared.core.plan import Ending, Plan, PlanState, Progress

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

    from ops.cli.stage import Stage
    from shared.core.lane import LaneSpec

SHOWN = 20
"""Jobs a person is shown; a program gets all of them."""
_STYLE = {Ending.FINISHED: "green", Ending.STOPPED: "red", Ending.ABORTED: "yellow"}


def plan_of(stage: Stage, plan_id: str) -> Plan:
    """The plan of that id, or BadInput that says where to look."""
    plan = stage.plans.get(plan_id)
    if plan is None:
        raise BadInput("plan", f"{plan_id[:32]} does not exist in this stage: see `penstock redrive list LANE`")
    return plan


def page(plan: Plan, now: datetime, lane: LaneSpec | None = None) -> list[RenderableType]:
    """A plan as it was written down."""
    fields: dict[str, str | Text] = {
        "plan": styled(plan.plan_id, "bold"),
        "lane": plan.lane,
        "jobs": f"{plan.count:,}",
        "chosen by": ", ".join(f"{name} {value}" for name, value in plan.chosen.items()) or "every failed job",
        **({} if plan.rate is None else {"moved by SQS": f"every dead letter of the lane, {plan.rate:,} a second"}),
        "cause": plan.cause,
        "by": plan.requester,
        "hash": plan.hash,
        "good until": f"{iso(plan.valid_until)} ({ago(plan.valid_until, now)})",
    }
    told = dict(plan.estimate)
    if "usd" in told:
        fields["costs about"] = f"${float(told.pop('usd')):,.4f} on AWS, vendors not counted"
    if "at_least_s" in told:
        least, runs = span(float(told.pop("at_least_s"))), by_runs(lane)
        fields["takes at least"] = f"{least}, {runs}" if runs else least
    for name, value in told.items():
        fields[f"asks of {name}"] = value
    for name, who, at in (
        ("approved by", plan.approver, plan.approved_at),
        ("started by", plan.started_by, plan.started_at),
        ("aborted by", plan.aborted_by, plan.aborted_at),
    ):
        if who is not None:
            fields[name] = f"{who}, {ago(at, now)}"
    return [pairs(fields)]


def standing(plan: Plan, progress: Progress, now: datetime) -> Text:
    """Where a plan stands, in a word."""
    ended = progress.ended
    if ended is not None and ended.ending is not None:
        return styled(ended.ending.value, _STYLE[ended.ending])
    if plan.state in (PlanState.PLANNED, PlanState.APPROVED) and plan.valid_until <= now:
        return styled("expired", "dim")
    return styled(plan.state.value, "blue" if plan.state is PlanState.RUNNING else "")


def by_runs(lane: LaneSpec | None) -> str:
    """What a plan waits for in a lane whose jobs are taken by runs; nothing to say for others."""
    if lane is None or lane.run is None:
        return ""
    each = ", ".join(f"{role} every {span(period)}" for role, period in lane.runs.items())
    return f"one step a run of its lane, not sooner: {each}"


def progress_page(plan: Plan, progress: Progress, now: datetime, lane: LaneSpec | None = None) -> list[RenderableType]:
    """How far it came."""
    counts, fates = progress.counts, progress.fates
    under_way = progress.tried - len(fates)
    parts: list[RenderableType] = [*page(plan, now), ""]
    number = Column(header="jobs", right=True)
    rows = [(name, f"{count:,}") for name, count in counts.items()]
    rows += [("under way", f"{under_way:,}")] if under_way > 0 else []
    rows += [("not released", f"{plan.count - progress.tried:,}")] if progress.tried < plan.count else []
    parts += [table(["became", number], rows), ""]
    last = progress.steps[-1] if progress.steps else None
    sentence = styled(f"{plan.plan_id} is ") + standing(plan, progress, now)
    if last is not None and last.waits_for:
        sentence += styled(f" ({last.waits_for})")
    parts.append(sentence)
    if progress.ended is None and (told := by_runs(lane)):
        parts.append(styled(f"It goes {told}.", "dim"))
    bad = [(job_id, fate.value) for job_id, fate in fates.items() if fate.value != "completed"]
    if bad:
        parts += ["", table([Column(header="job", whole=True), "became"], bad[:SHOWN])]
        if len(bad) > SHOWN:
            parts.append(f"… and {len(bad) - SHOWN:,} more; --json lists them all")
    return parts


def document(plan: Plan, progress: Progress) -> dict[str, Any]:
    """A plan and how far it came, for programs."""
    ended = progress.ended
    last = progress.steps[-1] if progress.steps else None
    return {
        "plan": plan,
        "tried": progress.tried,
        "counts": progress.counts,
        "under_way": progress.tried - len(progress.fates),
        "waits_for": last.waits_for if last is not None else "",
        "ending": None if ended is None else ended.ending,
        "fates": progress.fates,
    }
