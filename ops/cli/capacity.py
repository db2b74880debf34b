"""`penstock capacity`: how many workers each lane may have, why, and an operator's pin over it."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ops.cli.command import Asked, command, group
from ops.cli.kept import kept_of
from ops.cli.moments import span_of
from ops.cli.show import NOTHING, Column, ago, span, styled, table
from shared.core.capacity import CapacityState
from shared.core.errors import BadInput
from shared.core.lane import LaneSpec

if TYPE_CHECKING:
    from ops.cli.stage import Stage
    from shared.core.history import HistoryEvent

app = group("See what the governor decides of each lane's workers, and pin a cap over it.")

HISTORY = 30
"""Decisions shown of one lane: half an hour."""
Lane = Annotated[str, typer.Argument(metavar="LANE", help="The lane.", show_default=False)]
Why = Annotated[str, typer.Option("--why", help="Why, in a few words; kept with your name.", show_default=False)]


@command(app, "show", examples=("penstock capacity show", "penstock capacity show support --json"))
def show(
    asked: Asked,
    lane: Annotated[
        str | None, typer.Argument(metavar="LANE", show_default=False, help="One lane, with its last decisions.")
    ] = None,
) -> None:
    """Show each lane's cap, its bounds, how bad it is, and why the cap is what it is.

    A lane with runs has no cap and is not among them: a run takes `max_jobs_per_run`.
    """
    stage = asked.stage()
    lanes = [one for one in stage.lanes.values() if one.run is None] if lane is None else [with_workers(stage, lane)]
    now = stage.clock.now()
    pages = [_read_page(stage, one, now) for one in lanes]
    events = stage.history.of(f"capacity/{lane}", limit=HISTORY) if lane is not None else []
    if asked.out.json:
        asked.out.document({"lanes": pages, **({"history": events} if lane is not None else {})})
        return
    numbers = [Column(header=name, right=True) for name in ("cap", "floor", "baseline", "ceiling", "queue age")]
    rows = [
        (
            one["lane"],
            *("?" if one[name] is None else str(one[name]) for name in ("cap", "floor", "baseline", "ceiling")),
            span(one["queue_age_s"]),
            one["severity"],
            one["reason"] or NOTHING,
            NOTHING if one["pin"] is None else f"until {one['pin']['until']:%d %b %H:%M} by {one['pin']['by']}",
        )
        for one in pages
    ]
    asked.out.say(table(["lane", *numbers, "severity", "because", "pinned"], rows))
    for one in pages:
        if one["problem"]:
            asked.out.warn(one["problem"])
    if events:
        asked.out.say("", table(["when", "from", "to", "because", "guardrails", "by"], [_row(e, now) for e in events]))


@command(
    app,
    "pin",
    examples=(
        'penstock capacity pin support 2 --for 2h --why "the vendor asked us to slow down"',
        'penstock capacity pin support 0 --for 30m --why "stop the workers"',
    ),
)
def pin(
    asked: Asked,
    lane: Lane,
    cap: Annotated[
        int, typer.Argument(metavar="CAP", help="Workers at once, up to the ceiling; 0 stops them.", show_default=False)
    ],
    why: Why,
    lasting: Annotated[str, typer.Option("--for", metavar="TIME", help="90s, 5m, 2h or 1d.", show_default=False)],
) -> None:
    """Set a lane's cap by hand, over the governor, for a time. Felt within a minute.

    No pin passes the lane's ceiling. When it ends, the governor goes on from there.
    """
    from shared.usecases.pin_cap import pin_cap

    stage = asked.stage()
    spec = with_workers(stage, lane)
    state = pin_cap(
        spec,
        cap,
        span_of("for", lasting),
        by=stage.caller.arn,
        why=why,
        control=stage.control,
        history=stage.history,
        clock=stage.clock,
    )
    until = state.pin.until if state.pin is not None else stage.clock.now()
    _tell(asked, stage, spec, state, f"{lane} is pinned at {cap} until {until:%d %b %H:%M} UTC.")


@command(
    app,
    "unpin",
    examples=(
        'penstock capacity unpin support --why "the vendor is well again"',
        'penstock capacity unpin support --reset --why "its row cannot be read"',
    ),
)
def unpin(
    asked: Asked,
    lane: Lane,
    why: Why,
    reset: Annotated[
        bool, typer.Option("--reset", help="Begin its row anew, at the baseline: for one that cannot be read.")
    ] = False,
) -> None:
    """Take a pin away: the governor decides again, from the cap as it stands."""
    from shared.usecases.pin_cap import reset_cap, unpin_cap

    stage = asked.stage()
    spec = with_workers(stage, lane)
    state = (reset_cap if reset else unpin_cap)(
        spec, by=stage.caller.arn, why=why, control=stage.control, history=stage.history, clock=stage.clock
    )
    _tell(asked, stage, spec, state, f"{lane} has no pin; its cap is {state.cap} until the next decision.")


def with_workers(stage: Stage, name: str) -> LaneSpec:
    """A lane whose workers are capped; a lane with runs is refused, saying what limits it instead."""
    lane = stage.lane(name)
    if lane.run is not None:
        raise BadInput(
            "lane",
            f"{name} has no cap: each of its runs takes {lane.run.max_jobs_per_run:,} jobs at most"
            f" (lanes.{name}.run.max_jobs_per_run). To stop it:"
            f" `penstock control set lane/{name} no_new_starts --why …`",
        )
    return lane


def _read_page(stage: Stage, lane: LaneSpec, now: datetime) -> dict[str, Any]:
    """A lane's page; one whose row cannot be read says so, and how to begin it anew."""
    kept, problem = kept_of(stage, lane)
    if problem is None:
        return page(lane, kept, now)
    told = f"{problem}. Until then the lane stays as it is, and its baseline counts."
    return {**page(lane, None, now), "cap": None, "severity": "unknown", "problem": told}


def page(lane: LaneSpec, kept: CapacityState | None, now: datetime) -> dict[str, Any]:
    """A lane's capacity as it stands, for people and programs."""
    state = kept or CapacityState(cap=lane.baseline)
    return {
        "lane": lane.name,
        "cap": state.cap,
        "floor": lane.floor,
        "baseline": lane.baseline,
        "ceiling": lane.ceiling,
        "policy": lane.policy,
        "severity": state.severity.word,
        "queue_age_s": state.age_s,
        "reason": state.reason or None,
        "decided_at": state.looked_at,
        "changed_at": state.changed_at,
        "pin": None if (pin := state.pinned(now)) is None else asdict(pin),
        "problem": None,
    }


def _row(event: HistoryEvent, now: datetime) -> tuple[str, ...]:
    told = event.detail
    if event.kind != "decision":
        return (ago(event.at, now), NOTHING, str(told.get("cap", NOTHING)), event.kind, str(told.get("why")), event.by)
    return (
        ago(event.at, now),
        str(told["fromCapacity"]),
        str(told["toCapacity"]),
        str(told["reasonCode"]),
        str(told["guardrailState"]),
        event.by,
    )


def _tell(asked: Asked, stage: Stage, lane: LaneSpec, state: CapacityState, sentence: str) -> None:
    if asked.out.json:
        asked.out.document({"lane": page(lane, state, stage.clock.now())})
        return
    asked.out.say(styled(sentence))
    asked.out.say(styled(f"By {stage.caller.arn}; felt within a minute.", "dim"))
