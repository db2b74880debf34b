"""The example subscriber's stack: a rule on our bus that loses nothing quietly, and a role that writes one table."""

from __future__ import annotations

from typing import Any

import pytest
from aws_cdk import App
from aws_cdk.assertions import Template

from examples.change_feed.stack import RULE, StatusBoard
from infra.rules.assembly import listed

pytestmark = [pytest.mark.synth, pytest.mark.xdist_group("synth")]


@pytest.fixture(scope="module")
def resources() -> dict[str, dict[str, Any]]:
    """The template's resources."""
    template = Template.from_stack(StatusBoard(App(), "StatusBoard", stage="prod"))
    found: dict[str, dict[str, Any]] = template.to_json()["Resources"]
    return found


def _of(resources: dict[str, dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [one["Properties"] for one in resources.values() if one["Type"] == kind]


def test_the_rule_asks_our_bus_for_what_its_file_says(resources: dict[str, dict[str, Any]]) -> None:
    """And what cannot be delivered is kept."""
    (rule,) = _of(resources, "AWS::Events::Rule")
    assert rule["EventBusName"] == "penstock-prod"
    assert rule["EventPattern"] == RULE
    (target,) = rule["Targets"]
    assert target["DeadLetterConfig"]["Arn"]
    assert target["RetryPolicy"]["MaximumRetryAttempts"] > 0


def test_the_subscriber_writes_its_own_table_and_nothing_else(resources: dict[str, dict[str, Any]]) -> None:
    """No permission on anything of Penstock's."""
    statements = [s for policy in _of(resources, "AWS::IAM::Policy") for s in policy["PolicyDocument"]["Statement"]]
    assert [action for s in statements for action in listed(s["Action"])] == ["dynamodb:UpdateItem"]
