"""How a minute's counts are written as a row, and read back.

Every count is an attribute of its own, so that a batch adds to it without a read. The largest of several ages is not a
sum: the ages are a set of numbers, a few coarse values, and whoever reads takes the largest.
"""

from __future__ import annotations

from datetime import datetime

from shared.adapters import attributes
from shared.adapters.attributes import Attribute, Fields, Item
from shared.adapters.rows import key_of
from shared.contract import table
from shared.core.moment import iso
from shared.core.signals import KEPT, MINUTE_S, Counts, Minute, VendorCounts, coarse_age_s, minute_of

_PLAIN = ("claims", "completed", "failed", "errors")
_OF_VENDORS = ("calls", "limited", "errors", "tokens")
_AGES, _VENDOR = "ages", "vendor"


def minute_key(lane: str, at: datetime, minute_s: int = MINUTE_S) -> Item:
    """The row of the minute `at` is in."""
    return {table.PK: attributes.text(table.signals_pk(lane)), table.SK: attributes.text(iso(minute_of(at, minute_s)))}


def expiry_of(at: datetime) -> Attribute:
    """When the row may go."""
    return attributes.expiry(minute_of(at) + KEPT)


def added(counts: Counts) -> Item:
    """What a write adds, attribute by attribute; what did not happen is left out."""
    found = {name: getattr(counts, name) for name in _PLAIN}
    for vendor, of in counts.vendors.items():
        found |= {f"{_VENDOR}#{vendor}#{name}": getattr(of, name) for name in _OF_VENDORS}
    item: Item = {name: attributes.whole(count) for name, count in found.items() if count}
    if counts.oldest_age_s:
        item[_AGES] = {"NS": [str(coarse_age_s(counts.oldest_age_s))]}
    return item


def minute_from_item(item: Item) -> Minute:
    """The minute a row says. Raises UnreadableRow."""
    fields = Fields(f"{key_of(item)}/{key_of(item, table.SK)}", item)
    vendors: dict[str, dict[str, int]] = {}
    for name in item:
        kind, _, rest = name.partition("#")
        vendor, _, counted = rest.rpartition("#")
        if kind == _VENDOR and vendor and counted in _OF_VENDORS:
            vendors.setdefault(vendor, {})[counted] = fields.whole(name)
    return Minute(
        at=fields.time(table.SK),
        counts=Counts(
            **{name: fields.whole(name, 0) for name in _PLAIN},
            oldest_age_s=_oldest(fields, item.get(_AGES, {"NS": []})),
            vendors={vendor: VendorCounts(**counts) for vendor, counts in sorted(vendors.items())},
        ),
    )


def _oldest(fields: Fields, ages: Attribute) -> int:
    try:
        return max((int(age) for age in ages["NS"]), default=0)
    except (KeyError, TypeError, ValueError):
        fields.unreadable(_AGES, "is not a set of whole numbers")
