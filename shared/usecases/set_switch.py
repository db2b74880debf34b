"""Set a switch: one scope's level, with who and why. Closing takes one person, opening a checklist somebody looked at.

A stop that hits nothing must never say that it stopped: a name that nothing configured has is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from shared.core.checklist import LaneChecks, failing, record
from shared.core.errors import BadInput, Unavailable, UnknownScope, UnreadableRow
from shared.core.lane import LaneSpec
from shared.core.ports import Clock, ControlStore, History
from shared.core.scopes import check_known
from shared.core.switches import WAY_OUT, Level, Switch, check_scope, loosens
from shared.usecases.steer import note, reason_of

LOOK_KEPT = timedelta(minutes=2)
"""So long a checklist tells how things are."""
NOT_CONFIGURED, NOT_CHECKED = "not_configured", "not_checked"
"""What is kept with a switch of which nobody knows whether it holds anything back."""
ALL_HALTED = (
    "The switches could not be kept beside this one, so their row was begun anew and all is halted: nobody knows what"
    " else was closed. `penstock control show SCOPE` has each scope's history: close what should be, then open all."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """The exit checklist that somebody looked at before they open a switch, and the switch as it stood then."""

    checked: tuple[LaneChecks, ...]
    present: Switch | None
    at: datetime
    """When they looked."""
    anyway: bool = False
    """Open it although something does not hold; that is kept with the switch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchSet:
    """The switch as it stands now, and what whoever set it must know beside that."""

    switch: Switch
    warnings: tuple[str, ...] = ()


def set_switch(
    scope: str,
    level: Level,
    *,
    automation_enabled: bool = True,
    by: str,
    why: str,
    lanes: Mapping[str, LaneSpec] | None,
    control: ControlStore,
    history: History,
    clock: Clock,
    opening: Opening | None = None,
    anyway: bool = False,
) -> SwitchSet:
    """Set one scope's switch, with who and why. Closing takes one person, always; loosening takes an `opening`, and the
    entry as it was looked at. While an entry cannot be read, what is open can be closed, and anything halted.

    The scope must be of something in `lanes`, or stand among the switches; `anyway` closes what is no longer there.
    None: the lanes cannot be read. A halt does not wait for them, nor does what closes everything: `all` is no name.
    """
    switch = Switch(
        scope=check_scope(scope),
        level=level,
        automation_enabled=automation_enabled,
        by=by,
        why=reason_of(why),
        at=clock.now(),
    )
    detail: dict[str, object] = {"level": level.word, "automation_enabled": automation_enabled, "why": switch.why}
    doubt = _doubt(switch, lanes, control, anyway)
    detail |= {} if doubt is None else {"name": doubt}
    warnings = [] if doubt is None else [_warning(scope, doubt)]
    if level is not Level.HALT:
        detail |= _set(switch, control, opening)
    elif not _halted(switch, control):
        warnings.append(ALL_HALTED)
        detail |= {"reset": True}
        if scope != "all":
            note("switch/all", "switch", by, detail, history, clock)
    note(f"switch/{scope}", "switch", by, detail, history, clock)
    return SwitchSet(switch=switch, warnings=tuple(warnings))


def _halted(switch: Switch, control: ControlStore) -> bool:
    """To halt, nothing has to be readable. False: the row could not keep it beside what stands there, so it was begun
    anew, with all halted: nobody knows what else was closed in it."""
    try:
        control.set_switch(switch)
    except UnreadableRow:
        control.reset_switches(replace(switch, scope="all"), switch)
        return False
    return True


def _doubt(switch: Switch, lanes: Mapping[str, LaneSpec] | None, control: ControlStore, anyway: bool) -> str | None:
    """Why nobody knows whether the switch holds anything back; None where it does. Raises UnknownScope."""
    if switch.scope == "all":
        return None
    if lanes is None:
        if switch.level is Level.HALT or anyway:
            return NOT_CHECKED
        raise BadInput(
            "scope", "the lanes cannot be read, so its name cannot be checked; a halt is set all the same, unchecked"
        )
    try:
        check_known(switch.scope, lanes)
    except UnknownScope as exc:
        if anyway or _stands(switch.scope, control):
            return NOT_CONFIGURED
        problem = f"{exc.problem}; nothing was set. --anyway closes what is no longer configured"
        raise UnknownScope(switch.scope, problem) from None
    return None


def _stands(scope: str, control: ControlStore) -> bool:
    """True for a scope that somebody closed while there was something of its name."""
    try:
        return scope in control.switches().entries
    except (Unavailable, UnreadableRow):
        return False


def _warning(scope: str, doubt: str) -> str:
    if doubt == NOT_CHECKED:
        return f"The lanes cannot be read: nobody checked that there is a {scope}. Look again when they can be."
    return f"Nothing of the name {scope} is configured in this stage: this switch holds nothing back as it stands."


def _set(switch: Switch, control: ControlStore, opening: Opening | None) -> dict[str, object]:
    """Written, or refused with a sentence; what is kept of it beside the switch."""
    scope = switch.scope
    try:
        present = control.switches().entries.get(scope)
    except UnreadableRow as exc:
        closes = switch.level > Level.NORMAL or not switch.automation_enabled
        if closes and control.trip(switch):
            return {}
        raise BadInput(
            "scope", f"{scope} cannot be set while a switch is unreadable ({exc.problem}): {WAY_OUT}"
        ) from None
    if present is None or not loosens(present, switch.level, switch.automation_enabled):
        control.set_switch(switch)
        return {}
    detail = _opened(scope, present, opening, switch.at)
    if not control.open_switch(switch, present):
        raise BadInput("scope", f"{scope} was changed meanwhile: look at it again")
    return detail


def _opened(scope: str, present: Switch, opening: Opening | None, now: datetime) -> dict[str, object]:
    """What is kept of the checklist; a switch that nobody confirmed, or that moved meanwhile, stays as it is."""
    if opening is None:
        raise BadInput("checklist", f"opening asks for it: look with `penstock control check {scope}`")
    if opening.present != present:
        raise BadInput("scope", f"{scope} was changed by {present.by} meanwhile: look at it again")
    if now - opening.at > LOOK_KEPT:
        raise BadInput(
            "checklist", f"was looked at {(now - opening.at).total_seconds() / 60:.0f} minutes ago: look again"
        )
    lacking = failing(opening.checked)
    if lacking and not opening.anyway:
        raise BadInput(
            "checklist",
            f"{', '.join(lacking)} {'does' if len(lacking) == 1 else 'do'} not hold: wait until"
            f" `penstock control check {scope}` finds that everything holds, or open it all the same with --anyway,"
            " which is kept with your name",
        )
    return {"checklist": record(opening.checked), **({"anyway": list(lacking)} if lacking else {})}
