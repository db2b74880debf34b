"""Look: gather what is known of a lane, for whoever judges it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from shared.core.account import AccountSpec
from shared.core.errors import Unavailable, UnreadableRow
from shared.core.lane import LaneSpec
from shared.core.message import QueueDepth
from shared.core.ports import (
    BudgetLedger,
    Clock,
    DeadLetterQueues,
    JobStore,
    LaneQueues,
    SignalLedger,
    Telemetry,
)
from shared.core.signals import Moved, Signals

NO_QUEUE = QueueDepth(visible=0, in_flight=0)
"""Of a lane that is started by runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookout:
    """What a look needs. It only reads."""

    jobs: JobStore
    queues: LaneQueues
    dead_letters: DeadLetterQueues
    signals: SignalLedger
    budgets: BudgetLedger | None
    accounts: Mapping[str, AccountSpec]
    clock: Clock
    telemetry: Telemetry
    window_s: int
    """How far back the counts are read."""

    def look(self, lane: LaneSpec, moved: Moved | None) -> Signals | None:
        """The lane's signals now; None, said as an event, when they cannot be read."""
        now = self.clock.now()
        try:
            queue = NO_QUEUE if lane.admission == "scheduled" else self.queues.depth(lane.name)
            return Signals(
                at=now,
                minutes=tuple(self.signals.minutes(lane.name, since=now - timedelta(seconds=self.window_s))),
                visible=queue.visible,
                in_flight=queue.in_flight,
                dead_letters=self.dead_letters.depth(lane.name).total,
                oldest_due_at=self._oldest_due(lane, now),
                moved=moved,
                shut=frozenset(self._shut(lane)),
                minute_s=lane.minute_s,
            )
        except (Unavailable, UnreadableRow) as exc:
            self.telemetry.error("signals_unreadable", exc, lane=lane.name)
            return None

    def _oldest_due(self, lane: LaneSpec, now: datetime) -> datetime | None:
        if lane.admission != "on_enqueue":
            # By tenant, or for the next run: what waits there is judged by its own rules.
            return None
        return min((entry.due for entry in self.jobs.waiting(lane, due_before=now, limit=1)), default=None)

    def _shut(self, lane: LaneSpec) -> set[str]:
        """Vendors of the lane whose account takes nothing but probes."""
        found: set[str] = set()
        for name in lane.accounts if self.budgets is not None else ():
            spec = self.accounts[name]
            if self.budgets is not None and self.budgets.read(spec).terms.shut is not None:
                found.add(spec.vendor)
        return found
