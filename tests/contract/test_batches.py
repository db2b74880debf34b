"""The record of batches: an intent that stands is whole, each step is made once, an ended one is found apart."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from shared.core.batch import Batch, BatchState, Group, Member, tag_of
from shared.core.errors import BatchMoved
from tests.builders import NOW
from tests.contract.worlds import World

GROUP = Group(
    provider="openai", model="m-1", prompt_version="v1", policy_version="p1", lane="rewrite", locales="de>en-GB"
)
MEMBERS = (Member(job_id="j-1", fence=1), Member(job_id="j-2", fence=4))


def a_batch(number: int = 0, *, run_id: str = "run-1", **overrides: Any) -> Batch:
    """A batch that is about to be submitted."""
    at = NOW + timedelta(seconds=number)
    values: dict[str, Any] = {"count": 2, "tokens": 900, "intent_at": at}
    return Batch(tag=tag_of("ct", run_id, number), run_id=run_id, group=GROUP, **{**values, **overrides})


def test_an_intent_is_written_once_and_whole(world: World) -> None:
    """The same intent again is no news; another one under its tag is told; the members are those of the first."""
    batch = a_batch()
    assert world.batches.intend(batch, MEMBERS) is None
    assert world.batches.intend(batch, MEMBERS) is None
    other = replace(batch, count=1)
    assert world.batches.intend(other, MEMBERS[:1]) == batch
    assert world.batches.members(batch.tag) == MEMBERS
    assert world.batches.under_way("rewrite") == [batch]
    assert world.batches.members("nobody") == ()


def test_many_members_keep_their_order(world: World) -> None:
    """A list longer than one row comes back as it was given."""
    members = tuple(Member(job_id=f"job-{number:05d}", fence=number % 3) for number in range(2_500))
    assert world.batches.intend(a_batch(count=2_500), members) is None
    assert world.batches.members(a_batch().tag) == members


def test_each_step_is_made_once(world: World) -> None:
    """A step from a state that no longer holds is refused with what stands there; the very same step is a success."""
    batch = a_batch()
    world.batches.intend(batch, MEMBERS)
    submitted = replace(batch, state=BatchState.SUBMITTED, provider_id="b-1", submitted_at=NOW)
    world.batches.move(batch, submitted)
    world.batches.move(batch, submitted)
    with pytest.raises(BatchMoved) as moved:
        world.batches.move(batch, replace(submitted, provider_id="b-2"))
    assert moved.value.current == submitted
    with pytest.raises(BatchMoved) as gone:
        world.batches.move(a_batch(7), replace(a_batch(7), state=BatchState.SUBMITTED))
    assert gone.value.current is None


def test_an_ended_batch_leaves_those_under_way(world: World) -> None:
    """It is found among the ended ones, newest first, and ending it again changes nothing."""
    batches = [a_batch(number, run_id=f"run-{number % 2}") for number in range(4)]
    for batch in reversed(batches):
        world.batches.intend(batch, MEMBERS)
    assert world.batches.under_way("rewrite") == batches
    assert world.batches.under_way("rewrite", run_id="run-1") == [batches[1], batches[3]]
    assert world.batches.under_way("other") == []
    for batch in batches[:3]:
        over = replace(batch, state=BatchState.ENDED, ended_at=NOW, ending="completed")
        world.batches.move(batch, over)
        world.batches.move(batch, over)
        assert world.batches.ended("rewrite", limit=1) == [over]
    assert world.batches.under_way("rewrite") == batches[3:]
    assert [one.tag for one in world.batches.ended("rewrite", limit=2)] == [batches[2].tag, batches[1].tag]
