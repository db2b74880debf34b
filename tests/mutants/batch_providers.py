"""Planted faults in who speaks to batch providers, and in the judgement of what they give back."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

CONTRACT = ("tests/contract/test_batch_providers.py",)
VENDORS = ("tests/unit/vendors/test_openai_batch.py",)
OPENAI, REPLIES = "shared/adapters/vendors/openai_batch.py", "shared/adapters/vendors/batch_replies.py"
LAW = "shared/core/batch.py"

BATCH_PROVIDERS: tuple[Mutant, ...] = (
    Mutant(
        name="a_list_that_cannot_be_read_is_empty",
        file=OPENAI,
        old="isinstance(more, bool):\n                return NoWord(listed.reason or UNREADABLE)",
        new="isinstance(more, bool):\n                return []",
        faults=("G1",),
        tests=VENDORS,
    ),
    Mutant(
        name="only_the_first_page_of_batches_is_read",
        file=OPENAI,
        old='            if not more or _older(within(last, "created_at"), since):',
        new='            if not more or last or _older(within(last, "created_at"), since):',
        faults=("G1",),
        tests=CONTRACT,
    ),
    Mutant(
        name="silence_is_a_refusal",
        file=REPLIES,
        old="    return NoWord(reason if status != 200 else UNREADABLE)",
        new="    return NotTaken(reason if status != 200 else UNREADABLE)",
        faults=("G1",),
        tests=CONTRACT,
    ),
    Mutant(
        name="refusals_are_not_read",
        file=OPENAI,
        old="        for file_id in (over.output, over.errors):",
        new="        for file_id in (over.output,):",
        faults=("G2", "G5"),
        tests=CONTRACT,
    ),
    Mutant(
        name="a_line_nobody_asked_for_has_an_end",
        file=LAW,
        old="            count(LineFault.UNKNOWN)\n            continue",
        new="            count(LineFault.UNKNOWN)",
        faults=("G3",),
        tests=CONTRACT,
    ),
    Mutant(
        name="the_first_of_two_answers_is_believed",
        file=LAW,
        old="            count(LineFault.CONFLICT)\n            found[name] = LineFault.CONFLICT",
        new="            count(LineFault.CONFLICT)",
        faults=("G4",),
        tests=CONTRACT,
    ),
    Mutant(
        name="an_expired_line_is_like_any_other",
        file=REPLIES,
        old="        expired=reason == EXPIRED,",
        new="        expired=False,",
        faults=("G5",),
        tests=CONTRACT,
    ),
)
