"""Plan a redrive: freeze which failed jobs are meant, why they failed and why they would not fail again."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta

from shared.core.cohort import Chosen
from shared.core.effects import EffectRow
from shared.core.errors import BadInput
from shared.core.job import Job, one_line
from shared.core.plan import VALID_FOR, Entry, Plan, entry_of, manifest_hash, said
from shared.core.plan_ports import PlanStore
from shared.core.ports import Clock, EffectStore, History, JobStore
from shared.core.redrive import obstacle
from shared.usecases.find_failed import find_failed
from shared.usecases.persist import persist
from shared.usecases.steer import note

MAX_CAUSE = 500
LEAST_CAUSE = 10
MOST_JOBS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """The plan, and the jobs that were meant and must not be replayed, each with the reason."""

    plan: Plan
    manifest: tuple[Entry, ...] = ()
    refused: tuple[tuple[str, str], ...] = ()
    unreadable: int = 0


def plan_redrive(
    chosen: Chosen,
    *,
    cause: str,
    by: str,
    jobs: JobStore,
    effects: EffectStore,
    plans: PlanStore,
    history: History,
    clock: Clock,
    estimate: Callable[[Sequence[Job]], Mapping[str, str]] = lambda jobs: {},
    native: Callable[[Planned], int] | None = None,
    valid_for: timedelta = VALID_FOR,
    threads: int = 1,
) -> Planned:
    """Freeze a manifest of every failed job that is meant. Jobs that must not be replayed are left out, by name.

    Nothing is released: the plan needs somebody else's approval, and its start looks at everything again.
    `native` looks at a plan that is to be moved by SQS, and tells its rate or raises BadInput.
    """
    text = cause_of(cause)
    if not timedelta(0) < valid_for <= VALID_FOR:
        raise BadInput("valid_for", f"must be at most {VALID_FOR.total_seconds() / 3600:g} hours")
    found = find_failed(chosen, jobs)
    if not found.jobs:
        where = f"job {chosen.job_id} is no failed job" if chosen.job_id else "no failed job matches"
        raise BadInput("jobs", f"{where} of lane {chosen.lane}: see `penstock dlq list {chosen.lane}`")
    if len(found.jobs) > MOST_JOBS:
        raise BadInput("jobs", f"are {len(found.jobs):,}, at most {MOST_JOBS:,} are allowed: narrow it down")
    now = clock.now()
    refused = obstacles(found.jobs, effects, clock, now, threads)
    meant = [job for job in found.jobs if job.job_id not in refused]
    if not meant:
        job_id, why = next(iter(refused.items()))
        more = f"; {len(refused) - 1:,} more cannot be replayed either" if len(refused) > 1 else ""
        raise BadInput("jobs", f"{job_id} cannot be replayed: {why}{more}")
    manifest = [entry_of(job) for job in meant]
    plan = Plan(
        plan_id=uuid.uuid4().hex[:12],
        lane=chosen.lane,
        requester=by,
        cause=text,
        count=len(manifest),
        hash=manifest_hash(manifest),
        created_at=now,
        valid_until=now + valid_for,
        chosen=_words(chosen),
        estimate=dict(estimate(meant)),
    )
    planned = Planned(plan=plan, manifest=tuple(manifest), refused=tuple(refused.items()), unreadable=found.unreadable)
    if native is not None:
        plan = replace(plan, rate=native(planned))
        planned = replace(planned, plan=plan)
    persist(lambda: plans.put(plan, manifest), clock)
    detail: dict[str, object] = {"cause": text, "count": plan.count, "hash": plan.hash}
    detail |= {} if plan.rate is None else {"rate": plan.rate}
    tell(plan, "planned", by, detail, history, clock)
    return planned


def obstacles(
    jobs: Sequence[Job], effects: EffectStore, clock: Clock, now: datetime, threads: int = 1
) -> dict[str, str]:
    """The jobs that must not be replayed, each with its reason."""

    def look(job: Job) -> tuple[str, str | None]:
        rows: list[EffectRow] = persist(lambda: effects.of_job(job.job_id), clock)
        return job.job_id, obstacle(job, rows, now)

    if threads > 1:
        with ThreadPoolExecutor(max_workers=threads) as pool:
            looked = list(pool.map(look, jobs))
    else:
        looked = list(map(look, jobs))
    return {job_id: why for job_id, why in looked if why is not None}


def cause_of(cause: str) -> str:
    """The root cause: required, one line, more than a word."""
    text = one_line("cause", cause, MAX_CAUSE)
    if len(text) < LEAST_CAUSE:
        raise BadInput("cause", "is missing: say what was wrong and how it was put right")
    return text


def subject_of(lane: str) -> str:
    """Where the history of a lane's redrives is kept."""
    return f"redrive/{lane}"


def tell(plan: Plan, kind: str, by: str, detail: Mapping[str, object], history: History, clock: Clock) -> None:
    """Keep who did what with a plan."""
    note(subject_of(plan.lane), kind, by, {"plan": plan.plan_id, **detail}, history, clock)


def the_plan(plan_id: str, plans: PlanStore, clock: Clock) -> Plan:
    """The plan of that id, or BadInput that says where to look."""
    plan = persist(lambda: plans.get(plan_id), clock)
    if plan is None:
        raise BadInput("plan", f"{said([plan_id[:32]])} does not exist in this stage: see `penstock redrive list LANE`")
    return plan


def _words(chosen: Chosen) -> dict[str, str]:
    named = {field.name: getattr(chosen, field.name) for field in fields(chosen) if field.name != "lane"}
    return {name: str(value) for name, value in named.items() if value is not None}
