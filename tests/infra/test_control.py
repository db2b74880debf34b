"""What the Control stack promises: the outbox loses nothing, and schedules never pile up."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from infra import environment, naming
from infra.control import SIZES, feed_filters, stream_filters
from infra.settings import of_engine
from shared.contract import env, names
from shared.core.job import Status
from shared.core.schedule import Misfire, Overlap, ScheduleRule
from shared.runtime.engine_settings import EngineSettings
from tests.infra.conftest import Synthesized
from tests.settings import settings_file

pytestmark = [pytest.mark.synth, pytest.mark.xdist_group("synth")]


def passes(
    image: Mapping[str, Any] | None, was: str | None, filters: Sequence[str] | None = None, *, pk: str = "JOB#1"
) -> bool:
    """Whether Lambda hands a record to a reader: its rules for `exists`, `anything-but`, `prefix` and equality."""

    def matches(pattern: Mapping[str, Any], value: object) -> bool:
        for key, wanted in pattern.items():
            inner = value.get(key) if isinstance(value, Mapping) else None
            if isinstance(wanted, Mapping):
                if not matches(wanted, inner):
                    return False
            elif isinstance(wanted[0], Mapping) and "exists" in wanted[0]:
                if (inner is not None) is not wanted[0]["exists"]:
                    return False
            elif isinstance(wanted[0], Mapping) and "prefix" in wanted[0]:
                if not str(inner or "").startswith(wanted[0]["prefix"]):
                    return False
            elif isinstance(wanted[0], Mapping) and "anything-but" in wanted[0]:
                if inner is None or inner in wanted[0]["anything-but"]:
                    return False
            elif inner not in wanted:
                return False
        return True

    change: dict[str, Any] = {} if image is None else {"NewImage": image}
    if was is not None:
        change["OldImage"] = {"pk": {"S": pk}, "status": {"S": was}}
    event = "REMOVE" if image is None else "INSERT" if was is None else "MODIFY"
    record = {"eventName": event, "dynamodb": {**change, "Keys": {"pk": {"S": pk}}}}
    return any(matches(json.loads(pattern), record) for pattern in filters or stream_filters())


@pytest.mark.parametrize(
    ("image", "was", "passed"),
    [
        pytest.param({"status": {"S": "queued"}}, None, True, id="new"),
        pytest.param({"status": {"S": "queued"}}, "failed", True, id="released by a plan"),
        pytest.param({"status": {"S": "queued"}}, "queued", False, id="handed off: its message is sent"),
        pytest.param({"status": {"S": "queued"}, "wpk": {"S": "s#0#2"}}, None, False, id="new, with a time"),
        pytest.param({"status": {"S": "queued"}, "wpk": {"S": "s#0#2"}}, "processing", False, id="waits"),
        pytest.param({"status": {"S": "failed"}}, "processing", True, id="failed: needs its dead letter"),
        pytest.param({"status": {"S": "failed"}}, None, True, id="quarantined: needs one, too"),
        pytest.param({"status": {"S": "failed"}}, "failed", False, id="failed before"),
        pytest.param({"status": {"S": "processing"}}, "queued", False, id="being worked on"),
        pytest.param({"status": {"S": "completed"}}, "processing", False, id="ended"),
        pytest.param({"pk": {"S": "RING#a#b"}, "wpk": {"S": "RING#a"}}, None, False, id="not a job"),
        pytest.param(None, "completed", False, id="removed"),
    ],
)
def test_the_consumer_is_started_only_for_what_concerns_it(
    image: dict[str, Any] | None, was: str | None, passed: bool
) -> None:
    """New jobs and jobs that moved to queued, in no index, and jobs that became failed; a removal never."""
    assert passes(image, was) is passed


@pytest.mark.fault("B12")
@pytest.mark.parametrize("filters", [stream_filters, feed_filters])
def test_the_images_alone_tell_what_the_name_of_an_event_says(filters: Callable[[], list[str]]) -> None:
    """AWS promises filters under `dynamodb` only: with or without the event's name, the same records start a reader."""
    without = [json.dumps({"dynamodb": json.loads(pattern)["dynamodb"]}) for pattern in filters()]
    states = [None, *(status.value for status in Status)]
    for was, now, waits in product(states, states, (False, True)):
        image = None if now is None else {"status": {"S": now}, **({"wpk": {"S": "s#0#2"}} if waits else {})}
        if was or image:
            assert passes(image, was, without) is passes(image, was, filters()), (was, now, waits)


def reader_of_the_stream(stage: Synthesized, function: str) -> Mapping[str, Any]:
    """The properties of the one mapping that feeds a function from the stream."""
    (mapping,) = [
        mapping
        for mapping in stage.assembly.resources("AWS::Lambda::EventSourceMapping")
        if "StartingPosition" in mapping.properties
        and stage.assembly.function_of(mapping.stack, mapping.properties["FunctionName"]) == stage.function(function)
    ]
    return mapping.properties


def test_the_outbox_is_read_from_its_start_and_never_blocked_for_good(every_stage: Synthesized) -> None:
    """From the oldest record, bisected, with finite retries inside half a day, and a queue for what is given up."""
    told = reader_of_the_stream(every_stage, "stream")
    assert told["StartingPosition"] == "TRIM_HORIZON"
    assert told["BisectBatchOnFunctionError"] is True
    assert 0 < told["MaximumRetryAttempts"] <= 10_000
    assert told["MaximumRecordAgeInSeconds"] == 12 * 3600
    assert [one["Pattern"] for one in told["FilterCriteria"]["Filters"]] == stream_filters()
    failures = every_stage.assembly.queue_of("Control", told["DestinationConfig"]["OnFailure"]["Destination"])
    assert failures is not None
    assert failures.properties["QueueName"] == naming.failure_queue(every_stage.spec.name, "stream")
    # The emulator loses partial answers of a stream; the consumer isolates bad records itself.
    assert "FunctionResponseTypes" not in told


@pytest.mark.fault("D2", "D5")
def test_a_missed_run_is_not_made_up_for_by_the_platform(every_stage: Synthesized) -> None:
    """Scheduler and Lambda both drop a run that is older than its period, retry nothing, and leave it to be seen.

    A rate knows no zone: no night of a change of clocks has one run more or less."""
    for name in names.SCHEDULED:
        period = getattr(every_stage.spec.schedules, name)
        schedule = every_stage.the("AWS::Scheduler::Schedule", Name=names.schedule(every_stage.spec.name, name))
        minutes = period // 60
        assert schedule.properties["ScheduleExpression"] == f"rate({minutes} minute{'s' if minutes > 1 else ''})"
        assert "ScheduleExpressionTimezone" not in schedule.properties
        assert schedule.properties["FlexibleTimeWindow"] == {"Mode": "OFF"}
        target = schedule.properties["Target"]
        assert target["RetryPolicy"] == {"MaximumEventAgeInSeconds": period, "MaximumRetryAttempts": 0}
        assert every_stage.assembly.queue_of("Control", target["DeadLetterConfig"]["Arn"]) is not None
        function = every_stage.function(name)
        (config,) = [
            config.properties
            for config in every_stage.assembly.resources("AWS::Lambda::EventInvokeConfig")
            if every_stage.assembly.function_of("Control", config.properties["FunctionName"]) == function
        ]
        assert (config["MaximumRetryAttempts"], config["MaximumEventAgeInSeconds"]) == (0, period)
        assert every_stage.assembly.queue_of("Control", config["DestinationConfig"]["OnFailure"]["Destination"])


def test_a_run_ends_before_the_next_one_starts(every_stage: Synthesized) -> None:
    """A scheduled function's timeout is shorter than its period."""
    for name in names.SCHEDULED:
        assert every_stage.function(name).properties["Timeout"] < getattr(every_stage.spec.schedules, name)
        assert every_stage.function(name).properties["Timeout"] == SIZES[name].timeout_s


def test_a_schedule_may_start_its_function_and_nothing_else(every_stage: Synthesized) -> None:
    """One role a schedule, one action, one function; only this account's schedule group may use the role."""
    for name in names.SCHEDULED:
        schedule = every_stage.the("AWS::Scheduler::Schedule", Name=names.schedule(every_stage.spec.name, name))
        role = every_stage.assembly.referred("Control", schedule.properties["Target"]["RoleArn"])
        assert role is not None
        (trust,) = role.properties["AssumeRolePolicyDocument"]["Statement"]
        assert trust["Principal"] == {"Service": "scheduler.amazonaws.com"}
        assert trust["Condition"]["StringEquals"] == {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}
        assert "aws:SourceArn" in trust["Condition"]["ArnEquals"]
        statements = [
            statement
            for policy in every_stage.assembly.resources("AWS::IAM::Policy")
            if {"Ref": role.id} in policy.properties["Roles"] and policy.stack == role.stack
            for statement in policy.properties["PolicyDocument"]["Statement"]
        ]
        function = every_stage.function(name)
        assert statements == [
            {
                "Action": "lambda:InvokeFunction",
                "Effect": "Allow",
                "Resource": {"Fn::GetAtt": [function.id, "Arn"]},
            }
        ]


@pytest.mark.fault("D2", "D3")
def test_a_schedule_is_told_its_rule(prod: Synthesized) -> None:
    """What the settings say of one schedule reaches its function and no other; the default is not spelt out."""
    rule = ScheduleRule(misfire=Misfire(made_up=3), overlap=Overlap.ALLOW)
    spec = replace(prod.spec, schedule_rules={"sweeper": rule})
    told = {name: environment.of_schedule(name, 60, spec) for name in names.SCHEDULED}
    settings = {env.STAGE: "prod", env.SETTINGS: settings_file(**of_engine(spec))}
    assert EngineSettings.from_env({**settings, **told["sweeper"]}).schedule_rule == rule
    assert {name for name in told if env.SCHEDULE_RULE in told[name]} == {"sweeper"}
    assert EngineSettings.from_env({**settings, **told["auditor"]}).schedule_rule == ScheduleRule()
