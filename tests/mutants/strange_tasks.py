"""Planted faults in what only tasks that change their mind, and windows that end, can show.

Each is found by the generator itself, within the executions that stand beside it.
"""

from __future__ import annotations

from tests.mutants.mutant import Mutant

GENERATOR = ("tests/strange",)
MAKE, CONCLUDE, PASSAGE = (f"shared/usecases/{name}.py" for name in ("make_effect", "conclude", "passage"))

STRANGE_TASKS: tuple[Mutant, ...] = (
    Mutant(
        # 2 executions
        name="strange_a_refusal_closes_what_was_begun",
        file=MAKE,
        old="            case Refused() if row.taken_over:",
        new="            case Refused() if row.taken_over and row.open is False:",
        faults=("A13",),
        tests=GENERATOR,
    ),
    Mutant(
        # 303 executions
        name="strange_done_over_an_open_intent",
        file=CONCLUDE,
        old="        if row.open and evidence.find(row) is None:",
        new="        if row.open and isinstance(outcome, Fail) and evidence.find(row) is None:",
        faults=("A14",),
        tests=GENERATOR,
    ),
    Mutant(
        # 287 executions
        name="strange_an_act_of_before_goes_untold",
        file=CONCLUDE,
        old="        acted = acted or row.state is not EffectState.REFUSED",
        new="        acted = acted or row.state is EffectState.REFUSED",
        faults=("A14",),
        tests=GENERATOR,
    ),
    Mutant(
        # 40 executions
        name="strange_a_new_name_beside_another",
        file=PASSAGE,
        old="        if left_out:",
        new="        if left_out and not name:",
        faults=("A15",),
        tests=GENERATOR,
    ),
    Mutant(
        # 407 executions
        name="strange_another_vendor_under_one_name",
        file="shared/core/effects.py",
        old="    parts: tuple[object, ...] = (request.vendor, request.action, request.target)",
        new='    parts: tuple[object, ...] = ("vendor", request.action, request.target)',
        faults=("A19",),
        tests=GENERATOR,
    ),
    Mutant(
        # 21 executions
        name="strange_a_job_that_has_acted_is_canceled",
        file="shared/usecases/steer.py",
        old="    if acts and job.status is not Status.FAILED:",
        new="    if acts and job.status is Status.FAILED:",
        faults=("A4",),
        tests=GENERATOR,
    ),
)
