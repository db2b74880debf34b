"""How a vendor account is written as a row, and read back.

Every part that a write changes on its own is an attribute of its own, also each holder: no write has to find a map
there first, and two that touch different parts can both be applied. The sum of what is held stands beside its
holders: every write that changes one changes the other, under a condition on exactly that holder, so the two never
part. A row in which they differ was written by somebody else and is not believed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shared.adapters import attributes
from shared.adapters.attributes import Attribute, Fields, Item
from shared.contract import table
from shared.core.account import DAILY, HELD, MOST, PACED, Limit, is_amount
from shared.core.budget import Budget, Hold, Search, Shut, Terms

ARRIVAL: Mapping[Limit, str] = {limit: f"{limit.value}_arrival_us" for limit in PACED}
USED: Mapping[Limit, str] = {limit: f"{limit.value}_used" for limit in DAILY}
SUM: Mapping[Limit, str] = {limit: f"{limit.value}_held" for limit in HELD}
DAY, LINE, BACKLOG, SPENT, USUAL = "day", "line_us", "backlog_us", "spent_us", "usual"
VERSION, TERMS = "version", "terms"
_HOLD = "hold#"
_MOST_US = 10**17
"""After every moment there is, and long before the end of all calendars: whoever adds to it still has a time."""
_MOST_VERSION = 10**18
_MOST_PART = 1000
"""More times the configured limits than a search can find."""
_MOST_DAYS = 10**6
_MOST_UNIT_S = 86_400.0
A_MINUTE_S = 60.0
"""How fast a search grows whose row does not say."""


def budget_key(account: str) -> Item:
    """The key of an account's row."""
    return {table.PK: attributes.text(table.budget_pk(account)), table.SK: attributes.text(table.BUDGET_SK)}


def hold_name(holder: str) -> str:
    """The attribute in which a holder's part stands."""
    return f"{_HOLD}{holder}"


def hold_attribute(hold: Hold) -> Attribute:
    """What one holder has; a limit it holds nothing of is left out."""
    held = {"slots": hold.slots, "batch_tokens": hold.batch_tokens}
    parts = {name: attributes.whole(amount) for name, amount in held.items() if amount}
    return {"M": {**parts, "until_us": attributes.whole(hold.until_us)}}


def terms_attribute(terms: Terms) -> Attribute:
    """The terms without their version, which stands beside them. Fractions are written with all their digits."""
    search, shut = terms.search, terms.shut
    told: dict[str, Any] = {
        "told": {limit.value: amount for limit, amount in terms.told.items()},
        "pinned": {limit.value: amount for limit, amount in terms.pinned.items()},
        "quiet_until_us": terms.quiet_until_us,
        "changed_us": terms.changed_us,
        "refused_us": list(terms.refused_us),
        "doubted_until_us": terms.doubted_until_us,
    }
    kept = {name: value for name, value in told.items() if value}
    if search is not None:
        kept["search"] = {
            "base": search.base,
            "top": search.top,
            "since_us": search.since_us,
            "unit_s": search.unit_s,
            "spent_us": search.spent_us,
        }
    if shut is not None:
        kept["shut"] = {
            "reason": shut.reason,
            "since_us": shut.since_us,
            "probe_us": shut.probe_us,
            "probe_every_s": shut.probe_every_s,
            "probe_by": shut.probe_by,
            "held_until_us": shut.held_until_us,
        }
    if terms.enforced is not None:
        kept["enforced"] = terms.enforced
    return attributes.from_json(kept, TERMS)


def budget_item(account: str, budget: Budget) -> Item:
    """The whole row of an account."""
    item = budget_key(account)
    item[VERSION] = attributes.whole(budget.terms.version)
    item[TERMS] = terms_attribute(budget.terms)
    item |= {ARRIVAL[limit]: attributes.whole(us) for limit, us in budget.arrival_us.items()}
    item |= {USED[limit]: attributes.whole(count) for limit, count in budget.used.items()}
    item |= {hold_name(holder): hold_attribute(hold) for holder, hold in budget.holds.items()}
    item |= {name: attributes.whole(held) for limit, name in SUM.items() if (held := budget.held(limit))}
    single = {
        DAY: budget.day,
        LINE: budget.line_us,
        BACKLOG: budget.backlog_us,
        SPENT: budget.spent_us,
        USUAL: budget.usual_tokens,
    }
    item |= {name: attributes.whole(number) for name, number in single.items() if number}
    return item


def budget_from_item(account: str, item: Item | None) -> Budget:
    """The account a row says; no row is an account nobody has used. Raises UnreadableRow."""
    if item is None:
        return Budget()
    fields = Fields(table.budget_pk(account), item)
    budget = Budget(
        terms=_terms(fields),
        arrival_us={limit: _us(fields, name) for limit, name in ARRIVAL.items() if name in item},
        day=_amount(fields, DAY, most=_MOST_DAYS),
        used={limit: _amount(fields, name) for limit, name in USED.items() if name in item},
        holds={name.removeprefix(_HOLD): _hold(fields, name, item) for name in item if name.startswith(_HOLD)},
        line_us=_us(fields, LINE),
        backlog_us=_us(fields, BACKLOG),
        spent_us=_us(fields, SPENT),
        usual_tokens=_amount(fields, USUAL),
    )
    for limit, name in SUM.items():
        if fields.whole(name, 0) != budget.held(limit):
            fields.unreadable(name, "is not the sum of what its holders hold")
    return budget


def _amount(fields: Fields, name: str, *, most: int = MOST) -> int:
    return fields.whole(name, 0, least=0, most=most)


def _us(fields: Fields, name: str) -> int:
    return fields.whole(name, 0, least=-_MOST_US, most=_MOST_US)


def _hold(fields: Fields, name: str, item: Item) -> Hold:
    part = item[name].get("M") if isinstance(item[name], dict) else None
    if not isinstance(part, dict):
        fields.unreadable(name, "is not an object")
    held = Fields(fields.key, part, f"{name}.")
    return Hold(
        slots=_amount(held, "slots"),
        batch_tokens=_amount(held, "batch_tokens"),
        until_us=held.whole("until_us", least=-_MOST_US, most=_MOST_US),
    )


def _terms(fields: Fields) -> Terms:
    told = _Told(fields, fields.mapping(TERMS) or {})
    return Terms(
        version=_amount(fields, VERSION, most=_MOST_VERSION),
        told=told.limits("told"),
        pinned=told.limits("pinned"),
        search=_search(told.part("search")),
        shut=_shut(told.part("shut")),
        quiet_until_us=told.whole("quiet_until_us", 0),
        changed_us=told.whole("changed_us", 0),
        refused_us=told.wholes("refused_us"),
        doubted_until_us=told.whole("doubted_until_us", 0),
        enforced=told.flag_or_none("enforced"),
    )


def _search(told: _Told | None) -> Search | None:
    if told is None:
        return None
    return Search(
        base=told.above_0("base"),
        top=told.above_0("top"),
        since_us=told.whole("since_us"),
        unit_s=told.above_0("unit_s", A_MINUTE_S, most=_MOST_UNIT_S),
        spent_us=told.whole("spent_us", 0),
    )


def _shut(told: _Told | None) -> Shut | None:
    if told is None:
        return None
    return Shut(
        reason=told.text("reason"),
        since_us=told.whole("since_us"),
        probe_us=told.whole("probe_us"),
        probe_every_s=told.number("probe_every_s"),
        probe_by=told.text("probe_by", ""),
        held_until_us=told.whole("held_until_us", 0),
    )


class _Told:
    """Reads an object inside the terms; what cannot be read names the row and the field."""

    def __init__(self, fields: Fields, values: Mapping[str, Any]) -> None:
        self._fields, self._values = fields, values

    def part(self, name: str) -> _Told | None:
        """An object, if it is there."""
        value = self._values.get(name)
        if value is None:
            return None
        return _Told(self._fields, value) if isinstance(value, dict) else self._bad(name)

    def limits(self, name: str) -> dict[Limit, int]:
        """Amounts by limit; a limit this version does not know is left out."""
        part = self.part(name)
        known = [limit for limit in Limit if part is not None and limit.value in part._values]
        return {limit: part.amount(limit.value) for limit in known if part is not None}

    def amount(self, name: str) -> int:
        """A limit that must be there."""
        value = self._values.get(name)
        return value if type(value) is int and is_amount(value) else self._bad(name)

    def whole(self, name: str, default: int | None = None) -> int:
        """A moment; must be there unless there is a default."""
        value = self._values.get(name, default)
        return value if type(value) is int and abs(value) <= _MOST_US else self._bad(name)

    def wholes(self, name: str) -> tuple[int, ...]:
        """Whole numbers in a list, which may be missing."""
        values = self._values.get(name, [])
        good = isinstance(values, list) and all(type(value) is int for value in values)
        return tuple(values) if good else self._bad(name)

    def number(self, name: str, default: float | None = None, *, most: float = _MOST_PART) -> float:
        """A share, a factor or seconds; must be there unless there is a default."""
        value = self._values.get(name, default)
        number = float(value) if isinstance(value, int | float) and not isinstance(value, bool) else -1.0
        return number if 0 <= number <= most else self._bad(name)

    def above_0(self, name: str, default: float | None = None, *, most: float = _MOST_PART) -> float:
        """The same, and more than nothing."""
        value = self.number(name, default, most=most)
        return value if value > 0 else self._bad(name)

    def text(self, name: str, default: str | None = None) -> str:
        """A string; must be there unless there is a default."""
        value = self._values.get(name, default)
        return value if isinstance(value, str) else self._bad(name)

    def flag_or_none(self, name: str) -> bool | None:
        """A truth value, if it is there."""
        value = self._values.get(name)
        return value if value is None or isinstance(value, bool) else self._bad(name)

    def _bad(self, name: str) -> Any:
        self._fields.unreadable(f"{TERMS}.{name}", "is missing, out of its bounds or cannot be read")
