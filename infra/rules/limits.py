"""Rules about what AWS takes at most: a stage that grows must not find out while it is deployed."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator

from infra.rules.assembly import Assembly, listed
from infra.rules.registry import rule
from shared.contract import parts

RESOURCES, PARAMETERS, OUTPUTS = 500, 200, 200
TEMPLATE_BYTES = 1_000_000
INLINE_CHARACTERS = 10_240
"""All inline policies of one role together, without blanks."""
MANAGED_CHARACTERS = 6_144
ATTACHED = 10
"""Managed policies of one role."""
PSEUDO_CHARACTERS, ARN_CHARACTERS = 14, 120
"""What a region or an account is counted as, and what a reference to a resource is."""


@rule("LIMITS")
def fits_into_aws(assembly: Assembly) -> Iterator[str]:
    """CloudFormation, IAM and Systems Manager refuse what is larger, some of it only half-way through a deploy."""
    for stack, template in assembly.templates.items():
        counted = (
            ("resources", len(template.get("Resources", {})), RESOURCES),
            ("parameters", len(template.get("Parameters", {})), PARAMETERS),
            ("outputs", len(template.get("Outputs", {})), OUTPUTS),
            ("bytes of template", len(json.dumps(template, separators=(",", ":"))), TEMPLATE_BYTES),
        )
        for what, has, most in counted:
            if has > most:
                yield f"{stack}: {has} {what}, a stack may have {most}"
    yield from _policies(assembly)
    for parameter in assembly.resources("AWS::SSM::Parameter"):
        size = len(str(parameter.properties.get("Value", "")).encode())
        if size > parts.LIMIT and parameter.properties.get("Tier") != "Advanced":
            yield f"{parameter}: {size} bytes, a standard parameter may have {parts.LIMIT}; write it in parts"


def _policies(assembly: Assembly) -> Iterator[str]:
    inline: dict[tuple[str, str], int] = defaultdict(int)
    attached: dict[tuple[str, str], int] = defaultdict(int)
    for policy in assembly.resources("AWS::IAM::Policy", "AWS::IAM::ManagedPolicy"):
        size = _characters(policy.properties["PolicyDocument"])
        managed = policy.type == "AWS::IAM::ManagedPolicy"
        if managed and size > MANAGED_CHARACTERS:
            yield f"{policy}: about {size} characters, a managed policy may have {MANAGED_CHARACTERS}"
        for role in listed(policy.properties.get("Roles")):
            holder = (policy.stack, json.dumps(role))
            if managed:
                attached[holder] += 1
            else:
                inline[holder] += size
    for (stack, role), size in inline.items():
        if size > INLINE_CHARACTERS:
            yield f"{stack}: role {role} has about {size} characters of policies, IAM allows {INLINE_CHARACTERS}"
    for (stack, role), count in attached.items():
        if count > ATTACHED:
            yield f"{stack}: role {role} has {count} managed policies, IAM allows {ATTACHED}"


def _characters(value: object) -> int:
    """How long a document is once its references are names."""
    if isinstance(value, dict):
        if isinstance(value.get("Fn::Join"), list):
            separator, joined = value["Fn::Join"]
            return 2 + sum(_characters(one) - 2 for one in joined) + len(separator) * (len(joined) - 1)
        if "Ref" in value or "Fn::GetAtt" in value:
            return 2 + (PSEUDO_CHARACTERS if str(value.get("Ref", "")).startswith("AWS::") else ARN_CHARACTERS)
        return 2 + sum(len(key) + 4 + _characters(one) for key, one in value.items())
    if isinstance(value, list):
        return 2 + sum(1 + _characters(one) for one in value)
    return len(json.dumps(value))
