"""`penstock dlq`: what failed and why, by cohort; export it, or dismiss it. Ids, codes and times: no customer text.

Read from the rows of failed jobs, which outlive their messages in the dead-letter queue.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ops.cli import job_pages
from ops.cli.command import Asked, command, group
from ops.cli.jobs import Id, job_of, tenant_of, whole_id
from ops.cli.moments import WHEN, between
from ops.cli.show import Column, ago, count, plain, styled, table
from ops.cli.trouble import problem_of
from shared.core import cohort
from shared.core.cohort import Chosen
from shared.core.errors import BadInput, PenstockError
from shared.core.job import Category, Job, Status
from shared.core.outcome import is_code

if TYPE_CHECKING:
    from ops.cli.stage import Stage
    from shared.usecases.find_failed import FailedJobs

app = group("Dead letters: list, show, export and dismiss failed jobs.")

Lane = Annotated[str, typer.Argument(metavar="LANE", help="The lane.", show_default=False)]
CategoryOption = Annotated[
    Category | None, typer.Option("--category", show_default=False, help="Failed for this reason.")
]
SignatureOption = Annotated[
    str | None, typer.Option("--signature", show_default=False, help="With this error, as `dlq list` shows it.")
]
TenantOption = Annotated[str | None, typer.Option("--tenant", "-t", show_default=False, help="Of this tenant.")]
SinceOption = Annotated[
    str | None, typer.Option("--since", metavar="TIME", show_default=False, help=f"Failed at or after. {WHEN}.")
]
UntilOption = Annotated[
    str | None, typer.Option("--until", metavar="TIME", show_default=False, help=f"Failed before. {WHEN}.")
]


@command(
    app,
    "list",
    examples=("penstock dlq list support", "penstock dlq list support --category retries_exhausted --by-tenant"),
)
def list_cohorts(
    asked: Asked,
    lane: Lane,
    category: CategoryOption = None,
    signature: SignatureOption = None,
    tenant: TenantOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    by_tenant: Annotated[bool, typer.Option("--by-tenant", help="Tell tenants apart.")] = False,
) -> None:
    """Show what failed, by category and error: how many, since when, and what is soon lost.

    A failed job is kept for 30 days. From three days before its end it is counted as `expires soon`, and a warning
    says so: replay it, or dismiss it, while that is possible.
    """
    stage = asked.stage()
    found = find(asked, stage, chosen_of(stage.clock.now(), lane, category, signature, tenant, since, until))
    now = stage.clock.now()
    listed = cohort.cohorts(found.jobs, now, by_tenant=by_tenant)
    soon = sum(one.expires_soon for one in listed)
    if asked.out.json:
        asked.out.document(
            {"lane": lane, "failed": len(found.jobs), "expires_soon": soon, "cohorts": listed, **_unread(found)}
        )
        return
    if not listed:
        asked.out.say(f"No failed job of lane {lane} matches.")
        return
    columns: list[str | Column] = ["category", Column(header="signature", whole=True)]
    columns += ["tenant"] if by_tenant else []
    columns += [Column(header=name, right=True) for name in ("jobs", "tenants")]
    columns += ["oldest", "newest", Column(header="expires soon", right=True)]
    rows = [
        (
            one.category,
            one.signature,
            *((one.tenant or "",) if by_tenant else ()),
            count(one.count),
            count(one.tenants),
            ago(one.oldest, now),
            ago(one.newest, now),
            styled(count(one.expires_soon), "red" if one.expires_soon else ""),
        )
        for one in listed
    ]
    asked.out.say(table(columns, rows), "", f"{len(found.jobs):,} failed jobs in {len(listed):,} cohorts.")
    if soon:
        first = min(one.first_expiry for one in listed if one.first_expiry is not None)
        asked.out.warn(
            f"{soon:,} of them go within {cohort.WARN_DAYS} days, the first {ago(first, now)}: replay or dismiss them."
        )
    _warn_unread(asked, found)


@command(app, "show", examples=("penstock dlq show 3d0a…",))
def show(asked: Asked, job_id: Id) -> None:
    """Show one failed job, and what may be done about it."""
    from shared.core.redrive import obstacle

    stage = asked.stage()
    job = job_of(stage, job_id)
    if job.status is not Status.FAILED:
        raise BadInput("job", f"{job.job_id} is {job.status}, no dead letter: use `penstock jobs show`")
    effects = stage.effects.of_job(job.job_id)
    events = stage.history.of(f"job/{job.job_id}", limit=100)
    now = stage.clock.now()
    problem = obstacle(job, effects, now)
    if asked.out.json:
        asked.out.document(
            {
                "job": job,
                "effects": effects,
                "history": job_pages.timeline(job, events),
                "expires_soon": cohort.expires_soon(job, now),
                "replayable": problem is None,
                "obstacle": problem,
            }
        )
        return
    asked.out.say(*job_pages.page(job, effects, events, now), "")
    if problem is None:
        asked.out.say(f"It can be replayed: penstock redrive plan {job.lane} --job {job.job_id} --cause …")
    else:
        asked.out.say(styled(f"It cannot be replayed: {problem}.", "yellow"))
    if cohort.expires_soon(job, now):
        asked.out.warn(f"Its row goes {ago(job.expires_at, now)}: replay or dismiss it before that.")


@command(app, "export", examples=("penstock dlq export support --to failed.jsonl",))
def export(
    asked: Asked,
    lane: Lane,
    to: Annotated[str, typer.Option("--to", metavar="FILE", help="Must not exist yet.", show_default=False)],
    category: CategoryOption = None,
    signature: SignatureOption = None,
    tenant: TenantOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
) -> None:
    """Write failed jobs to a file, one JSON line each: ids, codes and times, nothing a customer wrote."""
    stage = asked.stage()
    found = find(asked, stage, chosen_of(stage.clock.now(), lane, category, signature, tenant, since, until))
    _export(found.jobs, Path(to))
    if asked.out.json:
        asked.out.document({"exported": len(found.jobs), "to": to, **_unread(found)})
        return
    asked.out.say(styled(f"{len(found.jobs):,} failed jobs of lane {lane} are in {to}.", "green"))
    _warn_unread(asked, found)


def _export(jobs: Sequence[Job], to: Path) -> None:
    """Never over a file that is there: an export is kept as evidence. A part of one is none, and does not stay."""
    stream = to.open("x", encoding="utf-8")
    try:
        with stream:
            for job in jobs:
                stream.write(json.dumps(exported(job), separators=(",", ":")) + "\n")
    except OSError as exc:
        to.unlink(missing_ok=True)
        raise OSError(exc.errno, exc.strerror, str(to)) from None


@command(app, "dismiss", examples=('penstock dlq dismiss 3d0a… 77b1… --why "the customer withdrew it"',))
def dismiss(
    asked: Asked,
    job_ids: Annotated[list[str], typer.Argument(metavar="ID...", help="Whole ids.", show_default=False)],
    why: Annotated[str, typer.Option("--why", help="Why, in a few words; kept with your name.", show_default=False)],
) -> None:
    """Close failed jobs for good. They are not replayed any more; who did it and why is kept.

    Each is done on its own: one that is refused is named with the reason and stops no other. Ends with 1 then.
    """
    from shared.usecases.dismiss import dismiss as close
    from shared.usecases.steer import reason_of

    stage = asked.stage()
    reason = reason_of(why)
    refused: list[tuple[str, str]] = []
    done: list[str] = []
    for job_id in dict.fromkeys(map(whole_id, job_ids)):
        try:
            close(
                job_id,
                by=stage.caller.arn,
                why=reason,
                jobs=stage.jobs,
                effects=stage.effects,
                history=stage.history,
                lanes=stage.lanes,
                clock=stage.clock,
            )
            done.append(job_id)
        except PenstockError as exc:
            refused.append((job_id, problem_of(exc).sentence))
    if asked.out.json:
        asked.out.document({"dismissed": done, "refused": [{"job_id": one, "why": text} for one, text in refused]})
    else:
        for job_id in done:
            asked.out.say(styled(f"dismissed {job_id}", "green"))
        for _, sentence in refused:
            asked.out.warn(sentence)
    if refused:
        raise typer.Exit(1)


def exported(job: Job) -> dict[str, Any]:
    """What an export says of a failed job. The key is left out: producers choose it, and it may name a person."""
    return {
        "job_id": job.job_id,
        "lane": job.lane,
        "tenant": job.tenant,
        "task": job.task,
        "category": plain(job.category),
        "signature": cohort.signature_of(job),
        "created_at": plain(job.created_at),
        "failed_at": plain(cohort.failed_at(job)),
        "expires_at": plain(job.expires_at),
        "attempt_count": job.attempt_count,
        "replay_count": job.replay_count,
        "plan_id": job.plan_id,
    }


def chosen_of(
    now: datetime,
    lane: str,
    category: Category | None,
    signature: str | None,
    tenant: str | None,
    since: str | None,
    until: str | None,
    job_id: str | None = None,
) -> Chosen:
    """What the options mean."""
    begins, ends = between(since, until, now)
    if signature not in (None, cohort.NO_SIGNATURE) and not is_code(signature):
        raise BadInput("signature", f"is no error code: `penstock dlq list {lane}` shows those there are")
    return Chosen(
        lane=lane,
        category=category,
        signature=signature,
        tenant=tenant_of(tenant),
        since=begins,
        until=ends,
        job_id=None if job_id is None else whole_id(job_id),
    )


def find(asked: Asked, stage: Stage, chosen: Chosen) -> FailedJobs:
    """The failed jobs that are meant, with progress while the table is read."""
    from shared.usecases.find_failed import find_failed

    stage.lane(chosen.lane)
    seen = 0

    def note() -> None:
        nonlocal seen
        seen += 1
        if seen % 200 == 0:
            tell(f"{seen:,} rows read")

    with asked.out.working("reading failed jobs") as tell:
        return find_failed(chosen, stage.watched_jobs(note))


def _unread(found: FailedJobs) -> dict[str, int]:
    return {"unreadable": found.unreadable} if found.unreadable else {}


def _warn_unread(asked: Asked, found: FailedJobs) -> None:
    if found.unreadable:
        asked.out.warn(f"{found.unreadable:,} rows cannot be read, so nobody can tell what they are; see `audit`.")
