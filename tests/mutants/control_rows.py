"""Planted faults in switches, caps and scopes that are not what they seem."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

SETTING = "shared/usecases/set_switch.py"
NAMED = ("tests/unit/usecases/test_set_switch.py", "tests/unit/ops/cli/test_control_names.py")

CONTROL_ROWS: tuple[Mutant, ...] = (
    Mutant(
        name="a_stop_at_a_name_that_nobody_has",
        file=SETTING,
        old="        if anyway or _stands(switch.scope, control):",
        new="        if True:",
        faults=("E8",),
        tests=NAMED,
    ),
    Mutant(
        name="a_halt_that_waits_for_the_lanes",
        file=SETTING,
        old="        if switch.level is Level.HALT or anyway:",
        new="        if anyway:",
        faults=("E8",),
        tests=NAMED,
    ),
    Mutant(
        name="a_task_of_any_name",
        file="shared/core/scopes.py",
        old="    if scope in known:",
        new='    if scope in known or kind == "task":',
        faults=("E8",),
        tests=NAMED,
    ),
    Mutant(
        name="a_checklist_of_nothing",
        file="shared/usecases/examine.py",
        old="            check_known(scope, self.lanes)",
        new="            pass",
        faults=("E8",),
        tests=NAMED,
    ),
    Mutant(
        name="a_tenant_with_nothing_goes_unnoticed",
        file="ops/cli/control.py",
        old="    if found is not None and not found.at_least:",
        new="    if found is None:",
        faults=("E8",),
        tests=NAMED,
    ),
)
