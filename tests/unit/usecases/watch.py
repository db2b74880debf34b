"""A lane with a governor over it, a minute at a time."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from shared.adapters.memory.event_sources import MemoryActuator
from shared.core.capacity import POLICIES, CapacityState, EventSource, Pin
from shared.core.severity import Thresholds
from shared.core.signals import Counts, VendorCounts
from shared.core.switches import Level
from shared.core.vendor_cost import Prices
from shared.usecases.govern import Governed, Governor
from shared.usecases.look import Lookout
from tests.builders import a_job
from tests.unit.usecases.desk import Desk

SPIKE = Counts(claims=10, vendors={"helpdesk": VendorCounts(calls=10, limited=6)})
QUIET = Counts(claims=10, completed=10, vendors={"helpdesk": VendorCounts(calls=10)})


class Watch:
    """A desk with a governor, a minute at a time."""

    def __init__(self, prices: Prices | None = None, **more: Any) -> None:
        self.prices = prices or Prices()
        self.desk = Desk(**{"ceiling": 10, "baseline": 4, **more})
        self.actuator = MemoryActuator([self.desk.lane.name], cap=self.desk.lane.baseline)
        self.governor = self.a_governor()

    def a_governor(self) -> Governor:
        desk = self.desk
        return Governor(
            lookout=Lookout(
                jobs=desk.jobs,
                queues=desk.queues,
                dead_letters=desk.dead_letters,
                signals=desk.signals,
                budgets=desk.budget_ledger,
                accounts=desk.accounts,
                clock=desk.clock,
                telemetry=desk.telemetry,
                window_s=3600,
            ),
            thresholds=Thresholds(),
            policies=POLICIES,
            control=desk.control,
            actuator=self.actuator,
            history=desk.history,
            clock=desk.clock,
            telemetry=desk.telemetry,
            prices=self.prices,
        )

    def saw(self, counts: Counts) -> None:
        """Workers wrote this in the minute that now ends."""
        self.desk.signals.add(self.desk.lane.name, self.desk.clock.now(), counts)
        self.desk.clock.advance(60)

    def backlog(self) -> None:
        """A job that has been due for five minutes."""
        self.desk.put(a_job(due=self.desk.clock.now() - timedelta(minutes=5), key="old"))

    def look(self) -> Governed:
        done = self.governor.govern(self.desk.lane)
        assert done is not None
        return done

    @property
    def source(self) -> EventSource:
        return self.actuator.sources[self.desk.lane.name]

    @property
    def state(self) -> CapacityState:
        state = self.desk.control.capacity(self.desk.lane.name)
        assert isinstance(state, CapacityState)
        return state

    def pin(self, cap: int, minutes: int = 60) -> None:
        pin = Pin(cap=cap, until=self.desk.clock.now() + timedelta(minutes=minutes), by="operator", why="incident")
        self.desk.control.set_capacity(
            self.desk.lane.name, self.state, replace(self.state, pin=pin, cap=cap, version=self.state.version + 1)
        )

    def level(self) -> Level:
        switch = self.desk.control.switches().entries.get(f"lane/{self.desk.lane.name}")
        return Level.NORMAL if switch is None else switch.level
