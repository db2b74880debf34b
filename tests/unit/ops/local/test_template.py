"""Templates read from a cloud assembly, and their references followed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ops.local.clients import Clients
from ops.local.template import Resolver, StackTemplate, Unresolvable, load

Deployed = Callable[..., tuple[StackTemplate, ...]]
QUEUE = {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": "lane"}}
TOPIC = {"Type": "AWS::SNS::Topic", "Properties": {"TopicName": "alarms"}}
QUEUE_ARN = "arn:aws:sqs:us-east-1:123456789012:lane"


@pytest.fixture
def resolver(clients: Clients, deployed: Deployed) -> Resolver:
    templates = deployed(Queue=QUEUE, Topic=TOPIC)
    body = {**templates[0].body, "Parameters": {"Version": {"Type": "String", "Default": "7"}}}
    return Resolver((StackTemplate(name=templates[0].name, body=body),), clients)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ({"Fn::GetAtt": ["Queue", "Arn"]}, QUEUE_ARN),
        ({"Fn::GetAtt": "Queue.QueueName"}, "lane"),
        ({"Fn::GetAtt": ["Topic", "TopicName"]}, "alarms"),
        ({"Ref": "Topic"}, "arn:aws:sns:us-east-1:123456789012:alarms"),
        ({"Ref": "AWS::Region"}, "us-east-1"),
        ({"Ref": "Version"}, "7"),
        ({"Fn::Join": ["-", ["a", {"Ref": "AWS::AccountId"}]]}, "a-123456789012"),
        ({"Fn::Sub": "${Queue.Arn}/${AWS::Partition}/${!Literal}"}, f"{QUEUE_ARN}/aws/${{Literal}}"),
        ({"Fn::Sub": ["${X}-${AWS::StackName}", {"X": {"Ref": "Version"}}]}, "7-penstock-test"),
        ({"Fn::Select": [1, {"Fn::Split": [":", {"Fn::GetAtt": ["Queue", "Arn"]}]}]}, "aws"),
        ({"a": [{"Ref": "AWS::NoValue"}, 1], "b": {"Ref": "AWS::NoValue"}}, {"a": [1]}),
        ("plain", "plain"),
    ],
)
def test_a_reference_has_the_value_it_has_in_the_running_stack(
    resolver: Resolver, expression: Any, expected: Any
) -> None:
    """Every kind of expression CDK writes is followed."""
    assert expected == resolver.resolve(expression, "penstock-test")


def test_a_weak_reference_reads_the_other_stacks_output(clients: Clients, stacks: Any) -> None:
    """A reference to another stack is its output, read when needed."""
    stacks.outputs["state"] = {"Out": QUEUE_ARN}
    weak = {"Fn::GetStackOutput": {"StackName": "state", "Region": "us-east-1", "OutputName": "Out"}}
    assert Resolver((), clients).resolve(weak, "lane") == QUEUE_ARN
    weak["Fn::GetStackOutput"]["OutputName"] = "Gone"
    with pytest.raises(Unresolvable, match="Gone"):
        Resolver((), clients).resolve(weak, "lane")


def test_an_import_reads_the_export(clients: Clients, stacks: Any) -> None:
    """A strong reference is followed, too."""
    stacks.exports["state:O"] = "v"
    assert Resolver((), clients).resolve({"Fn::ImportValue": "state:O"}, "lane") == "v"
    with pytest.raises(Unresolvable, match="state:X"):
        Resolver((), clients).resolve({"Fn::ImportValue": "state:X"}, "lane")


@pytest.mark.parametrize(
    "expression",
    [
        {"Ref": "Nobody"},
        {"Ref": "AWS::Moon"},
        {"Fn::GetAtt": ["Nobody", "Arn"]},
        {"Fn::GetAtt": ["Topic", "Moon"]},
        {"Fn::FindInMap": ["a", "b", "c"]},
    ],
)
def test_what_cannot_be_followed_is_said(resolver: Resolver, expression: Any) -> None:
    """A guess would hide a difference."""
    with pytest.raises(Unresolvable):
        resolver.resolve(expression, "penstock-test")


def test_every_stack_of_an_assembly_is_read(tmp_path: Path) -> None:
    """Stacks of nested stages count, and each goes by its deployed name."""
    nested = tmp_path / "assembly-Local"
    nested.mkdir()
    resource = {"Type": "AWS::SQS::Queue", "Metadata": {"aws:cdk:path": "App/State/Queue/Resource"}}
    for folder, stack in ((tmp_path, "State"), (nested, "Lane")):
        (folder / f"{stack}.template.json").write_text(json.dumps({"Resources": {"Q": resource}}))
    outer = {
        "State": {
            "type": "aws:cloudformation:stack",
            "properties": {"templateFile": "State.template.json", "stackName": "penstock-state"},
        },
        "State.assets": {"type": "cdk:asset-manifest", "properties": {"file": "x"}},
        "Local": {"type": "cdk:cloud-assembly", "properties": {"directoryName": "assembly-Local"}},
        "Tree": {"type": "cdk:tree"},
    }
    inner = {"Lane": {"type": "aws:cloudformation:stack", "properties": {"templateFile": "Lane.template.json"}}}
    (tmp_path / "manifest.json").write_text(json.dumps({"artifacts": outer}))
    (nested / "manifest.json").write_text(json.dumps({"artifacts": inner}))
    templates = load(tmp_path)
    assert [template.name for template in templates] == ["penstock-state", "Lane"]
    assert [resource.path for resource in templates[0].resources()] == ["App/State/Queue"]
