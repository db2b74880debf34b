"""Failed jobs are found without a scan: one entry from the move that fails a job until the move that takes it out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from shared.adapters import rows
from shared.contract import table
from shared.core import lifecycle
from shared.core.errors import RowMoved
from shared.core.job import Category, Job, Status
from shared.core.outcome import Fail
from tests.builders import NOW, a_job
from tests.contract.worlds import LANES, World

LANE = LANES["support"]
MINUTE = timedelta(minutes=1)
LATER = NOW + MINUTE
EVER = NOW + timedelta(days=1)

INTO: dict[str, tuple[Status, Callable[[Job], Job]]] = {
    "a task that fails": (
        Status.PROCESSING,
        lambda job: lifecycle.settled(job, Fail(Category.AUTH, "no"), LANE, LATER),
    ),
    "a message that died": (
        Status.QUEUED,
        lambda job: lifecycle.failed_unclaimed(job, LANE, LATER, Category.INFRASTRUCTURE, "receives"),
    ),
    "a worker that died at the last try": (
        Status.PROCESSING,
        lambda job: lifecycle.recovered(replace(job, max_attempts=1), LANE, LATER, open_intent=False),
    ),
    "a plan that stopped": (Status.QUEUED, lambda job: lifecycle.withdrawn(job, LANE, Category.AUTH, "no", LATER)),
}
OUT_OF: dict[str, Callable[[Job], Job]] = {
    "replayed": lambda job: lifecycle.replayed(job, "p", LATER),
    "dismissed": lambda job: lifecycle.canceled(job, LANE, "ops", LATER),
    "accepted after all": lambda job: lifecycle.completed_by_evidence(job, LANE, LATER, "done", None),
}


def failed(world: World, lane: str = "support", *, before: datetime = EVER, limit: int = 10) -> list[str]:
    return [entry.job_id for entry in world.jobs.failed(LANES[lane], before=before, limit=limit)]


@pytest.mark.req("C8")
@pytest.mark.parametrize("into", INTO)
@pytest.mark.parametrize("waits", [False, True])
def test_whatever_fails_a_job_lists_it(world: World, into: str, waits: bool) -> None:
    """By the time of its failure; a job that waited until then waits no more. The entry is written with the move."""
    status, move = INTO[into]
    job = a_job(status=status, **({"due": NOW, "not_before_at": NOW} if waits else {}))
    world.jobs.put(job)
    assert failed(world) == []
    after = move(job)
    before = world.meter.total()
    world.jobs.move(job, after)
    used = world.meter.total() - before
    assert (used.calls, used.write_units, used.index_units) == (1, 1, 1 + waits)
    (entry,) = world.jobs.failed(LANE, before=LATER, limit=10)
    assert (entry.job_id, entry.due) == (job.job_id, LATER)
    assert world.jobs.failed(LANE, before=NOW, limit=10) == []
    assert world.jobs.get(job.job_id) == rows.stored(after)
    # Said twice, it is the same move.
    world.jobs.move(job, after)


@pytest.mark.req("C8")
@pytest.mark.parametrize("out", OUT_OF)
@pytest.mark.parametrize("letter", ["stands", "was moved"])
def test_whatever_takes_it_out_of_that_state_removes_the_entry(world: World, out: str, letter: str) -> None:
    """Nothing of a healthy job stands there, and the move pays for the entry alone."""
    job = a_job(status=Status.FAILED)
    world.jobs.put(job)
    if letter == "was moved":
        asked = lifecycle.letter_taken(job, NOW)
        world.jobs.move(job, asked)
        job = asked
    after = OUT_OF[out](job)
    before = world.meter.total()
    world.jobs.move(job, after)
    used = world.meter.total() - before
    assert (used.calls, used.write_units, used.index_units) == (1, 1, 1)
    assert failed(world) == []
    assert world.jobs.letters_missing(LANE, before=EVER, limit=10) == []
    row = world.row("jobs", table.job_pk(job.job_id))
    assert row is not None
    assert not {table.WAITING_PK, table.WAITING_SK} & set(row)


def test_oldest_failure_first_and_a_window(world: World) -> None:
    """Each lane has its own; priority and time of creation do not matter."""
    ids = []
    for n in (3, 1, 2):
        job = a_job(key=f"event-{n}", status=Status.FAILED, updated_at=NOW + n * MINUTE, priority=n % 4)
        world.jobs.put(job)
        ids.append(job.job_id)
    world.jobs.put(a_job(lane="rewrite", status=Status.FAILED))
    assert failed(world) == [ids[1], ids[2], ids[0]]
    assert failed(world, before=NOW + 2 * MINUTE) == [ids[1], ids[2]]
    assert failed(world, limit=1) == [ids[1]]
    assert len(failed(world, "rewrite")) == 1


@pytest.mark.fault("C10")
@pytest.mark.parametrize("lane", ["support", "outreach", "rewrite", "sharded"])
def test_nobody_takes_a_failed_job_for_one_that_waits(world: World, lane: str) -> None:
    """Neither the dispatcher's readers nor the sweeper's; its row says that it is due at no time."""
    spec = LANES[lane]
    job = a_job(lane=lane, status=Status.FAILED)
    world.jobs.put(job)
    assert failed(world, lane) == [job.job_id]
    back = world.jobs.get(job.job_id)
    assert back == job
    assert not job.waits
    if spec.admission != "fair":
        assert world.jobs.waiting(spec, due_before=EVER, limit=10) == []
    assert world.jobs.claimed_by_runs(spec, before=EVER, limit=10) == []
    assert world.jobs.letters_missing(spec, before=EVER, limit=10) == []


@pytest.mark.fault("F4")
def test_one_that_asks_for_its_letter_comes_back_when_it_has_it(world: World) -> None:
    """It stands in one of the two partitions at any time, and the time of its failure does not change."""
    job = a_job(status=Status.FAILED)
    world.jobs.put(job)
    asked = lifecycle.letter_taken(job, LATER)
    world.jobs.move(job, asked)
    assert failed(world) == []
    world.jobs.move(asked, lifecycle.letter_sent(asked))
    (entry,) = world.jobs.failed(LANE, before=NOW, limit=10)
    assert (entry.job_id, entry.due) == (job.job_id, NOW)


@pytest.mark.req("X8")
@pytest.mark.fault("C10")
@pytest.mark.parametrize("how", ["no key", "a key of another form", "the partition of its lane's line"])
def test_a_failed_job_without_its_proper_key_is_read_moved_and_listed(world: World, how: str) -> None:
    """A version that kept no list wrote no key. Such a row is failed and due at no time; a move that does not know how
    it stands is refused; one that does takes it out, and `listed` puts it where it belongs."""
    job = a_job(status=Status.FAILED)
    item = rows.job_item(job)
    if how == "no key":
        del item[table.WAITING_PK], item[table.WAITING_SK]
    elif how == "a key of another form":
        item[table.WAITING_SK] = {"S": "soon"}
    else:
        item[table.WAITING_PK] = {"S": table.ordered_wpk("support", 0, 2)}
        item[table.WAITING_SK] = {"S": table.waiting_sk("2026-01-01T00:09:00.000Z", "", job.job_id)}
    world.plant("jobs", item)
    read = world.jobs.get(job.job_id)
    assert read is not None
    assert (read.status, read.waits, replace(read, place_as_read=None)) == (Status.FAILED, False, job)
    assert failed(world) == []
    with pytest.raises(RowMoved):
        world.jobs.move(job, lifecycle.replayed(job, "p", LATER))
    world.jobs.move(read, lifecycle.listed(read))
    assert failed(world) == [job.job_id]
    assert world.jobs.get(job.job_id) == job
    assert world.jobs.waiting(LANE, due_before=EVER, limit=10) == []
    world.plant("jobs", item)
    world.jobs.move(read, lifecycle.replayed(read, "p", LATER))
    assert failed(world) == []


@pytest.mark.fault("C10")
def test_a_queued_job_among_the_failed_waits_for_nothing_there(world: World) -> None:
    """Nobody looks for due jobs in that partition: the auditor sends it like any other that stands nowhere."""
    job = a_job()
    place = {
        table.WAITING_PK: {"S": table.failed_wpk("support")},
        table.WAITING_SK: {"S": "2026-01-01T00:00:00.000Z##"},
    }
    world.plant("jobs", rows.job_item(job) | place)
    read = world.jobs.get(job.job_id)
    assert read is not None
    assert not read.waits
    world.jobs.move(read, lifecycle.held(read, "capacity", LATER))
    assert (failed(world), len(world.jobs.waiting(LANE, due_before=EVER, limit=10))) == ([], 1)
