"""Whom AWS names for certain, and when a second yes is a second person's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.core.errors import BadInput
from shared.core.people import People

ACCOUNT = "123456789012"
PEOPLE = People(roles=frozenset({"penstock-prod-operator", "penstock-prod-approver"}))
FREE = People(roles=PEOPLE.roles, free_session_names=True)


def user(name: str, path: str = "") -> str:
    return f"arn:aws:iam::{ACCOUNT}:user/{path}{name}"


def session(role: str, name: str, partition: str = "aws") -> str:
    return f"arn:{partition}:sts::{ACCOUNT}:assumed-role/{role}/{name}"


SSO = "AWSReservedSSO_Penstock_0123456789abcdef"
UNNAMED = (
    session("Admin", "bob"),
    session("penstock-stage-approver", "bob"),
    session("penstock-prod-approver-2", "bob"),
    session("xAWSReservedSSO_Penstock", "bob"),
    f"arn:aws:iam::{ACCOUNT}:root",
    f"arn:aws:sts::{ACCOUNT}:federated-user/bob",
    f"arn:aws:iam::{ACCOUNT}:role/penstock-prod-approver",
    "bob",
    "",
    f"x {user('bob')}",
)


@pytest.mark.fault("J9", "J6")
@pytest.mark.parametrize(
    "caller",
    [
        *(user("bob"), user("bob", "team/support/"), user("Bob"), session(SSO, "bob")),
        *(session("penstock-prod-approver", "bob"), session("penstock-prod-operator", "bob", "aws-cn")),
    ],
)
def test_a_name_that_cannot_be_chosen_is_a_person(caller: str) -> None:
    """An IAM user, an Identity Center session and the stage's own roles: one name is one person in all of them."""
    assert PEOPLE.named(caller) == "bob"
    assert FREE.named(caller) == "bob"


@pytest.mark.fault("J9", "J6")
@pytest.mark.parametrize("caller", UNNAMED)
def test_a_name_that_anybody_may_choose_is_nobody(caller: str) -> None:
    """A session of any other role, the account itself, a federated user: refused by name, with what to do instead."""
    assert PEOPLE.named(caller) is None
    with pytest.raises(BadInput) as told:
        PEOPLE.check_second("plan", "p1", asked=user("ada"), agrees=caller, verb="approve")
    assert caller.strip() in str(told.value)
    assert "or assume one of penstock-prod-approver, penstock-prod-operator" in str(told.value)
    with pytest.raises(BadInput, match=r"p1 was requested by .*may have chosen that name and be you"):
        PEOPLE.check_second("plan", "p1", asked=caller, agrees=user("bob"), verb="approve")


@pytest.mark.fault("J9", "J6")
def test_one_person_under_two_names_is_one_person() -> None:
    """The user, the operator's session and the approver's: whoever asked as one cannot agree as another."""
    faces = [user("ada"), session("penstock-prod-operator", "ada"), session("penstock-prod-approver", "Ada")]
    for asked in faces:
        for agrees in faces:
            with pytest.raises(BadInput, match="p1 was requested by you: somebody else must approve it"):
                PEOPLE.check_second("plan", "p1", asked=asked, agrees=agrees, verb="approve")
        PEOPLE.check_second("plan", "p1", asked=asked, agrees=user("bob"), verb="approve")


@pytest.mark.fault("J9")
def test_a_stage_may_let_names_be_free() -> None:
    """Then two names are two people, whatever they are; the same one is still one."""
    for caller in UNNAMED:
        FREE.check_second("plan", "p1", asked=user("ada"), agrees=caller, verb="approve")
        with pytest.raises(BadInput, match="requested by you"):
            FREE.check_second("plan", "p1", asked=caller, agrees=caller, verb="approve")


@pytest.mark.fault("J9")
@pytest.mark.parametrize("caller", [user("bob") + "\n", f"{user('bob')}\n{user('eve')}", session(SSO, "bob") + "\n"])
def test_a_name_is_the_whole_of_what_aws_says(caller: str) -> None:
    """A line break hides nothing behind a name that counts."""
    assert PEOPLE.named(caller) is None


@pytest.mark.fault("J9")
@given(st.text(max_size=80), st.text(max_size=40))
def test_no_name_of_a_session_makes_a_person(role: str, name: str) -> None:
    """Whatever a caller's role and session are called: only the roles that are known count."""
    named = PEOPLE.named(session(role, name))
    assert named is None or role in PEOPLE.roles or role.startswith("AWSReservedSSO_")
