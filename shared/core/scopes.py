"""Which scopes there are. A stop aimed at a name that nobody has stops nothing, so it must not say that it did."""

from __future__ import annotations

from collections.abc import Mapping

from shared.core.errors import UnknownScope
from shared.core.job import CANARY
from shared.core.lane import LaneSpec
from shared.core.nearest import unknown
from shared.core.switches import check_scope


def known_scopes(lanes: Mapping[str, LaneSpec]) -> tuple[str, ...]:
    """Every scope that the lanes tell, widest first: all but those of tenants, whom nobody lists."""
    vendors = {vendor for lane in lanes.values() for vendor in lane.vendors}
    return (
        "all",
        *(f"vendor/{one}" for one in sorted(vendors)),
        *(f"lane/{one}" for one in sorted(lanes)),
        *(f"task/{one}/{task}" for one in sorted(lanes) for task in tasks_of(lanes[one])),
    )


def tasks_of(lane: LaneSpec) -> tuple[str, ...]:
    """The tasks its jobs may have; a lane that is served as jobs come has canaries, too."""
    return (*lane.tasks, CANARY) if lane.has_canaries else lane.tasks


def check_known(scope: str, lanes: Mapping[str, LaneSpec]) -> str:
    """A scope of something that is configured; a tenant's counts as known where its lane is. Raises UnknownScope."""
    kind, _, rest = check_scope(scope).partition("/")
    lane, _, name = rest.partition("/")
    known: tuple[str, ...] = known_scopes(lanes)
    if kind == "tenant":
        known = tuple(f"tenant/{one}/{name}" for one in lanes)
    if scope in known:
        return scope
    near = f"task/{lane}/" if kind == "task" and lane in lanes else f"{kind}/"
    raise UnknownScope(scope, unknown(scope, (one for one in known if one.startswith(near)), "scopes"))
