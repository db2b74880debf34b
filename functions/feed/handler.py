"""The change feed: jobs that changed their state, to whoever subscribed. The stream's second reader, and its last."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from typing import Any

from shared.adapters.rows import is_job, job_from_item, status_from_item
from shared.contract import env, metrics
from shared.core.errors import UnreadableRow
from shared.core.feed import StateChange, change_of
from shared.runtime import wiring
from shared.runtime.door import door
from shared.runtime.settings import required
from shared.runtime.telemetry import PowertoolsTelemetry
from shared.usecases.publish_changes import publish_changes


@cache
def telemetry() -> PowertoolsTelemetry:
    """The feed's voice."""
    return PowertoolsTelemetry("feed", stage=os.environ.get(env.STAGE) or metrics.NO_STAGE)


@cache
def _parts() -> dict[str, Any]:
    feed = wiring.change_feed(required(os.environ, env.EVENT_BUS))
    return {"feed": feed, "clock": wiring.clock(), "telemetry": telemetry()}


def changes_of(event: Mapping[str, Any]) -> list[tuple[str, StateChange | UnreadableRow]]:
    """Each change of a job's state with its place in the stream.

    Passed over: removals (an expired row is no news), rows that are not jobs, and a row that stays in its state.
    """
    found: list[tuple[str, StateChange | UnreadableRow]] = []
    for record in event.get("Records", ()):
        told = record.get("dynamodb") or {}
        image, before = told.get("NewImage"), told.get("OldImage") or {}
        if record.get("eventName") == "REMOVE" or not image or not is_job(image):
            continue
        if before and before.get("status") == image.get("status"):
            continue
        place = str(told.get("SequenceNumber") or "")
        try:
            change = change_of(job_from_item(image), status_from_item(before) if before else None)
        except UnreadableRow as exc:
            found.append((place, exc))
            continue
        if change is not None:
            found.append((place, change))
    return found


@door(telemetry, "feed")
def handler(event: Mapping[str, Any], context: Any) -> dict[str, Any]:
    """Where in the stream to go on, if not everything was taken; raises when the bus does not answer."""
    found = changes_of(event)
    left = publish_changes([change for _, change in found], **_parts()).left
    places = [place for place, change in found if change in left]
    return {"batchItemFailures": [{"itemIdentifier": place} for place in places[:1]]}
