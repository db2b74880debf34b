"""`penstock incident`: one at a time, by name, closed only with a cause."""

from __future__ import annotations

from typing import Any

import pytest

from ops.cli.stage import Stage

CALLER = "arn:aws:sts::123456789012:user/moto"


def test_an_incident_from_its_beginning_to_its_cause(penstock: Any, deployed: Stage) -> None:
    """Opened, noted, closed: every line with who, in order, in both forms."""
    penstock("incident", "open", "support", "--why", "vendor answers 429")
    penstock("incident", "note", "support", "safe mode on")
    closed = penstock("incident", "close", "support", "--cause", "token had expired", "--json").document["incident"]
    assert (closed["why"], closed["cause"], closed["opened_by"], closed["closed_by"]) == (
        "vendor answers 429",
        "token had expired",
        CALLER,
        CALLER,
    )
    assert [event["kind"] for event in closed["events"]] == ["opened", "noted", "closed"]
    text = penstock("incident", "show", "support").out
    assert "closed" in text
    assert "token had expired" in text


def test_there_is_one_at_a_time_and_the_next_is_another(penstock: Any, deployed: Stage) -> None:
    """A second opening is refused with what to do; after the close a new one begins, and both are kept."""
    penstock("incident", "open", "support", "--why", "first")
    assert "penstock incident note" in penstock("incident", "open", "support", "--why", "again", code=1).err
    penstock("incident", "close", "support", "--cause", "found")
    penstock("incident", "open", "support", "--why", "second")
    found = penstock("incident", "show", "support", "--json").document["incidents"]
    assert [(one["why"], one["closed_at"] is None) for one in found] == [("second", True), ("first", False)]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("note", "support", "hello"), "penstock incident open support"),
        (("close", "support", "--cause", "x"), "penstock incident open support"),
        (("open", "support", "--why", "  "), "why"),
        (("open", "nowhere", "--why", "x"), "nowhere"),
    ],
)
def test_what_cannot_be_written_down_is_refused(
    penstock: Any, deployed: Stage, words: tuple[str, ...], sentence: str
) -> None:
    """No incident to add to, no reason, no such lane: one sentence that says what to do, and nothing is written."""
    assert sentence in penstock("incident", *words, code=1).err
    assert deployed.history.of("incident/support", limit=5) == []


def test_it_is_not_closed_without_a_cause(penstock: Any, deployed: Stage) -> None:
    """A blank cause is none."""
    penstock("incident", "open", "support", "--why", "x")
    assert "cause" in penstock("incident", "close", "support", "--cause", " ", code=1).err
    assert penstock("incident", "show", "support", "--json").document["incidents"][0]["closed_at"] is None


def test_a_lane_without_one_says_so(penstock: Any, deployed: Stage) -> None:
    """Nothing happened yet."""
    assert "never had an incident" in penstock("incident", "show", "support").out
