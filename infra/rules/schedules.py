"""Rules about schedules."""

from __future__ import annotations

import re
from collections.abc import Iterator

from infra.rules.assembly import Assembly
from infra.rules.registry import rule

_UNITS_S = {"minute": 60, "hour": 3600, "day": 86_400}


def period_of(expression: str) -> int | None:
    """Seconds of a `rate(...)` expression."""
    match = re.fullmatch(r"rate\((\d+) (minute|hour|day)s?\)", expression)
    return int(match[1]) * _UNITS_S[match[2]] if match else None


@rule("N7")
def a_late_run_is_dropped(assembly: Assembly) -> Iterator[str]:
    """Runs that pile up behind an outage must not all start afterwards: the next one does their work."""
    asynchronous = {}
    for config in assembly.resources("AWS::Lambda::EventInvokeConfig"):
        function = assembly.function_of(config.stack, config.properties.get("FunctionName"))
        if function is not None:
            asynchronous[str(function)] = config.properties
    for schedule in assembly.resources("AWS::Scheduler::Schedule"):
        target = schedule.properties.get("Target", {})
        period = period_of(schedule.properties.get("ScheduleExpression", ""))
        if period is None:
            yield f"{schedule}: only rate(...) is used here"
            continue
        if schedule.properties.get("FlexibleTimeWindow", {}).get("Mode") != "OFF":
            yield f"{schedule}: the flexible window must be OFF, or two runs fall into one slot"
        if not target.get("DeadLetterConfig", {}).get("Arn"):
            yield f"{schedule}: needs a dead-letter queue"
        retry = target.get("RetryPolicy", {})
        if retry.get("MaximumRetryAttempts") != 0 or not 0 < retry.get("MaximumEventAgeInSeconds", 0) <= period:
            yield f"{schedule}: no retries, and a maximum age of at most its period of {period} s"
        function = assembly.function_of(schedule.stack, target.get("Arn"))
        invoke = asynchronous.get(str(function)) if function is not None else None
        if invoke is None:
            yield f"{schedule}: its function needs an EventInvokeConfig (Scheduler invokes asynchronously)"
            continue
        if (
            invoke.get("MaximumRetryAttempts") != 0
            or not 0 < invoke.get("MaximumEventAgeInSeconds", 0) <= period
            or not invoke.get("DestinationConfig", {}).get("OnFailure", {}).get("Destination")
        ):
            yield (
                f"{schedule}: its function must have no asynchronous retries, a maximum event age of at most"
                f" {period} s and an on-failure queue"
            )
