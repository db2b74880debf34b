"""`penstock budget`: what an account allows and has left, and limits set live, with who and why."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from ops.cli.stage import Stage
from shared.adapters.aws.clients import client
from shared.adapters.budget_rows import budget_key
from shared.contract import names
from shared.core import feedback, rate
from shared.core.account import AccountSpec, Limit
from shared.core.errors import UnreadableRow
from shared.core.rate import Want
from tests.builders import an_account

CALLER = "arn:aws:sts::123456789012:user/moto"
WHY = ("--why", "the vendor asked")


@pytest.fixture
def account(deployed: Stage) -> AccountSpec:
    """One account of the deployed stage."""
    spec = an_account(name="openai", vendor="openai", requests_per_day=100, concurrency=3)
    client("ssm").put_parameter(
        Name=names.accounts_parameter(deployed.name), Value=json.dumps({"openai": spec.to_mapping()}), Type="String"
    )
    return spec


def shown(penstock: Any, *more: str) -> dict[str, Any]:
    one: dict[str, Any] = penstock("budget", "show", "openai", *more, "--json").document["accounts"][0]
    return one


@pytest.mark.req("X9")
def test_show_says_what_is_left_and_when_the_next_call_may_go(
    penstock: Any, deployed: Stage, account: AccountSpec
) -> None:
    """Limits with who set them, what is spent of each, and the exact time."""
    now_us = rate.us_of(deployed.clock.now() + timedelta(minutes=1))
    deployed.budgets.take(account, Want(requests=5, tokens=25_000), least=Want(), now_us=now_us)
    page = shown(penstock)
    by_name = {row["name"]: row for row in page["limits"]}
    assert page["state"] == "open"
    assert page["sentence"].startswith("the next call may go at")
    assert by_name["tokens_per_minute"]["left"] < 5_000
    assert by_name["requests_per_day"]["left"] == 95
    assert by_name["concurrency"] == {
        "name": "concurrency",
        "limit": 3,
        "configured": 3,
        "left": 3,
        "by": "configuration",
    }


def test_set_pins_a_limit_with_who_and_why_and_clear_takes_it_away(
    penstock: Any, deployed: Stage, account: AccountSpec
) -> None:
    """Never passed, whatever the vendor tells; every change is kept."""
    penstock("budget", "set", "openai", "--requests-per-minute", "30", *WHY)
    terms = deployed.budgets.read(account).terms
    told = feedback.changed(terms, terms.changed_us + 1, told={Limit.REQUESTS: 6_000})
    deployed.budgets.change(account, terms, told)
    row = next(row for row in shown(penstock)["limits"] if row["name"] == "requests_per_minute")
    assert (row["limit"], row["by"]) == (30, "operator")
    penstock("budget", "set", "openai", "--requests-per-minute", "clear", *WHY)
    row = next(row for row in shown(penstock)["limits"] if row["name"] == "requests_per_minute")
    assert (row["limit"], row["by"]) == (6_000, "vendor")
    events = deployed.history.of("budget/openai", limit=5)
    assert [event.detail["requests_per_minute"] for event in events] == [None, 30]
    assert {event.by for event in events} == {CALLER}


def test_open_ends_a_pause(penstock: Any, deployed: Stage, account: AccountSpec) -> None:
    """After a new key an operator does not wait for the next probe."""
    terms = deployed.budgets.read(account).terms
    now_us = rate.us_of(deployed.clock.now())
    shut = feedback.shut_down(terms, feedback.AUTH, now_us, now_us)
    assert shut is not None
    deployed.budgets.change(account, terms, shut)
    assert shown(penstock)["state"] == "shut"
    penstock("budget", "set", "openai", "--open", *WHY)
    assert shown(penstock)["state"] == "open"


@pytest.mark.req("X8")
def test_the_flag_goes_both_ways(penstock: Any, deployed: Stage, account: AccountSpec) -> None:
    """Off lets everything pass, on holds again; no deploy."""
    penstock("budget", "set", "openai", "--enforced", "off", *WHY)
    assert shown(penstock)["state"] == "off"
    penstock("budget", "set", "openai", "--enforced", "on", *WHY)
    assert shown(penstock)["state"] == "open"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (("set", "openai", *WHY), "nothing to set"),
        (("set", "openai", "--requests-per-minute", "0", *WHY), "must be a whole number above 0"),
        (("set", "openai", "--requests-per-minute", "many", *WHY), "must be a whole number above 0"),
        (("set", "openai", "--reset", "--open", *WHY), "stands alone"),
        (("set", "openai", "--reset", "--requests-per-minute", "5", *WHY), "stands alone"),
        (("set", "nobody", "--open", *WHY), "'nobody' is not configured; known accounts: openai"),
        (("show", "nobody"), "'nobody' is not configured"),
    ],
)
def test_what_cannot_be_set_is_named(penstock: Any, account: AccountSpec, given: tuple[str, ...], says: str) -> None:
    """A clear sentence, a code that is not zero, and nothing was written."""
    answer = penstock("budget", *given, code=1)
    assert says in answer.err + answer.out


def test_for_people(penstock: Any, account: AccountSpec) -> None:
    """A table a tired person can read."""
    text = penstock("budget", "show").out
    assert "openai (openai): a call may go now" in text
    assert "tokens_per_minute" in text
    assert "30,000" in text


def test_without_accounts_it_says_where_they_come_from(penstock: Any, deployed: Stage) -> None:
    """No account is no error."""
    assert "No account is configured" in penstock("budget", "show").out


# ------------------------------------------------------------------------------------------ a row nobody can read
def spoil(stage: Stage, account: AccountSpec) -> None:
    """Somebody wrote something into the account's row that this version does not understand."""
    client("dynamodb").update_item(
        TableName=stage.table("ledger"),
        Key=budget_key(account.name),
        UpdateExpression="SET version = :broken",
        ExpressionAttributeValues={":broken": {"S": "seven"}},
    )


def test_an_account_that_cannot_be_read_is_shown_as_such(penstock: Any, deployed: Stage, account: AccountSpec) -> None:
    """The page says what is wrong and what would repair it, and shows no limits as if they held."""
    spoil(deployed, account)
    page = shown(penstock)
    assert (page["state"], page["limits"], page["next_permit_at"]) == ("unreadable", [], None)
    assert "penstock budget set openai --reset" in page["sentence"]


def test_reset_begins_an_account_anew_with_who_and_why(penstock: Any, deployed: Stage, account: AccountSpec) -> None:
    """A row that nobody can read is readable again, as configured; the history says who did it."""
    spoil(deployed, account)
    with pytest.raises(UnreadableRow):
        deployed.budgets.read(account)
    penstock("budget", "set", "openai", "--reset", *WHY)
    page = shown(penstock)
    assert page["state"] == "open"
    assert {row["name"]: row["left"] for row in page["limits"]}["requests_per_day"] == 100
    (event,) = deployed.history.of("budget/openai", limit=5)
    assert (event.by, event.detail["reset"], event.detail["why"]) == (CALLER, True, "the vendor asked")


def test_reset_takes_nobody_back_to_old_terms(penstock: Any, deployed: Stage, account: AccountSpec) -> None:
    """A worker that saw the account before the reset cannot write what it computed from it."""
    penstock("budget", "set", "openai", "--requests-per-minute", "30", *WHY)
    seen = deployed.budgets.read(account).terms
    penstock("budget", "set", "openai", "--reset", *WHY)
    after = deployed.budgets.change(account, seen, feedback.changed(seen, 1, told={Limit.REQUESTS: 9}))
    assert (dict(after.terms.told), dict(after.terms.pinned)) == ({}, {})
