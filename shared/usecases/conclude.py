"""Conclude: how an attempt ends, once every effect that its job ever began was asked."""

from __future__ import annotations

from dataclasses import replace

from shared.core.effects import EffectState
from shared.core.job import Category
from shared.core.outcome import MOST_CODE, Done, Fail, Outcome, Submitted
from shared.usecases.evidence import Evidence
from shared.usecases.passage import Passage

ACTED_BEFORE = "acted_before"


def conclude(outcome: Outcome, *, passage: Passage, evidence: Evidence) -> Outcome:
    """The outcome, or what comes before it: an effect of an earlier attempt that this one did not pass.

    One that is open is looked up at its own vendor, and never sent: found, it counts; not found, the job waits or a
    person decides. Whoever collects a batch does not ask again, so it comes before that, too. With one that was
    accepted, what this attempt says it did is not the whole story.
    """
    failed = isinstance(outcome, Fail) and outcome.category is not Category.OUTCOME_UNKNOWN
    final = failed or isinstance(outcome, (Done, Submitted))
    if passage.alone or not final:
        return outcome
    acted = False
    for row in passage.left_out():
        if row.open and evidence.find(row) is None:
            ended = evidence.not_found(row, evidence.grace_ends(row.intent_at))
            # What else is wrong with the job is kept: it is what the next attempt would meet.
            if isinstance(ended, Fail) and isinstance(outcome, Fail):
                return replace(ended, error=outcome.error)
            return ended
        acted = acted or row.state is not EffectState.REFUSED
    if acted and isinstance(outcome, Done):
        return replace(outcome, result=f"{ACTED_BEFORE}:{outcome.result}"[:MOST_CODE])
    return outcome
