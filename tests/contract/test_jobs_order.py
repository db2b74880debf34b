"""The order of waiting jobs, kept by every adapter: whose time has come, in which order, and what has no time."""

from __future__ import annotations

import random
from datetime import timedelta

import pytest

from shared.core import lifecycle
from shared.core.job import PRIORITIES, Job
from shared.core.ports import Claimed, NotClaimed
from shared.usecases.dispatch import in_turn
from tests.builders import NOW, a_job
from tests.contract.worlds import LANES, World

HORIZON = NOW + timedelta(minutes=2)


def waiting_job(chance: random.Random, number: int, lane: str) -> tuple[Job, Job | None]:
    """A job as it is put and, if that is another step, as it came to wait; times coincide often."""
    created = NOW - timedelta(seconds=chance.randrange(4))
    priority = chance.choice(PRIORITIES)
    values = {"key": f"event-{number}", "lane": lane, "created_at": created, "priority": priority}
    at = NOW + timedelta(seconds=chance.choice((0, 1, 2, 60, 120, 121, 500)))
    match chance.choice(("a time of its own", "held without a time", "held with a time", "given another time")):
        case "a time of its own":
            return a_job(**values, not_before_at=at, due=at), None
        case "held without a time":
            job = a_job(**values)
            return job, lifecycle.held(job, "capacity:support", NOW)
        case "held with a time":
            job = a_job(**values, not_before_at=NOW - timedelta(seconds=chance.randrange(4)))
            return job, lifecycle.held(job, "capacity:support", NOW)
    job = a_job(**values)
    return job, lifecycle.rescheduled(job, at, "scheduled:alice", NOW)


@pytest.mark.req("X1")
@pytest.mark.parametrize("lane", ["support", "sharded"])
@pytest.mark.parametrize("seed", range(4))
def test_waiting_jobs_come_in_the_order_of_their_own_time_then_of_their_age(world: World, lane: str, seed: int) -> None:
    """Per priority: coalesce(not_before_at, created_at), then created_at, then id; and nothing whose time is later."""
    chance = random.Random(seed)
    jobs: list[Job] = []
    for number in range(40):
        put, waits = waiting_job(chance, number, lane)
        world.jobs.put(put)
        if waits is not None:
            world.jobs.move(put, waits)
        jobs.append(waits or put)

    def rule(job: Job) -> tuple[object, ...]:
        return (job.priority, job.not_before_at or job.created_at, job.created_at, job.job_id)

    expected = [job.job_id for job in sorted(jobs, key=rule) if (job.not_before_at or job.created_at) <= HORIZON]
    entries = world.jobs.waiting(LANES[lane], due_before=HORIZON, limit=100)
    assert [entry.job_id for entry in entries] == expected

    by_id = {job.job_id: job for job in jobs}
    turns = [by_id[entry.job_id] for entry in in_turn(entries, NOW)]
    for priority in PRIORITIES:
        line = [job for job in turns if job.priority == priority]
        assert line == sorted(line, key=rule)


@pytest.mark.req("X1")
def test_a_job_without_a_time_runs_now_and_one_with_a_future_time_later(world: World) -> None:
    """Null is now, the past is now, the future is not before its time."""
    later = NOW + timedelta(minutes=1)
    for key, at, runs in (("none", None, True), ("past", NOW - timedelta(days=1), True), ("future", later, False)):
        job = a_job(key=key, not_before_at=at)
        world.jobs.put(job)
        answer = world.jobs.claim(job.job_id, by="w1/a", now=NOW)
        assert isinstance(answer, Claimed if runs else NotClaimed), key
    assert isinstance(world.jobs.claim(a_job(key="future").job_id, by="w1/a", now=later), Claimed)
