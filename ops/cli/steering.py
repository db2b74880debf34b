"""`penstock jobs cancel`, `schedule` and `reset`: what an operator does to jobs, with who and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ops.cli.command import Asked, command
from ops.cli.jobs import Id, app, tenant_of, whole_id
from ops.cli.moments import moment_of, span_of
from ops.cli.show import ago, styled
from shared.core.job import Job, Status, time_after
from shared.core.liveness import others_gone_at

if TYPE_CHECKING:
    from ops.cli.stage import Stage

Why = Annotated[str, typer.Option("--why", help="Why, in a few words; kept with your name.", show_default=False)]


@command(app, "cancel", examples=('penstock jobs cancel 3d0a… --why "sent by hand"',))
def cancel(asked: Asked, job_id: Id, why: Why) -> None:
    """Withdraw a job that has not begun to send. A failed job is dismissed by this, too.

    A running one is taken back, and canceled once its worker is certainly gone: the command waits for that, a few
    minutes at most. Stopped while it waits, it can be given again.
    """
    from shared.core.errors import BadInput
    from shared.usecases import steer

    stage = asked.stage()

    def ask() -> steer.Withdrawal:
        return steer.cancel(
            whole_id(job_id),
            by=stage.caller.arn,
            why=why,
            jobs=stage.jobs,
            effects=stage.effects,
            history=stage.history,
            lanes=stage.lanes,
            clock=stage.clock,
        )

    answer = ask()
    if answer.begun:
        raise BadInput(
            "job",
            f"{answer.job.job_id} is not canceled: its worker had just begun {', '.join(answer.begun)}. It is held,"
            f" and its next attempt, {_when(answer.job, stage)}, finds out what came of it",
        )
    while answer.again_at is not None:
        wait_s = max(0.0, (answer.again_at - stage.clock.now()).total_seconds())
        with asked.out.working(f"waiting for its worker to be gone, {ago(answer.again_at, stage.clock.now())}"):
            stage.clock.sleep(wait_s)
        answer = ask()
    _moved(asked, answer.job, f"canceled {answer.job.job_id}")


@command(
    app,
    "schedule",
    examples=(
        'penstock jobs schedule 3d0a… --in 90s --why "vendor asked for a pause"',
        'penstock jobs schedule 3d0a… --now --why "the vendor is back"',
        'penstock jobs schedule --file ids.txt --in 2h --why "vendor is down"',
        'penstock jobs schedule --lane extraction --blocked-by vendor:openai --in 2h --why "quota is used up"',
    ),
)
def schedule(
    asked: Asked,
    why: Why,
    job_id: Annotated[str | None, typer.Argument(metavar="ID", help="One job's whole id.", show_default=False)] = None,
    at: Annotated[str | None, typer.Option("--at", metavar="TIME", show_default=False, help="ISO 8601, zoned.")] = None,
    in_: Annotated[
        str | None, typer.Option("--in", metavar="SPAN", show_default=False, help="From now: 90s, 5m, 2h, 1d.")
    ] = None,
    now: Annotated[bool, typer.Option("--now", help="As soon as the gates allow.")] = False,
    file: Annotated[
        str | None, typer.Option("--file", "-f", metavar="FILE", show_default=False, help="One id a line; - for input.")
    ] = None,
    lane: Annotated[str | None, typer.Option("--lane", "-l", show_default=False, help="All of this lane.")] = None,
    state: Annotated[
        Status, typer.Option("--status", help="With --lane; only queued jobs have a time.")
    ] = Status.QUEUED,
    tenant: Annotated[str | None, typer.Option("--tenant", "-t", show_default=False, help="With --lane.")] = None,
    blocked_by: Annotated[
        str | None,
        typer.Option("--blocked-by", metavar="REASON", show_default=False, help="With --lane: what holds them."),
    ] = None,
    resume: Annotated[
        str | None, typer.Option("--resume", metavar="RUN", show_default=False, help="Go on with an earlier run.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask, however many there are.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count what would be changed; change nothing.")] = False,
) -> None:
    """Give queued jobs another time: one, those of a file, or those of a lane. They still pass every gate.

    A run over many accounts for every line: changed, or why not. It can be given again: nothing is changed twice,
    and an interrupted run prints the command that goes on with it. Ends with 1 when some could not be reached.
    """
    from ops.cli.schedule_jobs import Many, schedule_many
    from shared.core.bulk import Selection
    from shared.usecases import steer

    if [at is not None, in_ is not None, now].count(True) != 1:
        raise typer.BadParameter("give exactly one of --at, --in and --now")
    if [job_id is not None, file is not None, lane is not None].count(True) != 1:
        raise typer.BadParameter("give exactly one of ID, --file and --lane")
    if lane is None and (tenant is not None or blocked_by is not None):
        raise typer.BadParameter("--tenant and --blocked-by need --lane")
    if state is not Status.QUEUED:
        raise typer.BadParameter(f"--status {state}: only queued jobs can be given another time")
    if resume is not None and at is None:
        raise typer.BadParameter("--resume needs the --at of the run: use the command it printed")
    stage = asked.stage()
    moment = stage.clock.now()
    if at is not None:
        moment = moment_of("at", at)
    elif in_ is not None:
        moment = time_after("in", span_of("in", in_).total_seconds(), moment)
    if job_id is None:
        selection = None if lane is None else Selection(lane=lane, tenant=tenant_of(tenant), blocked_by=blocked_by)
        many = Many(file=file, selection=selection, why=why, resume=resume, yes=yes, dry_run=dry_run)
        schedule_many(asked, many, stage, moment)
        return
    if resume is not None or dry_run:
        raise typer.BadParameter("--resume and --dry-run are for many jobs")
    after = steer.schedule(
        whole_id(job_id),
        moment,
        by=stage.caller.arn,
        why=why,
        jobs=stage.jobs,
        history=stage.history,
        clock=stage.clock,
    )
    _moved(asked, after, f"scheduled {after.job_id}: it may run {_when(after, stage)}")


@command(
    app,
    "reset",
    examples=(
        'penstock jobs reset 3d0a… --why "its worker hangs"',
        'penstock jobs reset 3d0a… --in 10m --why "prompt is being fixed"',
    ),
)
def reset(
    asked: Asked,
    job_id: Id,
    why: Why,
    in_: Annotated[
        str | None, typer.Option("--in", metavar="SPAN", show_default=False, help="Not before: 90s, 5m, 2h, 1d.")
    ] = None,
) -> None:
    """Take a running job back from its worker, which can no longer finish it.

    No attempt is used; it runs again once that worker is certainly gone. A job that has begun to send and has no
    answer yet is refused. What its worker asks of a vendor in this very moment is not stopped; the job's next attempt
    finds out, and sends nothing twice.
    """
    from shared.usecases import steer

    delay_s = 0.0 if in_ is None else span_of("in", in_).total_seconds()
    stage = asked.stage()
    time_after("in", delay_s, stage.clock.now())
    taken = steer.reset_to_pending(
        whole_id(job_id),
        delay_s,
        by=stage.caller.arn,
        why=why,
        jobs=stage.jobs,
        effects=stage.effects,
        history=stage.history,
        clock=stage.clock,
    )
    if asked.out.json:
        asked.out.document({"job": taken.job, "begun": taken.begun})
        return
    _moved(asked, taken.job, f"taken back {taken.job.job_id}: it may run {_when(taken.job, stage)}")
    if taken.begun:
        asked.out.warn(
            f"Its worker had just begun {', '.join(taken.begun)}: the next attempt finds out what came of it."
        )


def _when(job: Job, stage: Stage) -> str:
    """From when on it may run: at its time, and once the worker it was taken from is gone."""
    now, lane = stage.clock.now(), stage.lanes.get(job.lane)
    gone_at = None if lane is None else others_gone_at(job, lane)
    at = max(job.runnable_at, gone_at or now)
    return ago(at, now) if at > now else "now"


def _moved(asked: Asked, after: Job, sentence: str) -> None:
    if asked.out.json:
        asked.out.document({"job": after})
    else:
        asked.out.say(styled(sentence, "green"))
