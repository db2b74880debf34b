"""The promises of `JobStore` about index keys that this code would write otherwise: of older or other programs."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from shared.adapters import rows
from shared.contract import table
from shared.core import lifecycle
from shared.core.errors import RowMoved
from shared.core.job import Job, Status
from tests.builders import NOW, a_job
from tests.contract.worlds import LANES, World

MINUTE = timedelta(minutes=1)
LANE = LANES["support"]
PLACE = "support#0#2"
ODD = {
    "whole seconds": "2026-01-01T00:00:00Z#2026-01-01T00:00:00Z#{id}",
    "an offset": "2026-01-01T00:00:00+00:00#2026-01-01T00:00:00.000Z#{id}",
    "microseconds": "2026-01-01T00:00:00.000000Z#2026-01-01T00:00:00.000Z#{id}",
    "another creation": "2026-01-01T00:00:00.000Z#2025-12-31T00:00:00.000Z#{id}",
    "nobody's id": "2026-01-01T00:00:00.000Z#2026-01-01T00:00:00.000Z#somebody",
    "no creation": "2026-01-01T00:00:00.000Z#{id}",
    "a time alone": "2026-01-01T00:00:00.000Z",
    "more behind it": "2026-01-01T00:00:00.000Z#2026-01-01T00:00:00.000Z#{id}#again",
}


def planted(world: World, wsk: str, wpk: str | None = PLACE, **overrides: Any) -> Job:
    """A job whose row stands in the index under that key; as it is read."""
    job = a_job(**{"due": NOW, "not_before_at": NOW, "blocked_by": "backoff", **overrides})
    item = rows.job_item(job, wpk or PLACE)
    item[table.WAITING_SK] = {"S": wsk.replace("{id}", job.job_id)}
    if wpk is None:
        del item[table.WAITING_PK]
    world.plant("jobs", item)
    read = world.jobs.get(job.job_id)
    assert read is not None
    return read


@pytest.mark.fault("C10")
@pytest.mark.parametrize("wsk", ODD.values(), ids=ODD)
def test_a_job_under_an_odd_key_is_nominated_and_leaves_the_index(world: World, wsk: str) -> None:
    """The move asks for the key that stands there, not for the one its times would make: handed off, it is gone."""
    job = planted(world, wsk)
    (entry,) = world.jobs.waiting(LANE, due_before=NOW + MINUTE, limit=10)
    assert (entry.job_id, entry.due) == (job.job_id, job.due)
    after = lifecycle.handed_off(job, NOW)
    world.jobs.move(job, after)
    assert world.jobs.get(job.job_id) == after
    assert world.jobs.waiting(LANE, due_before=NOW + MINUTE, limit=10) == []


@pytest.mark.fault("C10")
@pytest.mark.parametrize("wsk", ODD.values(), ids=ODD)
def test_a_move_gives_an_odd_key_its_proper_form(world: World, wsk: str) -> None:
    """Held at the same time: from then on it stands under its own key, and what was written can be moved on at once."""
    job = planted(world, wsk)
    held = lifecycle.held(job, "capacity:support", NOW)
    world.jobs.move(job, held)
    row = world.row("jobs", table.job_pk(job.job_id))
    assert row is not None
    assert row[table.WAITING_SK]["S"] == table.waiting_sk(*["2026-01-01T00:00:00.000Z"] * 2, job.job_id)
    assert world.jobs.get(job.job_id) == held
    world.jobs.move(held, lifecycle.rescheduled(held, NOW + MINUTE, "ops", NOW))
    (entry,) = world.jobs.waiting(LANE, due_before=NOW + MINUTE, limit=10)
    assert entry.due == NOW + MINUTE


@pytest.mark.fault("C10", "C3")
@pytest.mark.parametrize("wsk", ODD.values(), ids=ODD)
def test_a_move_from_an_odd_key_is_one_move(world: World, wsk: str) -> None:
    """Applied twice it counts as success; another one, made from what was read before, is lost."""
    job = planted(world, wsk)
    after = lifecycle.rescheduled(job, NOW + MINUTE, "ops", NOW)
    world.jobs.move(job, after)
    world.jobs.move(job, after)
    with pytest.raises(RowMoved) as moved:
        world.jobs.move(job, lifecycle.handed_off(job, NOW))
    assert moved.value.current == after


@pytest.mark.fault("C10")
def test_two_keys_of_one_time_are_two_places(world: World) -> None:
    """The due time is the same, the key is not: whoever read the other one has not seen what stands there now."""
    job = planted(world, ODD["whole seconds"])
    held = lifecycle.held(job, "capacity:support", NOW)
    world.jobs.move(job, held)
    with pytest.raises(RowMoved) as moved:
        world.jobs.move(job, lifecycle.handed_off(job, NOW))
    assert moved.value.current == held


@pytest.mark.fault("C10")
def test_half_a_key_is_no_place(world: World) -> None:
    """Without its partition a row is in no index: it does not wait there, and the next move clears what is left."""
    job = planted(world, ODD["whole seconds"], wpk=None)
    assert not job.waits
    assert world.jobs.waiting(LANE, due_before=NOW + MINUTE, limit=10) == []
    held = lifecycle.held(job, "capacity:support", NOW)
    world.jobs.move(job, held)
    assert len(world.jobs.waiting(LANE, due_before=NOW + MINUTE, limit=10)) == 1
    world.jobs.move(held, lifecycle.handed_off(held, NOW))
    assert world.jobs.get(job.job_id) == lifecycle.handed_off(held, NOW)


@pytest.mark.fault("C10")
def test_a_key_that_says_no_time_hides_nobody(world: World) -> None:
    """Keys that cannot be read are passed over, and do not count towards what was asked for."""
    for n in range(5):
        item = rows.job_item(a_job(key=f"odd-{n}", due=NOW, not_before_at=NOW), PLACE)
        world.plant("jobs", item | {table.WAITING_SK: {"S": f"1{n}-soon"}})
    job = a_job(due=NOW, not_before_at=NOW)
    world.jobs.put(job)
    assert [entry.job_id for entry in world.jobs.waiting(LANE, due_before=NOW, limit=1)] == [job.job_id]


@pytest.mark.fault("C10", "F4")
def test_a_letter_under_an_odd_key_is_noted_as_sent(world: World) -> None:
    """A failed job that asks for its letter leaves that index, too, or it would be sent a letter on every sweep."""
    wsk = ODD["whole seconds"]
    job = planted(world, wsk, wpk=table.letters_wpk("support"), status=Status.FAILED, blocked_by=None)
    assert [e.job_id for e in world.jobs.letters_missing(LANE, before=NOW + MINUTE, limit=10)] == [job.job_id]
    world.jobs.move(job, lifecycle.letter_sent(job))
    assert world.jobs.letters_missing(LANE, before=NOW + MINUTE, limit=10) == []
