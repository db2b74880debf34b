"""Planted faults in what an account promises, says and learns."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

USECASES = "tests/unit/usecases"

BUDGETS: tuple[Mutant, ...] = (
    Mutant(
        name="a_check_in_other_words",
        file="shared/usecases/spend.py",
        old='            output_data={"allowed": isinstance(checked.answer, Permit)},',
        new='            output_data={"granted": isinstance(checked.answer, Permit)},',
        reqs=("X6",),
        tests=(USECASES,),
    ),
    Mutant(
        name="starts_that_do_not_stand_in_line",
        file="shared/usecases/view.py",
        old="        span_us = rate.span_of(spec, budget, want, start_us)",
        new="        span_us = 0",
        reqs=("R17",),
        tests=(f"{USECASES}/test_run_dispatch.py",),
    ),
    Mutant(
        name="refused_credentials_fail_the_job",
        file="shared/usecases/hear.py",
        old="        shut = feedback.shut_down(terms, feedback.AUTH, sent_us, now_us)",
        new="        shut = None",
        faults=("G9",),
        tests=(f"{USECASES}/test_purse.py", f"{USECASES}/test_spend.py"),
    ),
    Mutant(
        name="a_probe_that_nobody_waits_for",
        file="shared/core/budget.py",
        old="        return max(self.probe_us, self.held_until_us)",
        new="        return self.probe_us",
        faults=("G8",),
        tests=(f"{USECASES}/test_purse.py", "tests/unit/core/test_feedback.py"),
    ),
    Mutant(
        name="a_lane_that_always_comes_first",
        file="shared/usecases/run_dispatch.py",
        old="        busy_at[first] = busy_at.pop(first)",
        new="        busy_at[first] = busy_at[first]",
        reqs=("X9",),
        tests=(f"{USECASES}/test_run_dispatch.py",),
    ),
)
