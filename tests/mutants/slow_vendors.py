"""Planted faults in pacing for slow and strict vendors."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

FEEDBACK = "tests/unit/core/test_feedback.py"
WAITS = "tests/unit/usecases/test_wait_for_a_moment.py"

SLOW_VENDORS: tuple[Mutant, ...] = (
    Mutant(
        name="a_moment_that_two_may_have",
        file="shared/core/rate.py",
        old="max(arrival.get(limit, 0), now_us) + cost\n    daily",
        new="now_us + cost\n    daily",
        reqs=("X4",),
        tests=(WAITS, "tests/contract/test_budgets.py"),
    ),
    Mutant(
        name="ahead_of_more_than_the_pace",
        file="shared/core/rate.py",
        old="all(refusal.limit in _BY_PACE and refusal.retry_us",
        new="all(refusal.retry_us",
        reqs=("X4",),
        tests=("tests/contract/test_budgets.py",),
    ),
    Mutant(
        name="a_wait_that_looks_at_no_account",
        file="shared/usecases/purse.py",
        old="            if self._holds(permit):\n                return replace(permit, sent_us=now_us)",
        new="            if permit.metered:\n                return replace(permit, sent_us=now_us)",
        reqs=("X4",),
        tests=(WAITS,),
    ),
    Mutant(
        name="a_wait_that_looks_at_no_switch",
        file="shared/usecases/make_effect.py",
        old="            held = self._held_back(name, request) if permit.waited else None",
        new="            held = None",
        reqs=("X4", "R8"),
        tests=(WAITS,),
    ),
    Mutant(
        name="a_paid_call_after_a_wait",
        file="shared/usecases/context.py",
        old="            if permit.waited:",
        new="            if False:",
        reqs=("C2",),
        tests=(WAITS,),
    ),
    Mutant(
        name="a_job_that_waits_all_its_time",
        file="shared/usecases/spend.py",
        old="        self.patience_s -= wait_s",
        new="        self.patience_s -= 0 * wait_s",
        reqs=("X4",),
        tests=(WAITS,),
    ),
    Mutant(
        name="a_moment_that_is_kept_by_nobody",
        file="shared/usecases/purse.py",
        old="            if not rest.wait_us:\n",
        new="            if rest.wait_us >= 0:\n",
        reqs=("X4",),
        tests=(WAITS,),
    ),
    Mutant(
        name="a_quarter_of_an_hour_is_believed",
        file="shared/core/feedback.py",
        old="window_s if believed else RETRY_MOST_S",
        new="RETRY_MOST_S",
        faults=("G10",),
        tests=(FEEDBACK,),
    ),
    Mutant(
        name="whoever_tells_nothing_is_not_obeyed",
        file="shared/core/feedback.py",
        old="window_s if believed else RETRY_MOST_S",
        new="window_s",
        faults=("G10",),
        tests=(FEEDBACK,),
    ),
    Mutant(
        name="a_told_limit_is_believed_for_ever",
        file="shared/core/feedback.py",
        old="    if len(recent) < DOUBT_AFTER:",
        new="    if len(recent) < 10 * DOUBT_AFTER:",
        faults=("G10",),
        tests=(FEEDBACK,),
    ),
    Mutant(
        name="refusals_are_never_forgotten",
        file="shared/core/feedback.py",
        old="if us > now_us - int(DOUBT_WITHIN_S * SECOND)",
        new="if us",
        faults=("G10",),
        tests=(FEEDBACK,),
    ),
    Mutant(
        name="a_doubted_limit_binds_nobody",
        file="shared/core/limits.py",
        old="    if doubted and ours is not None and base is not None:",
        new="    if doubted and ours is None and base is not None:",
        faults=("G10",),
        tests=(FEEDBACK,),
    ),
    Mutant(
        name="a_429_with_a_new_limit_asks_for_no_quiet",
        file="shared/usecases/hear.py",
        old="        heard = replace(told, changed_us=stands.changed_us)",
        new="        heard = replace(told)",
        faults=("G10",),
        tests=("tests/unit/usecases/test_purse.py",),
    ),
)
