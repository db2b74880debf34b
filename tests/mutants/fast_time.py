"""Planted faults in the length of a lane's minutes."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

FAST_TIME: tuple[Mutant, ...] = (
    Mutant(
        name="a_spike_is_looked_for_by_the_clocks_minute",
        file="shared/core/signals.py",
        old="        wanted = minute_of(self.at, self.minute_s) - timedelta(seconds=back * self.minute_s)",
        new="        wanted = minute_of(self.at) - back * MINUTE",
        reqs=("C16",),
        tests=("tests/unit/core/test_severity.py",),
    ),
    Mutant(
        name="a_worker_counts_by_the_clocks_minute",
        file="shared/usecases/tally.py",
        old="        signals.add(lane.name, clock.now(), counts, minute_s=lane.minute_s)",
        new="        signals.add(lane.name, clock.now(), counts)",
        reqs=("C16",),
        tests=("tests/unit/usecases/test_tally.py",),
    ),
)
