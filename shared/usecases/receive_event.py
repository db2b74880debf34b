"""Receive an event from outside: who sent it, then what it says, then one job for it. Every ending is a value.

An event is `{"id": …, "data": {…}}`. Its id is the key of its job and its data the payload, so an event that comes
again, and one that a producer enqueues itself, is the same job.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from shared.contract import metrics, strict_json
from shared.core.errors import BadInput, EnqueueConflict, Unavailable
from shared.core.job import MAX_KEY_PART, identifier
from shared.core.lane import LaneSpec
from shared.core.ports import Clock, ContentStore, JobStore, Telemetry
from shared.core.webhook import MAX_BODY_BYTES, Authenticity, SenderKeys, authenticity
from shared.usecases.enqueue import Enqueue, JobRef, enqueue

FIELDS = {"id", "data"}


class Reception(StrEnum):
    """How an event was received. Whatever is doubtful about its sender is `refused`, and nobody is told more."""

    CREATED = "created"
    EXISTING = "existing"
    CONFLICT = "conflict"
    MALFORMED = "malformed"
    REFUSED = "refused"
    TOO_LARGE = "too_large"
    UNAVAILABLE = "unavailable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """A request as it came: nothing in it is believed yet. The tenant is the one whose address was called."""

    tenant: object
    body: bytes = field(repr=False)
    timestamp: object = None
    signature: object = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """What its sender is told: the job of the event, or what is wrong with it in a sentence of ours."""

    reception: Reception
    job_id: str | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Intake:
    """What receiving needs."""

    lane: LaneSpec
    task: str
    jobs: JobStore
    content: ContentStore
    keys: SenderKeys
    clock: Clock
    telemetry: Telemetry


def receive_event(webhook: Webhook, intake: Intake) -> Received:
    """`created` and `existing` mean that the job is stored. Nothing is read of a body before its sender is known."""
    lane = intake.lane.name
    try:
        found, tenant = _sender(webhook, intake)
        if tenant is None:
            _refused(intake, found.value)
            too_large = found is Authenticity.TOO_LARGE
            return Received(reception=Reception.TOO_LARGE if too_large else Reception.REFUSED)
        ref = _enqueue(webhook.body, tenant, intake)
    except Unavailable as exc:
        intake.telemetry.error("event_unanswered", exc, lane=lane)
        intake.telemetry.count(metrics.EVENTS_UNANSWERED, lane=lane)
        return Received(reception=Reception.UNAVAILABLE)
    except EnqueueConflict as exc:
        _refused(intake, exc.code, job_id=exc.job_id)
        return Received(reception=Reception.CONFLICT, job_id=exc.job_id)
    except BadInput as exc:
        _refused(intake, exc.code)
        return Received(reception=Reception.MALFORMED, problem=str(exc))
    reception = Reception.CREATED if ref.created else Reception.EXISTING
    intake.telemetry.event("event_received", lane=lane, tenant=tenant, job_id=ref.job_id, outcome=reception.value)
    if ref.created:
        intake.telemetry.count(metrics.ENQUEUED, lane=lane)
    return Received(reception=reception, job_id=ref.job_id)


def _sender(webhook: Webhook, intake: Intake) -> tuple[Authenticity, str | None]:
    """What was found, and the tenant if its key signed this. Keys are read again before a signature is refused."""
    tenant = webhook.tenant if isinstance(webhook.tenant, str) else ""

    def look(keys: tuple[bytes, ...]) -> Authenticity:
        return authenticity(
            body=webhook.body,
            timestamp=webhook.timestamp,
            signature=webhook.signature,
            keys=keys,
            now=intake.clock.now(),
        )

    # Without keys first: what is too large, too old or not signed at all costs no look at the secret.
    found = look(())
    if found is Authenticity.FORGED:
        known = intake.keys.of(tenant)
        found = look(known)
        if found is Authenticity.FORGED and (fresh := intake.keys.of(tenant, fresh=True)) != known:
            found = look(fresh)
    return found, tenant if found is Authenticity.VERIFIED else None


def _enqueue(body: bytes, tenant: str, intake: Intake) -> JobRef:
    event_id, data = _event(body)
    request = Enqueue(lane=intake.lane.name, task=intake.task, tenant=tenant, key=event_id, payload=data)
    return enqueue(
        request, jobs=intake.jobs, content=intake.content, lanes={intake.lane.name: intake.lane}, clock=intake.clock
    )


def _event(body: bytes) -> tuple[str, Mapping[str, Any]]:
    """The event's id and data. A field beside them is refused: nobody would read it, a tenant least of all."""
    try:
        event = strict_json.loads(body, max_bytes=MAX_BODY_BYTES)
    except strict_json.NotStrict as exc:
        raise BadInput("event", str(exc)) from None
    if not isinstance(event, dict):
        raise BadInput("event", "must be an object")
    if not set(event) <= FIELDS:
        raise BadInput("event", "has fields other than id and data")
    data = event.get("data")
    if not isinstance(data, dict):
        raise BadInput("data", "is missing or not an object")
    return identifier("id", event.get("id"), MAX_KEY_PART), data


def _refused(intake: Intake, reason: str, *, job_id: str | None = None) -> None:
    # Not the tenant of the address: before a signature it is whatever somebody wrote there.
    intake.telemetry.event("event_refused", lane=intake.lane.name, reason=reason, job_id=job_id)
    intake.telemetry.count(metrics.EVENTS_REFUSED, lane=intake.lane.name)
