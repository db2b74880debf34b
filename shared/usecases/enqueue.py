"""Enqueue: text to the content store, then one conditional put. The stream does the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from shared.contract.references import payload_object, payload_row
from shared.core.errors import BadInput, EnqueueConflict, UnknownLane
from shared.core.job import (
    CANARY,
    DEFAULT_PRIORITY,
    ENGINE_TENANT,
    PRIORITIES,
    Job,
    Move,
    Status,
    canonical_payload,
    check_wait,
    job_id_of,
    key_parts,
    new_tenant,
    payload_hash,
    utc,
)
from shared.core.lane import LaneSpec
from shared.core.ports import Clock, ContentStore, JobStore
from shared.usecases.persist import persist


@dataclass(frozen=True, slots=True, kw_only=True)
class Enqueue:
    """What a producer asks for. `key` names the cause: the same cause is the same job."""

    lane: str
    task: str
    tenant: str
    key: str | Sequence[str]
    payload: Mapping[str, Any] = field(default_factory=dict, repr=False)
    not_before: datetime | None = None
    priority: int = DEFAULT_PRIORITY
    facts: Mapping[str, Any] | None = None
    """What the lane's own record asks for, in lanes that have one: closed words and ids, never text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRef:
    """The job that stands for the request; `created` is False when an earlier request made it."""

    job_id: str
    created: bool

    @property
    def existing(self) -> bool:
        """True when the cause was known already."""
        return not self.created


def enqueue(
    request: Enqueue, *, jobs: JobStore, content: ContentStore, lanes: Mapping[str, LaneSpec], clock: Clock
) -> JobRef:
    """Store the job once. Raises BadInput, UnknownLane or EnqueueConflict and writes no row then."""
    asked: object = request.lane
    lane = lanes.get(asked) if isinstance(asked, str) else None
    if lane is None:
        raise UnknownLane(str(asked)[:32], tuple(sorted(lanes)))
    if request.task not in lane.tasks and (request.task, request.tenant) != (CANARY, ENGINE_TENANT):
        raise BadInput("task", f"is not one of lane {lane.name}'s: {', '.join(lane.tasks)}")
    if type(request.priority) is not int or request.priority not in PRIORITIES:
        raise BadInput("priority", f"must be one of {', '.join(map(str, PRIORITIES))}, 0 first")
    job_id = job_id_of(lane.name, new_tenant(request.tenant), request.task, request.key)
    not_before = utc("not_before", request.not_before)
    data = canonical_payload(request.payload)
    facts, decision = _decided(request, lane)
    # Facts are part of what was asked for: the same cause with others is another request.
    digest = payload_hash(data if facts is None else data + canonical_payload(facts))
    ref = None
    if request.payload:
        in_row = len(data) <= lane.row_payload_bytes
        ref = payload_row(request.tenant, job_id, digest) if in_row else payload_object(job_id, digest)
    if ref is not None:
        check_wait("not_before", not_before, clock.now())
        persist(lambda: content.put(ref, data), clock)
    now = clock.now()
    job = Job(
        job_id=job_id,
        lane=lane.name,
        tenant=request.tenant,
        task=request.task,
        key="#".join(key_parts(request.key)),
        priority=request.priority,
        created_at=now,
        updated_at=now,
        not_before_at=not_before,
        due=_first_place(lane, not_before, now),
        max_attempts=lane.max_attempts,
        payload_ref=ref,
        payload_hash=digest,
        routing_decision=decision,
        facts=facts,
        moves=(Move(at=now, to=Status.QUEUED, reason="enqueued"),),
    )
    existing = persist(lambda: jobs.put(job), clock)
    if existing is not None and existing.payload_hash != digest:
        raise EnqueueConflict(job_id)
    return JobRef(job_id=job_id, created=existing is None)


def _first_place(lane: LaneSpec, not_before: datetime | None, now: datetime) -> datetime | None:
    """A job with a future time, and any that a run will take, stands in the waiting index from its first write."""
    later = not_before is not None and not_before > now
    if lane.run is not None:
        return not_before if later else now
    return not_before if later else None


def _decided(request: Enqueue, lane: LaneSpec) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    """The facts as a row keeps them, and where they are routed to; the router is given nothing else."""
    if lane.router is None:
        if request.facts is not None:
            raise BadInput("facts", f"are not asked for by lane {lane.name}")
        return None, None
    from shared.core.rewrite import RewriteFacts, route

    facts = RewriteFacts.from_mapping(request.facts)
    if key_parts(request.key) != facts.key:
        raise BadInput("key", "must be (rewrite_request_id, recipient_user_id): one rewrite for each recipient")
    return facts.to_mapping(), route(facts, lane.router).to_mapping()
