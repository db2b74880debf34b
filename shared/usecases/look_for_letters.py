"""Look for letters: which failed jobs have theirs in their queue. Told by ids: a count says nothing of whose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from shared.core.job import Job
from shared.core.ports import Clock, DeadLetterQueues

LATE_S = 60
"""A letter takes longer than this only while the stream's alarm rings."""
LIMIT = 10_000
HIDE_S, LOOKED_A_SECOND = 20, 100
"""A look hides what it sees for so long, and longer where there is more to see."""
PATIENCE_S = 50
"""Longer than anybody of ours hides letters: who had them in hand then has given them back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Letters:
    """What was seen of the letters of some failed jobs. Of those that are in neither, it was there."""

    missing: tuple[Job, ...] = ()
    """Everything that stands in the queue was seen, and theirs was not among it."""
    unchecked: tuple[Job, ...] = ()
    """Theirs was not seen, nor was all that stands there: somebody has letters in hand, or they are too many."""


def look_for_letters(
    failed: Mapping[str, Sequence[Job]],
    *,
    dead_letters: DeadLetterQueues,
    clock: Clock,
    patience_s: float = PATIENCE_S,
) -> dict[str, Letters]:
    """By lane. Where something was hidden it is looked once more, after one wait of `patience_s` for all of them. A job
    that failed just now, or that asks the sweeper for its letter by itself, is not looked for."""
    settled = clock.now() - timedelta(seconds=LATE_S)
    wanted = {
        lane: tuple(job for job in jobs if not job.waits and job.updated_at <= settled) for lane, jobs in failed.items()
    }
    found = {lane: _look(lane, jobs, dead_letters) for lane, jobs in wanted.items()}
    again = [lane for lane, letters in found.items() if letters.unchecked]
    if again and patience_s > 0:
        clock.sleep(patience_s)
        found |= {lane: _look(lane, wanted[lane], dead_letters) for lane in again}
    return found


def _look(lane: str, wanted: tuple[Job, ...], dead_letters: DeadLetterQueues) -> Letters:
    if not wanted:
        return Letters()
    before = dead_letters.depth(lane).total
    if before > LIMIT:
        return Letters(unchecked=wanted)
    seen = dead_letters.receive(lane, limit=LIMIT, hide_s=HIDE_S + before // LOOKED_A_SECOND)
    there = {message.job_id for message in seen}
    unseen = tuple(job for job in wanted if job.job_id not in there)
    # What is in hand elsewhere is counted, too: as long as there is more than was seen, it may be theirs.
    hidden = max(before, dead_letters.depth(lane).total) > len(seen)
    return Letters(unchecked=unseen) if hidden else Letters(missing=unseen)
