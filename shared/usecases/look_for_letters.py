"""Look for letters: which failed jobs have theirs in their queue. Told by ids: a count says nothing of whose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from shared.core.ports import Clock, DeadLetterQueues
from shared.usecases.deadline import Deadline

LATE_S = 60
"""A letter takes longer than this only while the stream's alarm rings."""
LIMIT = 10_000
"""Letters of a lane that are looked through at most."""
HIDE_S, LOOKED_A_SECOND = 20, 100
"""A look hides what it sees for so long, and longer where there is more to see."""
PATIENCE_S = 50
"""Longer than anybody of ours hides letters: who had them in hand then has given them back."""
LOOK_S = 15
"""A lane is looked through within this, where a deadline counts: nobody begins a look with less."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Letters:
    """What was seen of the letters of some failed jobs, by their ids. Of those that are in neither, it was there."""

    missing: tuple[str, ...] = ()
    """Everything that stands in the queue was seen, and theirs was not among it."""
    unchecked: tuple[str, ...] = ()
    """Theirs was not seen, nor was all that stands there: letters are in hand, or too many, or there was no time."""


def look_for_letters(
    failed: Mapping[str, Sequence[str]],
    *,
    dead_letters: DeadLetterQueues,
    clock: Clock,
    patience_s: float = PATIENCE_S,
    most: int | None = None,
    deadline: Deadline | None = None,
) -> dict[str, Letters]:
    """By lane. Where something was hidden it is looked once more, after one wait of `patience_s` for all of them; where
    more than `most` stand, or `deadline` is near, nobody looks. Who failed less than `LATE_S` ago is not to be asked
    for."""
    most = LIMIT if most is None else most

    def in_time(wait_s: float = 0) -> bool:
        return deadline is None or deadline.remaining_s >= wait_s + LOOK_S

    def look(lane: str) -> Letters:
        return _look(lane, failed[lane], dead_letters, most) if in_time() else Letters(unchecked=tuple(failed[lane]))

    found = {lane: look(lane) for lane in failed}
    again = [lane for lane, letters in found.items() if letters.unchecked and dead_letters.depth(lane).total <= most]
    if again and patience_s > 0 and in_time(patience_s):
        clock.sleep(patience_s)
        found |= {lane: look(lane) for lane in again}
    return found


def _look(lane: str, wanted: Sequence[str], dead_letters: DeadLetterQueues, most: int) -> Letters:
    if not wanted:
        return Letters()
    before = dead_letters.depth(lane).total
    if before > most:
        return Letters(unchecked=tuple(wanted))
    seen = dead_letters.receive(lane, limit=most, hide_s=HIDE_S + before // LOOKED_A_SECOND)
    there = {message.job_id for message in seen}
    unseen = tuple(job_id for job_id in wanted if job_id not in there)
    # What is in hand elsewhere is counted, too: as long as there is more than was seen, it may be theirs.
    hidden = max(before, dead_letters.depth(lane).total) > len(seen)
    return Letters(unchecked=unseen) if hidden else Letters(missing=unseen)
