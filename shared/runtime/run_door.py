"""A lane's scheduled function: looks for work first, then one run per slot, whoever starts it; its counts are kept."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from itertools import count
from typing import Any

from shared.contract import env, metrics, names
from shared.core.errors import BadInput
from shared.core.job import identifier
from shared.core.lane import run_of
from shared.core.ports import Clock, Ledger
from shared.runtime import wiring
from shared.runtime.door import Handler, door
from shared.runtime.settings import WorkerSettings
from shared.runtime.telemetry import PowertoolsTelemetry
from shared.usecases.deadline import HANDLER_MARGIN_S, Deadline
from shared.usecases.run_slot import run_slot

MARGIN_SHARE = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """What one of a lane's scheduled functions does."""

    pending: Callable[[], bool]
    """Is there anything to do? A small read."""
    run: Callable[[str, Deadline], Mapping[str, int]]
    """Do it, under this run id, within this time; what was counted."""


Build = Callable[[WorkerSettings, PowertoolsTelemetry], Role]


def run_door(role: str, build: Build) -> Handler:
    """The Lambda handler of one role. Nothing is read or built before the first event."""

    @cache
    def settings() -> WorkerSettings:
        return WorkerSettings.from_env(os.environ)

    @cache
    def telemetry() -> PowertoolsTelemetry:
        service = names.run(os.environ.get(env.LANE, ""), role)
        return PowertoolsTelemetry(service, stage=os.environ.get(env.STAGE) or metrics.NO_STAGE)

    @cache
    def parts() -> tuple[Role, Ledger, Clock]:
        return build(settings(), telemetry()), wiring.ledger(settings().text(env.LEDGER_TABLE)), wiring.clock()

    @door(telemetry, role)
    def handler(event: Mapping[str, Any], context: Any) -> dict[str, Any]:
        (does, ledger, clock), lane = parts(), settings().lane
        schedule = names.run(lane.name, role)
        time_limit_s = context.get_remaining_time_in_millis() / 1000
        margin_s = min(HANDLER_MARGIN_S, time_limit_s * MARGIN_SHARE)
        own_s = min(run_of(lane).max_runtime_seconds, time_limit_s - margin_s)
        deadline = Deadline(at=clock.now() + timedelta(seconds=own_s), clock=clock)

        slots = count()

        def work() -> Mapping[str, int]:
            # A slot that is made up is a run of its own: its claims and batches have names of their own.
            nth = next(slots)
            run_id = f"{context.aws_request_id}.{nth}" if nth else context.aws_request_id
            if does.pending():
                return does.run(run_id, deadline)
            # In the contract's own words, and the same each time.
            telemetry().event(f"{schedule} skipped: no pending items", lane=lane.name)
            return {"no_pending_items": 1}

        run = run_slot(
            schedule,
            period_s=settings().period_s,
            time_limit_s=time_limit_s,
            run_id=context.aws_request_id,
            manual=_manual(event),
            work=work,
            ledger=ledger,
            clock=clock,
            telemetry=telemetry(),
            rule=settings().schedule_rule,
        )
        counts = dict(run.counts) if run is not None else {}
        return {"ran": run is not None, "run_id": context.aws_request_id, "counts": counts}

    return handler


def _manual(event: Mapping[str, Any]) -> str | None:
    """The id of a person's request, when this is one; who and why stand in the history, written by the tool."""
    asked = event.get("manual")
    if asked is None:
        return None
    try:
        return identifier("manual", asked, 64)
    except BadInput:
        raise BadInput("manual", "must be the id of a request that `penstock runs start` wrote down") from None
