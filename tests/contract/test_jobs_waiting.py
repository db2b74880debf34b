"""The promises of `JobStore` about the waiting index and the scan, kept by every adapter."""

from __future__ import annotations

from datetime import timedelta

import pytest

from shared.contract import table
from shared.core import lifecycle
from shared.core.errors import BadInput
from shared.core.job import Job, Status
from tests.builders import NOW, a_job
from tests.contract.worlds import LANES, World

MINUTE = timedelta(minutes=1)
LANE = LANES["support"]


def test_waiting_jobs_come_oldest_due_first_within_each_priority(world: World) -> None:
    """Due, then created, then id; a priority's entries together; nothing that is not due, nothing of others."""
    dues = {"a": (2, 3), "b": (2, 1), "c": (0, 5), "d": (2, 2), "late": (2, 61), "e": (3, 0)}
    ids = {}
    for key, (priority, after_s) in dues.items():
        at = NOW + timedelta(seconds=after_s)
        job = a_job(key=key, priority=priority, due=at, not_before_at=at)
        ids[job.job_id] = key
        world.jobs.put(job)
    world.jobs.put(a_job(key="not-waiting"))
    world.jobs.put(a_job(key="other-lane", lane="sharded", due=NOW))
    entries = world.jobs.waiting(LANE, due_before=NOW + MINUTE, limit=10)
    assert [ids[entry.job_id] for entry in entries] == ["c", "b", "d", "a", "e"]
    assert [entry.priority for entry in entries] == [0, 2, 2, 2, 3]
    assert entries[0].due == NOW + timedelta(seconds=5)


def test_the_due_moment_itself_is_due(world: World) -> None:
    """A job due exactly at the moment asked for is found; a millisecond later it would not be."""
    at = NOW + MINUTE
    world.jobs.put(a_job(due=at, not_before_at=at))
    assert len(world.jobs.waiting(LANE, due_before=at, limit=10)) == 1
    assert world.jobs.waiting(LANE, due_before=at - timedelta(milliseconds=1), limit=10) == []


def test_what_was_due_long_ago_can_be_left_out(world: World) -> None:
    """With `due_after` a backlog does not hide what became due just now; that moment itself is included."""
    for after_s in (-120, -60, 0, 30):
        at = NOW + timedelta(seconds=after_s)
        world.jobs.put(a_job(key=f"due-{after_s}", due=at, not_before_at=at))
    entries = world.jobs.waiting(LANE, due_after=NOW - MINUTE, due_before=NOW, limit=10)
    assert [entry.due for entry in entries] == [NOW - MINUTE, NOW]
    assert len(world.jobs.waiting(LANE, due_after=NOW - MINUTE, due_before=NOW + MINUTE, limit=1)) == 1


def test_an_entry_tells_whether_its_job_was_given_a_time(world: World) -> None:
    """Held since its creation, it has none of its own; given another time, it has."""
    world.jobs.put(a_job(key="held", created_at=NOW, due=NOW))
    world.jobs.put(a_job(key="timed", created_at=NOW - MINUTE, due=NOW, not_before_at=NOW))
    entries = world.jobs.waiting(LANE, due_before=NOW, limit=10)
    assert [entry.timed for entry in entries] == [True, False]


def test_jobs_due_together_come_oldest_created_first(world: World) -> None:
    """Among equals the one that has existed longest goes first."""
    for age_s in (1, 3, 2):
        created = NOW - timedelta(seconds=age_s)
        world.jobs.put(a_job(key=f"age-{age_s}", created_at=created, due=NOW, not_before_at=NOW))
    found = [world.jobs.get(e.job_id) for e in world.jobs.waiting(LANE, due_before=NOW, limit=10)]
    assert [job.key for job in found if job is not None] == ["age-3", "age-2", "age-1"]


def test_at_most_the_limit_is_given_of_each_priority(world: World) -> None:
    """A long backlog of one priority hides no other."""
    for n in range(5):
        for priority in (1, 2):
            at = NOW + timedelta(seconds=n)
            world.jobs.put(a_job(key=f"{priority}-{n}", priority=priority, due=at, not_before_at=at))
    entries = world.jobs.waiting(LANE, due_before=NOW + MINUTE, limit=3)
    assert [(entry.priority, entry.due) for entry in entries] == [
        (priority, NOW + timedelta(seconds=n)) for priority in (1, 2) for n in range(3)
    ]


def test_shards_are_merged_in_order(world: World) -> None:
    """A lane spread over several partitions is read as one line."""
    lane = LANES["sharded"]
    shards = set()
    for n in range(12):
        at = NOW + timedelta(seconds=n)
        job = a_job(key=f"event-{n}", lane="sharded", due=at, not_before_at=at)
        shards.add(lane.shard_of(job.job_id))
        world.jobs.put(job)
    assert len(shards) == lane.shards
    entries = world.jobs.waiting(lane, due_before=NOW + MINUTE, limit=7)
    assert [entry.due for entry in entries] == [NOW + timedelta(seconds=n) for n in range(7)]


@pytest.mark.req("X4")
def test_tasks_that_call_different_vendors_have_lines_of_their_own(world: World) -> None:
    """One is asked for without the others; asked for all, they are one; a job is moved within its own."""
    lane = LANES["apart"]
    tasks = ("reply", "tag", "unknown")
    jobs = {task: a_job(lane="apart", task=task, due=NOW, not_before_at=NOW) for task in tasks}
    for job in jobs.values():
        world.jobs.put(job)
    lines = (lane.line_of_task("reply"), lane.line_of_task("tag"), lane.name)
    assert lane.lines == (lines[2], *lines[:2])
    for task, line in zip(tasks, lines, strict=True):
        (entry,) = world.jobs.waiting(lane, due_before=NOW, limit=5, line=line)
        assert entry.job_id == jobs[task].job_id
    assert len(world.jobs.waiting(lane, due_before=NOW, limit=5)) == 3
    world.jobs.move(jobs["tag"], lifecycle.rescheduled(jobs["tag"], NOW + MINUTE, "x", NOW))
    assert world.jobs.waiting(lane, due_before=NOW, limit=5, line=lines[1]) == []
    (entry,) = world.jobs.waiting(lane, due_before=NOW + MINUTE, limit=5, line=lines[1])
    assert entry.due == NOW + MINUTE


def test_a_hand_off_takes_the_job_out_of_the_index(world: World) -> None:
    """Handed off, a job is not nominated again."""
    job = a_job(due=NOW, not_before_at=NOW)
    world.jobs.put(job)
    (entry,) = world.jobs.waiting(LANE, due_before=NOW, limit=10)
    assert (entry.job_id, entry.due) == (job.job_id, NOW)
    world.jobs.move(job, lifecycle.handed_off(job, NOW))
    assert world.jobs.waiting(LANE, due_before=NOW + MINUTE, limit=10) == []


def test_a_fair_lane_is_not_read_by_partitions(world: World) -> None:
    """Its tenants are found by its ring; asking this way is a mistake, not an empty answer."""
    with pytest.raises(BadInput, match="fair"):
        world.jobs.waiting(LANES["outreach"], due_before=NOW, limit=10)


def test_jobs_claimed_by_a_run_stand_in_the_index_by_their_claim(world: World) -> None:
    """They have no message; the sweeper finds those whose claim is old, oldest first."""
    lane = LANES["rewrite"]
    for n in (2, 1, 5):
        at = NOW + timedelta(minutes=n)
        job = a_job(key=f"event-{n}", lane="rewrite", status=Status.PROCESSING, claimed_at=at, due=at)
        world.jobs.put(job)
    world.jobs.put(a_job(key="queued", lane="rewrite", due=NOW, not_before_at=NOW))
    entries = world.jobs.claimed_by_runs(lane, before=NOW + 2 * MINUTE, limit=10)
    assert [entry.due for entry in entries] == [NOW + MINUTE, NOW + 2 * MINUTE]
    assert len(world.jobs.claimed_by_runs(lane, before=NOW + 9 * MINUTE, limit=1)) == 1
    assert len(world.jobs.waiting(lane, due_before=NOW + 9 * MINUTE, limit=10)) == 1


@pytest.mark.fault("F4")
@pytest.mark.parametrize("lane", ["support", "outreach", "rewrite"])
def test_a_failed_job_that_lost_its_letter_is_found(world: World, lane: str) -> None:
    """In an index of its own, whatever the lane's admission; nobody takes it for a waiting job, and it can leave."""
    spec = LANES[lane]
    job = a_job(lane=lane, status=Status.FAILED)
    world.jobs.put(job)
    assert world.jobs.letters_missing(spec, before=NOW + MINUTE, limit=10) == []
    marked = lifecycle.letter_taken(job, NOW)
    world.jobs.move(job, marked)
    world.jobs.move(job, marked)
    (entry,) = world.jobs.letters_missing(spec, before=NOW, limit=10)
    assert (entry.job_id, entry.due) == (job.job_id, NOW)
    assert world.jobs.get(job.job_id) == marked
    assert world.jobs.claimed_by_runs(spec, before=NOW + MINUTE, limit=10) == []
    if spec.admission != "fair":
        assert world.jobs.waiting(spec, due_before=NOW + MINUTE, limit=10) == []
    released = lifecycle.replayed(marked, "p", NOW + MINUTE)
    world.jobs.move(marked, released)
    assert world.jobs.get(job.job_id) == released
    assert world.jobs.letters_missing(spec, before=NOW + MINUTE, limit=10) == []


# ------------------------------------------------------------------------------------------------- scan
def test_a_scan_gives_every_job_once_over_all_segments(world: World) -> None:
    """Segments divide the table: together they are all of it."""
    ids = {a_job(key=f"event-{n}").job_id for n in range(20)}
    for n in range(20):
        world.jobs.put(a_job(key=f"event-{n}"))
    world.plant("jobs", {"pk": {"S": table.ring_pk("outreach", "t1")}, "wpk": {"S": table.ring_wpk("outreach")}})
    found = [
        row.job_id
        for segment in range(3)
        for row in world.jobs.scan(segment=segment, segments=3)
        if isinstance(row, Job)
    ]
    assert sorted(found) == sorted(ids)
