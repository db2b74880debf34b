"""Shared by the tests of the local stack: stacks kept in a temporary folder, and AWS played by moto.

moto's CloudFormation needs packages nobody else here needs, so stacks are a few lines of our own and only their
resources are moto's.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws

from ops.local.clients import Clients
from ops.local.template import StackTemplate

MOTO_ACCOUNT = "123456789012"
STACK = "penstock-test"


@dataclass(slots=True)
class Stacks:
    """CloudFormation as far as it is asked: which stack holds what, its outputs, the exports."""

    resources: dict[str, dict[str, tuple[str, str]]] = field(default_factory=dict)
    outputs: dict[str, dict[str, str]] = field(default_factory=dict)
    exports: dict[str, str] = field(default_factory=dict)

    def get_paginator(self, operation: str) -> Stacks._Pages:
        return Stacks._Pages(self, operation)

    def describe_stacks(self, StackName: str) -> dict[str, Any]:
        rows = [{"OutputKey": key, "OutputValue": value} for key, value in self.outputs[StackName].items()]
        return {"Stacks": [{"Outputs": rows}]}

    @dataclass(slots=True)
    class _Pages:
        stacks: Stacks
        operation: str

        def paginate(self, StackName: str = "") -> list[dict[str, Any]]:
            if self.operation == "list_exports":
                return [{"Exports": [{"Name": name, "Value": value} for name, value in self.stacks.exports.items()]}]
            return [
                {
                    "StackResourceSummaries": [
                        {"LogicalResourceId": logical, "ResourceType": kind, "PhysicalResourceId": physical}
                    ]
                }
                for logical, (kind, physical) in self.stacks.resources.get(StackName, {}).items()
            ]


class MotoClients(Clients):
    """The same clients, answered by moto in this process."""

    def __init__(self, stacks: Stacks) -> None:
        super().__init__(endpoint="http://127.0.0.1:9", access_key="testing", account=MOTO_ACCOUNT)
        self._made["cloudformation"] = stacks

    def of(self, service: str) -> Any:
        if service not in self._made:
            self._made[service] = boto3.client(service, region_name=self.region)  # type: ignore[call-overload]
        return self._made[service]


@pytest.fixture
def stacks() -> Stacks:
    """No stack yet."""
    return Stacks()


@pytest.fixture
def clients(stacks: Stacks) -> Iterator[Clients]:
    """Clients of an empty account."""
    with mock_aws():
        yield MotoClients(stacks)


@pytest.fixture
def deployed(clients: Clients, stacks: Stacks) -> Callable[..., tuple[StackTemplate, ...]]:
    """Makes resources, as the one stack `penstock-test`, and returns its template."""

    def make(**resources: Mapping[str, Any]) -> tuple[StackTemplate, ...]:
        held = stacks.resources.setdefault(STACK, {})
        for logical, resource in resources.items():
            kind = resource["Type"]
            held[logical] = (kind, _MAKERS[kind](clients, resource["Properties"]))
        return (StackTemplate(name=STACK, body={"Resources": resources}),)

    return make


def _queue(clients: Clients, properties: Mapping[str, Any]) -> str:
    attributes = {}
    for name, value in properties.items():
        if name == "RedrivePolicy":
            target = f"arn:aws:sqs:{clients.region}:{clients.account}:lane-dlq"
            value = json.dumps({**value, "deadLetterTargetArn": target})
        if name != "QueueName":
            attributes[name] = str(value)
    url: str = clients.of("sqs").create_queue(QueueName=properties["QueueName"], Attributes=attributes)["QueueUrl"]
    return url


def _topic(clients: Clients, properties: Mapping[str, Any]) -> str:
    arn: str = clients.of("sns").create_topic(Name=properties["TopicName"])["TopicArn"]
    return arn


def _table(clients: Clients, properties: Mapping[str, Any]) -> str:
    clients.of("dynamodb").create_table(**properties)
    return str(properties["TableName"])


def _bucket(clients: Clients, properties: Mapping[str, Any]) -> str:
    clients.of("s3").create_bucket(Bucket=properties["BucketName"])
    return str(properties["BucketName"])


def _secret(clients: Clients, properties: Mapping[str, Any]) -> str:
    clients.of("secretsmanager").create_secret(Name=properties["Name"])
    return str(properties["Name"])


_MAKERS: Mapping[str, Callable[[Clients, Mapping[str, Any]], str]] = {
    "AWS::SQS::Queue": _queue,
    "AWS::SNS::Topic": _topic,
    "AWS::DynamoDB::Table": _table,
    "AWS::S3::Bucket": _bucket,
    "AWS::SecretsManager::Secret": _secret,
    "AWS::Events::Rule": lambda clients, properties: str(properties["Name"]),
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the stacks of this test keep their folders."""
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path / "home"))
    return tmp_path / "home"
