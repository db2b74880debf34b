"""What a job costs at the ports, counted by the Meter: the same on every adapter.

On AWS's engine and on a running stack the Meter is also compared with what they themselves say was consumed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from shared.adapters.meter import Usage
from shared.core import lifecycle
from shared.core.effects import EffectState
from shared.core.errors import EffectMoved, RowMoved
from shared.core.job import Job
from shared.core.outcome import Defer, Done, Retry
from shared.core.ports import Claimed
from tests.builders import NOW, a_job, an_effect_row
from tests.contract.worlds import LANES, World
from tests.engine import dynamodb

LANE = LANES["support"]
MINUTE = timedelta(minutes=1)
WRITES = ("PutItem", "UpdateItem")

Spent = Callable[[], tuple[int, int, int]]
"""Calls, table units and index units since the fixture was made."""


@pytest.fixture
def spent(world: World, kind: str, request: pytest.FixtureRequest) -> Iterator[Spent]:
    """The Meter's count; where somebody else counts, too, checked against theirs."""
    consumed: list[tuple[float, float]] = []

    def ask(params: dict[str, Any], **_: Any) -> None:
        params["ReturnConsumedCapacity"] = "INDEXES"

    def note(parsed: dict[str, Any], **_: Any) -> None:
        capacity = parsed.get("ConsumedCapacity")
        if capacity is None:
            # A refused write is paid for, but its error does not say how much.
            consumed.append((1, 0))
            return
        indexes = capacity.get("GlobalSecondaryIndexes", {}).values()
        in_indexes = sum(index["CapacityUnits"] for index in indexes)
        consumed.append((capacity["CapacityUnits"] - in_indexes, in_indexes))

    def total() -> tuple[int, int, int]:
        used = world.meter.total()
        if kind in ("stack", dynamodb.KIND):
            assert len(consumed) == used.calls
            assert sum(table for table, _ in consumed) == used.write_units
            assert sum(index for _, index in consumed) == used.index_units
        return used.calls, used.write_units, used.index_units

    if kind not in ("stack", dynamodb.KIND):
        yield total
        return
    events = request.getfixturevalue("aws_clients").dynamodb.meta.events
    for operation in WRITES:
        events.register(f"provide-client-params.dynamodb.{operation}", ask, unique_id=f"ask-{operation}")
        events.register(f"after-call.dynamodb.{operation}", note, unique_id=f"note-{operation}")
    yield total
    for operation in WRITES:
        events.unregister(f"provide-client-params.dynamodb.{operation}", ask, unique_id=f"ask-{operation}")
        events.unregister(f"after-call.dynamodb.{operation}", note, unique_id=f"note-{operation}")


def take(world: World, job: Job) -> Job:
    """The job after its claim."""
    answer = world.jobs.claim(job.job_id, by="w1/a", now=NOW + MINUTE)
    assert isinstance(answer, Claimed)
    return answer.job


def test_a_job_on_the_open_path_costs_three_writes(world: World, spent: Spent) -> None:
    """Put, claim, settle: three calls, three units, and the index is never touched."""
    job = a_job()
    world.jobs.put(job)
    taken = take(world, job)
    world.jobs.move(taken, lifecycle.settled(taken, Done("replied"), LANE, NOW + MINUTE))
    assert spent() == (3, 3, 0)


def test_a_job_that_waits_once_costs_at_most_eight_units(world: World, spent: Spent) -> None:
    """Into the index by its first write, out of it by the hand-off: four writes, two of the index."""
    job = a_job(not_before_at=NOW + MINUTE, due=NOW + MINUTE)
    world.jobs.put(job)
    handed = lifecycle.handed_off(job, NOW)
    world.jobs.move(job, handed)
    taken = take(world, handed)
    world.jobs.move(taken, lifecycle.settled(taken, Done("replied"), LANE, NOW + MINUTE))
    assert spent() == (4, 4, 2)


def test_a_retry_that_comes_back_costs_six_units_more(world: World, spent: Spent) -> None:
    """Settle into the index, hand-off, claim, settle: what a second attempt costs on top of the first claim."""
    job = a_job()
    world.jobs.put(job)
    taken = take(world, job)
    before = spent()
    back = lifecycle.settled(taken, Retry("vendor_timeout"), LANE, NOW)
    world.jobs.move(taken, back)
    handed = lifecycle.handed_off(back, NOW)
    world.jobs.move(back, handed)
    again = take(world, handed)
    world.jobs.move(again, lifecycle.settled(again, Done("replied"), LANE, NOW + MINUTE))
    calls, units, index = (now - then for now, then in zip(spent(), before, strict=True))
    assert (calls, units, index) == (4, 4, 2)


def test_an_effect_adds_two_units(world: World, spent: Spent) -> None:
    """Intent and record; nothing else."""
    row = an_effect_row()
    world.effects.intend(row)
    accepted = replace(row, state=EffectState.ACCEPTED, recorded_at=NOW, vendor_id="v-12345678")
    world.effects.record(row, accepted)
    assert spent() == (2, 2, 0)


def test_a_refused_write_costs_one_unit(world: World, spent: Spent) -> None:
    """A duplicate delivery, a second enqueue, a lost race: one call, one unit, no read."""
    job = a_job(due=NOW, not_before_at=NOW)
    world.jobs.put(job)
    taken = take(world, job)
    before = spent()
    world.jobs.claim(job.job_id, by="w2/a", now=NOW)
    world.jobs.put(replace(job, created_at=NOW - MINUTE))
    with pytest.raises(RowMoved):
        world.jobs.move(job, lifecycle.handed_off(job, NOW))
    row = an_effect_row()
    with pytest.raises(EffectMoved):
        world.effects.take_over(row, fence=2, now=NOW)
    assert tuple(now - then for now, then in zip(spent(), before, strict=True)) == (4, 4, 0)
    assert taken.fence == 1


def test_a_row_over_a_kilobyte_costs_two_units(world: World, spent: Spent) -> None:
    """Per started KB of the larger of the row before and after."""
    job = a_job(payload_ref="p" * 900)
    world.jobs.put(job)
    taken = take(world, job)
    world.jobs.move(taken, replace(lifecycle.settled(taken, Defer(NOW, "later"), LANE, NOW), payload_ref="p"))
    assert spent() == (3, 6, 1)


def test_reads_are_counted_by_size_and_kind(world: World) -> None:
    """A consistent read costs one unit, an index partition half of one, found or not."""
    world.jobs.put(a_job(due=NOW, not_before_at=NOW))
    before = world.meter.snapshot()
    world.jobs.get(a_job().job_id)
    world.jobs.get("00000000-0000-0000-0000-000000000000")
    world.jobs.waiting(LANE, due_before=NOW, limit=10)
    world.effects.of_job(a_job().job_id)
    list(world.jobs.scan())
    assert world.meter.delta(before) == {
        ("jobs", "get"): Usage(calls=2, read_units=2),
        ("jobs", "waiting"): Usage(calls=4, read_units=2),
        ("effects", "of_job"): Usage(calls=1, read_units=1),
        ("jobs", "scan"): Usage(calls=1, read_units=0.5),
    }
