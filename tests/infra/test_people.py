"""The stage's own roles: what people and their programs may do, and under which name."""

from __future__ import annotations

from typing import Any

import pytest

from infra.grants import PEOPLE
from infra.rules.access import joined, statements_of
from infra.rules.assembly import Resource, listed
from shared.contract import names
from shared.core.people import People
from tests.infra.conftest import Synthesized

pytestmark = [pytest.mark.synth, pytest.mark.xdist_group("synth")]


def _role(stage: Synthesized, who: str) -> Resource:
    return stage.the("AWS::IAM::Role", RoleName=names.role(stage.spec.name, who))


def _actions(stage: Synthesized, who: str) -> list[str]:
    return [action for one in statements_of(stage.assembly, _role(stage, who)) for action in listed(one["Action"])]


@pytest.mark.fault("J9")
def test_a_session_bears_the_name_of_its_user(every_stage: Synthesized) -> None:
    """Each role is for IAM users of this account, and its sessions for the own name of each; whoever has no such name,
    like a session of another role, is not let in. What AWS then tells as the caller is that person."""
    for who in names.ROLES:
        (statement,) = _role(every_stage, who).properties["AssumeRolePolicyDocument"]["Statement"]
        assert statement["Action"] == "sts:AssumeRole"
        assert joined(statement["Principal"]["AWS"]) == "arn:{AWS::Partition}:iam::{AWS::AccountId}:root"
        assert statement["Condition"] == {"StringEquals": {"sts:RoleSessionName": "${aws:username}"}}
        caller = f"arn:aws:sts::123456789012:assumed-role/{names.role(every_stage.spec.name, who)}/ada"
        known = frozenset(names.role(every_stage.spec.name, one) for one in names.ROLES)
        assert People(roles=known).named(caller) == "ada"


@pytest.mark.fault("J7")
def test_a_person_may_do_what_the_table_says(every_stage: Synthesized) -> None:
    """Action by action; and the same stands in a policy of that name, which a permission set can refer to."""
    for who in names.ROLES:
        wanted = [action for grant in PEOPLE[who] for action in grant.actions]
        assert sorted(_actions(every_stage, who)) == sorted(wanted), who
        policy = every_stage.the("AWS::IAM::ManagedPolicy", ManagedPolicyName=names.role(every_stage.spec.name, who))
        assert policy.properties["Roles"] == [{"Ref": _role(every_stage, who).id}]


@pytest.mark.fault("J7")
def test_what_no_person_may_do() -> None:
    """Nobody reads a text or a token, deletes a row, sends to a queue, or changes an event source; whoever looks and
    whoever produces approve nothing; only who approves records what a vendor has."""
    held = {who: {action for grant in PEOPLE[who] for action in grant.actions} for who in names.ROLES}
    everything: set[str] = set().union(*held.values())
    never = {"secretsmanager:GetSecretValue", "s3:GetObject", "sqs:SendMessage", "sqs:DeleteMessage"}
    assert not everything & never
    assert not {
        action
        for action in everything
        if "Delete" in action or ("EventSourceMapping" in action[-19:] and "Update" in action)
    }
    of_history = {who: _on(who, "history") for who in names.ROLES}
    assert {who for who, actions in of_history.items() if "dynamodb:UpdateItem" in actions} == {"operator", "approver"}
    assert {who for who in names.ROLES if "dynamodb:UpdateItem" in _on(who, "effects")} == {"approver"}
    assert {who for who in names.ROLES if "dynamodb:UpdateItem" in _on(who, "control")} == {"operator"}


def _on(who: str, resource: str) -> set[str]:
    return {action for grant in PEOPLE[who] if grant.on.value == resource for action in grant.actions}


def test_fifty_lanes_need_no_longer_policies(prod: Synthesized) -> None:
    """What people may look at is said for the stage, not for each lane, so no policy grows with the lanes."""
    for who in names.ROLES:
        said = [
            joined(one)
            for statement in statements_of(prod.assembly, _role(prod, who))
            for one in listed(statement["Resource"])
        ]
        assert not [one for one in said for lane in prod.spec.lanes if lane in one.rpartition(":")[2]], who


def _settings(stage: Synthesized) -> Any:
    return stage.parameter(names.people_parameter(stage.spec.name))


@pytest.mark.fault("J9")
def test_free_names_are_told_to_tools(every_stage: Synthesized) -> None:
    """Only the stage of a developer's machine lets one person be two, and its tools are told."""
    assert _settings(every_stage) == {names.FREE_SESSION_NAMES: every_stage.spec.name == "local"}
