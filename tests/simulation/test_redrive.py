"""A redrive beside live traffic: others hardly notice it, and every dead letter is replayed once."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Any

import pytest

from shared.core.job import Category, Status
from shared.core.plan import Plan
from shared.usecases.run_attempt import Answer
from tests.builders import a_job
from tests.processes import images_of
from tests.unit.usecases.redriving import RedriveDesk

SLOTS, JOB_S, STEP_S = 20, 1.0, 0.05
LIVE_PER_S = 8.0
DEAD = 10_000


class Traffic(RedriveDesk):
    """Twenty slots, jobs of a second, eight new ones a second; time goes on in steps of fifty milliseconds."""

    def __init__(self, seed: int) -> None:
        super().__init__(parallel=10, baseline=2, expected_job_s=JOB_S)
        self.chance = random.Random(seed)
        self.slots: list[tuple[Any, Any]] = []
        self.waits: list[float] = []
        self.arrived = 0
        self.next_at = self.clock.now()
        self.clock.on_sleep = self.live

    def plant(self, count: int) -> list[str]:
        """Dead letters of some time ago."""
        now = self.clock.now()
        ids = []
        for n in range(count):
            job = a_job(
                key=f"dead-{n}",
                status=Status.FAILED,
                category=Category.AUTH,
                signature="vendor_auth",
                created_at=now,
                updated_at=now,
            )
            ids.append(self.put(job).job_id)
        self.stream()
        return ids

    def stream(self) -> None:
        while records := self.reader.read(100):
            self.admit(*images_of(records))
            self.reader.commit(records)

    def live(self, seconds: float) -> None:
        """Arrivals, the stream and the slots, for so long."""
        end = self.clock.now() + timedelta(seconds=seconds)
        while self.clock.now() < end:
            now = self.clock.now()
            while self.next_at <= now:
                self.arrived += 1
                self.enqueue(key=f"live-{self.arrived}")
                self.next_at += timedelta(seconds=self.chance.expovariate(LIVE_PER_S))
            self.stream()
            for one in [one for one in self.slots if one[0] <= now]:
                self.slots.remove(one)
                self.queues.delete(self.lane.name, one[1].receipt)
            while len(self.slots) < SLOTS:
                received = self.queues.receive(self.lane.name, limit=1)
                if not received:
                    break
                job = self.job(received[0].delivery.job_id or "")
                if job.plan_id is None:
                    self.waits.append((now - job.created_at).total_seconds())
                assert self.work(received[0].delivery) is Answer.ACKNOWLEDGE
                self.slots.append((now + timedelta(seconds=JOB_S), received[0]))
            self.clock.advance(STEP_S)

    def p99(self) -> float:
        return sorted(self.waits)[int(len(self.waits) * 0.99)]


def _drained(seed: int, count: int, longest_s: float) -> tuple[Traffic, Plan, float]:
    traffic = Traffic(seed)
    ids = traffic.plant(count)
    traffic.live(10)
    plan, began = traffic.started(), traffic.clock.now()
    while traffic.progress(plan).ended is None:
        traffic.tick(run_s=50)
        assert (traffic.clock.now() - began).total_seconds() < longest_s, traffic.progress(plan).steps[-1]
    assert {traffic.job(job_id).replay_count for job_id in ids} == {1}
    assert {traffic.job(job_id).status for job_id in ids} == {Status.COMPLETED}
    return traffic, plan, (traffic.clock.now() - began).total_seconds()


@pytest.mark.slow
@pytest.mark.req("C11")
@pytest.mark.fault("F5")
def test_live_traffic_hardly_notices_a_redrive() -> None:
    """Ten thousand dead letters beside live jobs on a lane that is 40 % busy: the p99 of the live jobs' wait grows by
    10 % at most, or by one step of this clock (a twentieth of a job's time) where next to nobody waits at all; and each
    dead letter is replayed once."""
    traffic, plan, took_s = _drained(seed=7, count=DEAD, longest_s=DEAD)
    assert traffic.ending(plan) == ("finished", "")
    quiet = Traffic(7)
    quiet.live(10 + took_s)
    assert traffic.p99() <= max(quiet.p99() * 1.1, quiet.p99() + STEP_S), (traffic.p99(), quiet.p99())
