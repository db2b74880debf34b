"""`penstock doctor`: is this stage fit to work? One line a check, each with what to do about it."""

from __future__ import annotations

from collections import Counter

import typer

from ops.cli.command import Asked
from ops.cli.show import styled, table

EXAMPLES = ("penstock doctor", "penstock doctor --stage prod --json")
STYLE = {"ok": "green", "warn": "yellow", "fail": "bold red", "skip": "dim"}


def doctor(asked: Asked) -> None:
    """Check whether a stage is fit to work.

    Credentials, stacks, tables, mappings and their caps, the stream, the quota, secrets, alarms and who hears
    them, dead letters, schedules and their runs; each line with what to do. Ends with 1 when a check fails.
    Where an emulator lacks something, the line says skip and why.
    """
    from ops.cli.checks.checkup import lines_of

    stage = asked.stage()
    with asked.out.working(f"looking at {stage.name}") as tell:
        lines = []
        for line in lines_of(stage):
            tell(line.about)
            lines.append(line)
    marks = Counter(line.mark.value for line in lines)
    if asked.out.json:
        asked.out.document({"stage": stage.name, "ok": not marks["fail"], "checks": lines})
    else:
        rows = [
            (
                styled(line.mark.value, STYLE[line.mark.value]),
                line.about,
                styled(line.found) + styled(f"\n→ {line.todo}" if line.todo else "", "dim"),
            )
            for line in lines
        ]
        asked.out.say(table(["", "check", "found"], rows), "")
        summary = ", ".join(f"{marks[mark]} {mark}" for mark in STYLE if marks[mark])
        asked.out.say(styled(f"{stage.name}: {summary}", STYLE["fail"] if marks["fail"] else STYLE["ok"]))
    if marks["fail"]:
        raise typer.Exit(1)
