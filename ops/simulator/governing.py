"""The cap beside an engine: the real governor every minute, or a cap that follows a list."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from itertools import pairwise

from ops.simulator.engine import Engine
from shared.adapters.memory.stores import MemoryHistory
from shared.core.capacity import Policy
from shared.core.severity import Thresholds
from shared.usecases.govern import Governor
from shared.usecases.look import Lookout

EVERY_S = 60
LATE_S = 2.0
"""A schedule fires up to so much after its minute: a step that was due just then comes a minute later."""

Caps = Sequence[tuple[float, int]]
"""From when on, in seconds from the start, the event source had which cap."""


class CapLog:
    """The caps that an event source had."""

    def __init__(self, engine: Engine, *, governed: bool) -> None:
        self._engine, self._began, self.governed = engine, engine.clock.now(), governed
        self.caps: list[tuple[float, int]] = [(0.0, engine.cap)]

    def look(self) -> None:
        """Note the cap, if it is another one."""
        if self._engine.cap != self.caps[-1][1]:
            seconds = (self._engine.clock.now() - self._began).total_seconds()
            self.caps.append((seconds, self._engine.cap))


def govern(
    engine: Engine, *, thresholds: Thresholds, policies: Mapping[str, Policy], seed: int = 1, every_s: int = EVERY_S
) -> CapLog:
    """Start the governor, from the lane's baseline."""
    engine.set_cap(engine.lane.baseline)
    log, rng, ids = CapLog(engine, governed=True), random.Random(seed), iter(range(10**9))
    governor = Governor(
        lookout=Lookout(
            jobs=engine.jobs,
            queues=engine.queues,
            dead_letters=engine.dead_letters,
            signals=engine.signals,
            budgets=engine.budgets,
            accounts=engine.accounts,
            clock=engine.clock,
            telemetry=engine.telemetry,
            window_s=max(thresholds.normal_window_s, thresholds.growth_window_s),
        ),
        thresholds=thresholds,
        policies=policies,
        control=engine.control,
        actuator=engine.actuator,
        history=MemoryHistory(),
        clock=engine.clock,
        telemetry=engine.telemetry,
        new_id=lambda: f"look-{next(ids)}",
    )

    def run() -> None:
        late_s = 0.0
        while not engine.hub.stopped:
            next_s, late_s = every_s - late_s, round(rng.uniform(0, LATE_S), 3)
            engine.clock.sleep(next_s + late_s)
            governor.run(engine.lanes)
            log.look()

    engine.hub.spawn(run)
    return log


def follow(engine: Engine, caps: Caps) -> CapLog:
    """Let the cap be what a list says, whatever happens."""
    engine.set_cap(caps[0][1])
    log = CapLog(engine, governed=False)

    def run() -> None:
        before_s = 0.0
        for at_s, cap in caps:
            engine.clock.sleep(at_s - before_s)
            before_s = at_s
            engine.set_cap(cap)
            log.look()

    engine.hub.spawn(run)
    return log


def direction_changes(caps: Caps) -> int:
    """How often a cap that rose falls, or one that fell rises."""
    steps = [after - before for (_, before), (_, after) in pairwise(caps)]
    return sum((one > 0) != (two > 0) for one, two in pairwise(steps))
