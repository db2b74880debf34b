"""Who gets what in the governor, the one function that may change an event source."""

from __future__ import annotations

from collections.abc import Mapping

from shared.adapters.aws.clients import client
from shared.adapters.aws.event_sources import LambdaActuator
from shared.contract import env
from shared.core.errors import BadInput
from shared.core.governing import Rules
from shared.core.ports import Actuator, Telemetry
from shared.runtime import wiring
from shared.runtime.engine_settings import EngineSettings
from shared.usecases.deadline import Deadline
from shared.usecases.govern import Governor
from shared.usecases.look import Lookout


def rules_of(settings: EngineSettings) -> Rules:
    """How this stage judges and steers; only what differs from the defaults is told."""
    rules = Rules.from_mapping(settings.rules)
    for lane in settings.lanes.values():
        if lane.policy not in rules.policies:
            raise BadInput(env.SETTINGS, f"does not describe policy {lane.policy}")
    return rules


def governor(settings: EngineSettings, telemetry: Telemetry) -> wiring.Work:
    """One look at every lane."""
    rules = rules_of(settings)
    ledger_table = settings.text(env.LEDGER_TABLE)
    desk = Governor(
        lookout=Lookout(
            jobs=wiring.jobs(settings),
            queues=wiring.lane_queues(settings),
            dead_letters=wiring.dead_letter_queues(settings),
            signals=wiring.signal_ledger(ledger_table),
            budgets=wiring.budget_ledger(ledger_table) if settings.accounts else None,
            accounts=settings.accounts,
            clock=wiring.clock(),
            telemetry=telemetry,
            window_s=rules.window_s,
        ),
        thresholds=rules.thresholds,
        policies=rules.policies,
        prices=rules.prices,
        control=wiring.control(settings),
        actuator=actuator(settings),
        history=wiring.history(settings),
        clock=wiring.clock(),
        telemetry=telemetry,
    )

    def work(deadline: Deadline) -> Mapping[str, int]:
        return desk.run(settings.lanes)

    return work


def actuator(settings: EngineSettings) -> Actuator:
    """The event sources of the lanes' workers."""
    return LambdaActuator(client=client("lambda"), stage=settings.stage)
