"""A lane's worker: decode the batch, run it, answer which messages to return."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import timedelta
from functools import cache
from typing import Any

from shared.contract import envelope
from shared.core.ports import Delivery
from shared.runtime import wiring
from shared.runtime.door import Handler, door
from shared.runtime.settings import WorkerSettings
from shared.runtime.telemetry import PowertoolsTelemetry
from shared.usecases.context import Task
from shared.usecases.deadline import HANDLER_MARGIN_S, Deadline
from shared.usecases.run_attempt import Worker
from shared.usecases.run_batch import run_batch


def worker_door(tasks: Mapping[str, Task]) -> Handler:
    """The Lambda handler of a lane with these tasks. Nothing is read or built before the first event."""

    @cache
    def settings() -> WorkerSettings:
        return WorkerSettings.from_env(os.environ)

    @cache
    def telemetry() -> PowertoolsTelemetry:
        return PowertoolsTelemetry(f"{settings().lane.name}-worker", stage=settings().stage)

    @cache
    def worker() -> Worker:
        return wiring.worker(settings(), tasks, telemetry())

    @door(telemetry, "worker")
    def handler(event: Mapping[str, Any], context: Any) -> dict[str, Any]:
        deliveries = [delivery_of(record) for record in event.get("Records", ())]
        machine = worker()
        returned = run_batch(
            deliveries, machine, invocation=context.aws_request_id, deadline=_deadline(context, machine)
        )
        return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in returned]}

    return handler


def delivery_of(record: Mapping[str, Any]) -> Delivery:
    """One SQS record; what cannot be read is passed on with the problem, not raised."""
    message_id = str(record.get("messageId", ""))
    body = record.get("body")
    attributes = record.get("attributes") or {}
    try:
        receive_count = int(attributes.get("ApproximateReceiveCount", "1"))
    except (TypeError, ValueError, AttributeError):
        receive_count = 1
    text = body if isinstance(body, str) else ""
    try:
        ticket = envelope.decode_ticket(text)
    except envelope.BadEnvelope as exc:
        return Delivery(
            message_id=message_id,
            job_id=None,
            lane=None,
            receive_count=receive_count,
            body=text,
            problem=exc.args[0],
        )
    return Delivery(
        message_id=message_id, job_id=ticket.job_id, lane=ticket.lane, receive_count=receive_count, body=text
    )


def _deadline(context: Any, worker: Worker) -> Deadline:
    left_s = context.get_remaining_time_in_millis() / 1000
    # A short function keeps a smaller margin, or it would never start anything.
    margin_s = min(HANDLER_MARGIN_S, worker.lane.function_timeout_s / 5)
    return Deadline(at=worker.clock.now() + timedelta(seconds=left_s - margin_s), clock=worker.clock)
