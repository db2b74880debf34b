"""`penstock incident`: the record of a bad night, kept while it happens."""

from __future__ import annotations

from typing import Annotated

import typer

from ops.cli.command import Asked, command, group
from ops.cli.show import ago, styled, table
from shared.core.incident import CLOSED, Incident

app = group("Keep the record of an incident: who, when, what was done, and the cause.")

Lane = Annotated[str, typer.Argument(metavar="LANE", help="The lane it is about.", show_default=False)]
Why = Annotated[str, typer.Option("--why", help="What is seen, in a few words; no customer text.", show_default=False)]


@command(app, "open", examples=('penstock incident open support --why "help desk answers 429, queue 12 min old"',))
def open_(asked: Asked, lane: Lane, why: Why) -> None:
    """Begin an incident of a lane. There is one at a time; you are written down as AWS knows you."""
    from shared.usecases.keep_incident import open_incident

    stage = asked.stage()
    found = open_incident(stage.lane(lane).name, by=stage.caller.arn, why=why, history=stage.history, clock=stage.clock)
    _said(asked, found, f"Incident of {lane} is open.")


@command(app, "note", examples=('penstock incident note support "safe mode on, vendor informed"',))
def note(
    asked: Asked,
    lane: Lane,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What was done or found.", show_default=False)],
) -> None:
    """Write down what was seen or changed by hand."""
    from shared.usecases.keep_incident import note_incident

    stage = asked.stage()
    found = note_incident(
        stage.lane(lane).name, by=stage.caller.arn, text=text, history=stage.history, clock=stage.clock
    )
    _said(asked, found, "Noted.")


@command(app, "close", examples=('penstock incident close support --cause "expired token, rotated"',))
def close(
    asked: Asked,
    lane: Lane,
    cause: Annotated[str, typer.Option("--cause", help="The root cause, in a few words.", show_default=False)],
) -> None:
    """End the incident. Its cause is asked for: whoever plans a replay builds on it."""
    from shared.usecases.keep_incident import close_incident

    stage = asked.stage()
    found = close_incident(
        stage.lane(lane).name, by=stage.caller.arn, cause=cause, history=stage.history, clock=stage.clock
    )
    _said(asked, found, f"Incident of {lane} is closed.")


@command(app, "show", examples=("penstock incident show support", "penstock incident show support --json"))
def show(asked: Asked, lane: Lane) -> None:
    """Show the lane's last incident, line by line."""
    from shared.usecases.keep_incident import incidents_of

    stage = asked.stage()
    found = incidents_of(stage.lane(lane).name, history=stage.history, clock=stage.clock)
    if asked.out.json:
        asked.out.document({"incidents": found})
        return
    if not found:
        asked.out.say(styled(f"Lane {lane} never had an incident.", "green"))
        return
    last, now = found[0], stage.clock.now()
    state = styled("open", "red") if last.open else styled("closed", "green")
    asked.out.say(
        styled(f"Incident of {lane}, ") + state + styled(f", since {ago(last.opened_at, now)}: {last.why}"),
        f"penstock validate {lane} --incident {last.incident_id}   writes the report on it",
        "",
    )
    rows = [
        (
            f"{event.at:%H:%M:%S}",
            event.kind,
            event.by,
            str(event.detail.get("cause" if event.kind == CLOSED else "why", "")),
        )
        for event in last.events
    ]
    asked.out.say(table(["UTC", "", "by", "what"], rows))


def _said(asked: Asked, found: Incident, sentence: str) -> None:
    if asked.out.json:
        asked.out.document({"incident": found})
    else:
        asked.out.say(styled(sentence, "green"))
