"""Run a batch: each message on its own, in parallel, joined before the answer."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.core.job import Job, Status
from shared.core.outcome import Done, Outcome
from shared.core.ports import Delivery
from shared.usecases.context import Context
from tests.builders import a_job, a_ticket
from tests.unit.usecases.desk import Desk
from tests.vendors_and_tasks import VendorKind, reply
from tests.waiting import PATIENCE_S


def tickets(desk: Desk, count: int) -> list[Delivery]:
    jobs = [desk.put(a_job(key=f"event-{n}")) for n in range(count)]
    return [a_ticket(job, message_id=f"{n:08d}-message") for n, job in enumerate(jobs)]


@pytest.mark.parametrize("parallel", [1, 10])
def test_a_batch_is_done_and_nothing_returned(parallel: int) -> None:
    """Ten jobs, ten replies, no message left."""
    desk = Desk(batch_size=10, parallel=parallel)
    assert desk.batch(*tickets(desk, 10)) == []
    assert len(desk.vendor.accepts) == 10
    assert {job.status for job in desk.jobs.scan() if isinstance(job, Job)} == {Status.COMPLETED}


@pytest.mark.fault("B4", "B5")
@given(kinds=st.lists(st.sampled_from(["good", "bad", "missing", "claimed", "unreadable"]), max_size=10))
def test_what_is_returned_is_exactly_what_failed(kinds: list[str]) -> None:
    """Ids of messages that came in, each at most once, in any mixture; neighbours complete."""
    desk = Desk(batch_size=10, parallel=4)
    deliveries: list[Delivery] = []
    for n, kind in enumerate(kinds):
        job = a_job(key=f"event-{n}", status=Status.PROCESSING if kind == "claimed" else Status.QUEUED)
        if kind != "missing":
            desk.put(job)
        more: dict[str, Any] = {"job_id": None, "problem": "x"} if kind == "bad" else {}
        if kind == "unreadable":
            desk.jobs.plant({**(desk.jobs.item(job.job_id) or {}), "status": {"S": "hibernating"}})
        deliveries.append(a_ticket(job, message_id=f"{n:08d}-message", **more))
    returned = desk.batch(*deliveries)
    assert returned == [d.message_id for d, kind in zip(deliveries, kinds, strict=True) if kind != "good"]
    assert len(desk.vendor.accepts) == kinds.count("good")


@pytest.mark.fault("A3")
@pytest.mark.parametrize("kind", list(VendorKind))
def test_the_same_message_twice_in_one_batch_is_one_send(kind: VendorKind) -> None:
    """A batch may hold a message twice: the copies look alike, and still only one of them owns the claim."""
    entered: list[int] = []

    def task(job: Job, ctx: Context) -> Outcome:
        entered.append(job.fence)
        time.sleep(0.1)  # Long enough for the copies to be at work, if they could be.
        return reply(job, ctx)

    desk = Desk(kind=kind, tasks={"reply": task}, batch_size=10, parallel=10)
    (ticket,) = tickets(desk, 1)
    desk.batch(ticket, ticket, ticket)
    assert entered == [1]
    assert (len(desk.vendor.accepts), desk.vendor.requests) == (1, 1)
    assert desk.job(ticket.job_id or "").status is Status.COMPLETED


@pytest.mark.fault("A3")
def test_two_messages_of_one_job_are_one_send() -> None:
    """Sent twice by two senders, worked on at once."""
    desk = Desk(batch_size=10, parallel=10)
    job = desk.put(a_job())
    desk.batch(*(a_ticket(job, message_id=f"{n:08d}-message") for n in range(10)))
    assert (len(desk.vendor.accepts), desk.job(job.job_id).fence) == (1, 1)


@pytest.mark.fault("A9")
def test_no_thread_outlives_the_batch() -> None:
    """The pool is joined before the answer, also when a task is slow or raises."""
    ended: list[str] = []

    def task(job: Job, ctx: Context) -> Outcome:
        time.sleep(0.02)
        ended.append(job.job_id)
        if len(ended) % 2:
            raise ValueError
        return Done()

    desk = Desk(tasks={"reply": task}, batch_size=10, parallel=5)
    before = threading.active_count()
    desk.batch(*tickets(desk, 10))
    assert len(ended) == 10
    assert threading.active_count() == before


def test_a_batch_runs_in_parallel() -> None:
    """As many jobs at once as the lane says: all wait for each other here, so fewer would never end."""
    together = threading.Barrier(5, timeout=PATIENCE_S)

    def task(job: Job, ctx: Context) -> Outcome:
        together.wait()
        return Done()

    desk = Desk(tasks={"reply": task}, batch_size=10, parallel=5)
    assert desk.batch(*tickets(desk, 5)) == []


def test_an_empty_batch_is_no_error() -> None:
    """Nothing in, nothing out."""
    assert Desk().batch() == []
