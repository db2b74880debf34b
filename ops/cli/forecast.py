"""`penstock forecast`: when a lane's backlog will be done, and what another cap would change."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

import typer

from ops.cli.command import Asked
from ops.cli.show import NOTHING, pairs, soon, styled
from shared.core.errors import BadInput
from shared.core.forecast import Forecast, Outlook

if TYPE_CHECKING:
    from datetime import datetime

EXAMPLES = ("penstock forecast support", "penstock forecast support --what-if cap=12")
_WHAT_IF = re.compile(r"cap=(\d{1,4})")


def forecast(
    asked: Asked,
    lane: Annotated[str, typer.Argument(metavar="LANE", show_default=False, help="The lane.")],
    what_if: Annotated[
        str | None,
        typer.Option("--what-if", metavar="cap=N", show_default=False, help="As if so many invocations ran at once."),
    ] = None,
) -> None:
    """Say when a lane's backlog will be done, or why it will not be.

    From what waits, what came and was done in the last minutes, the cap, and what the vendor accounts let pass.
    """
    from shared.usecases.foresee import Forecaster

    stage, cap = asked.stage(), cap_of(what_if)
    spec = stage.lane(lane)
    found = Forecaster(
        jobs=stage.jobs,
        queues=stage.queues,
        signals=stage.signals,
        ledger=stage.ledger,
        control=stage.control,
        viewer=stage.viewer(),
        clock=stage.clock,
    ).foresee(spec, cap=cap)
    if asked.out.json:
        asked.out.document({"lane": lane, "cap": cap, "forecast": found})
        return
    now = stage.clock.now()
    style = {Outlook.STALLED: "red", Outlook.WILL_NOT_DRAIN: "red"}.get(found.outlook, "green")
    asked.out.say(styled(sentence(found, now), style), "")

    def when(moment: datetime | None) -> str:
        return NOTHING if moment is None else f"{moment:%Y-%m-%d %H:%M:%S} UTC, {soon(moment, now)}"

    asked.out.say(
        pairs(
            {
                "waiting or under way": f"{found.backlog:,}",
                "done": f"{found.service_per_s * 60:,.1f} a minute, limited by {found.limited_by or NOTHING}",
                "come": f"{found.arrivals_per_s * 60:,.1f} a minute",
                "at the earliest": when(found.earliest),
                "at the latest": when(found.latest),
            }
        )
    )


def cap_of(text: str | None) -> int | None:
    """The cap of a what-if, or None."""
    if text is None:
        return None
    found = _WHAT_IF.fullmatch(text.replace(" ", ""))
    if found is None:
        raise BadInput("what-if", "must be cap=N, such as cap=12")
    return int(found[1])


def sentence(found: Forecast, now: datetime) -> str:
    """The answer, for people."""
    match found.outlook:
        case Outlook.CLEARED:
            return "Nothing waits."
        case Outlook.STALLED:
            return f"Stalled: {found.limited_by} holds it, and time alone does not open that."
        case Outlook.WILL_NOT_DRAIN:
            return f"It will not drain: as many come as are done, or more; limited by {found.limited_by}."
    assert found.by is not None
    return f"Clears by {found.by:%H:%M:%S} UTC, {soon(found.by, now)}."
