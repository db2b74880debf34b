"""`penstock control`: the switches, with who and why. Closing takes one command; opening asks for the checklist."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from ops.cli.command import Asked, command, group
from ops.cli.kept import kept_of
from ops.cli.opening import Anyway, Consent, Yes, document, opened, page
from ops.cli.show import NOTHING, Column, ago, level, plain, styled, table
from ops.cli.trouble import problem_of
from shared.core.checklist import failing
from shared.core.errors import BadInput, Unavailable, UnreadableRow
from shared.core.scopes import check_known
from shared.core.switches import Level, Switch, check_scope, level_of, loosens

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.text import Text

    from ops.cli.stage import Stage
    from shared.core.lane import LaneSpec
    from shared.usecases.tenant_waits import Waits

app = group("See and set the switches that hold work back.")

FORMS = "all, vendor/NAME, lane/NAME, task/LANE/TASK or tenant/LANE/TENANT"
NAMELESS = "unknown: AWS did not tell"
"""Kept with a halt in the place of a name."""
Why = Annotated[str, typer.Option("--why", help="Why, in a few words; kept with your name.", show_default=False)]
Scope = Annotated[str, typer.Argument(metavar="SCOPE", help=f"{FORMS}.", show_default=False)]
AnyScope = Annotated[str, typer.Argument(metavar="SCOPE", help=f"{FORMS}.")]


class OnOff(StrEnum):
    """A plain name's two ways."""

    ON = "on"
    OFF = "off"


@command(app, "show", examples=("penstock control show", "penstock control show lane/support"))
def show(
    asked: Asked,
    scope: Annotated[
        str | None, typer.Argument(metavar="SCOPE", show_default=False, help="One scope, with its history.")
    ] = None,
) -> None:
    """Show the switches that are not normal.

    And each lane's cap. For one scope: who set it, when and why.
    """
    stage = asked.stage()
    if scope is not None:
        _history(asked, stage, check_scope(scope))
        return
    switches = sorted(stage.control.switches().entries.values(), key=lambda one: (-one.level, one.scope))
    found = {lane.name: (kept_of(stage, lane), lane) for lane in stage.lanes.values()}
    caps = {name: ((None if kept is None else kept.cap, bad), lane) for name, ((kept, bad), lane) in found.items()}
    if asked.out.json:
        lanes = [
            {"lane": name, "cap": cap, "problem": problem, "baseline": lane.baseline, "ceiling": lane.ceiling}
            for name, ((cap, problem), lane) in caps.items()
        ]
        asked.out.document({"switches": switches, "lanes": lanes})
        return
    now = stage.clock.now()
    if switches:
        rows = [
            (
                one.scope,
                level(one.level),
                "on" if one.automation_enabled else styled("off", "red"),
                meaning(one),
                ago(one.at, now),
                one.by,
                one.why,
            )
            for one in switches
        ]
        asked.out.say(table(["scope", "level", "automation", "what that means", "since", "by", "why"], rows), "")
    else:
        asked.out.say(styled("Every switch is normal: nothing is closed.", "green"), "")
    numbers = [Column(header=name, right=True) for name in ("wanted cap", "baseline", "ceiling")]
    rows_of_caps = [
        (name, "?" if problem else NOTHING if cap is None else str(cap), str(lane.baseline), str(lane.ceiling))
        for name, ((cap, problem), lane) in caps.items()
    ]
    asked.out.say(table(["lane", *numbers], rows_of_caps))
    for (_, problem), _lane in caps.values():
        if problem:
            asked.out.warn(problem)


@command(app, "check", examples=("penstock control check", "penstock control check lane/support --json"))
def check(asked: Asked, scope: AnyScope = "all") -> None:
    """Show the exit checklist of a scope, and change nothing.

    What must hold before a switch is opened: young queues, normal rates, stable vendors, no growing dead letters, a
    cap that is not held down, a governor that looks, a cost under its threshold. Ends with 1 when something does not.
    """
    stage = asked.stage()
    checked = stage.examiner().examine(scope)
    if asked.out.json:
        asked.out.document({"scope": scope, "holds": not failing(checked), "checklist": document(checked)})
    else:
        asked.out.say(*page(scope, checked), "")
        asked.out.say(_judged(scope, failing(checked)))
    if failing(checked):
        raise typer.Exit(1)


@command(
    app,
    "set",
    examples=(
        'penstock control set all halt --why "replies go to the wrong customers"',
        'penstock control set lane/support normal --why "fixed in 1.4.2, checked by hand"',
    ),
)
def set_level(
    asked: Asked,
    scope: Scope,
    rung: Annotated[
        str, typer.Argument(metavar="LEVEL", help=f"{', '.join(one.word for one in Level)}.", show_default=False)
    ],
    why: Why,
    automation: Annotated[
        bool | None,
        typer.Option("--automation/--no-automation", show_default=False, help="Paid vendor calls. Default: as it is."),
    ] = None,
    yes: Yes = False,
    anyway: Anyway = False,
    reset: Annotated[
        bool,
        typer.Option("--reset", help="With `all halt`: begin all switches anew, for when they cannot be read."),
    ] = False,
) -> None:
    """Set one scope's level. Felt within ten seconds; what is held is never lost.

    Closing is done at once. A scope that nothing configured has is refused: a stop must not miss. A change that
    loosens anything shows the exit checklist of every lane under the scope first, and is refused while a line of it
    does not hold.

    \b
    normal          nothing is closed
    route_only      customer-visible effects are withheld (safe mode)
    no_new_starts   nothing new is admitted
    drain           nothing is claimed; what is claimed finishes
    halt            nothing is sent; look-ups and records stay open
    """
    stage = asked.stage()
    wanted = level_of(rung)
    if reset:
        _reset(asked, stage, scope, wanted, why, automation)
        return
    _, as_it_is = _present(stage, check_scope(scope), paid=wanted is not Level.HALT)
    paid = as_it_is if automation is None else automation
    _set(asked, stage, scope, wanted, paid, why, Consent(yes=yes, anyway=anyway))


@command(app, "safe-mode", examples=('penstock control safe-mode on lane/support --why "wrong answers"',))
def safe_mode(
    asked: Asked,
    state: Annotated[OnOff, typer.Argument(metavar="on|off", show_default=False)],
    why: Why,
    scope: AnyScope = "all",
    yes: Yes = False,
    anyway: Anyway = False,
) -> None:
    """Withhold customer-visible effects, or let them go again.

    Jobs still run and are routed. A stricter level is never loosened by this. Off asks for the exit checklist.
    """
    stage = asked.stage()
    rung, automation = _present(stage, check_scope(scope))
    if state is OnOff.ON:
        _set(asked, stage, scope, max(rung, Level.ROUTE_ONLY), automation, why, Consent(anyway=anyway))
    elif rung > Level.ROUTE_ONLY:
        raise BadInput("scope", f"{scope} is at {rung.word}, stricter than safe mode: use `penstock control set`")
    else:
        _set(asked, stage, scope, Level.NORMAL, automation, why, Consent(yes=yes, anyway=anyway))


@command(app, "automation", examples=('penstock control automation off --why "cost spike"',))
def automation(
    asked: Asked,
    state: Annotated[OnOff, typer.Argument(metavar="on|off", show_default=False)],
    why: Why,
    scope: AnyScope = "all",
    yes: Yes = False,
    anyway: Anyway = False,
) -> None:
    """Forbid paid vendor calls, or allow them again.

    Off: customer-visible effects are withheld, too, and jobs are routed by rules alone. On asks for the exit checklist.
    """
    stage = asked.stage()
    rung, _ = _present(stage, check_scope(scope))
    _set(asked, stage, scope, rung, state is OnOff.ON, why, Consent(yes=yes, anyway=anyway))


def meaning(switch: Switch) -> str:
    """What a setting does, in a sentence."""
    if switch.automation_enabled:
        return switch.level.closes
    unpaid = "automation is off, so paid calls and customer-visible effects are withheld"
    return unpaid if switch.level is Level.NORMAL else f"{switch.level.closes}; {unpaid}"


def _judged(scope: str, lacking: tuple[str, ...]) -> Text:
    if not lacking:
        return styled(f"Everything holds: {scope} may be opened.", "green")
    return styled(f"Not yet: {', '.join(lacking)} {'does' if len(lacking) == 1 else 'do'} not hold.", "red")


def _entry(stage: Stage, scope: str) -> Switch | None:
    return stage.control.switches().entries.get(scope)


def _present(stage: Stage, scope: str, *, paid: bool = True) -> tuple[Level, bool]:
    """As it is. Nobody has to be able to read it to close it: while it is unreadable, open counts, with `paid` for paid
    calls, and `set_switch` replaces nothing unseen, except by a halt."""
    try:
        switch = _entry(stage, scope)
    except (UnreadableRow, Unavailable):
        return Level.NORMAL, paid
    return (Level.NORMAL, True) if switch is None else (switch.level, switch.automation_enabled)


def _set(
    asked: Asked,
    stage: Stage,
    scope: str,
    rung: Level,
    automation_on: bool,
    why: str,
    consent: Consent,
) -> None:
    from shared.usecases.set_switch import set_switch
    from shared.usecases.steer import reason_of

    reason_of(why)  # before anybody looks and is asked
    try:
        present = _entry(stage, scope)
    except (UnreadableRow, Unavailable):
        present = None
    lanes = _lanes(stage, scope, rung, anyway=consent.anyway)
    opening = opened(asked, stage, scope, present, consent) if loosens(present, rung, automation_on) else None
    by, nameless = _who(stage, rung)
    try:
        done = set_switch(
            scope,
            rung,
            automation_enabled=automation_on,
            by=by,
            why=why,
            lanes=lanes,
            control=stage.control,
            history=stage.history,
            clock=stage.clock,
            opening=opening,
            anyway=consent.anyway,
        )
    except BadInput as exc:
        if opening is None or not asked.out.json:
            raise
        asked.out.document({**problem_of(exc).document(), "checklist": document(opening.checked)})
        raise typer.Exit(1) from None
    switch, warnings = done.switch, [*done.warnings, *nameless]
    waits = _waits(stage, scope, lanes, warnings)
    if asked.out.json:
        told = {} if opening is None else {"checklist": document(opening.checked)}
        told |= {} if waits is None else {"waiting": plain(waits)}
        asked.out.document({"switch": switch, **told, "warnings": warnings})
        return
    asked.out.say(styled(f"{switch.scope} is ") + level(switch.level) + styled(f": {meaning(switch)}."))
    asked.out.say(styled(f"By {switch.by}; felt within ten seconds.", "dim"))
    if waits is not None and waits.at_least:
        asked.out.say(waits.sentence)
    for warning in warnings:
        asked.out.warn(warning)


def _reset(asked: Asked, stage: Stage, scope: str, rung: Level, why: str, automation: bool | None) -> None:
    from shared.usecases.reset_switches import reset_switches

    if (scope, rung, automation) != ("all", Level.HALT, None):
        raise BadInput(
            "reset", "begins all switches anew, and opens nothing: give `all halt --reset`, then set the others"
        )
    by, warnings = _who(stage, rung)
    switch = reset_switches(by=by, why=why, control=stage.control, history=stage.history, clock=stage.clock)
    if asked.out.json:
        asked.out.document({"switch": switch, "warnings": warnings})
        return
    asked.out.say(styled("all is ") + level(switch.level) + styled(", and nothing else is set any more."))
    asked.out.say(styled(f"By {switch.by}; felt within ten seconds.", "dim"))
    for warning in warnings:
        asked.out.warn(warning)


def _who(stage: Stage, rung: Level) -> tuple[str, list[str]]:
    """Who asks, and what to warn of. A halt neither waits for AWS to tell nor fails where it does not."""
    if rung is not Level.HALT:
        return stage.caller.arn, []
    try:
        return stage.caller_at_once.arn, []
    except Exception as exc:
        return NAMELESS, [f"AWS did not tell who you are, so it is kept without your name: {problem_of(exc).sentence}"]


def _lanes(stage: Stage, scope: str, rung: Level, *, anyway: bool) -> Mapping[str, LaneSpec] | None:
    """The lanes; None when they cannot be read, whatever the reason, and what is asked for must not wait for them."""
    if rung is not Level.HALT and scope != "all" and not anyway:
        return stage.lanes
    try:
        return stage.lanes_at_once
    except Exception:
        return None


def _waits(stage: Stage, scope: str, lanes: Mapping[str, LaneSpec] | None, warnings: list[str]) -> Waits | None:
    """What of a tenant waits, after its switch is set: nobody can say whether there is such a tenant, only that."""
    from shared.usecases.tenant_waits import tenant_waits

    kind, _, rest = scope.partition("/")
    lane, _, tenant = rest.partition("/")
    if kind != "tenant" or lanes is None or lane not in lanes:
        return None
    try:
        found = tenant_waits(lanes[lane], tenant, jobs=stage.jobs, clock=stage.clock)
    except Exception as exc:
        # The switch stands: what cannot be counted afterwards takes nothing back from it.
        warnings.append(f"What waits of tenant {tenant} could not be counted: {problem_of(exc).sentence}")
        return None
    if found is not None and not found.at_least:
        warnings.append(found.sentence)
    return found


def _history(asked: Asked, stage: Stage, scope: str) -> None:
    switch: Switch | None = stage.control.switches().entries.get(scope)
    events = stage.history.of(f"switch/{scope}", limit=50)
    if switch is None and not events:
        check_known(scope, stage.lanes)
    if asked.out.json:
        asked.out.document({"scope": scope, "switch": switch, "history": events})
        return
    asked.out.say(styled(f"{scope} is ") + level(Level.NORMAL if switch is None else switch.level) + styled("."), "")
    now = stage.clock.now()
    rows = [
        (
            ago(event.at, now),
            str(event.detail.get("level", NOTHING)),
            "on" if event.detail.get("automation_enabled", True) else "off",
            event.by,
            str(event.detail.get("why", "")),
            ", ".join(event.detail.get("anyway", ())) or NOTHING,
        )
        for event in events
    ]
    columns = ["set", "level", "automation", "by", "why", "opened although"]
    asked.out.say(table(columns, rows) if rows else "Nobody ever set it.")
