"""Publishing changes: what was not taken is sent again and nothing else, for a bounded time, and nobody is blocked."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import pytest

from shared.adapters.memory.clock import VirtualClock
from shared.adapters.memory.feed import MemoryChangeFeed
from shared.adapters.memory.telemetry import MemoryTelemetry
from shared.contract import metrics
from shared.core.errors import Unavailable, UnreadableRow
from shared.core.feed import StateChange, change_of
from shared.core.job import Status
from shared.usecases.publish_changes import TRIES, Published, publish_changes
from tests.builders import a_job
from tests.unit.usecases.desk import Flaky

LONGEST_PAUSES = timedelta(seconds=2)


def changes(count: int = 10) -> list[StateChange]:
    found = [change_of(a_job(key=f"event-{number}"), None) for number in range(count)]
    return [change for change in found if change is not None]


class Table:
    """The use case with its ports."""

    def __init__(self) -> None:
        self.feed, self.clock, self.telemetry = MemoryChangeFeed(), VirtualClock(), MemoryTelemetry()
        self.flaky = Flaky(self.feed, "publish")

    def publish(self, given: Sequence[StateChange | UnreadableRow]) -> Published:
        return publish_changes(given, feed=self.flaky, clock=self.clock, telemetry=self.telemetry)  # type: ignore[arg-type]


@pytest.mark.req("R15")
def test_a_batch_is_one_call_in_the_streams_order() -> None:
    """Nothing is read, nothing is written but the feed."""
    table, given = Table(), changes()
    done = table.publish(given)
    assert (done.published, done.left, table.feed.taken) == (10, [], given)
    assert len(table.feed.asked) == 1
    assert table.telemetry.counts[metrics.PUBLISHED, "all"] == 10


@pytest.mark.req("R15")
def test_what_was_not_taken_is_sent_again_and_nothing_else() -> None:
    """Two of ten are refused once and twice: each of the others is published once."""
    table, given = Table(), changes()
    table.feed.refuse(given[3])
    table.feed.refuse(given[7], times=2)
    assert table.publish(given).left == []
    assert [len(call) for call in table.feed.asked] == [10, 2, 1]
    assert sorted(change.change_id for change in table.feed.taken) == sorted(change.change_id for change in given)


@pytest.mark.req("R15")
def test_what_is_refused_every_time_is_left_for_the_stream() -> None:
    """After a bounded number of tries, with pauses between them; the others are published and not repeated."""
    table, given = Table(), changes()
    table.feed.refuse(given[4], times=TRIES)
    before = table.clock.now()
    done = table.publish(given)
    assert (done.left, done.published) == ([given[4]], 9)
    assert len(table.feed.asked) == TRIES
    assert timedelta() < table.clock.now() - before < LONGEST_PAUSES
    assert table.telemetry.counts[metrics.UNPUBLISHED, "all"] == 1


@pytest.mark.fault("B12")
def test_an_outage_is_raised_and_the_batch_comes_again() -> None:
    """After as many tries; what comes again has the ids it had."""
    table, given = Table(), changes(2)
    table.flaky.down = True
    with pytest.raises(Unavailable):
        table.publish(given)
    assert table.flaky.calls == TRIES
    table.flaky.down = False
    assert table.publish(given).left == []
    assert table.feed.taken == given


@pytest.mark.fault("B12", "K1")
def test_a_row_nobody_can_read_is_said_and_passed_over() -> None:
    """Its neighbours are published at once; it is counted and logged by its key, and never asked for again."""
    table, given = Table(), changes(2)
    done = table.publish([given[0], UnreadableRow("JOB#x", "status is not one this version knows"), given[1]])
    assert (done.isolated, done.left, table.feed.taken) == (1, [], given)
    assert table.telemetry.counts[metrics.STREAM_ERRORS, "all"] == 1
    assert len(table.feed.asked) == 1


def test_nothing_to_publish_is_no_call() -> None:
    """A batch of held and handed-off jobs costs nothing."""
    table = Table()
    assert table.publish([]).published == 0
    assert table.feed.asked == []


def test_a_change_of_a_state_is_a_value() -> None:
    """Two reads of one record are equal: the place in the stream is found by it."""
    job = a_job(status=Status.COMPLETED)
    assert change_of(job, Status.PROCESSING) == change_of(job, Status.PROCESSING)
