"""Erase: an operator removes for good what a customer wrote for one job, and what was kept of it."""

from __future__ import annotations

from functools import partial

from shared.contract import names
from shared.core.content_ports import KeptObjects
from shared.core.errors import BadInput
from shared.core.job import Status
from shared.core.ports import Clock, ContentStore, History, JobStore
from shared.usecases.persist import persist
from shared.usecases.steer import note, reason_of

OVER = (Status.COMPLETED, Status.CANCELED)


def erase(
    job_id: str,
    *,
    by: str,
    why: str,
    jobs: JobStore,
    content: ContentStore,
    objects: KeptObjects,
    history: History,
    clock: Clock,
) -> int:
    """How many texts of an ended job are gone: its payload, in whichever store, and everything it kept. Its row, its
    effects and its history stay; they hold no text. What may still run keeps its text: end it first. Given again after
    a crash, it goes on."""
    reason = reason_of(why)
    job = persist(lambda: jobs.get(job_id), clock)
    if job is None:
        raise BadInput("job", f"{job_id} does not exist in this stage")
    if job.status not in OVER:
        raise BadInput("job", f"{job_id} is {job.status} and may still need its text: cancel or dismiss it first")
    # Written down first: what was erased and by whom must be known even where nobody came to the end of it.
    note(f"job/{job_id}", "erase", by, {"why": reason}, history, clock)
    places = (f"{names.PAYLOADS}{job_id}/", f"{names.RESULTS}{job_id}/")
    kept = {ref for place in places for ref in persist(partial(_listed, objects, place), clock)}
    every = kept | {ref for ref in (job.payload_ref, job.result_ref) if ref is not None}
    for ref in sorted(every):
        persist(partial(content.delete, ref), clock)
    return len(every)


def _listed(objects: KeptObjects, place: str) -> list[str]:
    return list(objects.under(place))
