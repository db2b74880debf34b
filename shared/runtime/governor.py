"""Who gets what in the governor, the one function that may change an event source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shared.adapters.aws.clients import client
from shared.adapters.aws.control import DynamoDbControlStore
from shared.adapters.aws.event_sources import LambdaActuator
from shared.contract import env
from shared.core.capacity import POLICIES, Policy
from shared.core.errors import BadInput
from shared.core.ports import Actuator, ControlStore, Telemetry
from shared.core.severity import Thresholds
from shared.runtime import wiring
from shared.runtime.engine_settings import EngineSettings
from shared.runtime.settings import json_object
from shared.usecases.deadline import Deadline
from shared.usecases.govern import Governor
from shared.usecases.look import Lookout


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What the words mean and how caps move, as this stage is told."""

    thresholds: Thresholds
    policies: Mapping[str, Policy]

    @classmethod
    def from_env(cls, settings: EngineSettings) -> Rules:
        """Only what differs from the defaults is told."""
        told = json_object(settings.environ, env.GOVERNING) if settings.environ.get(env.GOVERNING) else {}
        policies: Mapping[str, Any] = told.get("policies", {})
        rules = cls(
            thresholds=Thresholds(**told.get("severity", {})),
            policies={**POLICIES, **{name: Policy.from_mapping(name, values) for name, values in policies.items()}},
        )
        for lane in settings.lanes.values():
            if lane.policy not in rules.policies:
                raise BadInput(env.GOVERNING, f"does not describe policy {lane.policy}")
        return rules


def governor(settings: EngineSettings, telemetry: Telemetry) -> wiring.Work:
    """One look at every lane."""
    rules = Rules.from_env(settings)
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
            window_s=max(rules.thresholds.normal_window_s, rules.thresholds.growth_window_s),
        ),
        thresholds=rules.thresholds,
        policies=rules.policies,
        control=control(settings),
        actuator=actuator(settings),
        history=wiring.history(settings),
        clock=wiring.clock(),
        telemetry=telemetry,
    )

    def work(deadline: Deadline) -> Mapping[str, int]:
        return desk.run(settings.lanes)

    return work


def control(settings: EngineSettings) -> ControlStore:
    """Switches and caps."""
    return DynamoDbControlStore(client=client("dynamodb"), table_name=settings.text(env.CONTROL_TABLE))


def actuator(settings: EngineSettings) -> Actuator:
    """The event sources of the lanes' workers."""
    return LambdaActuator(client=client("lambda"), stage=settings.stage)
