"""`penstock control`: a stop that hits nothing never says that it stopped."""

from __future__ import annotations

from typing import Any

import pytest

from ops.cli.control import NAMELESS
from ops.cli.stage import Stage
from shared.adapters.aws.clients import client
from shared.contract import names
from shared.core.errors import Unavailable
from shared.core.job import CANARY
from shared.core.switches import Level
from tests.builders import a_switch

WHY = ("--why", "wrong answers")
TYPOS = {
    "vendor/helpdsk": "vendor/helpdesk",
    "lane/supprt": "lane/support",
    "task/support/repyl": "task/support/reply",
    "task/suport/reply": "task/support/reply",
    "tenant/supprt/acme": "tenant/support/acme",
    "task/mail/snyc": "task/mail/sync",
}


def entries(stage: Stage) -> dict[str, Level]:
    """What the engine reads."""
    return {scope: one.level for scope, one in stage.control.switches().entries.items()}


@pytest.fixture
def unlisted(deployed: Stage) -> Stage:
    """A stage whose lanes cannot be read."""
    client("ssm").delete_parameter(Name=names.lanes_parameter("dev"))
    return deployed


@pytest.mark.fault("E8")
@pytest.mark.parametrize("scope", TYPOS)
@pytest.mark.parametrize(
    "words", [("set", "?", "halt"), ("set", "?", "drain"), ("safe-mode", "on", "?"), ("automation", "off", "?")]
)
def test_a_name_that_nobody_has_is_refused(penstock: Any, deployed: Stage, scope: str, words: tuple[str, ...]) -> None:
    """By every command that closes, in words and in JSON: exit code 1, the name that was meant, and nothing set."""
    asked = ["control", *(scope if word == "?" else word for word in words), *WHY]
    assert f"did you mean {TYPOS[scope]}?" in penstock(*asked, code=1).err
    error = penstock(*asked, "--json", code=1).document["error"]
    assert (error["code"], error["field"]) == ("unknown_scope", "scope")
    assert entries(deployed) == {}


@pytest.mark.fault("E8")
@pytest.mark.parametrize("words", [("check", "?"), ("show", "?")], ids=" ".join)
@pytest.mark.parametrize("scope", TYPOS)
def test_nobody_is_told_how_calm_a_name_is_that_nobody_has(
    penstock: Any, deployed: Stage, scope: str, words: tuple[str, ...]
) -> None:
    """The checklist and the history of what does not exist are refused alike."""
    said = penstock("control", *(scope if word == "?" else word for word in words), code=1)
    assert f"did you mean {TYPOS[scope]}?" in said.err


@pytest.mark.fault("E8")
def test_what_was_closed_and_then_removed_can_be_looked_at_and_opened(penstock: Any, deployed: Stage) -> None:
    """Its entry stands: it is shown, checked and opened without another word."""
    deployed.control.set_switch(a_switch("lane/gone", Level.DRAIN))
    assert "lane/gone is drain" in penstock("control", "show", "lane/gone").out
    assert "nothing to check" in penstock("control", "check", "lane/gone").out
    penstock("control", "set", "lane/gone", "normal", *WHY)
    assert entries(deployed) == {}
    assert "wrong answers" in penstock("control", "show", "lane/gone").out


@pytest.mark.fault("E8")
@pytest.mark.parametrize("words", [("set", "lane/gone", "halt"), ("safe-mode", "on", "lane/gone")], ids=" ".join)
def test_what_is_no_longer_configured_is_closed_anyway(penstock: Any, deployed: Stage, words: tuple[str, ...]) -> None:
    """With a warning beside the answer, and in it for programs."""
    assert "holds nothing back" in penstock("control", *words, *WHY, "--anyway").err
    told = penstock("control", *words, *WHY, "--anyway", "--json").document
    assert "holds nothing back" in told["warnings"][0]
    assert list(entries(deployed)) == ["lane/gone"]


@pytest.mark.fault("E8")
@pytest.mark.parametrize("scope", ["lane/support", "lane/supprt"])
def test_a_halt_does_not_wait_for_the_lanes(penstock: Any, unlisted: Stage, scope: str) -> None:
    """Whatever keeps them from being read: it is set, and says that the name was not checked; nothing else is."""
    told = penstock("control", "set", scope, "halt", *WHY, "--json").document
    assert "nobody checked" in told["warnings"][0]
    assert entries(unlisted) == {scope: Level.HALT}
    assert penstock("control", "set", "vendor/helpdesk", "drain", *WHY, "--json", code=1).document["error"]


@pytest.mark.fault("E8")
@pytest.mark.parametrize("words", [("all", "halt"), ("lane/support", "halt")], ids=" ".join)
def test_a_halt_does_not_wait_for_a_name(
    penstock: Any, deployed: Stage, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """While nobody answers who asks, it is set and says that it has no name; nothing else is."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "another-client")
    told = penstock("control", "set", *words, *WHY, "--json").document
    assert told["switch"]["by"] == NAMELESS
    assert "without your name" in told["warnings"][-1]
    assert entries(deployed) == {words[0]: Level.HALT}
    assert penstock("control", "set", "vendor/helpdesk", "drain", *WHY, "--json", code=1).document["error"]


@pytest.mark.req("C2")
@pytest.mark.fault("E8")
@pytest.mark.parametrize(
    "words", [("set", "all", "halt"), ("set", "all", "drain"), ("safe-mode", "on"), ("automation", "off")], ids=" ".join
)
def test_everything_is_closed_without_the_lanes(penstock: Any, unlisted: Stage, words: tuple[str, ...]) -> None:
    """By every command that closes it, and without a warning: there is no name to be checked. What opens it asks for
    the checklist of every lane, so it stays closed."""
    assert penstock("control", *words, *WHY, "--json").document["warnings"] == []
    assert list(entries(unlisted)) == ["all"]
    before = entries(unlisted)
    penstock("control", "set", "all", "normal", "--automation", *WHY, code=1)
    assert entries(unlisted) == before


@pytest.mark.fault("E8")
def test_anyway_closes_what_nobody_can_check(penstock: Any, unlisted: Stage) -> None:
    """At any level, while the lanes cannot be read; it says that it was not checked."""
    told = penstock("control", "safe-mode", "on", "lane/support", *WHY, "--anyway", "--json").document
    assert "nobody checked" in told["warnings"][0]
    assert entries(unlisted) == {"lane/support": Level.ROUTE_ONLY}


def test_without_a_doubt_there_is_no_warning(penstock: Any, deployed: Stage) -> None:
    """A list that is always there, so that a program can look at it; canaries are a task of their own."""
    assert penstock("control", "set", f"task/support/{CANARY}", "halt", *WHY, "--json").document["warnings"] == []
    assert penstock("control", "set", "lane/mail", "halt", *WHY).err == ""


@pytest.mark.fault("E8")
def test_a_tenant_is_known_by_what_waits(penstock: Any, deployed: Stage) -> None:
    """Nobody lists the tenants: how many of its jobs stand in line is said, as a least number; none is a warning."""
    for number in range(3):
        penstock("enqueue", "support", "reply", "--tenant", "acme", "--key", f"k{number}", "--payload", "{}")
    for job in list(deployed.jobs.scan()):
        penstock("jobs", "schedule", job.job_id, "--in", "1h", *WHY)  # type: ignore[union-attr]
    assert "At least 3 of the first 3" in penstock("control", "set", "tenant/support/acme", "halt", *WHY).out
    told = penstock("control", "set", "tenant/support/acne", "halt", *WHY, "--json").document
    assert told["waiting"] == {"tenant": "acne", "at_least": 0, "looked_at": 3}
    assert "is that its name?" in told["warnings"][0]
    assert "is that its name?" in penstock("control", "set", "tenant/support/acne", "halt", *WHY).err


@pytest.mark.fault("E8")
def test_a_stop_stands_although_nobody_can_count(
    penstock: Any, deployed: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The switch is set first: what cannot be counted afterwards is a warning."""

    def down(*_: Any, **__: Any) -> None:
        raise Unavailable("jobs", "throttled")

    monkeypatch.setattr("shared.adapters.aws.jobs.DynamoDbJobStore.waiting", down)
    told = penstock("control", "set", "tenant/support/acme", "halt", *WHY, "--json").document
    assert "could not be counted" in told["warnings"][0]
    assert entries(deployed) == {"tenant/support/acme": Level.HALT}
