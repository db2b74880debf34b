"""A stage as AWS tells of it, with no AWS and no emulator: every answer can be spoiled."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

from botocore.exceptions import ClientError

from ops.cli.stage import Caller, Stage
from shared.adapters.memory.queues import MemoryDeadLetterQueues
from shared.adapters.memory.stores import MemoryControlStore, MemoryLedger
from shared.contract import names, table
from shared.core.lane import LaneSpec
from shared.core.people import People
from shared.core.schedule import RunRecord
from tests.unit.ops.cli.conftest import LANES

CALLER = Caller(account="123456789012", arn="arn:aws:iam::123456789012:user/me", region="eu-central-1")
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
        parts = ("State", "Control", "Watch", "Lane-support", "Lane-mail", "Watch-support", "Watch-mail")
        self.stacks = {names.stack("dev", part): "UPDATE_COMPLETE" for part in parts}
        self.tables: dict[str, dict[str, Any]] = {
            self.table(name): {"TableStatus": "ACTIVE"} for name in (*names.TABLES, names.CONTENT_TABLE)
        }
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
        self.versions = {f"penstock-dev-{lane.name}-worker": ["$LATEST", "9", "10"] for lane in LANES}
        self.live = {name: versions[-1] for name, versions in self.versions.items()}
        for reader in ("stream", "feed"):
            name = f"penstock-dev-{reader}"
            self.mappings[name] = {"UUID": f"u-{reader}", "State": "Enabled", "LastProcessingResult": "OK"}
        self.quota: Any = {"AccountLimit": {"ConcurrentExecutions": 1000}}
        self.alarms = [{"AlarmName": "penstock-dev-support-dead", "AlarmActions": [TOPIC], "StateValue": "OK"}]
        self.age_ms: list[float] = []
        self.templates: dict[str, Any] = {}
        self.written: list[dict[str, Any]] = []
        self.subscribers = ["arn:aws:sns:eu-central-1:123456789012:penstock-dev-alarms:1"]
        self.undelivered = 0
        self.schedules = {names.schedule("dev", name): "ENABLED" for name in names.SCHEDULED}
        self.secrets: dict[str, dict[str, Any]] = {}
        self.told: dict[str, LaneSpec] = {lane.name: lane for lane in LANES}
        memory: dict[str, Any] = {
            "caller": CALLER,
            "people": People(roles=frozenset(names.role("dev", role) for role in names.ROLES)),
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
        return Service(
            describe_stacks={"Stacks": stacks},
            get_template=lambda StackName: {"TemplateBody": self.templates.get(StackName, {"Resources": {}})},
        )

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
            get_alias=lambda FunctionName, Name: {"FunctionVersion": self.live[FunctionName]},
            list_versions_by_function=lambda FunctionName: {
                "Versions": [{"Version": one} for one in self.versions[FunctionName]]
            },
        )

    def _cloudwatch(self) -> Service:
        def measured(**asked: Any) -> Any:
            assert asked["MetricName"] == "IteratorAge"
            assert asked["Dimensions"] == [{"Name": "FunctionName", "Value": "penstock-dev-stream"}]
            return {"Datapoints": [{"Timestamp": self.clock.now(), "Maximum": age} for age in self.age_ms]}

        return Service(
            describe_alarms={"MetricAlarms": self.alarms},
            get_metric_statistics=measured,
            list_metrics=lambda **asked: {"Metrics": self.written if asked["RecentlyActive"] else []},
        )

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
        def described(SecretId: str) -> Any:
            if SecretId not in self.secrets:
                raise failure("ResourceNotFoundException", "DescribeSecret")
            return self.secrets[SecretId]

        # A value is never asked for: there is no such operation here.
        return Service(describe_secret=described)
