"""`penstock runs`: what the scheduled functions did, one run whole, and a run out of its turn."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ops.cli import run_pages as pages
from ops.cli.command import Asked, command, group
from ops.cli.show import Column, ago, styled, table
from shared.contract import names
from shared.core.errors import BadInput
from shared.core.nearest import unknown

if TYPE_CHECKING:
    from ops.cli.stage import Stage
    from shared.core.batch import Batch
    from shared.core.history import HistoryEvent
    from shared.core.lane import LaneSpec
    from shared.core.schedule import RunRecord

app = group("See what the scheduled functions did; start a lane's run out of its turn.", lists=True)

LOOKED_AT = 1000
"""Runs of one schedule that are looked through for an id, and ended batches for those of a run."""
_ERROR = re.compile(r"[A-Za-z]{1,64}", re.ASCII)


@command(
    app,
    "list",
    examples=(
        "penstock runs rewrite",
        "penstock runs list dispatcher --limit 5",
        "penstock runs rewrite_batch_submitter",
        "penstock runs --json",
    ),
)
def runs(
    asked: Asked,
    which: Annotated[
        str | None,
        typer.Argument(
            metavar="LANE|SCHEDULE",
            help=f"A lane, one of {', '.join(names.SCHEDULED)}, or a lane's own. Without it: every schedule.",
            show_default=False,
        ),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=1000, help="At most so many runs.")] = 20,
) -> None:
    """Show what the scheduled functions did, newest first.

    `list` may be left out. For a lane, the runs of every schedule with that lane's counts alone; for a lane with runs
    of its own, those. In JSON: one line a run.
    """
    stage = asked.stage()
    schedules, lane = _meant(stage, which)
    found = [run for schedule in schedules for run in stage.ledger.runs(schedule, limit=limit)]
    found.sort(key=lambda run: run.started_at, reverse=True)
    if asked.out.json:
        for run in found[:limit]:
            asked.out.line(pages.document(run, lane))
        return
    if not found:
        asked.out.say("No run is recorded. Is the schedule enabled? `penstock doctor` looks.")
        return
    now = stage.clock.now()
    columns: list[str | Column] = ["started", "schedule", "slot"]
    columns += [Column(header="took", right=True), Column(header="run", whole=True), "counted"]
    rows = [
        (
            ago(run.started_at, now),
            run.schedule,
            pages.slot(run),
            pages.took(run, now),
            run.run_id,
            pages.said(pages.counts(run, lane)),
        )
        for run in found[:limit]
    ]
    asked.out.say(table(columns, rows))


@command(app, "show", examples=("penstock runs show 5b1f…", "penstock runs show 5b1f… --json"))
def show(
    asked: Asked,
    run_id: Annotated[str, typer.Argument(metavar="RUN", help="The run's whole id.", show_default=False)],
) -> None:
    """Show one run: when, how long, by whom, what it counted, and its batches.

    Counts in all and for each provider and model, and how often a limit said no. A run that a person started names
    who and why.
    """
    stage = asked.stage()
    with asked.out.working("looking for the run"):
        run = _found(stage, run_id)
        told, begun = _asked_for(stage, run), _batches(stage, run)
    if asked.out.json:
        asked.out.document(pages.whole(run, told, begun))
    else:
        asked.out.say(*pages.page(run, told, begun, stage.clock.now()))


@command(
    app,
    "start",
    examples=(
        'penstock runs start rewrite submitter --why "the provider is back; not waiting for the quarter hour"',
        'penstock runs start rewrite batch_collector --by ann --why "checked with the provider"',
    ),
)
def start(
    asked: Asked,
    lane: Annotated[str, typer.Argument(metavar="LANE", help="A lane with runs.", show_default=False)],
    role: Annotated[
        str, typer.Argument(metavar="ROLE", help="Which of its runs: submitter, collector, …", show_default=False)
    ],
    why: Annotated[str, typer.Option("--why", help="Why, in a few words; kept with your name.", show_default=False)],
    by: Annotated[
        str | None,
        typer.Option(
            "--by", metavar="NAME", show_default=False, help="You, as AWS knows you; anybody else is refused."
        ),
    ] = None,
) -> None:
    """Start one of a lane's runs now, and wait for its end.

    It takes what its schedule would: the same limits, the same switches. Who you are is what AWS says, and that you
    asked is kept before anything starts. While a run of the schedule is going nothing is started. Needs
    lambda:InvokeFunction on the function; nothing else, and nobody without it, starts a run.
    """
    from shared.usecases.start_run import role_of, start_run

    stage = asked.stage()
    spec = stage.lane(lane)
    schedule = names.run(lane, role_of(spec, role))
    caller = stage.caller.arn
    if by is not None and by not in (caller, caller.rpartition("/")[2]):
        raise BadInput("by", f"is not you: AWS knows you as {caller}. Leave --by out, or sign in as the one you name")
    with asked.out.working(f"{schedule} runs"):
        done = start_run(
            schedule,
            by=caller,
            why=why,
            invoke=lambda request: invoked(stage, spec, schedule, request),
            history=stage.history,
            clock=stage.clock,
        )
    if asked.out.json:
        asked.out.document({"schedule": schedule, **_plain(done)})
    elif done.ran:
        run = next((one for one in stage.ledger.runs(schedule, limit=20) if one.run_id == done.run_id), None)
        if run is None:
            asked.out.say(f"{schedule} ran: {pages.said(done.counts)}")
        else:
            asked.out.say(*pages.page(run, _asked_for(stage, run), _batches(stage, run), stage.clock.now()))
    else:
        asked.out.say(styled(f"{schedule} did not run: {STILL_GOING}", "yellow"))
    if not done.ran:
        raise typer.Exit(1)


STILL_GOING = "the run before is still going. See it with `penstock runs list`, and ask again when it has ended."


def invoked(stage: Stage, lane: LaneSpec, schedule: str, request: str) -> Mapping[str, Any]:
    """The function's answer to one request. It is asked once: a second question would be a second run."""
    from botocore.exceptions import ClientError, ReadTimeoutError

    from shared.core.lane import run_of

    wait_s = run_of(lane).function_timeout_s + 5
    try:
        answer = stage.client("lambda", wait_s=wait_s).invoke(
            FunctionName=names.function(stage.name, schedule),
            InvocationType="RequestResponse",
            Payload=json.dumps({"manual": request}).encode(),
        )
    except ReadTimeoutError:
        raise BadInput("runs", f"{schedule} did not answer within {wait_s} s: look with `penstock runs list`") from None
    except ClientError as exc:
        if exc.response.get("Error", {}).get("Code") != "TooManyRequestsException":
            raise
        # It may run once at a time: whoever is at it now has that one place.
        return {"ran": False, "counts": {}}
    data = answer["Payload"].read()
    try:
        told = json.loads(data)
    except ValueError:
        told = None
    if answer.get("FunctionError"):
        # Its message stays unread: only the kind of an error is certainly no text of a customer.
        kind = str(told.get("errorType", "")) if isinstance(told, dict) else ""
        what = kind if _ERROR.fullmatch(kind) else "an error"
        raise BadInput("runs", f"{schedule} ended with {what}: read its log, and see `penstock runs list`")
    return told if isinstance(told, dict) else {}


def _plain(done: Any) -> dict[str, Any]:
    known = {"request_id": done.request_id, "ran": done.ran, "run_id": done.run_id or None, "counts": done.counts}
    return known if done.ran else {**known, "because": "still_going"}


def _meant(stage: Stage, which: str | None) -> tuple[tuple[str, ...], str | None]:
    if which is None:
        return stage.every_schedule, None
    if which in stage.every_schedule:
        return (which,), None
    if which in stage.lanes:
        own = tuple(names.run(which, role) for role in stage.lanes[which].runs)
        return (own, None) if own else (names.SCHEDULED, which)
    raise BadInput("runs", unknown(which, (*stage.every_schedule, *sorted(stage.lanes)), "lanes and schedules"))


def _found(stage: Stage, run_id: str) -> RunRecord:
    # Those of the lanes first: they are fewer, and asked for more often.
    for schedule in reversed(stage.every_schedule):
        for run in stage.ledger.runs(schedule, limit=LOOKED_AT):
            if run.run_id == run_id:
                return run
    raise BadInput("run", f"is none of the last {LOOKED_AT:,} of any schedule: see `penstock runs list`")


def _asked_for(stage: Stage, run: RunRecord) -> HistoryEvent | None:
    from shared.usecases.start_run import subject_of

    request = pages.request_of(run)
    if request is None:
        return None
    events = stage.history.of(subject_of(run.schedule), limit=LOOKED_AT)
    return next((event for event in events if event.detail.get("request") == request), None)


def _batches(stage: Stage, run: RunRecord) -> list[Batch]:
    """The batches that a run began; none for a run that begins none."""
    lane = next((one for one in stage.lanes.values() if run.schedule in _own(one)), None)
    if lane is None:
        return []
    open_ = stage.batches.under_way(lane.name, run_id=run.run_id)
    ended = [one for one in stage.batches.ended(lane.name, limit=LOOKED_AT) if one.run_id == run.run_id]
    return sorted([*open_, *ended], key=lambda batch: batch.tag)


def _own(lane: LaneSpec) -> set[str]:
    return {names.run(lane.name, role) for role in lane.runs}
