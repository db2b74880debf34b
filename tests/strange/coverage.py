"""What strange executions must have drawn, all together: a kind that never comes up proves nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import product

from shared.adapters.memory.faults import Fault
from shared.core.effects import Lookup
from tests.strange.operators import Act
from tests.strange.scripts import VENDORS, Decider, End, Keeping, Strangeness, Temper
from tests.strange.tangle import PLACES
from tests.strange.vendors import Way

ROLES = ("client", "stream", "dispatcher", "triage", "sweeper", "redriver")
"""Those who come by while there is trouble; the auditor comes once an hour."""
STEERED = ("claim", "read", "intent", "effects", "settle")
"""A worker's places at which its job may be taken from it; where an intent is open it may not."""


def required() -> frozenset[str]:
    """Every kind of vendor, answer, task, act and interleaving."""
    places = sorted({*PLACES.values(), "other"})
    return frozenset(
        {
            *(f"vendor:{name}:{key}:{look}" for name, key, look in product(VENDORS, ("dedupes", "no_key"), Lookup)),
            *(f"answer:{way}:{when}" for way, when in product(Way, ("first", "again"))),
            *(f"look_up:{word}" for word in ("found", "absent", "no_answer")),
            *(f"strange:{one}" for one in Strangeness),
            *(f"decider:{one}" for one in Decider),
            *(f"keeping:{one}" for one in Keeping),
            *(f"end:{one}" for one in End),
            *(f"temper:{one}" for one in Temper),
            *(f"act:{one}" for one in Act),
            *(f"at:{place}:{fault}" for place, fault in product((*places, *ROLES), Fault)),
            *(f"at:{place}:turn" for place in places),
            *(f"at:{place}:{Act.CLOSE}" for place in places),
            *(f"at:{place}:{act}" for place, act in product(STEERED, (Act.RESET, Act.CANCEL))),
            "time_out",
        }
    )


def missing(seen: Counter[str]) -> list[str]:
    """What was never drawn."""
    return sorted(one for one in required() if not seen[one])


def lines(seen: Counter[str]) -> Iterator[str]:
    """The counts, one line for each kind of thing."""
    heads: dict[str, list[str]] = {}
    for name, count in sorted(seen.items()):
        head, _, rest = name.rpartition(":")
        heads.setdefault(head or name, []).append(f"{rest} {count:,}" if head else f"{count:,}")
    for head, counts in heads.items():
        yield f"  {head:<28} {', '.join(counts)}"


def summed(counts: Iterable[Counter[str]]) -> Counter[str]:
    """All together."""
    total: Counter[str] = Counter()
    for one in counts:
        total.update(one)
    return total
