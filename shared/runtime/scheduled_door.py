"""A scheduled function: one run per slot, whatever fires it, with its counts kept."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import cache
from typing import Any

from shared.contract import env, metrics
from shared.core.ports import Clock, Ledger
from shared.runtime import wiring
from shared.runtime.door import Handler, door
from shared.runtime.engine_settings import EngineSettings
from shared.runtime.telemetry import PowertoolsTelemetry
from shared.usecases.deadline import HANDLER_MARGIN_S, Deadline
from shared.usecases.run_slot import run_slot

MARGIN_SHARE = 0.05
Build = Callable[[EngineSettings, PowertoolsTelemetry], wiring.Work]


def scheduled_door(name: str, build: Build) -> Handler:
    """The Lambda handler of a scheduled engine function. Nothing is read or built before the first event."""

    @cache
    def settings() -> EngineSettings:
        return EngineSettings.from_env(os.environ)

    # Not by way of the settings: a variable that is missing must be told by a voice that does not need it.
    @cache
    def telemetry() -> PowertoolsTelemetry:
        return PowertoolsTelemetry(name, stage=os.environ.get(env.STAGE) or metrics.NO_STAGE)

    @cache
    def parts() -> tuple[wiring.Work, Ledger, Clock]:
        ledger = wiring.ledger(settings().text(env.LEDGER_TABLE))
        return build(settings(), telemetry()), ledger, wiring.clock()

    @door(telemetry, name)
    def handler(event: Mapping[str, Any], context: Any) -> dict[str, Any]:
        work, ledger, clock = parts()
        time_limit_s = context.get_remaining_time_in_millis() / 1000
        # A run does small steps: less than a worker's margin is enough to end well.
        margin_s = min(HANDLER_MARGIN_S, time_limit_s * MARGIN_SHARE)
        deadline = Deadline(at=clock.now() + timedelta(seconds=time_limit_s - margin_s), clock=clock)
        run = run_slot(
            name,
            period_s=settings().period_s,
            time_limit_s=time_limit_s,
            run_id=context.aws_request_id,
            work=lambda: work(deadline),
            ledger=ledger,
            clock=clock,
            telemetry=telemetry(),
            rule=settings().schedule_rule,
        )
        return {"ran": run is not None, "counts": dict(run.counts) if run else {}}

    return handler
