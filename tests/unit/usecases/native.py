"""A redrive desk for native plans: a pinned cap, canaries, and SQS moving while the executor sleeps."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from shared.core.capacity import CapacityState, Pin
from shared.core.cohort import Chosen
from shared.core.plan import Plan
from shared.usecases.native_redrive import NativeDesk
from shared.usecases.plan_redrive import Planned, plan_redrive
from shared.usecases.start_redrive import start_redrive
from tests.unit.usecases.redriving import ADA, CAUSE, RedriveDesk


class Native(RedriveDesk):
    """As `RedriveDesk`; a native plan moves ten letters a second unless it says otherwise."""

    def native_desk(self) -> NativeDesk:
        return NativeDesk(
            lane=self.lane,
            dead_letters=self.dead_letters,
            control=self.control,
            plans=self.plans,
            history=self.history,
            clock=self.clock,
        )

    def pin(self, cap: int | None = None, minutes: float = 120) -> None:
        """The lane's cap, held at its baseline."""
        seen = self.control.capacity(self.lane.name)
        until = self.clock.now() + timedelta(minutes=minutes)
        held = Pin(cap=self.lane.baseline if cap is None else cap, until=until, by=ADA, why="a redrive")
        version = 0 if seen is None else seen.version
        assert self.control.set_capacity(
            self.lane.name, seen, CapacityState(cap=held.cap, version=version + 1, pin=held)
        )

    def canary(self, job_id: str) -> None:
        """A plan of one, to its end."""
        plan = self.started(job_id=job_id)
        while self.progress(plan).ended is None:
            self.tick()
        self.settle_letters()

    def settle_letters(self) -> None:
        """Until triage has removed what is settled, and nobody looks at a letter."""
        for _ in range(3):
            self.clock.advance(60)
            self.triage().run(self.lane)
        self.clock.advance(60)

    def plan_native(self, rate: int | None = 10, **choice: Any) -> Planned:
        desk = self.native_desk()
        planned = plan_redrive(
            Chosen(**{"lane": self.lane.name, **choice}),
            cause=CAUSE,
            by=ADA,
            jobs=self.jobs,
            effects=self.effects,
            plans=self.plans,
            history=self.history,
            clock=self.clock,
            native=lambda planned: desk.planned(planned, rate),
        )
        self.clock.advance(60)
        return planned

    def start_native(self, plan: Plan) -> Plan:
        started = start_redrive(
            plan.plan_id,
            by=ADA,
            lane=self.lane,
            switches=self.control.switches(),
            jobs=self.jobs,
            effects=self.effects,
            plans=self.plans,
            history=self.history,
            clock=self.clock,
            native=self.native_desk(),
        )
        self.clock.advance(60)
        return started

    def started_native(self, rate: int | None = 10) -> Plan:
        plan = self.plan_native(rate).plan
        self.approve(plan)
        return self.start_native(plan)

    def ready(self, count: int, **options: Any) -> list[str]:
        """So many dead letters whose error one more job has shown to be gone, and the cap held."""
        first, *rest = self.fail(count + 1, **options)
        self.pin()
        self.canary(first)
        return rest

    def meanwhile(self, seconds: float) -> None:
        """SQS moves, the stream and the workers go on. Triage comes once a minute, not at every look."""
        self.moves.catch_up()
        self.go_on()
        self.clock.advance(seconds)
        self.moves.catch_up()
