"""`penstock jobs`: list, show and explain jobs. Only `result` shows what a customer wrote.

What an operator does to jobs is in `steering`.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from ops.cli import job_pages
from ops.cli.command import Asked, command, group
from ops.cli.show import NOTHING, clean, plain
from shared.contract import names
from shared.core.errors import BadInput, UnreadableRow
from shared.core.job import MAX_TENANT, Category, Job, Status, identifier

if TYPE_CHECKING:
    from ops.cli.stage import Stage
    from shared.usecases.explain import Turn

app = group("List, show, explain, withdraw, reschedule and take back jobs.")

MOST = 1_000_000
Id = Annotated[str, typer.Argument(metavar="ID", help="The job's whole id.", show_default=False)]


@command(
    app,
    "list",
    examples=("penstock jobs list --lane support --status failed", "penstock jobs list --tenant acme --json"),
)
def list_jobs(
    asked: Asked,
    lane: Annotated[str | None, typer.Option("--lane", "-l", show_default=False, help="Of this lane.")] = None,
    state: Annotated[Status | None, typer.Option("--status", show_default=False, help="In this state.")] = None,
    tenant: Annotated[str | None, typer.Option("--tenant", "-t", show_default=False, help="Of this tenant.")] = None,
    category: Annotated[
        Category | None, typer.Option("--category", show_default=False, help="Failed for this reason.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=MOST, help="Stop after so many.")] = 50,
) -> None:
    """List jobs, the last changed first.

    Reads the table until enough are found, so narrow it down where there are many. In JSON: one line a job, in
    the order they were found.
    """
    stage = asked.stage()
    if lane is not None:
        stage.lane(lane)
    tenant = tenant_of(tenant)
    seen = 0

    def note() -> None:
        nonlocal seen
        seen += 1
        if seen % 200 == 0:
            tell(f"{seen:,} rows read")

    def wanted() -> Iterator[Job | UnreadableRow]:
        for row in stage.watched_jobs(note).scan():
            if isinstance(row, UnreadableRow) or (
                (lane is None or row.lane == lane)
                and (state is None or row.status is state)
                and (tenant is None or row.tenant == tenant)
                and (category is None or row.category is category)
            ):
                yield row

    with asked.out.working("reading jobs") as tell:
        rows = wanted()
        if asked.out.json:
            for row in islice(rows, limit):
                asked.out.line(job_pages.unreadable(row) if isinstance(row, UnreadableRow) else plain(row))
            return
        found = list(islice(rows, limit))
        more = next(rows, None) is not None
    jobs = sorted((row for row in found if isinstance(row, Job)), key=lambda job: job.updated_at, reverse=True)
    now = stage.clock.now()
    if jobs:
        asked.out.say(job_pages.listing(jobs, now))
    else:
        asked.out.say("No job matches.")
    for row in found:
        if isinstance(row, UnreadableRow):
            asked.out.warn(f"row {row.key} cannot be read: {row.problem}")
    if more:
        asked.out.warn(f"Stopped at {limit}; more match. Use --limit, or narrow it down.")


@command(app, "show", examples=("penstock jobs show 3d0a…",))
def show(asked: Asked, job_id: Id) -> None:
    """Show everything about a job but its text.

    Its fields, its effects, and what happened to it when and why, people's decisions included.
    """
    stage = asked.stage()
    job = job_of(stage, job_id)
    effects = stage.effects.of_job(job.job_id)
    events = stage.history.of(f"job/{job.job_id}", limit=100)
    for run in job_pages.bulk_runs(job):
        events += stage.history.of(run, limit=10)
    if asked.out.json:
        told = {"job": job, "effects": effects, "history": job_pages.timeline(job, events)}
        asked.out.document({**told, **job_pages.contract(job)})
    else:
        asked.out.say(*job_pages.page(job, effects, events, stage.clock.now()))


@command(app, "why", examples=("penstock jobs why 3d0a…",))
def why_waiting(asked: Asked, job_id: Id) -> None:
    """Explain why a job waits, and what would let it go.

    Where it stands, every gate with its verdict, the key that blocks it and the earliest time. It is the same
    admission that the engine asks: there is no second opinion.
    """
    from ops.cli.feeding import trouble_of
    from ops.cli.kept import kept_of
    from shared.usecases.explain import explain

    stage = asked.stage()
    job = job_of(stage, job_id)
    view = stage.viewer().of(job.lane, job.task)
    kept, _ = kept_of(stage, view.lane)
    explanation = explain(
        job,
        view,
        stage.effects.of_job(job.job_id),
        stage.queues.depth(job.lane) if view.lane.run is None else None,
        stage.clock.now(),
        _turn(stage, job),
        None if job.status.ended else trouble_of(stage, view.lane, stage.control.switches(), kept),
    )
    if asked.out.json:
        asked.out.document(job_pages.explained(explanation))
    else:
        asked.out.say(*job_pages.explanation_page(explanation, stage.clock.now()))


def _turn(stage: Stage, job: Job) -> Turn | None:
    """Which run a job of a lane with runs waits for; one that a person started says nothing about the next."""
    from ops.cli.run_pages import request_of
    from shared.usecases.explain import Turn, role_for

    lane = stage.lane(job.lane)
    role = role_for(job, lane) if lane.run is not None else None
    if role is None or role not in lane.runs:
        return None
    schedule = names.run(lane.name, role)
    scheduled = [run for run in stage.ledger.runs(schedule, limit=10) if request_of(run) is None]
    last = scheduled[0].started_at if scheduled else None
    return Turn(schedule=schedule, period_s=lane.runs[role], last=last)


@command(app, "result", examples=("penstock jobs result 3d0a…",))
def result(asked: Asked, job_id: Id) -> None:
    """Show the text a job kept. You are recorded.

    This is customer text, the only place of this command line where it is shown: that you looked is kept in the
    job's history.
    """
    from shared.core.history import HistoryEvent

    stage = asked.stage()
    job = job_of(stage, job_id)
    known = {"job_id": job.job_id, "status": job.status, "result": job.result, "result_ref": job.result_ref}
    if job.result_ref is None:
        if asked.out.json:
            asked.out.document({**known, "content": None})
        else:
            asked.out.say(f"{job.job_id} kept no text; it is {job.status}, its result is {job.result or NOTHING}.")
        return
    data = stage.content.get(job.result_ref)
    if data is None:
        raise BadInput("result", f"{job.result_ref} is no longer in the content store")
    # Kept first: text that was shown and not written down would be a view nobody knows of.
    stage.history.append(
        HistoryEvent(
            subject=f"job/{job.job_id}",
            event_id=uuid.uuid4().hex,
            at=stage.clock.now(),
            kind="content_view",
            by=stage.caller.arn,
            detail={"ref": job.result_ref},
        )
    )
    text = data.decode(errors="replace")
    if asked.out.json:
        asked.out.document({**known, "content": text})
        return
    asked.out.warn("Customer text follows. That you looked is kept in the job's history.")
    print(clean(text))


def job_of(stage: Stage, job_id: str) -> Job:
    """The job of that id, or BadInput."""
    job = stage.jobs.get(whole_id(job_id))
    if job is None:
        raise BadInput("job", f"{job_id} does not exist in stage {stage.name}; expired jobs are gone from the table")
    return job


def tenant_of(text: str | None) -> str | None:
    """A tenant by whom a choice is narrowed down; one that can have no jobs is refused."""
    return None if text is None else identifier("tenant", text, MAX_TENANT)


def whole_id(text: str) -> str:
    """A job's id in its one form; a shortened one is refused."""
    try:
        return str(uuid.UUID(text))
    except ValueError:
        raise BadInput("job", "needs the whole id, 36 characters such as `penstock jobs list` shows") from None
