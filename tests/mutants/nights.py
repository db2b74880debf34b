"""Planted faults in what an incident and a learnt limit do to a pace."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

GOVERN, CAPACITY = ("tests/unit/usecases/test_govern.py",), ("tests/unit/core/test_capacity.py",)

NIGHTS: tuple[Mutant, ...] = (
    Mutant(
        name="a_step_every_eleven_minutes",
        file="shared/usecases/govern.py",
        old="        if max(waits_s):",
        new="        if max(waits_s) > 60:",
        reqs=("C4",),
        faults=("E7",),
        tests=GOVERN,
    ),
    Mutant(
        name="an_interval_waited_for_whatever_is_left",
        file="shared/core/capacity.py",
        old="if 0 < one_s <= policy.interval_s * EARLY)",
        new="if 0 < one_s)",
        reqs=("C4",),
        tests=CAPACITY,
    ),
)
