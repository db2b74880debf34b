"""What is kept of a lane's capacity, for pages that show it beside other things."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ops.cli.trouble import problem_of
from shared.core.errors import UnreadableRow

if TYPE_CHECKING:
    from ops.cli.stage import Stage
    from shared.core.capacity import CapacityState
    from shared.core.lane import LaneSpec


def kept_of(stage: Stage, lane: LaneSpec) -> tuple[CapacityState | None, str | None]:
    """The state; or what is wrong with its row, and how to mend it: everything else can be shown all the same."""
    try:
        return stage.control.capacity(lane.name), None
    except UnreadableRow as exc:
        return None, problem_of(exc).sentence
