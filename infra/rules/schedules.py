"""Rules about schedules."""

from __future__ import annotations

import re
from collections.abc import Iterator

from infra.rules.access import statements_of
from infra.rules.assembly import Assembly, Resource, listed
from infra.rules.registry import rule
from shared.contract import env

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


@rule("RUNS")
def a_schedule_starts_its_own_function(assembly: Assembly) -> Iterator[str]:
    """As often as the function is told, and with a role that this group's schedules alone may take."""
    for schedule in assembly.resources("AWS::Scheduler::Schedule"):
        target = schedule.properties.get("Target", {})
        function = assembly.referred(schedule.stack, target.get("Arn"))
        if function is None or function.type != "AWS::Lambda::Function":
            yield f"{schedule}: must start a function of its stack, and the newest code of it"
            continue
        told = function.properties.get("Environment", {}).get("Variables", {}).get(env.PERIOD_S)
        period = period_of(schedule.properties.get("ScheduleExpression", ""))
        if told != str(period):
            yield f"{schedule}: starts {function} every {period} s, but {env.PERIOD_S} tells it {told}"
        role = assembly.referred(schedule.stack, target.get("RoleArn"))
        if role is None or role.type != "AWS::IAM::Role":
            yield f"{schedule}: needs a role of its own stack"
            continue
        yield from _trusted(schedule, role)
        held = [
            (listed(statement.get("Action")), listed(statement.get("Resource")))
            for statement in statements_of(assembly, role)
        ]
        if held != [(["lambda:InvokeFunction"], [target["Arn"]])]:
            yield f"{role}: must be allowed to invoke {function}, and nothing else"


def _trusted(schedule: Resource, role: Resource) -> Iterator[str]:
    """EventBridge Scheduler names the group as its source; unasked, any schedule of the account could use the role."""
    trust = role.properties["AssumeRolePolicyDocument"]["Statement"]
    if [statement.get("Principal") for statement in trust] != [{"Service": "scheduler.amazonaws.com"}]:
        yield f"{role}: must trust EventBridge Scheduler, and nobody else"
        return
    condition = trust[0].get("Condition", {})
    group = schedule.properties.get("GroupName", {}).get("Ref")
    if group is None or condition.get("ArnEquals") != {"aws:SourceArn": {"Fn::GetAtt": [group, "Arn"]}}:
        yield f"{role}: aws:SourceArn must be the group of {schedule}"
    if not condition.get("StringEquals", {}).get("aws:SourceAccount"):
        yield f"{role}: aws:SourceAccount must be this account"
