"""Planted faults in what a refusal, an end and late evidence say of an open intent."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

MAKE, SETTLE, LIFE = "shared/usecases/make_effect.py", "shared/usecases/settle.py", "shared/core/lifecycle.py"
LAW, ROWS = ("tests/unit/usecases/test_never_twice.py",), ("tests/contract/test_effects.py",)

NEVER_TWICE: tuple[Mutant, ...] = (
    Mutant(
        name="a_refused_re_send_closes_the_intent",
        file=MAKE,
        old="            case Refused() if row.taken_over:",
        new="            case Refused() if row.taken_over and row.open is False:",
        faults=("A13",),
        tests=LAW,
    ),
    Mutant(
        name="a_clean_refusal_leaves_the_intent_open",
        file=MAKE,
        old="            case Refused() if row.taken_over:",
        new="            case Refused() if row.open:",
        faults=("A13",),
        tests=LAW,
    ),
    Mutant(
        name="a_refused_re_send_is_not_looked_up",
        file=MAKE,
        old="        if vendor.lookup is not Lookup.NONE:\n            found",
        new="        if vendor.lookup is None:\n            found",
        faults=("A13",),
        tests=LAW,
    ),
    Mutant(
        name="a_taken_over_intent_does_not_say_so",
        file="shared/adapters/aws/effects.py",
        old='":yes": {"BOOL": True},',
        new='":yes": {"BOOL": False},',
        faults=("A13",),
        tests=(*LAW, *ROWS),
    ),
    Mutant(
        name="a_begun_intent_stays_taken_over",
        file="shared/adapters/memory/records.py",
        old="replace(row, first_intent_at=present.first_intent_at)",
        new="replace(row, first_intent_at=present.first_intent_at, taken_over=present.taken_over)",
        faults=("A13",),
        tests=ROWS,
    ),
    Mutant(
        name="max_wait_hides_an_unknown_outcome",
        file=LIFE,
        old='unknown or Category.RETRIES_EXHAUSTED, f"max_wait:{reason}")',
        new='Category.RETRIES_EXHAUSTED, f"max_wait:{reason}")',
        faults=("A18",),
        tests=LAW,
    ),
)
