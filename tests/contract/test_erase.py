"""An erasure reaches every text of a job, in both parts of the content store, and no text of another."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from shared.adapters.memory.clock import VirtualClock
from shared.contract import names, references
from shared.core.errors import BadInput, Unavailable
from shared.core.job import Job, Status
from shared.usecases.erase import erase
from tests.builders import NOW, a_job
from tests.contract.worlds import World

DIGEST = "d" * 8


def a_text_of(world: World, *, small: bool, status: Status = Status.COMPLETED, **values: Any) -> Job:
    """An ended job, its payload where it belongs, with two texts kept and one of them its result."""
    job = a_job(status=status, **values)
    ref = references.payload_row(job.tenant, job.job_id, DIGEST)
    if not small:
        ref = references.payload_object(job.job_id, DIGEST)
    job = replace(job, payload_ref=ref, result_ref=f"{names.RESULTS}{job.job_id}/answer")
    for one in (ref, job.result_ref or "", f"{names.RESULTS}{job.job_id}/plan"):
        world.content.put(one, b"words")
    world.jobs.put(job)
    return job


def texts(world: World, job: Job) -> list[bytes]:
    refs = (job.payload_ref or "", job.result_ref or "", f"{names.RESULTS}{job.job_id}/plan")
    return [data for data in map(world.content.get, refs) if data is not None]


def erased(world: World, job_id: str, **parts: Any) -> int:
    by: dict[str, Any] = {"by": "ada", "why": "the customer asked", "clock": VirtualClock(NOW)}
    stores = {"jobs": world.jobs, "content": world.content, "objects": world.kept_objects, "history": world.history}
    return erase(job_id, **{**by, **stores, **parts})


@pytest.mark.req("R14")
@pytest.mark.parametrize("small", [True, False], ids=["a row", "an object"])
def test_every_text_of_a_job_goes_and_no_other(world: World, small: bool) -> None:
    """Payload, result, and what it kept besides; who asked and why stays, and so does the neighbour's."""
    job, other = (a_text_of(world, small=small, key=key) for key in ("1", "2"))
    assert erased(world, job.job_id) == 3
    assert texts(world, job) == []
    assert len(texts(world, other)) == 3
    (event,) = world.history.of(f"job/{job.job_id}", limit=9)
    assert (event.kind, event.by, event.detail) == ("erase", "ada", {"why": "the customer asked"})
    assert world.jobs.get(job.job_id) == job


@pytest.mark.req("R14")
@pytest.mark.parametrize("ref", ["payload/of-long-ago", "quarantine/support/abc"])
def test_whatever_the_row_names_goes(world: World, ref: str) -> None:
    """A reference of an older version, and a message that nobody could read: they stand under no job's id."""
    job = replace(a_job(status=Status.CANCELED), payload_ref=ref)
    world.jobs.put(job)
    world.content.put(ref, b"words")
    assert erased(world, job.job_id) == 1
    assert world.content.get(ref) is None


@pytest.mark.req("R14")
def test_an_erasure_is_given_again(world: World) -> None:
    """Stopped half-way it is written down, and the second time it comes to its end."""
    job = a_text_of(world, small=True)

    class Down:
        def __getattr__(self, name: str) -> Any:
            return getattr(world.content, name)

        def delete(self, ref: str) -> None:
            if ref == job.result_ref:
                raise Unavailable("content", "down")
            world.content.delete(ref)

    with pytest.raises(Unavailable):
        erased(world, job.job_id, content=Down())
    assert texts(world, job)
    erased(world, job.job_id)
    assert texts(world, job) == []
    assert [event.kind for event in world.history.of(f"job/{job.job_id}", limit=9)] == ["erase", "erase"]


@pytest.mark.req("R14")
@pytest.mark.parametrize("status", [Status.QUEUED, Status.PROCESSING, Status.FAILED, Status.BATCH_SUBMITTED])
def test_what_may_still_run_keeps_its_text(world: World, status: Status) -> None:
    """Its task would find nothing: it is ended first. Nothing is written down, and no job is no job."""
    job = a_text_of(world, small=True, status=status)
    with pytest.raises(BadInput, match="cancel or dismiss it first"):
        erased(world, job.job_id)
    with pytest.raises(BadInput, match="why"):
        erased(world, job.job_id, why=" ")
    with pytest.raises(BadInput, match="does not exist"):
        erased(world, a_job(key="none").job_id)
    assert len(texts(world, job)) == 3
    assert world.history.of(f"job/{job.job_id}", limit=9) == []
