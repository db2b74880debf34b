"""`penstock audit`: is every job in exactly one state and on its way? With --repair, mend what is not."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ops.cli.command import Asked
from ops.cli.show import Column, count, styled, table

if TYPE_CHECKING:
    from ops.cli.stage import Stage
    from shared.usecases.audit import AuditReport

EXAMPLES = ("penstock audit", "penstock audit --repair", "penstock audit --segments 8 --json")
UNTOUCHED_S, PATIENCE_S = 3600, 50
MOST_S = 400 * 86_400
SUBJECT = "audit"


def audit(
    asked: Asked,
    repair: Annotated[bool, typer.Option("--repair", help="Mend what is found, under a second look.")] = False,
    segments: Annotated[int, typer.Option("--segments", min=1, max=1000, help="Read the table in so many parts.")] = 1,
    untouched_s: Annotated[
        int,
        typer.Option(
            "--untouched-s", min=0, max=MOST_S, help="A queued job without a message is suspect after so long."
        ),
    ] = UNTOUCHED_S,
    wait_s: Annotated[
        int, typer.Option("--wait-s", min=0, max=3600, help="Wait so long for dead letters that somebody has in hand.")
    ] = PATIENCE_S,
) -> None:
    """Read every job and say what does not add up.

    A job without its message or its place in line, a claim of a dead worker, a failed job without its dead letter, one
    whose batch is gone. Ends with 1 when something is found that was not repaired, with 3 when nothing is and some dead
    letters could not be looked at. A repair only does again what is harmless twice.
    """
    from ops.cli.stage import SilentTelemetry
    from shared.usecases.audit import Auditor

    stage = asked.stage()
    seen = 0

    def note() -> None:
        nonlocal seen
        seen += 1
        if seen % 200 == 0:
            tell(f"{seen:,} jobs read")

    auditor = Auditor(
        lanes=stage.lanes,
        jobs=stage.watched_jobs(note),
        effects=stage.effects,
        queues=stage.queues,
        dead_letters=stage.dead_letters,
        clock=stage.clock,
        telemetry=SilentTelemetry(),
        batches=stage.batches,
        patience_s=wait_s,
    )
    with asked.out.working("reading every job") as tell:
        report = auditor.run(repair=repair, segments=segments, untouched_s=untouched_s)
    if any(finding.repaired for finding in report.findings):
        _keep(stage, report)
    if asked.out.json:
        asked.out.document(document(report))
    else:
        _tell(asked, report, repair)
    if any(not finding.repaired for finding in report.findings):
        raise typer.Exit(1)
    if not report.checked:
        raise typer.Exit(3)


def document(report: AuditReport) -> dict[str, Any]:
    """A report, for programs."""
    return {
        "jobs": report.jobs,
        "by_status": dict(report.by_status),
        "by_lane": dict(report.by_lane),
        "conserved": report.conserved,
        "checked": report.checked,
        "unchecked": dict(report.unchecked),
        "findings": [
            {
                "job_id": finding.job_id,
                "lane": finding.lane,
                "fault": finding.fault.name.lower(),
                "is": finding.fault.value,
                "repair": finding.fault.repair,
                "repaired": finding.repaired,
            }
            for finding in report.findings
        ],
    }


def _keep(stage: Stage, report: AuditReport) -> None:
    """A person mended something: that goes into the history."""
    from shared.core.history import HistoryEvent

    stage.history.append(
        HistoryEvent(
            subject=SUBJECT,
            event_id=uuid.uuid4().hex,
            at=stage.clock.now(),
            kind="repair",
            by=stage.caller.arn,
            detail=report.counts(),
        )
    )


def _tell(asked: Asked, report: AuditReport, repair: bool) -> None:
    number = Column(header="jobs", right=True)
    by_status = [(name, count(many)) for name, many in sorted(report.by_status.items())]
    by_lane = [(name, count(many)) for name, many in sorted(report.by_lane.items())]
    asked.out.say(table(["status", number], [*by_status, ("in all", f"{report.jobs:,}")]), "")
    if len(by_lane) > 1:
        asked.out.say(table(["lane", number], by_lane), "")
    if report.findings:
        rows = [
            (
                finding.job_id,
                finding.lane,
                finding.fault.value,
                styled("repaired: " + finding.fault.repair, "green") if finding.repaired else finding.fault.repair,
            )
            for finding in report.findings
        ]
        columns: list[str | Column] = [Column(header="job", whole=True), "lane", "is", "repair"]
        asked.out.say(table(columns, rows), "")
    mended = sum(finding.repaired for finding in report.findings)
    left = len(report.findings) - mended
    for lane, unchecked in sorted(report.unchecked.items()):
        asked.out.warn(
            f"{lane}: {unchecked:,} failed jobs could not be compared with their dead letters, since somebody has"
            " letters in hand or too many stand there; nothing was sent for them."
        )
    if report.conserved:
        asked.out.say(styled("conserved: yes. Every job is in one state, and none is stranded.", "green"))
    elif left == 0 and not report.checked:
        asked.out.say(styled(f"conserved: unchecked. {mended} found and repaired; run it again in a minute.", "yellow"))
    elif left == 0:
        asked.out.say(styled(f"conserved: again. {mended} found, {mended} repaired.", "green"))
    else:
        hint = "look at them one by one" if repair else "run it again with --repair"
        asked.out.say(
            styled(f"conserved: no. {len(report.findings)} found, {mended} repaired, {left} left: {hint}.", "red")
        )
