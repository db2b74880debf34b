"""`Person`: one of the stage's own roles, for people and for programs that people run."""

from __future__ import annotations

from collections import Counter
from typing import Any

from aws_cdk import aws_iam as iam
from constructs import Construct

from infra.arns import Arns
from infra.function import statements
from infra.grants import PEOPLE, Resource
from shared.contract import names

PINNED = {"StringEquals": {"sts:RoleSessionName": "${aws:username}"}}
"""The session bears the name of the IAM user who assumes the role. Whoever has no such name cannot."""


class Person(Construct):
    """A role with the permissions its entry in `PEOPLE` lists, assumed under one's own name alone; and the same
    permissions as a policy of that name, for permission sets of Identity Center."""

    def __init__(self, scope: Construct, construct_id: str, *, who: str, arns: Arns) -> None:
        super().__init__(scope, construct_id)
        name = names.role(arns.stage.name, who)
        self.role = iam.Role(
            self,
            "Role",
            role_name=name,
            assumed_by=iam.PrincipalWithConditions(iam.AccountRootPrincipal(), PINNED),
            description=f"Penstock {arns.stage.name}: {who}, under the name of the IAM user who assumes it",
        )
        self._arns, self._who = arns, who
        nth = Counter[Resource]()
        self.policy = iam.ManagedPolicy(
            self,
            "Policy",
            managed_policy_name=name,
            description=f"Penstock {arns.stage.name}: what {who} may do; infra/grants.py lists it",
            roles=[self.role],
            statements=[
                statement for grant in PEOPLE[who] for statement in statements(grant, arns.of(grant.on), arns, nth)
            ],
        )

    def wide(self) -> set[str]:
        """The wildcards of the policy, as they read in a template."""
        stack = self._arns.stack
        every = (stack.resolve(arn) for grant in PEOPLE[self._who] for arn in self._arns.of(grant.on))
        return {written for written in map(_written, every) if "*" in written}


def _written(value: Any) -> str:
    """An ARN with what is known only at deploy time in angle brackets."""
    if isinstance(value, str):
        return value
    if "Fn::Join" in value:
        return "".join(map(_written, value["Fn::Join"][1]))
    return f"<{value.get('Ref')}>"
