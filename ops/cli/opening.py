"""What stands between a closed switch and an open one: the exit checklist, shown, and a person who says yes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ops.cli.show import NOTHING, plain, styled, table
from shared.core.checklist import LaneChecks, failing
from shared.core.switches import Switch
from shared.usecases.set_switch import Opening

if TYPE_CHECKING:
    from rich.table import Table

    from ops.cli.command import Asked
    from ops.cli.stage import Stage

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask on a terminal when everything holds.")]
Anyway = Annotated[
    bool,
    typer.Option(
        "--anyway",
        help="Open although a check does not hold, or close what is no longer configured; kept with your name.",
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Consent:
    """How somebody said that they mean it."""

    yes: bool = False
    anyway: bool = False


def opened(asked: Asked, stage: Stage, scope: str, present: Switch | None, consent: Consent) -> Opening:
    """The checklist of a scope that is to be loosened, shown and agreed to. Ends the command where it is not.

    A terminal is asked. Elsewhere the command is its own answer: a script that names a reason and finds everything in
    order has said what it wants.
    """
    at = stage.clock.now()
    with asked.out.working("looking whether it is calm"):
        checked = tuple(stage.examiner().examine(scope))
    if not asked.out.json:
        asked.out.say(*page(scope, checked), "")
    opening = Opening(checked=checked, present=present, at=at, anyway=consent.anyway)
    if failing(checked) or consent.anyway or consent.yes or not can_be_asked(asked):
        return opening
    asked.out.quiet()
    if not typer.confirm(f"Everything holds. Open {scope} in stage {stage.name}?", err=True):
        raise typer.Abort
    return opening


def can_be_asked(asked: Asked) -> bool:
    """True where a person sits at the other end."""
    return not asked.out.json and sys.stdin.isatty()


def page(scope: str, checked: Sequence[LaneChecks]) -> list[Table | str]:
    """The checklist, for people."""
    if not checked:
        return [f"No deployed lane is under {scope}: there is nothing to check."]
    rows = [
        (
            one.lane if number == 0 else "",
            styled("✓", "green") if check.holds else styled("✗", "bold red"),
            check.name.replace("_", " "),
            check.asks,
            check.seen or NOTHING,
        )
        for one in checked
        for number, check in enumerate(one.checks)
    ]
    return [table(["lane", "", "check", "asks for", "seen"], rows)]


def document(checked: Sequence[LaneChecks]) -> list[dict[str, Any]]:
    """The checklist, for programs."""
    return [{**plain(one), "holds": not one.failing} for one in checked]
