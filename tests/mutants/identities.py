"""Planted faults in keys, letters and secrets that are not what they were, and faults that used to live."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

ROWS = "shared/adapters/rows.py"
ODD_KEYS = ("tests/contract/test_jobs_odd_keys.py",)

IDENTITIES: tuple[Mutant, ...] = (
    Mutant(
        name="a_key_is_built_again",
        file=ROWS,
        old="    return job if place == job_wsk(job) else replace(job, place_as_read=place)",
        new="    return job",
        faults=("C10",),
        tests=ODD_KEYS,
    ),
    Mutant(
        name="an_odd_key_is_kept_by_what_was_moved",
        file="shared/core/job.py",
        old="        return replace(self, place_as_read=None, **changes)",
        new="        return replace(self, **changes)",
        faults=("C10",),
        tests=("tests/unit/core/test_place_in_line.py",),
    ),
    Mutant(
        name="half_a_key_counts_as_a_place",
        file=ROWS,
        old="    due = table.due_from(place) if place is not None and table.WAITING_PK in item else None",
        new="    due = table.due_from(place) if place is not None else None",
        faults=("C10",),
        tests=ODD_KEYS,
    ),
    Mutant(
        name="keys_that_say_no_time_fill_the_window",
        file="shared/adapters/aws/jobs.py",
        old="            found += _readable(items)\n            if len(found) >= limit:",
        new="            found += _readable(items)\n            if len(found) + len(items) >= limit:",
        faults=("C10",),
        tests=ODD_KEYS,
    ),
)
