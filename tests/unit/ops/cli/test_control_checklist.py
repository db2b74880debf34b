"""`penstock control check` and every command that opens: the checklist is shown, kept, and stands in the way."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from ops.cli.stage import Stage
from shared.core.signals import Counts, VendorCounts
from shared.core.switches import Level
from tests.builders import a_switch

WHY = ("--why", "stable since 14:20")
SCOPE = "lane/support"
LIMITED = Counts(claims=10, vendors={"helpdesk": VendorCounts(calls=10, limited=5)})


@pytest.fixture
def troubled(deployed: Stage) -> Stage:
    """Safe mode on a lane whose vendor answered 429 five minutes ago."""
    deployed.control.set_switch(a_switch(SCOPE, Level.ROUTE_ONLY, automation_enabled=False))
    deployed.signals.add("support", deployed.clock.now() - timedelta(minutes=5), LIMITED)
    return deployed


def level(stage: Stage, scope: str = SCOPE) -> Level:
    """As the engine reads it."""
    switch = stage.control.switches().entries.get(scope)
    return Level.NORMAL if switch is None else switch.level


@pytest.mark.req("C6")
def test_check_shows_the_list_and_changes_nothing(penstock: Any, deployed: Stage) -> None:
    """A stage where nothing happened is calm, lane by lane."""
    deployed.control.set_switch(a_switch(SCOPE, Level.ROUTE_ONLY))
    text = penstock("control", "check").out
    assert "Everything holds: all may be opened." in text
    for part in ("support", "mail", "queue age", "vendor 429s", "✓"):
        assert part in text
    document = penstock("control", "check", SCOPE, "--json").document
    assert (document["scope"], document["holds"]) == (SCOPE, True)
    assert [one["lane"] for one in document["checklist"]] == ["support"]
    assert level(deployed) is Level.ROUTE_ONLY


@pytest.mark.req("C6")
def test_check_ends_with_1_while_something_does_not_hold(penstock: Any, troubled: Stage) -> None:
    """With the line, what was asked for and what was seen."""
    said = penstock("control", "check", SCOPE, code=1).out
    for part in ("✗", "helpdesk: 5 of 10", "under 1% over 15 min", "Not yet:"):
        assert part in said
    document = penstock("control", "check", SCOPE, "--json", code=1).document
    lines = {check["name"]: check for check in document["checklist"][0]["checks"]}
    assert not document["holds"]
    assert (lines["vendor_429s"]["holds"], lines["vendor_errors"]["holds"]) == (False, True)


@pytest.mark.req("C6")
@pytest.mark.parametrize(
    "words",
    [
        ("set", SCOPE, "normal"),
        ("set", SCOPE, "route_only", "--automation"),
        ("safe-mode", "off", SCOPE),
        ("automation", "on", SCOPE),
        ("set", "vendor/helpdesk", "route_only"),
        ("set", "all", "normal"),
        ("set", "task/support/reply", "normal"),
    ],
    ids=" ".join,
)
def test_no_way_to_loosen_passes_by_the_list(penstock: Any, troubled: Stage, words: tuple[str, ...]) -> None:
    """Whichever command and scope; what is seen is shown, what to do is said, and the switch stays."""
    for scope in ("all", "vendor/helpdesk", "task/support/reply"):
        troubled.control.set_switch(a_switch(scope, Level.DRAIN))
    before = troubled.control.switches()
    said = penstock("control", *words, *WHY, "--yes", code=1)
    assert "helpdesk: 5 of 10" in said.out
    assert "support.vendor_429s" in said.err
    assert "--anyway" in said.err
    refused = penstock("control", *words, *WHY, "--json", code=1).document
    assert refused["error"]["field"] == "checklist"
    assert refused["checklist"][0]["holds"] is False
    assert troubled.control.switches() == before


@pytest.mark.req("C6")
def test_anyway_opens_and_is_kept(penstock: Any, troubled: Stage) -> None:
    """The history says by whom, why, and although what."""
    document = penstock("control", "set", SCOPE, "normal", *WHY, "--anyway", "--json").document
    assert document["switch"]["level"] == "normal"
    assert level(troubled) is Level.NORMAL
    event = penstock("control", "show", SCOPE, "--json").document["history"][0]
    assert "support.vendor_429s" in event["detail"]["anyway"]
    assert event["detail"]["checklist"]["support"]["vendor_429s"].startswith("✗ helpdesk: 5 of 10")
    assert "support.vendor_429s" in penstock("control", "show", SCOPE).out


@pytest.mark.req("C6")
def test_closing_never_asks(penstock: Any, troubled: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Harder, or the same again: nobody looks at anything first."""
    monkeypatch.setattr("ops.cli.stage.Stage.examiner", lambda _: pytest.fail("looked"))
    for words in (
        ("set", SCOPE, "route_only"),
        ("set", SCOPE, "drain"),
        ("safe-mode", "on", SCOPE),
        ("automation", "off", SCOPE),
        ("set", SCOPE, "halt", "--automation"),
    ):
        penstock("control", *words, *WHY)
    assert level(troubled) is Level.HALT


@pytest.mark.req("C6")
@pytest.mark.parametrize(
    ("answer", "code", "left"), [("y\n", 0, Level.NORMAL), ("n\n", 1, Level.DRAIN), ("\n", 1, Level.DRAIN)]
)
def test_a_terminal_is_asked(
    penstock: Any, deployed: Stage, monkeypatch: pytest.MonkeyPatch, answer: str, code: int, left: Level
) -> None:
    """Everything holds, and still a person says yes; no answer is no."""
    deployed.control.set_switch(a_switch(SCOPE, Level.DRAIN))
    monkeypatch.setattr("ops.cli.opening.can_be_asked", lambda asked: not asked.out.json)
    said = penstock("control", "set", SCOPE, "normal", *WHY, stdin=answer, code=code)
    assert f"Open {SCOPE} in stage dev?" in said.err
    assert level(deployed) is left


@pytest.mark.req("C6")
def test_yes_and_programs_are_not_asked(penstock: Any, deployed: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """The list is shown or told all the same."""
    monkeypatch.setattr("ops.cli.opening.can_be_asked", lambda asked: not asked.out.json)
    deployed.control.set_switch(a_switch(SCOPE, Level.DRAIN))
    assert "queue age" in penstock("control", "set", SCOPE, "route_only", *WHY, "--yes").out
    document = penstock("control", "set", SCOPE, "normal", *WHY, "--json").document
    assert document["checklist"][0]["holds"] is True
    kept = deployed.history.of(f"switch/{SCOPE}", limit=1)[0].detail["checklist"]
    assert kept["support"]["governor"] == "✓ it has not looked yet"


def test_a_scope_without_a_lane_has_nothing_to_check(penstock: Any, deployed: Stage) -> None:
    """Closed before its lane was removed, it may be opened; a malformed scope is refused."""
    deployed.control.set_switch(a_switch("lane/gone", Level.DRAIN))
    assert "nothing to check" in penstock("control", "check", "lane/gone").out
    penstock("control", "set", "lane/gone", "normal", *WHY)
    assert penstock("control", "check", "nope", "--json", code=1).document["error"]["field"] == "scope"
