"""Planted faults in native redrives."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

TESTS = "tests/unit/usecases/test_native_redrive.py"
RUN, DESK, LAW = "shared/usecases/run_native.py", "shared/usecases/native_redrive.py", "shared/core/native.py"

NATIVE: tuple[Mutant, ...] = (
    Mutant(
        name="native_without_a_destination",
        file="shared/adapters/aws/move_tasks.py",
        old="SourceArn=source, DestinationArn=destination, MaxNumberOfMessagesPerSecond=rate",
        new="SourceArn=source, MaxNumberOfMessagesPerSecond=rate",
        reqs=("C10",),
        tests=("tests/unit/adapters/test_move_tasks.py",),
    ),
    Mutant(
        name="native_beside_a_cap_that_is_not_held",
        file=DESK,
        old="        if pin is None or pin.cap > lane.baseline or pin.until < until:",
        new="        if pin is None:",
        reqs=("C10", "C11"),
        tests=(TESTS,),
    ),
    Mutant(
        name="native_moves_what_the_plan_left_out",
        file=DESK,
        old="        if others:",
        new="        if len(others) > len(meant):",
        faults=("F4",),
        tests=(TESTS,),
    ),
    Mutant(
        name="native_moves_before_the_rows",
        file=LAW,
        old="    if look.left:\n",
        new="    if look.left and (begun or not look.open):\n",
        faults=("F7",),
        tests=(TESTS,),
    ),
    Mutant(
        name="native_stop_leaves_the_move_running",
        file=RUN,
        old="task.state is MoveState.RUNNING and task.handle is not None:",
        new="task.state is MoveState.FAILED and task.handle is not None:",
        faults=("F5",),
        tests=(TESTS,),
    ),
    Mutant(
        name="triage_fails_what_a_plan_let_go",
        file="shared/usecases/triage.py",
        old="        if envelope.is_dead_letter(message.body):",
        new="        if not message.body:",
        faults=("F7",),
        tests=(TESTS,),
    ),
    Mutant(
        name="native_forgets_what_was_left_behind",
        file=RUN,
        old="            if self.over and job is not None and job.route == NATIVE:",
        new="            if not self.begun and job is not None and job.route == NATIVE:",
        faults=("F7",),
        tests=(TESTS,),
    ),
)
