"""`penstock control`: one command closes, who and why are kept, nothing is loosened by accident."""

from __future__ import annotations

from typing import Any

import pytest

from ops.cli.stage import Stage
from shared.core.switches import Level, Switch

CALLER = "arn:aws:sts::123456789012:user/moto"
WHY = ("--why", "wrong answers")


def switch(stage: Stage, scope: str) -> Switch | None:
    """A scope's setting as the engine reads it."""
    return stage.control.switches().entries.get(scope)


@pytest.mark.parametrize("rung", list(Level)[1:], ids=lambda level: level.word)
def test_set_writes_the_level_with_who_and_why(penstock: Any, deployed: Stage, rung: Level) -> None:
    """Each rung of the ladder can be set; the caller is AWS's word, not an option."""
    document = penstock("control", "set", "lane/support", rung.word, *WHY, "--json").document["switch"]
    assert (document["level"], document["by"], document["why"]) == (rung.word, CALLER, "wrong answers")
    found = switch(deployed, "lane/support")
    assert found is not None
    assert found.level is rung
    (event,) = deployed.history.of("switch/lane/support", limit=5)
    assert (event.by, event.detail["level"]) == (CALLER, rung.word)


def test_set_for_people(penstock: Any, deployed: Stage) -> None:
    """The answer says what the level means and by whom it was set."""
    text = penstock("control", "set", "all", "halt", *WHY).out
    assert "all is halt: nothing is sent" in text
    assert CALLER in text
    assert "nothing is closed" in penstock("control", "set", "all", "normal", *WHY).out


def test_set_leaves_automation_as_it_is(penstock: Any, deployed: Stage) -> None:
    """A level set alone does not allow paid calls again; the flag does."""
    penstock("control", "set", "all", "drain", *WHY, "--no-automation")
    penstock("control", "set", "all", "normal", *WHY)
    found = switch(deployed, "all")
    assert found is not None
    assert not found.automation_enabled
    penstock("control", "set", "all", "normal", *WHY, "--automation")
    assert switch(deployed, "all") is None


def test_safe_mode_on_and_off(penstock: Any, deployed: Stage) -> None:
    """Safe mode is `route_only` on a scope, for everything unless a scope is named."""
    penstock("control", "safe-mode", "on", *WHY)
    found = switch(deployed, "all")
    assert found is not None
    assert found.level is Level.ROUTE_ONLY
    penstock("control", "safe-mode", "off", *WHY)
    assert switch(deployed, "all") is None


def test_safe_mode_loosens_nothing(penstock: Any, deployed: Stage) -> None:
    """On, it keeps a stricter level; off, it refuses to open one."""
    penstock("control", "set", "lane/mail", "halt", *WHY)
    penstock("control", "safe-mode", "on", "lane/mail", *WHY)
    assert "stricter" in penstock("control", "safe-mode", "off", "lane/mail", *WHY, code=1).err
    found = switch(deployed, "lane/mail")
    assert found is not None
    assert found.level is Level.HALT


@pytest.mark.req("C6")
@pytest.mark.fault("E5")
def test_what_must_be_closed_is_closed_beside_an_entry_nobody_can_read(penstock: Any, deployed: Stage) -> None:
    """Halt, drain and safe mode; nothing is loosened, the refusal names the way out, and a halt mends its own scope."""
    penstock("control", "set", "lane/mail", "drain", *WHY)
    deployed.client("dynamodb").update_item(
        TableName="penstock-dev-control",
        Key={"pk": {"S": "SWITCHES"}},
        UpdateExpression="SET scopes.#s = :entry",
        ExpressionAttributeNames={"#s": "lane/support"},
        ExpressionAttributeValues={":entry": {"M": {"level": {"S": "sideways"}}}},
    )
    way_out = "`penstock control set SCOPE halt --why …` always works"
    assert way_out in " ".join(penstock("control", "show", code=1).err.split())
    penstock("control", "set", "all", "drain", *WHY)
    penstock("control", "safe-mode", "on", "vendor/gmail", *WHY)
    penstock("control", "automation", "off", "vendor/helpdesk", *WHY)
    for refused in (
        ("set", "lane/mail", "normal"),
        ("set", "lane/support", "drain"),
        ("automation", "on", "lane/mail"),
        ("safe-mode", "on", "lane/mail"),
    ):
        assert way_out in " ".join(penstock("control", *refused, *WHY, code=1).err.split())
    penstock("control", "set", "lane/support", "halt", *WHY)
    found = deployed.control.switches().entries
    assert {scope: (one.level, one.automation_enabled) for scope, one in found.items()} == {
        "all": (Level.DRAIN, True),
        "lane/mail": (Level.DRAIN, True),
        "lane/support": (Level.HALT, False),
        "vendor/gmail": (Level.ROUTE_ONLY, True),
        "vendor/helpdesk": (Level.NORMAL, False),
    }


def test_automation_off_and_on(penstock: Any, deployed: Stage) -> None:
    """Off forbids paid calls and leaves the level alone; on takes that back."""
    penstock("control", "set", "lane/mail", "drain", *WHY)
    assert "automation is off" in penstock("control", "automation", "off", "lane/mail", *WHY).out
    found = switch(deployed, "lane/mail")
    assert found is not None
    assert (found.level, found.automation_enabled) == (Level.DRAIN, False)
    penstock("control", "automation", "on", "lane/mail", *WHY)
    found = switch(deployed, "lane/mail")
    assert found is not None
    assert found.automation_enabled


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (("set", "everything", "halt"), "scope"),
        (("set", "lane/BAD NAME", "halt"), "scope"),
        (("set", "task/support", "halt"), "scope"),
        (("set", "all", "stop"), "level"),
        (("safe-mode", "on", "nope"), "scope"),
        (("automation", "off", "tenant/support/"), "scope"),
        (("show", "nope"), "scope"),
    ],
    ids=str,
)
def test_bad_scopes_and_levels(penstock: Any, deployed: Stage, arguments: tuple[str, ...], field: str) -> None:
    """What is no scope or level is refused with the forms there are; nothing is set."""
    why = () if arguments[0] == "show" else WHY
    assert penstock("control", *arguments, *why, "--json", code=1).document["error"]["field"] == field
    assert deployed.control.switches().entries == {}


def test_a_reason_is_needed(penstock: Any, deployed: Stage) -> None:
    """No reason is a usage error, an empty or endless one is refused."""
    penstock("control", "set", "all", "halt", code=2)
    for reason in (" ", "x" * 201):
        assert penstock("control", "set", "all", "halt", "--why", reason, code=1).err.startswith("why: ")


def test_nobody_says_who_they_are(penstock: Any, deployed: Stage) -> None:
    """There is no option to be somebody else."""
    for option in ("--by", "--who", "--as"):
        penstock("control", "set", "all", "halt", *WHY, option, "somebody", code=2)


def test_show(penstock: Any, deployed: Stage) -> None:
    """Every closed switch with what it means, and every lane's cap."""
    assert "Every switch is normal" in penstock("control", "show").out
    penstock("control", "set", "vendor/helpdesk", "no_new_starts", *WHY)
    text = penstock("control", "show").out
    for part in ("vendor/helpdesk", "no_new_starts", "nothing new is admitted", "wrong answers", "ceiling"):
        assert part in text
    document = penstock("control", "show", "--json").document
    assert document["switches"][0]["scope"] == "vendor/helpdesk"
    assert {"lane": "mail", "cap": None, "problem": None, "baseline": 2, "ceiling": 10} in document["lanes"]


def test_show_one_scope_with_its_history(penstock: Any, deployed: Stage) -> None:
    """Who set a scope, when and why, the newest first: opened switches, too."""
    assert "Nobody ever set it." in penstock("control", "show", "all").out
    penstock("control", "set", "all", "halt", "--why", "first")
    penstock("control", "set", "all", "normal", "--why", "second")
    document = penstock("control", "show", "all", "--json").document
    assert document["switch"] is None
    assert [event["detail"]["why"] for event in document["history"]] == ["second", "first"]
    text = penstock("control", "show", "all").out
    assert text.index("second") < text.index("first")
