"""Planted faults that only show when the whole engine runs through an incident."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

INCIDENT, NIGHT = ("tests/simulation/test_incident.py",), ("tests/simulation/test_redrive_night.py",)
CAPACITY = "shared/core/capacity.py"

SIMULATED: tuple[Mutant, ...] = (
    Mutant(
        name="steps_of_four",
        file=CAPACITY,
        old="    return min(top, cap + policy.step_up), why",
        new="    return min(top, cap + 2 * policy.step_up), why",
        reqs=("C4",),
        tests=INCIDENT,
    ),
    Mutant(
        name="a_429_is_not_counted",
        file="shared/usecases/tally.py",
        old="        limited = isinstance(answer, Refused) and answer.rate_limited",
        new="        limited = isinstance(answer, Refused) and answer.unsent",
        reqs=("C5",),
        tests=INCIDENT,
    ),
    Mutant(
        name="a_cap_that_stays_up",
        file=CAPACITY,
        old="if calm and cap > policy.baseline else None",
        new="if calm and cap > policy.ceiling else None",
        reqs=("C6",),
        tests=INCIDENT,
    ),
    Mutant(
        name="an_abort_that_nobody_hears",
        file="shared/usecases/run_redrive.py",
        old="        if plan is None or plan.state is not PlanState.RUNNING:",
        new="        if plan is None:",
        reqs=("C10",),
        faults=("F5",),
        tests=NIGHT,
    ),
)
