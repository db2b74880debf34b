"""`penstock doctor`: each line is what AWS says, with what to do; it ends with 1 exactly when a check fails."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError, NoCredentialsError

from ops.cli.stage import Caller, Stage
from shared.adapters.memory.queues import MemoryDeadLetterQueues
from shared.adapters.memory.stores import MemoryControlStore, MemoryLedger
from shared.contract import names, table
from shared.core.job import Status
from shared.core.lane import LaneSpec
from shared.core.ports import RunRecord, dead_letter_of
from shared.core.switches import Level
from tests.builders import a_job, a_lane, a_switch
from tests.unit.ops.cli.conftest import LANES

CALLER = Caller(account="123456789012", arn="arn:aws:sts::123456789012:user/me", region="eu-central-1")
TOPIC = "arn:aws:sns:eu-central-1:123456789012:penstock-dev-alarms"


def failure(code: str, operation: str) -> ClientError:
    """An error of AWS."""
    return ClientError({"Error": {"Code": code, "Message": ""}}, operation)


class Service:
    """A service of AWS that answers from `answers`: operation → its answer, or the error it raises."""

    def __init__(self, **answers: Any) -> None:
        self.answers = answers

    def __getattr__(self, operation: str) -> Any:
        answer = self.answers[operation]

        def call(**asked: Any) -> Any:
            if isinstance(answer, Exception):
                raise answer
            return answer(**asked) if callable(answer) else answer

        return call

    def get_paginator(self, operation: str) -> Any:
        return SimpleNamespace(paginate=lambda **asked: [getattr(self, operation)(**asked)])


class Cloud(Stage):
    """A stage as AWS tells of it, everything as it should be; tests spoil one thing each."""

    def __init__(self) -> None:
        super().__init__("dev")
        parts = ("State", "Control", "Watch", "Lane-support", "Lane-mail")
        self.stacks = {names.stack("dev", part): "UPDATE_COMPLETE" for part in parts}
        self.tables: dict[str, dict[str, Any]] = {self.table(name): {"TableStatus": "ACTIVE"} for name in names.TABLES}
        self.tables[self.table("jobs")] |= {
            "StreamSpecification": {"StreamViewType": "NEW_AND_OLD_IMAGES"},
            "GlobalSecondaryIndexes": [{"IndexName": names.WAITING_INDEX, "IndexStatus": "ACTIVE"}],
        }
        self.expiry = {"TimeToLiveStatus": "ENABLED", "AttributeName": table.TTL}
        self.mappings: dict[str, dict[str, Any]] = {
            f"penstock-dev-{lane.name}-worker:live": {
                "UUID": "u-worker",
                "State": "Enabled",
                "ScalingConfig": {"MaximumConcurrency": 2},
                "FunctionResponseTypes": ["ReportBatchItemFailures"],
            }
            for lane in LANES
        }
        self.mappings["penstock-dev-stream"] = {"UUID": "u", "State": "Enabled", "LastProcessingResult": "OK"}
        self.quota: Any = {"AccountLimit": {"ConcurrentExecutions": 1000}}
        self.alarms = [{"AlarmName": "penstock-dev-support-dead", "AlarmActions": [TOPIC], "StateValue": "OK"}]
        self.age_ms: list[float] = []
        self.subscribers = ["arn:aws:sns:eu-central-1:123456789012:penstock-dev-alarms:1"]
        self.undelivered = 0
        self.schedules = {names.schedule("dev", name): "ENABLED" for name in names.SCHEDULED}
        self.secrets: dict[str, str] = {}
        self.told: dict[str, LaneSpec] = {lane.name: lane for lane in LANES}
        memory: dict[str, Any] = {
            "caller": CALLER,
            "lanes": self.told,
            "control": MemoryControlStore(),
            "ledger": MemoryLedger(),
            "dead_letters": MemoryDeadLetterQueues(clock=self.clock),
        }
        self.__dict__.update(memory)
        for name in names.SCHEDULED:
            self.ran(name, timedelta(seconds=5))

    def ran(self, schedule: str, ago: timedelta) -> None:
        """The schedule's only run."""
        self.ledger._rows.pop(schedule, None)  # type: ignore[attr-defined]
        run = RunRecord(schedule=schedule, slot="s", run_id="r", started_at=self.clock.now() - ago)
        self.ledger.open_run(run)

    def client(self, service: str) -> Any:
        """The service as it stands now."""
        return {
            "cloudformation": self._cloudformation,
            "dynamodb": self._dynamodb,
            "lambda": self._lambda,
            "cloudwatch": self._cloudwatch,
            "sns": self._sns,
            "sqs": self._sqs,
            "scheduler": self._scheduler,
            "secretsmanager": self._secretsmanager,
        }[service]()

    def _cloudformation(self) -> Service:
        stacks = [{"StackName": name, "StackStatus": state} for name, state in self.stacks.items()]
        return Service(describe_stacks={"Stacks": stacks})

    def _dynamodb(self) -> Service:
        def described(TableName: str) -> Any:
            if TableName not in self.tables:
                raise failure("ResourceNotFoundException", "DescribeTable")
            return {"Table": self.tables[TableName]}

        return Service(
            describe_table=described, describe_time_to_live=lambda **_: {"TimeToLiveDescription": self.expiry}
        )

    def _lambda(self) -> Service:
        def listed(FunctionName: str) -> Any:
            found = [{"UUID": FunctionName}] if FunctionName in self.mappings else []
            return {"EventSourceMappings": found}

        return Service(
            list_event_source_mappings=listed,
            get_event_source_mapping=lambda **asked: self.mappings[asked["UUID"]],
            get_account_settings=self.quota,
        )

    def _cloudwatch(self) -> Service:
        def measured(**asked: Any) -> Any:
            assert asked["MetricName"] == "IteratorAge"
            assert asked["Dimensions"] == [{"Name": "FunctionName", "Value": "penstock-dev-stream"}]
            return {"Datapoints": [{"Timestamp": self.clock.now(), "Maximum": age} for age in self.age_ms]}

        return Service(describe_alarms={"MetricAlarms": self.alarms}, get_metric_statistics=measured)

    def _sns(self) -> Service:
        found = [{"SubscriptionArn": arn} for arn in self.subscribers]
        return Service(list_subscriptions_by_topic={"Subscriptions": found})

    def _sqs(self) -> Service:
        urls = ["https://sqs/1/penstock-dev-support", "https://sqs/1/penstock-dev-stream-failed"]
        told = {"Attributes": {"ApproximateNumberOfMessages": str(self.undelivered)}}
        return Service(list_queues={"QueueUrls": urls}, get_queue_attributes=told)

    def _scheduler(self) -> Service:
        found = [{"Name": name, "GroupName": "g", "State": state} for name, state in self.schedules.items()]
        return Service(list_schedules={"Schedules": found}, get_schedule={"ScheduleExpression": "rate(5 minutes)"})

    def _secretsmanager(self) -> Service:
        def value(SecretId: str) -> Any:
            if SecretId not in self.secrets:
                raise failure("ResourceNotFoundException", "GetSecretValue")
            return {"SecretString": self.secrets[SecretId]}

        return Service(get_secret_value=value)


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cloud]:
    """The stage that `penstock` opens."""
    stage = Cloud()
    monkeypatch.setattr(Stage, "open", classmethod(lambda cls, name: stage))
    yield stage


def marks(document: dict[str, Any]) -> dict[str, str]:
    """check → the worst of its lines."""
    order = ("skip", "ok", "warn", "fail")
    found: dict[str, str] = {}
    for line in document["checks"]:
        before = found.get(line["about"], "skip")
        found[line["about"]] = max(before, line["mark"], key=order.index)
    return found


def test_a_stage_in_order(penstock: Any, cloud: Cloud) -> None:
    """Every check is made, none fails, and what cannot be known is skipped with its reason."""
    document = penstock("doctor", "--json").document
    found = marks(document)
    assert document["ok"]
    assert {about for about, mark in found.items() if mark != "ok"} == {"stream age"}
    wanted = {"credentials", "lanes", "stacks", "tables", "worker mail", "worker support", "stream", "quota"}
    wanted |= {"alarms", "subscribers", "dead letters support", "failures", "schedules", "runs dispatcher"}
    assert wanted <= set(found)
    text = penstock("doctor").out
    assert CALLER.arn in text
    assert "skip" in text


def test_a_stage_on_an_emulator(penstock: Any, deployed: Stage) -> None:
    """Whatever an endpoint lacks, every check ends in a line, and a stage half deployed is not called fit."""
    document = penstock("doctor", "--json", code=1).document
    found = marks(document)
    assert {"credentials", "lanes", "tables", "stream", "alarms", "schedules"} <= set(found)
    assert (found["stream"], found["alarms"], found["schedules"]) == ("fail", "fail", "fail")
    assert found["dead letters support"] == "ok"


def _set(mapping: str, **values: Any) -> Any:
    return lambda cloud: cloud.mappings[f"penstock-dev-{mapping}"].update(values)


WORKER = "support-worker:live"
SPOILED: dict[str, Any] = {
    "stack missing": lambda cloud: cloud.stacks.pop(names.stack("dev", "Watch")),
    "stack rolled back": lambda cloud: cloud.stacks.update({names.stack("dev", "State"): "UPDATE_ROLLBACK_COMPLETE"}),
    "stack in progress": lambda cloud: cloud.stacks.update({names.stack("dev", "State"): "UPDATE_IN_PROGRESS"}),
    "table missing": lambda cloud: cloud.tables.pop(cloud.table("effects")),
    "table being made": lambda cloud: cloud.tables[cloud.table("jobs")].update(TableStatus="CREATING"),
    "no stream": lambda cloud: cloud.tables[cloud.table("jobs")].pop("StreamSpecification"),
    "no index": lambda cloud: cloud.tables[cloud.table("jobs")].pop("GlobalSecondaryIndexes"),
    "no expiry": lambda cloud: cloud.expiry.update(TimeToLiveStatus="DISABLED"),
    "mapping missing": lambda cloud: cloud.mappings.pop(f"penstock-dev-{WORKER}"),
    "mapping disabled": _set(WORKER, State="Disabled"),
    "mapping updating": _set(WORKER, State="Updating"),
    "cap differs": _set(WORKER, ScalingConfig={"MaximumConcurrency": 5}),
    "cap above ceiling": _set(WORKER, ScalingConfig={"MaximumConcurrency": 11}),
    "no cap": _set(WORKER, ScalingConfig={}),
    "whole batches fail": _set(WORKER, FunctionResponseTypes=[]),
    "stream unread": lambda cloud: cloud.mappings.pop("penstock-dev-stream"),
    "stream disabled": _set("stream", State="Disabled"),
    "stream failing": _set("stream", LastProcessingResult="PROBLEM: Function call failed"),
    "stream behind": lambda cloud: cloud.age_ms.append(61_000.0),
    "quota tiny": lambda cloud: cloud.quota["AccountLimit"].update(ConcurrentExecutions=10),
    "quota small": lambda cloud: cloud.quota["AccountLimit"].update(ConcurrentExecutions=20),
    "no alarms": lambda cloud: cloud.alarms.clear(),
    "alarm mute": lambda cloud: cloud.alarms.append({"AlarmName": "penstock-dev-x", "StateValue": "OK"}),
    "alarm rings": lambda cloud: cloud.alarms[0].update(StateValue="ALARM"),
    "nobody listens": lambda cloud: cloud.subscribers.clear(),
    "not confirmed": lambda cloud: cloud.subscribers.__setitem__(0, "PendingConfirmation"),
    "dead letters": lambda cloud: cloud.dead_letters.send([dead_letter_of(a_job(status=Status.FAILED))]),
    "undelivered": lambda cloud: setattr(cloud, "undelivered", 3),
    "schedule missing": lambda cloud: cloud.schedules.pop("penstock-dev-triage"),
    "schedule disabled": lambda cloud: cloud.schedules.update({"penstock-dev-triage": "DISABLED"}),
    "never ran": lambda cloud: cloud.ledger._rows.pop("sweeper"),
    "ran long ago": lambda cloud: cloud.ran("triage", timedelta(hours=1)),
}


@pytest.mark.parametrize(
    ("change", "about", "mark"),
    [
        ("stack missing", "stacks", "fail"),
        ("stack rolled back", "stacks", "fail"),
        ("stack in progress", "stacks", "warn"),
        ("table missing", "tables", "fail"),
        ("table being made", "tables", "fail"),
        ("no stream", "tables", "fail"),
        ("no index", "tables", "fail"),
        ("no expiry", "tables", "warn"),
        ("mapping missing", "worker support", "fail"),
        ("mapping disabled", "worker support", "fail"),
        ("mapping updating", "worker support", "warn"),
        ("cap differs", "worker support", "warn"),
        ("cap above ceiling", "worker support", "fail"),
        ("no cap", "worker support", "fail"),
        ("whole batches fail", "worker support", "fail"),
        ("stream unread", "stream", "fail"),
        ("stream disabled", "stream", "fail"),
        ("stream failing", "stream", "warn"),
        ("stream behind", "stream age", "fail"),
        ("quota tiny", "quota", "fail"),
        ("quota small", "quota", "warn"),
        ("no alarms", "alarms", "fail"),
        ("alarm mute", "alarms", "fail"),
        ("alarm rings", "alarms", "warn"),
        ("nobody listens", "subscribers", "warn"),
        ("not confirmed", "subscribers", "warn"),
        ("dead letters", "dead letters support", "warn"),
        ("undelivered", "failures", "warn"),
        ("schedule missing", "schedules", "fail"),
        ("schedule disabled", "schedules", "fail"),
        ("never ran", "runs sweeper", "warn"),
        ("ran long ago", "runs triage", "fail"),
    ],
)
def test_what_is_wrong_is_found(penstock: Any, cloud: Cloud, change: str, about: str, mark: str) -> None:
    """Each fault is found by its check alone, with something to do; a warning does not fail the command."""
    SPOILED[change](cloud)
    document = penstock("doctor", "--json", code=1 if mark == "fail" else 0).document
    found = marks(document)
    assert found.pop(about) == mark
    assert set(found.values()) <= {"ok", "skip"}
    assert all(line["todo"] for line in document["checks"] if line["mark"] in ("warn", "fail"))


def test_every_fault_is_tried() -> None:
    """No way to spoil a stage is left out of the table above."""
    (mark,) = [one for one in test_what_is_wrong_is_found.pytestmark if one.name == "parametrize"]  # type: ignore[attr-defined]
    assert {row[0] for row in mark.args[1]} == set(SPOILED)


def test_nobody_listens_in_production(penstock: Any, cloud: Cloud) -> None:
    """In production, alarms that nobody hears are a failure."""
    cloud.name = "prod"
    cloud.subscribers.clear()
    assert marks(penstock("doctor", "--json", code=1).document)["subscribers"] == "fail"


def test_a_halted_lane_may_be_disabled(penstock: Any, cloud: Cloud) -> None:
    """A mapping that a halt switch turned off is as it should be."""
    cloud.control.set_switch(a_switch("lane/support", Level.HALT))
    cloud.mappings[f"penstock-dev-{WORKER}"]["State"] = "Disabled"
    assert marks(penstock("doctor", "--json").document)["worker support"] == "ok"


@pytest.mark.parametrize(
    ("value", "mark"),
    [
        (None, "fail"),
        ("{}", "fail"),
        ("not json", "fail"),
        ('["helpdesk"]', "fail"),
        ('{"helpdesk": ""}', "fail"),
        ('{"helpdesk": "tok-CANARY"}', "ok"),
    ],
    ids=str,
)
def test_secrets(penstock: Any, cloud: Cloud, value: str | None, mark: str) -> None:
    """A lane's secret must hold a token for each of its vendors; the value is never shown."""
    cloud.told["support"] = a_lane(secret="support")
    if value is not None:
        cloud.secrets["penstock/dev/support"] = value
    said = penstock("doctor", "--json", code=1 if mark == "fail" else 0)
    assert marks(said.document)["secret support"] == mark
    assert "CANARY" not in said.out + penstock("doctor", code=said.code).out
    if mark == "fail":
        (line,) = [one for one in said.document["checks"] if one["about"] == "secret support"]
        assert "put-secret-value --secret-id penstock/dev/support" in line["todo"]


def test_stream_age(penstock: Any, cloud: Cloud) -> None:
    """Under a minute behind is fine."""
    cloud.age_ms.append(2_000.0)
    assert marks(penstock("doctor", "--json").document)["stream age"] == "ok"


@pytest.mark.parametrize(
    ("error", "mark"),
    [
        (failure("NotImplemented", "GetAccountSettings"), "skip"),
        (failure("UnknownOperationException", "GetAccountSettings"), "skip"),
        (failure("AccessDeniedException", "GetAccountSettings"), "warn"),
        (failure("InternalFailure", "GetAccountSettings"), "fail"),
    ],
    ids=["no such operation", "unknown operation", "denied", "down"],
)
def test_a_check_that_cannot_be_made_is_a_line(penstock: Any, cloud: Cloud, error: ClientError, mark: str) -> None:
    """An emulator without the operation: skip. A caller without the permission: warn, naming it. Else: fail."""
    cloud.quota = error
    document = penstock("doctor", "--json", code=1 if mark == "fail" else 0).document
    (line,) = [one for one in document["checks"] if one["about"] == "quota"]
    assert line["mark"] == mark
    assert "GetAccountSettings" in line["found"]
    assert document["checks"][-1]["about"] == "runs auditor"


def test_without_credentials(penstock: Any, deployed: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody to ask as: one failed line, and what to do."""

    def nobody(_: Stage) -> None:
        raise NoCredentialsError

    monkeypatch.setattr(Stage, "caller", property(nobody))
    document = penstock("doctor", "--json", code=1).document
    assert [line["about"] for line in document["checks"]] == ["credentials"]
    assert "aws sso login" in document["checks"][0]["todo"]


def test_a_stage_that_is_not_deployed(penstock: Any, deployed: Stage) -> None:
    """Without its lanes there is nothing more to look at."""
    checks = penstock("-s", "prod", "doctor", "--json", code=1).document["checks"]
    assert [(line["about"], line["mark"]) for line in checks] == [("credentials", "ok"), ("lanes", "fail")]
    assert "cdk deploy" in json.dumps(checks)
