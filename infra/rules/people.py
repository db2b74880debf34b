"""Rules about people: that a role's session bears the name of who assumes it, and what nobody gets to see or do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from infra.rules.access import joined, statements_of
from infra.rules.assembly import Assembly, Resource, listed
from infra.rules.registry import rule
from shared.contract import names

NAME, OWN_NAME = "sts:RoleSessionName", "${aws:username}"
LOOKS = ("Get", "Describe", "List", "Query", "Scan", "Filter")
"""How the actions begin that change nothing."""
PRODUCES = ("dynamodb:PutItem", "s3:PutObject", "kms:GenerateDataKey", "kms:Decrypt", "ssm:GetParameter")
"""All that a producer does: whatever else happens to a job is the engine's or an operator's business."""
OPENS_TEXT = ("s3:GetObject", "kms:Decrypt")
READS_ROWS = ("dynamodb:GetItem", "dynamodb:Query", "dynamodb:Scan", "dynamodb:BatchGetItem")


@rule("WHO")
def people_are_named_and_see_no_text(assembly: Assembly) -> Iterator[str]:
    """A second yes counts from these roles, so nobody may choose the name of their sessions; and none of them reads
    what customers wrote, or a token."""
    roles: dict[str | None, Resource] = {}
    for role in assembly.resources("AWS::IAM::Role"):
        roles[role.properties.get("RoleName")] = role
        for statement in role.properties["AssumeRolePolicyDocument"]["Statement"]:
            yield from _pinned(role, statement)
    for who in names.ROLES:
        found = roles.get(names.role(assembly.stage.name, who))
        if found is None:
            yield f"State: the role {names.role(assembly.stage.name, who)} is missing"
            continue
        for statement in statements_of(assembly, found):
            yield from _of_people(assembly, found, who, statement)


def _pinned(role: Resource, statement: Mapping[str, Any]) -> Iterator[str]:
    """Services may take a role; whoever else does must be of this account, and bear the own name."""
    principal = statement.get("Principal")
    if isinstance(principal, Mapping) and set(principal) == {"Service"}:
        return
    if statement.get("Action") != "sts:AssumeRole":
        yield f"{role}: people assume it by sts:AssumeRole alone"
    if not isinstance(principal, Mapping) or set(principal) != {"AWS"} or not _is_this_account(principal["AWS"]):
        yield f"{role}: this account alone may assume it"
    if statement.get("Condition", {}).get("StringEquals", {}).get(NAME) != OWN_NAME:
        yield f"{role}: whoever assumes it may choose a name; its trust must ask that {NAME} equals {OWN_NAME}"


def _is_this_account(principal: object) -> bool:
    return joined(principal).endswith(":iam::{AWS::AccountId}:root")


def _of_people(assembly: Assembly, role: Resource, who: str, statement: Mapping[str, Any]) -> Iterator[str]:
    text = names.table(assembly.stage.name, names.CONTENT_TABLE)
    on_text = any(joined(one).endswith(f"/{text}") for one in listed(statement.get("Resource")))
    one = f"an {who}" if who[0] in "ao" else f"a {who}"
    for action in listed(statement.get("Action")):
        if action == "secretsmanager:GetSecretValue":
            yield f"{role}: {one} needs no secret's value"
        if (on_text and action in READS_ROWS) or (action in OPENS_TEXT and not _to_write(who, statement)):
            yield f"{role}: {one} reads no text of customers, so it may not {action}"
        if who == "reader" and not action.partition(":")[2].startswith(LOOKS):
            yield f"{role}: a reader changes nothing, so it may not {action}"
        if who == "producer" and action not in PRODUCES:
            yield f"{role}: a producer puts jobs and texts, so it may not {action}"


def _to_write(who: str, statement: Mapping[str, Any]) -> bool:
    """DynamoDB opens a table's own key by Decrypt for a write, too; who may read no row gets no text by that."""
    via = statement.get("Condition", {}).get("StringEquals", {}).get("kms:ViaService")
    return who == "producer" and statement.get("Action") == "kms:Decrypt" and joined(via).startswith("dynamodb.")
