"""The stream consumer: new and moved jobs to admission, failed ones to their dead-letter queue."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from typing import Any

from shared.adapters.rows import is_job, job_from_item
from shared.contract import env, metrics
from shared.core.errors import UnreadableRow
from shared.core.job import Job
from shared.runtime import wiring
from shared.runtime.door import door
from shared.runtime.engine_settings import EngineSettings
from shared.runtime.telemetry import PowertoolsTelemetry
from shared.usecases.admit import Admitted, admit


@cache
def telemetry() -> PowertoolsTelemetry:
    """The consumer's voice."""
    return PowertoolsTelemetry("stream", stage=os.environ.get(env.STAGE) or metrics.NO_STAGE)


@cache
def _parts() -> dict[str, Any]:
    settings = EngineSettings.from_env(os.environ)
    return {
        "jobs": wiring.jobs(settings),
        "queues": wiring.lane_queues(settings),
        "dead_letters": wiring.dead_letter_queues(settings),
        "viewer": wiring.viewer(settings, telemetry()),
        "clock": wiring.clock(),
        "telemetry": telemetry(),
    }


def images_of(event: Mapping[str, Any]) -> list[Job | UnreadableRow]:
    """The new image of every new job and of every job that changed its state.

    Passed over: removals, rows that are not jobs, and a row that stays in its state. A queued job that stays
    queued was held, handed off or given another time: its message is sent, or the index has it.
    """
    images: list[Job | UnreadableRow] = []
    for record in event.get("Records", ()):
        change = record.get("dynamodb") or {}
        image, before = change.get("NewImage"), change.get("OldImage") or {}
        if record.get("eventName") == "REMOVE" or not image or not is_job(image):
            continue
        if before and before.get("status") == image.get("status"):
            continue
        try:
            images.append(job_from_item(image))
        except UnreadableRow as exc:
            images.append(exc)
    return images


@door(telemetry, "stream")
def handler(event: Mapping[str, Any], context: Any) -> dict[str, int]:
    """Raises only when SQS or DynamoDB is down: the batch then comes again."""
    done: Admitted = admit(images_of(event), **_parts())
    return {
        "sent": done.sent,
        "held": done.held,
        "dead_letters": done.dead_letters,
        "isolated": done.isolated,
    }
