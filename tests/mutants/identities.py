"""Planted faults in keys, letters and secrets that are not what they were, and faults that used to live."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

ROWS = "shared/adapters/rows.py"
LETTERS, LOOKING = "shared/usecases/look_for_letters.py", ("tests/unit/usecases/test_look_for_letters.py",)
DISPATCH = "shared/usecases/dispatch.py"
ODD_ROWS = ("tests/unit/usecases/test_odd_rows.py",)
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
    Mutant(
        name="a_row_that_stands_as_it_was_sent_is_sent_again",
        file=DISPATCH,
        old="    if _as_sent(job) in run.sent:",
        new="    if False:",
        faults=("C10",),
        tests=ODD_ROWS,
    ),
    Mutant(
        name="whoever_was_sent_once_is_passed_over",
        file=DISPATCH,
        old="    return job.job_id, job.fence, job.updated_at",
        new="    return job.job_id, 0, job.created_at",
        faults=("C10",),
        tests=ODD_ROWS,
    ),
    Mutant(
        name="a_line_is_a_witness_of_the_lane",
        file=DISPATCH,
        old="        if job.lane != lane.name:",
        new="        if False:",
        faults=("C10",),
        tests=ODD_ROWS,
    ),
    Mutant(
        name="rows_that_nobody_can_read_fill_the_window",
        file="shared/usecases/nominees.py",
        old="        most = self._limit + len(self.passed)",
        new="        most = self._limit",
        faults=("C10",),
        tests=ODD_ROWS,
    ),
    Mutant(
        name="one_look_is_enough",
        file="shared/usecases/nominees.py",
        old="            if len(self.passed) == known or not self.full:",
        new="            if len(self.passed) >= known:",
        faults=("C10",),
        tests=ODD_ROWS,
    ),
    Mutant(
        name="a_row_that_cannot_be_moved_is_not_told",
        file="shared/usecases/try_move.py",
        old="        if moved.current == before:",
        new="        if False:",
        faults=("C10",),
        tests=ODD_ROWS,
    ),
    Mutant(
        name="a_row_that_becomes_unreadable_ends_the_run",
        file="shared/usecases/try_move.py",
        old="    except UnreadableRow as exc:",
        new="    except ZeroDivisionError as exc:",
        faults=("K1",),
        tests=ODD_ROWS,
    ),
    Mutant(
        name="an_unreadable_effect_counts_as_none",
        file="shared/usecases/recover.py",
        old='        telemetry.error("row_unreadable", exc, job_id=job.job_id)\n        return None',
        new="        open_intent = False",
        faults=("K1",),
        tests=ODD_ROWS,
    ),
    Mutant(
        name="hidden_letters_count_as_missing",
        file=LETTERS,
        old="    hidden = max(before, dead_letters.depth(lane).total) > len(seen)",
        new="    hidden = len(seen) == 0",
        faults=("F9",),
        tests=LOOKING,
    ),
    Mutant(
        name="what_arrived_during_the_look_was_seen",
        file=LETTERS,
        old="max(before, dead_letters.depth(lane).total) > len(seen)",
        new="before > len(seen)",
        faults=("F9",),
        tests=LOOKING,
    ),
    Mutant(
        name="many_letters_are_taken_at_their_word",
        file=LETTERS,
        old="        return Letters(unchecked=wanted)",
        new="        return Letters()",
        faults=("F9",),
        tests=LOOKING,
    ),
    Mutant(
        name="nobody_waits_for_letters_in_hand",
        file=LETTERS,
        old="    if again and patience_s > 0:",
        new="    if False:",
        faults=("F9",),
        tests=LOOKING,
    ),
    Mutant(
        name="an_unchecked_audit_is_conserved",
        file="shared/usecases/audit.py",
        old="        return self.checked and not self.findings",
        new="        return not self.findings",
        faults=("F9",),
        tests=LOOKING,
    ),
    Mutant(
        name="a_letter_for_a_job_that_left",
        file="shared/usecases/audit.py",
        old="(job.status, job.fence, job.waits) != (Status.FAILED, seen.fence, False)",
        new="job.job_id != seen.job_id",
        faults=("F9",),
        tests=LOOKING,
    ),
    Mutant(
        name="an_unchecked_audit_ends_well",
        file="ops/cli/audit.py",
        old="        raise typer.Exit(3)",
        new="        raise typer.Exit(0)",
        faults=("F9",),
        tests=("tests/unit/ops/cli/test_audit.py",),
    ),
)
