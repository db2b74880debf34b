"""The promises of `History`, kept by every adapter."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from shared.core.history import HistoryEvent
from tests.builders import NOW
from tests.contract.worlds import World


def an_event(event_id: str = "e-1", after_s: int = 0, subject: str = "lane/support") -> HistoryEvent:
    """Somebody set a switch."""
    return HistoryEvent(
        subject=subject,
        event_id=event_id,
        at=NOW + timedelta(seconds=after_s),
        kind="switch_set",
        by="ops",
        detail={"level": "halt", "count": 3, "ids": ["a", "b"]},
    )


def test_an_event_is_read_back_as_it_was_written(world: World) -> None:
    """Who, when, what and its details."""
    bare = HistoryEvent(subject="lane/support", event_id="e-0", at=NOW, kind="noted", by="ops")
    world.history.append(an_event(after_s=1))
    world.history.append(bare)
    assert world.history.of("lane/support", limit=10) == [an_event(after_s=1), bare]


def test_history_is_never_rewritten(world: World) -> None:
    """The same event again is a no-op; another story under its name changes nothing."""
    world.history.append(an_event())
    world.history.append(an_event())
    world.history.append(replace(an_event(), by="somebody else", detail={}))
    assert world.history.of("lane/support", limit=10) == [an_event()]


def test_the_newest_events_of_a_subject_come_first(world: World) -> None:
    """As many as were asked for, of this subject only; two events of one moment are both kept."""
    for n in range(4):
        world.history.append(an_event(f"e-{n}", after_s=n // 2))
    world.history.append(an_event("other", subject="all"))
    assert [event.event_id for event in world.history.of("lane/support", limit=3)] == ["e-3", "e-2", "e-1"]
    assert world.history.of("nobody", limit=3) == []


def test_history_has_no_other_way_to_write() -> None:
    """Append-only: the adapter can put and query, nothing else."""
    from shared.adapters.aws.history import DynamoDbHistory

    assert {name for name in vars(DynamoDbHistory) if not name.startswith("_")} == {"append", "of"}
