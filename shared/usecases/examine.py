"""Examine: gather what the exit checklist asks of every lane under a scope. It only reads, as the governor does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from shared.core.capacity import CapacityState
from shared.core.checklist import LaneChecks, Seen, checklist, lanes_under
from shared.core.errors import Unavailable, UnreadableRow
from shared.core.governing import Rules
from shared.core.lane import LaneSpec
from shared.core.ports import ControlStore
from shared.core.scopes import check_known
from shared.core.switches import Switches, check_scope
from shared.usecases.look import Lookout


@dataclass(frozen=True, slots=True, kw_only=True)
class Examiner:
    """What an examination needs: the governor's own eyes and rules."""

    lookout: Lookout
    rules: Rules
    control: ControlStore
    lanes: Mapping[str, LaneSpec]

    def examine(self, scope: str) -> list[LaneChecks]:
        """The checklist of every lane that the scope covers. Raises UnknownScope for one that nothing has."""
        switches = self.control.switches()
        if check_scope(scope) not in switches.entries:
            check_known(scope, self.lanes)
        return [self._lane(lane, switches) for lane in lanes_under(scope, self.lanes)]

    def _lane(self, lane: LaneSpec, switches: Switches) -> LaneChecks:
        now = self.lookout.clock.now()
        try:
            state = self.control.capacity(lane.name)
        except (Unavailable, UnreadableRow):
            # Not confirmed: as a governor that has not looked for ever.
            state = CapacityState(cap=lane.baseline)
            return checklist(lane, Seen(signals=None, state=state, switches=switches, at=now), self.rules)
        signals = self.lookout.look(lane, None if state is None else state.moved)
        return checklist(lane, Seen(signals=signals, state=state, switches=switches, at=now), self.rules)
