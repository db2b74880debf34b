"""Rules about who may do what, and about secrets."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from infra.rules.assembly import Assembly, Resource, listed, texts
from infra.rules.registry import rule

SECRET_LIKE = (
    ("an AWS access key", re.compile(r"\b(AKIA|ASIA)[0-9A-Z]{16}\b")),
    ("a private key", re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY")),
    ("an API key", re.compile(r"\b(sk|rk|pk)[-_](live|test|proj|ant)?[-_]?[A-Za-z0-9]{20,}\b")),
    ("a token", re.compile(r"\b(xox[abprs]-|gh[pousr]_|glpat-|eyJ[A-Za-z0-9_-]{10,}\.)[A-Za-z0-9_-]{8,}")),
)
_SECRET_NAME = re.compile(r"(SECRET|TOKEN|PASSWORD|API_?KEY|CREDENTIAL)", re.IGNORECASE)

WIDE_RESOURCES: Mapping[str, str] = {
    r":table/[^/]+-jobs/stream/\*$": "ListStreams knows no single stream; it is one table's",
    r"-content-.*/\*$": "objects of the one content store",
}
"""Resources with a wildcard that functions may have, and why. Anything else is a mistake."""
WIDE_FOR_PEOPLE: Mapping[str, str] = {
    r":sqs:.*:penstock-[a-z]+-\*(-dlq)?$": "the queues of every lane of the stage",
    r":function:penstock-[a-z]+-\*(_[a-z_]+)?$": "the functions of every lane of the stage, or its runs",
    r":event-source-mapping:\*$": "an event source's id is made up at deploy; it is looked at",
    r":log-group:/aws/lambda/penstock-[a-z]+-\*$": "the logs of the stage's functions",
    r":schedule/penstock-[a-z]+\*/\*$": "the stage's schedules",
    r":stack/Penstock-[a-z]+-\*/\*$": "the stage's stacks",
    r":secret:penstock/[a-z]+/\*$": "the stage's secrets: whether they were filled",
    r":parameter/penstock/[a-z]+/(lanes/)?\*$": "what tools are told, and the parts of it",
}
"""The same for people, who look at every lane: one resource a lane would not fit into a policy."""
KNOWS_NO_RESOURCE = (
    "cloudformation:DescribeStacks",
    "cloudwatch:DescribeAlarms",
    "cloudwatch:GetMetricStatistics",
    "cloudwatch:ListMetrics",
    "lambda:GetAccountSettings",
    "lambda:ListEventSourceMappings",
    "logs:DescribeLogGroups",
    "scheduler:ListSchedules",
    "sqs:ListQueues",
)
"""Actions that can only be allowed on everything, or list it; they tell ids and figures, and change nothing."""
_EVENT_SOURCES = re.compile(r":event-source-mapping:\*$")

NEVER = ("dynamodb:DeleteItem", "dynamodb:DeleteTable", "dynamodb:BatchWriteItem", "lambda:UpdateFunctionCode")
"""Actions that no role here may have: a deleted guard row is a second send."""


@rule("N9")
def no_secret_in_a_template(assembly: Assembly) -> Iterator[str]:
    """Templates are stored, shown and compared; a secret in one is a secret told."""
    for resource in assembly.resources():
        for text in texts(resource.properties):
            for what, pattern in SECRET_LIKE:
                if pattern.search(text):
                    yield f"{resource}: holds {what}; put it into the lane's secret"
    for function in assembly.resources("AWS::Lambda::Function"):
        for name, value in function.properties.get("Environment", {}).get("Variables", {}).items():
            if _SECRET_NAME.search(name) and not name.endswith("_ARN"):
                yield f"{function}: {name} sounds like a secret; pass the ARN of one instead"
            elif name.endswith("_ARN") and isinstance(value, str) and not value.startswith("arn:"):
                yield f"{function}: {name} must be an ARN"


@rule("N10")
def exact_permissions(assembly: Assembly) -> Iterator[str]:
    """Exact actions on exact resources, in a role of its own, and nothing that deletes a guard."""
    for role in assembly.resources("AWS::IAM::Role"):
        if role.properties.get("ManagedPolicyArns"):
            yield f"{role}: managed policies grant more than anybody reads"
    for holder, statement in statements(assembly):
        if statement["Effect"] != "Allow":
            continue
        for action in listed(statement.get("Action")):
            if "*" in action:
                yield f"{holder}: {action} is not exact"
            if action in NEVER:
                yield f"{holder}: nobody may {action}"
        if "NotAction" in statement or "NotResource" in statement:
            yield f"{holder}: says what is not allowed instead of what is"
        for resource in listed(statement.get("Resource")):
            written = joined(resource)
            peoples = holder.type == "AWS::IAM::ManagedPolicy"
            if "*" in written and not _may_be_wide(written, statement, peoples=peoples):
                yield f"{holder}: {written} is wider than one resource"


def statements(assembly: Assembly) -> Iterator[tuple[Resource, Mapping[str, Any]]]:
    """Every statement that gives a role something."""
    for policy in assembly.resources("AWS::IAM::Policy", "AWS::IAM::ManagedPolicy"):
        for statement in policy.properties["PolicyDocument"]["Statement"]:
            yield policy, statement
    for role in assembly.resources("AWS::IAM::Role"):
        for inline in role.properties.get("Policies", []):
            for statement in inline["PolicyDocument"]["Statement"]:
                yield role, statement


def statements_of(assembly: Assembly, role: Resource) -> Iterator[Mapping[str, Any]]:
    """Every statement that one role holds."""
    for holder, statement in statements(assembly):
        ours = holder.stack == role.stack and {"Ref": role.id} in holder.properties.get("Roles", [])
        if ours or str(holder) == str(role):
            yield statement


def _may_be_wide(written: str, statement: Mapping[str, Any], *, peoples: bool) -> bool:
    """A wildcard of the lists, an action that knows no single resource, or event sources of functions that are named:
    an event source's own id is made up at deploy."""
    wide = (*WIDE_RESOURCES, *(WIDE_FOR_PEOPLE if peoples else ()))
    if any(re.search(pattern, written) for pattern in wide):
        return True
    if _EVENT_SOURCES.search(written):
        named = statement.get("Condition", {}).get("ArnEquals", {}).get("lambda:FunctionArn")
        return bool(named) and not any("*" in joined(one) for one in listed(named))
    return written == "*" and set(listed(statement.get("Action"))) <= set(KNOWS_NO_RESOURCE)


def joined(value: object) -> str:
    """An ARN as one reads it, with what is known only at deploy time left out."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping) and isinstance(value.get("Fn::Join"), list):
        separator, parts = value["Fn::Join"]
        return str(separator).join(joined(part) for part in parts)
    if isinstance(value, Mapping) and isinstance(value.get("Ref"), str):
        return f"{{{value['Ref']}}}"
    return "{}"
