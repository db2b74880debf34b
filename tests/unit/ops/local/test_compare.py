"""Deployed equals template: what counts as a difference and what does not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ops.local import compare
from ops.local.clients import Clients
from ops.local.compare import NOTHING, Difference, assert_deployed, unlike
from ops.local.template import Resource, StackTemplate

Deployed = Callable[..., tuple[StackTemplate, ...]]

DLQ = {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": "lane-dlq", "MessageRetentionPeriod": 1209600}}
QUEUE = {
    "Type": "AWS::SQS::Queue",
    "Properties": {
        "QueueName": "lane",
        "VisibilityTimeout": 180,
        "RedrivePolicy": {"deadLetterTargetArn": {"Fn::GetAtt": ["Dlq", "Arn"]}, "maxReceiveCount": 10},
    },
    "Metadata": {"aws:cdk:path": "Lane-support/Queue/Resource"},
}


def test_what_is_deployed_as_written_has_no_difference(clients: Clients, deployed: Deployed) -> None:
    """Numbers that come back as text, and references, are no differences."""
    assert assert_deployed(deployed(Dlq=DLQ, Queue=QUEUE), clients) == []


def test_a_planted_difference_is_found(clients: Clients, deployed: Deployed) -> None:
    """A property changed behind the template's back is named with both values."""
    templates = deployed(Dlq=DLQ, Queue=QUEUE)
    sqs = clients.of("sqs")
    url = sqs.get_queue_url(QueueName="lane")["QueueUrl"]
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"VisibilityTimeout": "7"})
    expected = "Lane-support/Queue (AWS::SQS::Queue) VisibilityTimeout: wanted 180, found '7'"
    assert [expected] == [str(one) for one in assert_deployed(templates, clients)]


def test_a_resource_that_is_not_there_is_a_difference(clients: Clients, deployed: Deployed) -> None:
    """A resource the stack does not hold is named, whatever its type."""
    (template,) = deployed(Dlq=DLQ)
    more = {**template.body["Resources"], "Role": {"Type": "AWS::IAM::Role", "Properties": {}}}
    found = assert_deployed([StackTemplate(name=template.name, body={"Resources": more})], clients)
    assert [(one.resource.logical_id, one.property) for one in found] == [("Role", "(the resource)")]


def test_a_property_nobody_reads_back_is_a_difference(clients: Clients, deployed: Deployed) -> None:
    """Silence is not agreement: an unknown property fails until somebody says how to read it."""
    (template,) = deployed(Dlq=DLQ)
    body = {"Resources": {"Dlq": {**DLQ, "Properties": {**DLQ["Properties"], "Moon": "full"}}}}  # type: ignore[dict-item]
    found = assert_deployed([StackTemplate(name=template.name, body=body)], clients)
    assert [(one.property, one.wanted, one.found) for one in found] == [("Moon", "full", NOTHING)]


def test_a_type_nobody_reads_back_is_a_difference(clients: Clients, deployed: Deployed) -> None:
    """A resource of an unknown type fails, too."""
    templates = deployed(Rule={"Type": "AWS::Events::Rule", "Properties": {"Name": "rule"}})
    assert [one.property for one in assert_deployed(templates, clients)] == ["(the type)"]


def test_an_expression_nobody_can_follow_is_a_difference(clients: Clients, deployed: Deployed) -> None:
    """What cannot be resolved is said, not skipped."""
    (template,) = deployed(Dlq=DLQ)
    strange = {"Fn::Transform": {"Name": "x"}}
    body = {"Resources": {"Dlq": {**DLQ, "Properties": {"QueueName": strange}}}}
    found = assert_deployed([StackTemplate(name=template.name, body=body)], clients)
    assert [one.property for one in found] == ["(a reference)"]


def test_tags_are_excused(clients: Clients, deployed: Deployed) -> None:
    """An excused property may differ."""
    (template,) = deployed(Dlq=DLQ)
    tagged = {**DLQ, "Properties": {**DLQ["Properties"], "Tags": [{"Key": "a", "Value": "b"}]}}  # type: ignore[dict-item]
    assert assert_deployed([StackTemplate(name=template.name, body={"Resources": {"Dlq": tagged}})], clients) == []


def test_a_cap_the_app_moved_counts_only_on_a_new_stack() -> None:
    """What the app itself changes at run time is excused by name, when it is deployed over a running stack."""
    mapping = Resource(stack="s", logical_id="m", type="AWS::Lambda::EventSourceMapping", properties={}, path="s/m")
    moved = Difference(resource=mapping, property="ScalingConfig.MaximumConcurrency", wanted=4, found=6)
    batch = Difference(resource=mapping, property="BatchSize", wanted=10, found=1)
    assert compare.excuse(moved, compare.MOVED_WHILE_RUNNING)
    assert not compare.excuse(moved)
    assert not compare.excuse(batch, compare.MOVED_WHILE_RUNNING)


def test_every_excuse_has_a_reason() -> None:
    """What is not compared says why."""
    assert all(reason for reason in compare.NOT_COMPARED.values())
    assert all(reason for reason in compare.EXCUSED.values())
    assert all(reason for reason in compare.MOVED_WHILE_RUNNING.values())
    assert not set(compare.NOT_COMPARED) & set(compare.OBSERVED)


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (180, "180"),
        (True, "true"),
        (1.0, 1),
        ({"a": 1}, {"a": 1, "b": 2}),
        ([1, 2], [2, 1]),
        ([{"Key": "a", "V": 1}], [{"Key": "a", "V": "1", "More": 2}]),
        ({}, {"a": 1}),
    ],
)
def test_the_same_said_otherwise_is_no_difference(wanted: Any, found: Any) -> None:
    """Types, order and what the template does not mention are no matter."""
    assert list(unlike(wanted, found)) == []


@pytest.mark.parametrize(
    ("wanted", "found", "expected"),
    [
        ({"a": 1}, {"a": 2}, [("a", 1, 2)]),
        ({"a": {"b": 1}}, {"a": {}}, [("a.b", 1, NOTHING)]),
        ({"a": {"b": 1}}, {}, [("a", {"b": 1}, NOTHING)]),
        ({"a": False}, {"a": None}, [("a", False, None)]),
        ([1], [1, 2], [("[+]", NOTHING, 2)]),
        ([1, 1], [1], [("[1]", 1, NOTHING)]),
        ({"l": [{"Id": "x", "v": 1}]}, {"l": [{"Id": "x", "v": 2}]}, [("l[0].v", 1, 2)]),
        ({"l": [{"Id": "x", "v": 1}]}, {"l": [{"Id": "y", "v": 1}]}, [
            ("l[0]", {"Id": "x", "v": 1}, NOTHING), ("l[+]", NOTHING, {"Id": "y", "v": 1})
        ]),
        ({"l": []}, {"l": [1]}, [("l[+]", NOTHING, 1)]),
        ("text", {"a": 1}, [("", "text", {"a": 1})]),
    ],
)  # fmt: skip
def test_a_difference_is_told_with_its_place(wanted: Any, found: Any, expected: list[Any]) -> None:
    """Each difference names the property down to the leaf."""
    assert expected == list(unlike(wanted, found))
