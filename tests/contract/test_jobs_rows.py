"""The promises of `JobStore` about rows: of other versions, in older words, and the shape of our own."""

from __future__ import annotations

from datetime import timedelta

import pytest

from shared.adapters import rows
from shared.contract import table
from shared.core import lifecycle
from shared.core.errors import UnreadableRow
from shared.core.job import NATIVE, Category, Job, Status
from shared.core.moment import iso
from shared.core.outcome import Defer, Done, Fail
from shared.core.ports import Claimed, NotClaimed
from tests.builders import NOW, a_job
from tests.contract.worlds import LANES, World

MINUTE = timedelta(minutes=1)
LANE = LANES["support"]


def claimed(world: World, job: Job, by: str = "w1/a") -> Job:
    """The job after it was put and claimed."""
    assert world.jobs.put(job) is None
    answer = world.jobs.claim(job.job_id, by=by, now=NOW)
    assert isinstance(answer, Claimed)
    return answer.job


@pytest.mark.fault("K1")
def test_an_unreadable_row_is_shown_and_left_alone(world: World) -> None:
    """A row this version cannot read is an error by name, harms no neighbour, and is not written."""
    good, bad = a_job(key="good"), a_job(key="bad")
    world.jobs.put(good)
    item = {**rows.job_item(bad), "status": {"S": "hibernating"}}
    world.plant("jobs", item)
    with pytest.raises(UnreadableRow, match="status") as unreadable:
        world.jobs.get(bad.job_id)
    assert "hibernating" not in str(unreadable.value)
    with pytest.raises(UnreadableRow):
        world.jobs.claim(bad.job_id, by="w1/a", now=NOW)
    with pytest.raises(UnreadableRow):
        world.jobs.put(bad)
    with pytest.raises(UnreadableRow):
        world.jobs.move(bad, lifecycle.canceled(bad, LANE, "ops", NOW))
    assert world.row("jobs", table.job_pk(bad.job_id)) == item
    kinds = sorted(type(row).__name__ for row in world.jobs.scan())
    assert kinds == ["Job", "UnreadableRow"]


@pytest.mark.parametrize("name", ["fence", "moves"])
def test_a_claim_of_a_row_of_other_types_is_an_unreadable_row(world: World, kind: str, name: str) -> None:
    """An attribute that a claim would build on and that has another type is named, not half-written."""
    job = a_job()
    item = {**rows.job_item(job), name: {"S": "x"}}
    world.plant("jobs", item)
    with pytest.raises(UnreadableRow, match=name):
        world.jobs.claim(job.job_id, by="w1/a", now=NOW)
    # The local stack does not check the types of operands; DynamoDB does, and writes nothing.
    if kind != "stack":
        assert world.row("jobs", table.job_pk(job.job_id)) == item


# ---------------------------------------------------------------------------------------------- aliases
@pytest.mark.req("R1")
def test_a_row_in_older_words_is_claimed_and_settled(world: World) -> None:
    """`pending`, `scheduled_at`, `attempts`, `error_message` are read; a move leaves none of them behind."""
    job = a_job(not_before_at=NOW, attempt_count=1, last_error="vendor_timeout")
    item = rows.job_item(job)
    item["status"] = {"S": "pending"}
    for name, older in rows.FIELD_ALIASES.items():
        item[older] = item.pop(name)
    del item["fence"]
    world.plant("jobs", item)
    assert world.jobs.get(job.job_id) == job
    answer = world.jobs.claim(job.job_id, by="w1/a", now=NOW)
    assert isinstance(answer, Claimed)
    assert (answer.job.fence, answer.job.attempt_count, answer.job.not_before_at) == (1, 1, NOW)
    after = lifecycle.settled(answer.job, Done("replied"), LANE, NOW)
    world.jobs.move(answer.job, after)
    assert world.jobs.get(job.job_id) == rows.stored(after)
    stored = world.row("jobs", table.job_pk(job.job_id))
    assert stored is not None
    assert set(rows.FIELD_ALIASES.values()) & set(stored) == set()
    assert stored["status"] == {"S": "completed"}


@pytest.mark.req("R1")
def test_an_older_row_with_a_future_time_is_not_claimed(world: World) -> None:
    """The older name of the due time counts in the claim condition, too."""
    job = a_job(not_before_at=NOW + MINUTE)
    item = rows.job_item(job)
    item["status"] = {"S": "pending"}
    item["scheduled_at"] = item.pop("not_before_at")
    world.plant("jobs", item)
    assert world.jobs.claim(job.job_id, by="w1/a", now=NOW) == NotClaimed(job=job)
    assert isinstance(world.jobs.claim(job.job_id, by="w1/a", now=NOW + MINUTE), Claimed)


@pytest.mark.req("R1")
@pytest.mark.parametrize(("older", "status"), [("pending", Status.QUEUED), ("running", Status.PROCESSING)])
def test_a_row_in_an_older_status_can_be_moved(world: World, older: str, status: Status) -> None:
    """The condition on the status knows both words for it."""
    job = a_job(status=status)
    item = {**rows.job_item(job), "status": {"S": older}}
    if not job.fence:
        # An older row that was never claimed has no fence at all.
        del item["fence"]
    world.plant("jobs", item)
    after = lifecycle.canceled(job, LANE, "ops", NOW)
    world.jobs.move(job, after)
    assert world.jobs.get(job.job_id) == rows.stored(after)


@pytest.mark.fault("K1")
def test_attributes_of_a_newer_version_survive(world: World) -> None:
    """What this version does not know is ignored on reading and kept on writing."""
    job = a_job()
    world.plant("jobs", {**rows.job_item(job), "colour": {"S": "green"}})
    answer = world.jobs.claim(job.job_id, by="w1/a", now=NOW)
    assert isinstance(answer, Claimed)
    world.jobs.move(answer.job, lifecycle.settled(answer.job, Done("replied"), LANE, NOW))
    stored = world.row("jobs", table.job_pk(job.job_id))
    assert stored is not None
    assert stored["colour"] == {"S": "green"}


# --------------------------------------------------------------------------------------------- row shape
def test_only_a_waiting_job_has_index_keys(world: World) -> None:
    """On the open path a job never enters the index; while it waits, its keys are the contract's."""
    job = a_job()
    taken = claimed(world, job)
    after = lifecycle.settled(taken, Defer(NOW + MINUTE, "not_yet"), LANE, NOW)
    stored = world.row("jobs", table.job_pk(job.job_id))
    assert stored is not None
    assert not {table.WAITING_PK, table.WAITING_SK} & set(stored)
    world.jobs.move(taken, after)
    stored = world.row("jobs", table.job_pk(job.job_id))
    assert stored is not None
    assert stored[table.WAITING_PK] == {"S": table.ordered_wpk("support", 0, 2)}
    due, created = iso(NOW + MINUTE), iso(NOW)
    assert stored[table.WAITING_SK] == {"S": table.waiting_sk(due, created, job.job_id)}


def test_only_an_ended_job_has_an_expiry(world: World) -> None:
    """In whole epoch seconds, as the table's expiry wants it; a job that is replayed loses it again."""
    taken = claimed(world, a_job())
    failed = lifecycle.settled(taken, Fail(Category.MALFORMED, "bad_line"), LANE, NOW)
    for before, after, expires in ((None, taken, False), (taken, failed, True)):
        if before is not None:
            world.jobs.move(before, after)
        stored = world.row("jobs", table.job_pk(taken.job_id))
        assert stored is not None
        assert (table.TTL in stored) == expires
    replayed = lifecycle.move(failed, Status.QUEUED, "replay", NOW, attempt_count=0, replay_count=1, category=None)
    world.jobs.move(failed, replayed)
    stored = world.row("jobs", table.job_pk(taken.job_id))
    assert stored is not None
    assert table.TTL not in stored
    assert stored["replay_count"] == {"N": "1"}


def test_a_route_lasts_until_the_claim(world: World) -> None:
    """It is kept with the row that a native plan released, and the claim that its moved letter makes ends it."""
    failed = a_job(status=Status.FAILED, category=Category.AUTH, fence=1)
    world.jobs.put(failed)
    released = lifecycle.replayed(failed, "p1", NOW, route=NATIVE)
    world.jobs.move(failed, released)
    seen = world.jobs.get(failed.job_id)
    assert seen is not None
    assert (seen.route, seen.waits) == (NATIVE, False)
    answer = world.jobs.claim(failed.job_id, by="w1/a", now=NOW)
    assert isinstance(answer, Claimed)
    after = world.jobs.get(failed.job_id)
    assert after == answer.job
    assert after is not None
    assert after.route is None
