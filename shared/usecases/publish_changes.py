"""Publish changes: what the second reader of the jobs stream does with rows that changed their state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from shared.contract import metrics
from shared.core.errors import Unavailable, UnreadableRow
from shared.core.feed import StateChange
from shared.core.ports import ChangeFeed, Clock, Telemetry

TRIES = 4
FIRST_WAIT_S = 0.1


@dataclass(slots=True, kw_only=True)
class Published:
    """What became of one batch of changes."""

    published: int = 0
    isolated: int = 0
    left: list[StateChange] = field(default_factory=list)
    """Not taken, although asked for several times: the stream must bring them again."""


def publish_changes(
    changes: Sequence[StateChange | UnreadableRow], *, feed: ChangeFeed, clock: Clock, telemetry: Telemetry
) -> Published:
    """Publish in the stream's order; what was not taken is sent again, and nothing else is.

    A row that cannot be read is said and passed over. Raises Unavailable when the feed does not answer: the batch then
    comes again, and a change published twice has the same id both times.
    """
    done = Published()
    for change in changes:
        if isinstance(change, UnreadableRow):
            done.isolated += 1
            telemetry.error("feed_row_unreadable", change, row=change.key)
            telemetry.count(metrics.STREAM_ERRORS)
        else:
            done.left.append(change)
    wanted = len(done.left)
    for attempt in range(1, TRIES + 1):
        if not done.left:
            break
        if attempt > 1:
            clock.sleep(FIRST_WAIT_S * 2 ** (attempt - 2))
        try:
            done.left = feed.publish(done.left)
        except Unavailable:
            if attempt == TRIES:
                raise
    done.published = wanted - len(done.left)
    if done.published:
        telemetry.count(metrics.PUBLISHED, done.published)
    if done.left:
        telemetry.event("changes_not_taken", job_id=done.left[0].job_id, changes=len(done.left))
        telemetry.count(metrics.UNPUBLISHED, len(done.left))
    return done
