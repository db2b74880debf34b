"""`penstock runs`: what the scheduled functions did, newest first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ops.cli.command import Asked
from ops.cli.show import NOTHING, Column, ago, span, table
from shared.contract import names
from shared.core.errors import BadInput

if TYPE_CHECKING:
    from ops.cli.stage import Stage
    from shared.core.schedule import RunRecord

UNFINISHED_S = 900
"""No function runs longer than this: a run that never closed has died."""


EXAMPLES = ("penstock runs dispatcher", "penstock runs support --limit 5", "penstock runs --json")


def runs(
    asked: Asked,
    which: Annotated[
        str | None,
        typer.Argument(
            metavar="LANE|SCHEDULE",
            help=f"A lane, or one of {', '.join(names.SCHEDULED)}. Without it: every schedule.",
            show_default=False,
        ),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=1000, help="At most so many runs.")] = 20,
) -> None:
    """Show what the scheduled functions did, newest first.

    For a lane, the runs of every schedule with that lane's counts alone. In JSON: one line a run.
    """
    stage = asked.stage()
    schedules, lane = _meant(stage, which)
    found = [run for schedule in schedules for run in stage.ledger.runs(schedule, limit=limit)]
    found.sort(key=lambda run: run.started_at, reverse=True)
    if asked.out.json:
        for run in found[:limit]:
            asked.out.line(document(run, lane))
        return
    if not found:
        asked.out.say("No run is recorded. Is the schedule enabled? `penstock doctor` looks.")
        return
    now = stage.clock.now()
    rows = [
        (ago(run.started_at, now), run.schedule, run.slot, took(run, now), said(counts(run, lane)))
        for run in found[:limit]
    ]
    asked.out.say(table(["started", "schedule", "slot", Column(header="took", right=True), "counted"], rows))


def document(run: RunRecord, lane: str | None = None) -> dict[str, Any]:
    """A run, for programs."""
    return {
        "schedule": run.schedule,
        "slot": run.slot,
        "run_id": run.run_id,
        "started_at": run.started_at,
        "finished_at": run.finished_at,
        "counts": counts(run, lane),
    }


def counts(run: RunRecord, lane: str | None) -> Mapping[str, int]:
    """What a run counted; of one lane only when it is given, under the lane's own names then."""
    if lane is None:
        return run.counts
    prefix = f"{lane}."
    return {name.removeprefix(prefix): count for name, count in run.counts.items() if name.startswith(prefix)}


def took(run: RunRecord, now: Any) -> str:
    """How long a run took, or that it has not ended."""
    if run.finished_at is not None:
        return span((run.finished_at - run.started_at).total_seconds())
    return "running" if (now - run.started_at).total_seconds() < UNFINISHED_S else "never ended"


def said(counted: Mapping[str, int]) -> str:
    """Counts on one line; what is zero is left out."""
    return "  ".join(f"{name} {count:,}" for name, count in sorted(counted.items()) if count) or NOTHING


def _meant(stage: Stage, which: str | None) -> tuple[tuple[str, ...], str | None]:
    if which is None:
        return names.SCHEDULED, None
    if which in names.SCHEDULED:
        return (which,), None
    if which in stage.lanes:
        return names.SCHEDULED, which
    known = ", ".join([*names.SCHEDULED, *sorted(stage.lanes)])
    raise BadInput("runs", f"there is no lane or schedule of that name; known: {known}")
