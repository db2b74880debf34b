"""What admission looks at, gathered: the lane, the switches, and how full its queue is."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from shared.core.admission import Capacity, View
from shared.core.errors import UnknownLane
from shared.core.lane import LaneSpec
from shared.core.ports import Clock, ControlStore, LaneQueues
from shared.usecases.switchboard import SwitchBoard

DEPTH_CACHED_S = 2


class Viewer:
    """Builds views; queue attributes are asked for at most every two seconds, sends in between are added."""

    def __init__(
        self,
        *,
        lanes: Mapping[str, LaneSpec],
        board: SwitchBoard,
        control: ControlStore,
        queues: LaneQueues,
        clock: Clock,
    ) -> None:
        self._lanes, self._board, self._control = lanes, board, control
        self._queues, self._clock = queues, clock
        self._capacity: dict[str, tuple[datetime, Capacity]] = {}

    def of(self, lane: str) -> View:
        """The view for a lane's jobs, now."""
        spec = self.lane(lane)
        return View(lane=spec, switches=self._board.read(), capacity=self._capacity_of(spec))

    def knows(self, lane: str) -> bool:
        """True for a lane of this stage."""
        return lane in self._lanes

    def lane(self, name: str) -> LaneSpec:
        """The lane of that name, or UnknownLane."""
        spec = self._lanes.get(name)
        if spec is None:
            raise UnknownLane(name, tuple(sorted(self._lanes)))
        return spec

    def sent(self, lane: str, count: int = 1) -> None:
        """Count what was just sent, until the queue is asked again."""
        seen_at, capacity = self._capacity[lane]
        self._capacity[lane] = (seen_at, Capacity(depth=capacity.depth + count, limit=capacity.limit))

    def _capacity_of(self, lane: LaneSpec) -> Capacity:
        now = self._clock.now()
        known = self._capacity.get(lane.name)
        if known is not None and now - known[0] < timedelta(seconds=DEPTH_CACHED_S):
            return known[1]
        # Whatever the control table says, the ceiling holds.
        cap = min(self._control.cap(lane.name) or lane.baseline, lane.ceiling)
        # What runs is no backlog: only messages that wait for a worker fill the window.
        depth = self._queues.depth(lane.name)
        capacity = Capacity(depth=depth.visible + depth.delayed, limit=lane.queue_limit_at(cap))
        self._capacity[lane.name] = (now, capacity)
        return capacity
