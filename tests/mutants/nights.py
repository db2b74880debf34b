"""Planted faults in what an incident and a learnt limit do to a pace."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

GOVERN, CAPACITY = ("tests/unit/usecases/test_govern.py",), ("tests/unit/core/test_capacity.py",)
SEARCH, RATE = ("tests/unit/core/test_search.py",), ("tests/unit/core/test_rate.py",)
BUDGETS = ("tests/contract/test_budgets.py",)

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
    Mutant(
        name="a_burst_into_the_end_of_a_quiet",
        file="shared/core/pace.py",
        old="    return max(whole_us, min(little_us, terms.quiet_until_us + CAUTIOUS_US))",
        new="    return whole_us",
        reqs=("X9",),
        tests=RATE,
    ),
    Mutant(
        name="a_burst_into_the_end_of_a_quiet_of_the_table",
        file="shared/adapters/aws/budget_writes.py",
        old="rate.burst_at(spec, seen.terms, now_us + ahead_us)",
        new="int(spec.burst_s * SECOND)",
        reqs=("X9",),
        tests=BUDGETS,
    ),
    Mutant(
        name="back_to_what_was_refused_threefold",
        file="shared/core/search.py",
        old="        found = min(pace, max(HALF * pace, passed))",
        new="        found = max(HALF * pace, 0.97 * pace)",
        reqs=("C16",),
        faults=("E7",),
        tests=SEARCH,
    ),
    Mutant(
        name="a_quiet_that_does_not_count",
        file="shared/core/search.py",
        old=" + min(int(quiet_s * SECOND), MINUTE)",
        new="",
        reqs=("X9",),
        tests=SEARCH,
    ),
    Mutant(
        name="an_hour_of_quiet_that_counts",
        file="shared/core/search.py",
        old="min(int(quiet_s * SECOND), MINUTE)",
        new="int(quiet_s * SECOND)",
        reqs=("X9",),
        tests=SEARCH,
    ),
    Mutant(
        name="what_is_taken_for_later_has_passed",
        file="shared/core/search.py",
        old="(spending.sent_us - search.spent_us)",
        new="(spending.spent_us - search.spent_us)",
        reqs=("X9",),
        tests=SEARCH,
    ),
    Mutant(
        name="a_measure_without_the_call_that_was_refused",
        file="shared/core/search.py",
        old="(spending.sent_us - search.spent_us)",
        new="(spending.sent_us - spending.call_us - search.spent_us)",
        reqs=("X9",),
        tests=SEARCH,
    ),
    Mutant(
        name="a_search_that_grows_by_the_configured_limit",
        file="shared/core/search.py",
        old="    return min(explore, search.top * grown)",
        new="    return min(explore, search.top + grown - 1)",
        reqs=("X9",),
        tests=SEARCH,
    ),
    Mutant(
        name="a_search_that_never_leaves_what_is_configured",
        file="shared/core/search.py",
        old="    return min(explore, search.top * grown)",
        new="    return min(1.0, search.top * grown)",
        reqs=("X9",),
        tests=SEARCH,
    ),
    Mutant(
        name="a_search_that_grows_as_slowly_wherever_it_is",
        file="shared/core/search.py",
        old="/ search.unit_s) ** 3",
        new="/ MOST_UNIT_S) ** 3",
        reqs=("X9",),
        tests=SEARCH,
    ),
    Mutant(
        name="a_quiet_call_that_lowers_the_pace_after_it",
        file="shared/core/feedback.py",
        old="    if before is not None and sent_us < before.since_us:",
        new="    if before is not None and sent_us < 0:",
        reqs=("X9",),
        tests=("tests/unit/core/test_feedback.py",),
    ),
    Mutant(
        name="whole_calls_a_minute_alone",
        file="shared/core/pace.py",
        old="int(limit * PARTS)",
        new="int(limit) * PARTS",
        reqs=("X9",),
        tests=RATE,
    ),
    Mutant(
        name="a_429_pays_for_the_next_call",
        file="shared/usecases/use.py",
        old="isinstance(answer, Refused) and not answer.rate_limited",
        new="isinstance(answer, Refused)",
        reqs=("X3",),
        tests=("tests/unit/usecases/test_use.py",),
    ),
    Mutant(
        name="what_came_back_counts_as_spent",
        file="shared/adapters/aws/budget_writes.py",
        old="        write.add(SPENT, -rate.configured_us(spec, want))",
        new="        write.add(SPENT, 0)",
        reqs=("X9",),
        tests=BUDGETS,
    ),
)
