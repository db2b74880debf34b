"""Synthesized templates and the references in them, resolved against what is really deployed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ops.local.clients import Clients

_PLACEHOLDER = re.compile(r"\$\{([^!}][^}]*)\}")
_ARN_OF = {
    "AWS::DynamoDB::GlobalTable": "dynamodb:{where}:table/{id}",
    "AWS::DynamoDB::Table": "dynamodb:{where}:table/{id}",
    "AWS::Lambda::Function": "lambda:{where}:function:{id}",
    "AWS::KMS::Key": "kms:{where}:key/{id}",
    "AWS::S3::Bucket": "s3:::{id}",
    "AWS::IAM::Role": "iam::{account}:role/{id}",
    "AWS::Logs::LogGroup": "logs:{where}:log-group:{id}:*",
    "AWS::CloudWatch::Alarm": "cloudwatch:{where}:alarm:{id}",
    "AWS::Events::EventBus": "events:{where}:event-bus/{id}",
}


class Unresolvable(Exception):
    """A reference nobody taught us to follow; better said than guessed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """One resource of a template."""

    stack: str
    """The stack's deployed name."""
    logical_id: str
    type: str
    properties: Mapping[str, Any]
    path: str
    """Where it stands in the construct tree: what a person recognises."""

    @property
    def key(self) -> tuple[str, str]:
        """Which resource it is, among all stacks."""
        return self.stack, self.logical_id


@dataclass(frozen=True, slots=True, kw_only=True)
class StackTemplate:
    """One synthesized stack."""

    name: str
    body: Mapping[str, Any]

    def resources(self) -> Iterator[Resource]:
        """Every resource, in the template's order."""
        for logical_id, raw in self.body.get("Resources", {}).items():
            path = raw.get("Metadata", {}).get("aws:cdk:path", f"{self.name}/{logical_id}")
            yield Resource(
                stack=self.name,
                logical_id=logical_id,
                type=raw["Type"],
                properties=raw.get("Properties", {}),
                path=path.removesuffix("/Resource").removesuffix("/Default"),
            )


def load(cloud_assembly: Path) -> tuple[StackTemplate, ...]:
    """Every stack of a cloud assembly (`cdk.out`), those of nested stages too."""
    manifest = json.loads((cloud_assembly / "manifest.json").read_text())
    found: list[StackTemplate] = []
    for artifact_id, artifact in manifest["artifacts"].items():
        properties = artifact.get("properties", {})
        if artifact["type"] == "aws:cloudformation:stack":
            body = json.loads((cloud_assembly / properties["templateFile"]).read_text())
            found.append(StackTemplate(name=properties.get("stackName", artifact_id), body=body))
        elif artifact["type"] == "cdk:cloud-assembly":
            found.extend(load(cloud_assembly / properties["directoryName"]))
    return tuple(found)


class Resolver:
    """Turns a template's expressions into the values they have in the running stack."""

    def __init__(self, templates: tuple[StackTemplate, ...], clients: Clients) -> None:
        self._clients = clients
        self._templates = {template.name: template for template in templates}
        self._physical: dict[str, dict[str, tuple[str, str]]] = {}
        self._outputs: dict[str, dict[str, str]] = {}
        self._exports: dict[str, str] | None = None

    def physical_id(self, resource: Resource) -> str | None:
        """The deployed resource's id; None when the stack does not hold it."""
        found = self._resources(resource.stack).get(resource.logical_id)
        return found[1] if found else None

    def resolve(self, value: Any, stack: str) -> Any:
        """The value with every reference followed; raises Unresolvable rather than guess."""
        if isinstance(value, list):
            return [self.resolve(one, stack) for one in value if not _is_nothing(one)]
        if not isinstance(value, dict):
            return value
        if len(value) == 1:
            (name, argument) = next(iter(value.items()))
            if name == "Ref" or name.startswith("Fn::"):
                return self._call(name, argument, stack)
        return {key: self.resolve(one, stack) for key, one in value.items() if not _is_nothing(one)}

    def _call(self, function: str, argument: Any, stack: str) -> Any:
        if function == "Ref":
            return self._ref(argument, stack)
        if function == "Fn::GetAtt":
            logical_id, attribute = argument if isinstance(argument, list) else argument.split(".", 1)
            return self._attribute(logical_id, attribute, stack)
        if function == "Fn::Sub":
            return self._sub(argument, stack)
        if function == "Fn::Join":
            return argument[0].join(str(one) for one in self.resolve(argument[1], stack))
        if function == "Fn::Select":
            return self.resolve(argument[1], stack)[int(argument[0])]
        if function == "Fn::Split":
            return str(self.resolve(argument[1], stack)).split(argument[0])
        if function == "Fn::GetStackOutput":  # a weak reference to another stack
            return self._output(argument["StackName"], argument["OutputName"])
        if function == "Fn::ImportValue":
            return self._export(str(self.resolve(argument, stack)))
        raise Unresolvable(f"{function} {json.dumps(argument)}")

    def _ref(self, name: str, stack: str) -> str:
        if name.startswith("AWS::"):
            pseudo = {
                "AWS::Region": self._clients.region,
                "AWS::AccountId": self._clients.account,
                "AWS::Partition": "aws",
                "AWS::URLSuffix": "amazonaws.com",
                "AWS::StackName": stack,
            }
            if name not in pseudo:
                raise Unresolvable(f"Ref {name}")
            return pseudo[name]
        if name in self._resources(stack):
            return self._resources(stack)[name][1]
        parameters = self._templates[stack].body.get("Parameters", {}) if stack in self._templates else {}
        if "Default" in parameters.get(name, {}):
            return str(parameters[name]["Default"])
        raise Unresolvable(f"Ref {name}: not deployed")

    def _attribute(self, logical_id: str, attribute: str, stack: str) -> str:
        if logical_id not in self._resources(stack):
            raise Unresolvable(f"GetAtt {logical_id}.{attribute}: not deployed")
        kind, physical = self._resources(stack)[logical_id]
        if attribute == "Arn" and kind in _ARN_OF:
            where = f"{self._clients.region}:{self._clients.account}"
            return "arn:aws:" + _ARN_OF[kind].format(where=where, account=self._clients.account, id=physical)
        tail = physical.rpartition("/")[2] if kind == "AWS::SQS::Queue" else physical.rpartition(":")[2]
        match kind, attribute:
            case "AWS::SQS::Queue", "Arn":
                return f"arn:aws:sqs:{self._clients.region}:{self._clients.account}:{tail}"
            case (
                ("AWS::SQS::Queue", "QueueName")
                | ("AWS::SNS::Topic", "TopicName")
                | ("AWS::Lambda::Version", "Version")
            ):
                return tail
            case ("AWS::SNS::Topic", "TopicArn") | ("AWS::Lambda::Alias", "AliasArn") | ("AWS::KMS::Key", "KeyId"):
                return physical
            case (("AWS::DynamoDB::GlobalTable" | "AWS::DynamoDB::Table"), "StreamArn"):
                table = self._clients.of("dynamodb").describe_table(TableName=physical)["Table"]
                return str(table.get("LatestStreamArn", ""))
        raise Unresolvable(f"GetAtt {logical_id}.{attribute} of a {kind}")

    def _sub(self, argument: Any, stack: str) -> str:
        text, given = argument if isinstance(argument, list) else (argument, {})

        def fill(found: re.Match[str]) -> str:
            name = found[1]
            if name in given:
                return str(self.resolve(given[name], stack))
            if "." in name:
                logical_id, attribute = name.split(".", 1)
                return self._attribute(logical_id, attribute, stack)
            return self._ref(name, stack)

        return _PLACEHOLDER.sub(fill, text).replace("${!", "${")

    def _resources(self, stack: str) -> dict[str, tuple[str, str]]:
        if stack not in self._physical:
            pages = self._clients.of("cloudformation").get_paginator("list_stack_resources")
            self._physical[stack] = {
                row["LogicalResourceId"]: (row["ResourceType"], row["PhysicalResourceId"])
                for page in pages.paginate(StackName=stack)
                for row in page["StackResourceSummaries"]
            }
        return self._physical[stack]

    def _output(self, stack: str, output: str) -> str:
        if stack not in self._outputs:
            found = self._clients.of("cloudformation").describe_stacks(StackName=stack)["Stacks"][0]
            self._outputs[stack] = {row["OutputKey"]: row["OutputValue"] for row in found.get("Outputs", [])}
        if output not in self._outputs[stack]:
            raise Unresolvable(f"output {output} of stack {stack}: not deployed")
        return self._outputs[stack][output]

    def _export(self, name: str) -> str:
        if self._exports is None:
            pages = self._clients.of("cloudformation").get_paginator("list_exports")
            self._exports = {row["Name"]: row["Value"] for page in pages.paginate() for row in page["Exports"]}
        if name not in self._exports:
            raise Unresolvable(f"export {name}: not deployed")
        return self._exports[name]


def _is_nothing(value: Any) -> bool:
    return bool(value == {"Ref": "AWS::NoValue"})
