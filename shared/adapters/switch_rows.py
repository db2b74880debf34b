"""How the switches are written as the one row of the control table, and read back."""

from __future__ import annotations

from collections.abc import Mapping

from shared.adapters import attributes
from shared.adapters.attributes import Attribute, Fields, Item
from shared.contract import table
from shared.core.errors import BadInput, UnreadableRow, UnreadableSwitches
from shared.core.switches import Level, Switch, Switches, check_scope, level_of

SCOPES = "scopes"
"""The map of the row: scope → setting."""
_LISTED = 3
"""Of so many unreadable entries an error tells."""


def switch_attribute(switch: Switch) -> Attribute | None:
    """One scope's entry in the switches' row; None for a scope back at its default, whose entry is removed.

    Only what is closed stands in the row, or every tenant ever paused would make it longer until it could
    not be written any more; who opened a switch is in the history.
    """
    if switch.level is Level.NORMAL and switch.automation_enabled:
        return None
    return {
        "M": {
            "level": attributes.text(switch.level.word),
            "automation_enabled": {"BOOL": switch.automation_enabled},
            "by": attributes.text(switch.by),
            "why": attributes.text(switch.why),
            "at": attributes.time(switch.at),
        }
    }


def switches_item(*switches: Switch, among: Mapping[str, Attribute] | None = None) -> Item:
    """The one row of these switches, beside the entries they are set among."""
    told = {one.scope: entry for one in switches if (entry := switch_attribute(one)) is not None}
    return {table.PK: attributes.text(table.SWITCHES), SCOPES: {"M": {**(among or {}), **told}}}


def switches_from_item(item: Item | None) -> Switches:
    """Every switch of the one row; no row: none was ever set. One unreadable entry makes all unreadable,
    since an entry that is skipped would be a closed switch that counts as open. Raises UnreadableSwitches."""
    if item is None:
        return Switches()
    entries: dict[str, Switch] = {}
    problems: list[str] = []
    try:
        parts = Fields(table.SWITCHES, item).part(SCOPES)
    except UnreadableRow as exc:
        parts, problems = {}, [exc.problem]
    for scope in parts:
        try:
            entries[scope] = _switch(scope, parts)
        except UnreadableRow as exc:
            problems.append(exc.problem)
    if problems:
        raise UnreadableSwitches(table.SWITCHES, _listed(problems), Switches(entries=entries))
    return Switches(entries=entries)


def _listed(problems: list[str]) -> str:
    more = f"; and {len(problems) - _LISTED} more" if len(problems) > _LISTED else ""
    return "; ".join(problems[:_LISTED]) + more


def _switch(scope: str, parts: Item) -> Switch:
    try:
        check_scope(scope)
    except BadInput:
        # It would close what it was meant for only by its right name.
        Fields(table.SWITCHES, parts).unreadable(f"{scope[:64]!r}:", "is no scope there can be")
    fields = Fields(table.SWITCHES, Fields(table.SWITCHES, parts).part(scope), prefix=f"{scope}: ")
    try:
        level = level_of(fields.text("level"))
    except BadInput:
        fields.unreadable("level", "is not one this version knows")
    return Switch(
        scope=scope,
        level=level,
        automation_enabled=fields.flag("automation_enabled"),
        by=fields.text("by"),
        why=fields.text("why"),
        at=fields.time("at"),
    )
