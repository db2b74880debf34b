"""`penstock validate`: after an incident, prove that it is over and that nothing was done that must not be."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ops.cli.command import Asked
from ops.cli.moments import WHEN, between
from ops.cli.show import plain, styled, table
from shared.contract import names
from shared.core.errors import BadInput
from shared.core.lane import LaneSpec

if TYPE_CHECKING:
    from ops.cli.stage import Stage
    from shared.core.validation_facts import Check, Facts, Verdict
    from shared.core.vendor import VendorSpec

EXAMPLES = (
    "penstock validate support --since 3h",
    "penstock validate support --since 2026-05-01T21:00Z --until 2026-05-02T03:00Z --to report",
    "penstock validate support --incident 3f9c01ab --sample 2000 --json",
)
INCOMPLETE = 3
"""How it ends when something could not be checked."""
SHARE = 0.5
"""Of an account's pace: the lane's own calls come first, and its vendor has just been ill."""
THREADS = 16
MOST = 1_000_000
FILES = ("report.md", "report.json", "timeline.svg")


def validate(
    asked: Asked,
    lane: Annotated[
        str,
        typer.Argument(metavar="LANE", help="The lane that had the incident.", show_default=False),
    ],
    since: Annotated[
        str | None,
        typer.Option("--since", metavar="T", help=f"{WHEN}.", show_default=False),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option("--until", metavar="T", help="A time, or how long ago. Default: now.", show_default=False),
    ] = None,
    incident: Annotated[
        str | None,
        typer.Option("--incident", metavar="ID", help="This incident; its time, if none is given.", show_default=False),
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option("--to", metavar="DIR", help="Default: ./validation-LANE-TIME.", show_default=False),
    ] = None,
    sample: Annotated[
        int | None,
        typer.Option(
            "--sample",
            metavar="N",
            min=1,
            max=MOST,
            help="Look up only N effects at their vendors.",
            show_default=False,
        ),
    ] = None,
    marker: Annotated[
        list[str] | None,
        typer.Option("--marker", metavar="WORD", help="A word of yours that no log may hold.", show_default=False),
    ] = None,
) -> None:
    """Write a report on what an incident left behind: double sends, forbidden answers, leaks, changes, replays.

    Reads rows, vendors' records, history and logs; changes nothing. Ends with 0 when every check passes, with 1 when
    one fails, with 3 when none fails and something could not be checked.
    """
    from ops.report.timeline import draw, moments
    from shared.core.validation import judged, overall
    from shared.core.validation_facts import Verdict

    stage = asked.stage()
    begins, ends = _span(stage, lane, since, until, incident)
    folder = to or Path(f"validation-{lane}-{stage.clock.now():%Y%m%dT%H%M%SZ}")
    if any((folder / name).exists() for name in FILES):
        raise BadInput("to", f"{folder} holds a report already: choose another folder")
    with asked.out.working("gathering") as tell:
        validator = _validator(stage, stage.lane(lane), tell)
        _check_can_be(folder)
        facts = validator.facts(begins, ends, incident_id=incident, sample=sample, markers=marker or ())
        checks = judged(facts)
        verdict = overall(checks)
        tell("writing")
        folder.mkdir(parents=True, exist_ok=True)
        written = document(facts, checks, verdict, stage)
        draw(facts, folder / "timeline.svg")
        (folder / "report.json").write_text(json.dumps(plain(written), indent=1) + "\n")
        (folder / "report.md").write_text(_page(facts, checks, verdict, moments(facts), stage))
    if asked.out.json:
        asked.out.document({**written, "files": [str(folder / name) for name in FILES]})
    else:
        _tell(asked, checks, verdict, folder)
    if verdict is not Verdict.PASS:
        raise typer.Exit(1 if verdict is Verdict.FAIL else INCOMPLETE)


def _check_can_be(folder: Path) -> None:
    """Before the long part: a folder that cannot be is told at once, and none is left behind by what is refused."""
    there = next(one for one in (folder, *folder.absolute().parents) if one.exists())
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        raise BadInput("to", f"{folder} cannot be made: {there} is no folder that you may write to")


def document(facts: Facts, checks: tuple[Check, ...], verdict: Verdict, stage: Stage) -> dict[str, Any]:
    """A report, for programs."""
    from ops.report.timeline import moments

    return {
        "lane": facts.lane.name,
        "stage": stage.name,
        "since": facts.since,
        "until": facts.until,
        "made_at": facts.at,
        "made_by": stage.caller.arn,
        "verdict": verdict.whole,
        "incidents": [{"incident_id": one.incident_id, **plain(one)} for one in facts.incidents],
        "checks": [{**plain(one), "verdict": one.verdict.value} for one in checks],
        "changes": facts.changes,
        "replays": [
            {"plan": one.plan, "tried": one.progress.tried, "counts": one.progress.counts, "ended": one.progress.ended}
            for one in facts.replays.values()
        ],
        "timeline": moments(facts),
        "log_lines": facts.lines,
        "sampled_from": facts.sampled_from,
    }


def _page(facts: Facts, checks: tuple[Check, ...], verdict: Verdict, timeline: list[Any], stage: Stage) -> str:
    from ops.report.markdown import page

    return page(facts, checks, verdict, timeline, stage=stage.name, by=stage.caller.arn)


def _span(
    stage: Stage, lane: str, since: str | None, until: str | None, incident: str | None
) -> tuple[datetime, datetime]:
    """From when to when: as said, else the time of the incident."""
    from shared.core.validation import LEEWAY
    from shared.usecases.keep_incident import incidents_of
    from shared.usecases.validate import chosen

    now = stage.clock.now()
    begins, ends = between(since, until, now)
    if begins is None and incident is None:
        raise typer.BadParameter("give --since, or the incident with --incident")
    if begins is None:
        found = incidents_of(stage.lane(lane).name, history=stage.history, clock=stage.clock)
        (meant,) = chosen(found, now, now, incident)
        begins = meant.opened_at - LEEWAY
        ends = ends or (None if meant.closed_at is None else min(now, meant.closed_at + LEEWAY))
    return begins, min(ends or now, now)


def _validator(stage: Stage, lane: LaneSpec, tell: Any) -> Any:
    from ops.cli.stage import SilentTelemetry
    from shared.adapters.aws.clients import client
    from shared.adapters.aws.effects import DynamoDbEffectStore
    from shared.adapters.aws.history import DynamoDbHistory
    from shared.adapters.aws.logs import CloudWatchLogs
    from shared.runtime.wiring import vendors
    from shared.usecases.audit import Auditor
    from shared.usecases.validate import Validator

    gaps: dict[str, list[str]] = {}
    lane, known = _told(stage, lane, gaps)
    dynamodb = client("dynamodb", connections=THREADS)
    auditor = Auditor(
        lanes=stage.lanes,
        jobs=stage.jobs,
        effects=stage.effects,
        queues=stage.queues,
        dead_letters=stage.dead_letters,
        clock=stage.clock,
        telemetry=SilentTelemetry(),
        batches=stage.batches,
    )
    return Validator(
        lane=lane,
        jobs=stage.jobs,
        effects=DynamoDbEffectStore(client=dynamodb, table_name=stage.table("effects")),
        history=DynamoDbHistory(client=dynamodb, table_name=stage.table("history")),
        plans=stage.plans,
        vendors=vendors(known, None if lane.secret is None else names.secret(stage.name, lane.secret)),
        logs=CloudWatchLogs(client=client("logs", connections=THREADS)),
        groups=_groups(stage, lane, gaps),
        auditor=auditor,
        clock=stage.clock,
        per_minute=_paces(stage, lane) if known else {},
        threads=THREADS,
        tell=tell,
        gaps={name: tuple(some) for name, some in gaps.items()},
    )


def _told(stage: Stage, lane: LaneSpec, gaps: dict[str, list[str]]) -> tuple[LaneSpec, Mapping[str, VendorSpec]]:
    """The lane with what its events may be about, and where its vendors are: what its worker is told."""
    from botocore.exceptions import BotoCoreError, ClientError

    why = "the stage was deployed before it told tools of this: deploy it again"
    try:
        vendors, routing = stage.vendors, stage.routing
    except (ClientError, BotoCoreError, BadInput) as exc:
        vendors = routing = None
        why = f"what the lane's worker is told could not be read ({_code(exc)})"
    if vendors is None or routing is None:
        gaps.setdefault("effects", []).append(f"{why}: no vendor was asked")
        gaps.setdefault("tier_0", []).append(f"{why}: which intents only people answer is not known")
        return lane, {}
    return replace(lane, routing=routing.get(lane.name)), {name: vendors[name] for name in lane.vendors}


def _workers(lane: LaneSpec) -> list[str]:
    """The functions that work on the lane's jobs: its worker, or those of its runs."""
    return [names.run(lane.name, role) for role in lane.runs] or [names.worker(lane.name)]


def _groups(stage: Stage, lane: LaneSpec, gaps: dict[str, list[str]]) -> list[str]:
    """The log groups of every function that handles the lane's jobs, its worker's first."""
    from botocore.exceptions import BotoCoreError, ClientError

    parts = [*_workers(lane), *([names.intake(lane.name)] if lane.intake else []), *names.ENGINE_FUNCTIONS]
    groups = []
    for part in parts:
        group = f"/aws/lambda/{names.function(stage.name, part)}"
        try:
            group = _function(stage, part).get("LoggingConfig", {}).get("LogGroup") or group
        except (ClientError, BotoCoreError) as exc:
            gaps.setdefault("leaks", []).append(f"where {part} writes its log is not known ({_code(exc)})")
        groups.append(group)
    return groups


def _function(stage: Stage, part: str) -> dict[str, Any]:
    told: dict[str, Any] = stage.client("lambda").get_function_configuration(
        FunctionName=names.function(stage.name, part)
    )
    return told


def _paces(stage: Stage, lane: LaneSpec) -> dict[str, int]:
    """Look-ups a minute that each vendor is asked, from the account that the lane spends there."""
    return {
        account.vendor: max(1, int(SHARE * account.requests_per_minute * 60 / account.minute_s))
        for account in map(stage.accounts.__getitem__, lane.accounts)
        if account.requests_per_minute
    }


def _code(exc: Exception) -> str:
    from botocore.exceptions import BotoCoreError, ClientError

    from shared.adapters.aws.errors import code_of

    return code_of(exc) if isinstance(exc, ClientError | BotoCoreError) else str(getattr(exc, "field", "unreadable"))


def _tell(asked: Asked, checks: tuple[Check, ...], verdict: Verdict, folder: Path) -> None:
    from shared.core.validation_facts import Verdict

    colour = {Verdict.PASS: "green", Verdict.FAIL: "red", Verdict.INCOMPLETE: "yellow"}
    rows = [(styled(one.verdict.value, colour[one.verdict]), one.title, _first(one)) for one in checks]
    asked.out.say(table(["", "check", "first finding"], rows), "")
    sentence = {
        Verdict.PASS: "Every check passes.",
        Verdict.FAIL: "The validation fails.",
        Verdict.INCOMPLETE: "The validation is incomplete: nothing fails, and something could not be checked.",
    }[verdict]
    asked.out.say(styled(sentence, colour[verdict]))
    asked.out.say(f"Read {folder / 'report.md'}")


def _first(check: Check) -> str:
    if check.violations:
        return f"{check.violations[0].where}: {check.violations[0].what}"
    return check.unchecked[0] if check.unchecked else ""
