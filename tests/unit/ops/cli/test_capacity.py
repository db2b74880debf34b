"""`penstock capacity`: the cap and its reason, and a pin that holds over the governor."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from ops.cli.stage import Stage
from shared.core.capacity import CapacityState
from shared.core.history import HistoryEvent
from shared.core.severity import Severity

PIN = ("capacity", "pin", "support", "4", "--for", "2h", "--why", "incident 7")


def decided(stage: Stage, **more: Any) -> CapacityState:
    """As the governor leaves a lane."""
    state = CapacityState(
        cap=6, version=1, reason="backlog", severity=Severity.MODERATE, age_s=200, looked_at=stage.clock.now()
    )
    state = replace(state, **more)
    assert stage.control.set_capacity("support", None, state)
    return state


def test_a_lane_nobody_decided_about_is_at_its_baseline(penstock: Any, deployed: Stage) -> None:
    """Every lane is listed, with its bounds and no reason yet."""
    (support, mail) = penstock("capacity", "show", "--json").document["lanes"]
    assert (support["lane"], support["cap"], support["ceiling"]) == ("support", 2, 10)
    assert (mail["reason"], mail["pin"], mail["severity"]) == (None, None, "normal")


def test_the_cap_is_shown_with_its_reason_and_its_decisions(penstock: Any, deployed: Stage) -> None:
    """For one lane also what the governor decided of late."""
    decided(deployed)
    detail = {"fromCapacity": 4, "toCapacity": 6, "reasonCode": "backlog", "guardrailState": "clear"}
    deployed.history.append(
        HistoryEvent(
            subject="capacity/support",
            event_id="e",
            at=deployed.clock.now(),
            kind="decision",
            by="governor",
            detail=detail,
        )
    )
    text = penstock("capacity", "show", "support").out
    for word in ("6", "moderate", "3 min", "backlog", "governor"):
        assert word in text
    shown = penstock("capacity", "show", "support", "--json").document
    assert shown["history"][0]["detail"] == detail
    assert shown["lanes"][0]["queue_age_s"] == 200


@pytest.mark.req("C7")
def test_a_pin_holds_at_once_with_who_and_why(penstock: Any, deployed: Stage) -> None:
    """Written into the lane's row over whatever was decided, and into its history."""
    decided(deployed)
    assert "pinned at 4 until" in penstock(*PIN).out
    state = deployed.control.capacity("support")
    assert state is not None
    assert state.pin is not None
    assert (state.cap, state.pin.cap, state.pin.why, state.reason) == (4, 4, "incident 7", "operator_pin")
    assert timedelta(hours=1, minutes=59) < state.pin.until - deployed.clock.now() <= timedelta(hours=2)
    (event,) = deployed.history.of("capacity/support", limit=5)
    assert (event.kind, event.by, event.detail["why"]) == ("pin", deployed.caller.arn, "incident 7")
    assert "pin" in penstock("capacity", "show", "support").out


@pytest.mark.req("C7")
def test_a_pin_above_the_ceiling_is_refused_with_a_sentence(penstock: Any, deployed: Stage) -> None:
    """It says what can be pinned and where the ceiling is set; nothing is written."""
    answer = penstock("capacity", "pin", "support", "11", "--for", "2h", "--why", "x", code=1)
    assert "0 (stopped) or 2 to 10, the ceiling of lane support" in " ".join(answer.err.split())
    assert "config/" in answer.err
    assert deployed.control.capacity("support") is None


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("pin", "support", "1", "--for", "2h", "--why", "x"), "must be 0 (stopped) or 2"),
        (("pin", "support", "4", "--for", "30d", "--why", "x"), "within 7 days"),
        (("pin", "support", "4", "--for", "soon", "--why", "x"), "length of time"),
        (("pin", "support", "4", "--for", "2h", "--why", " "), "say in a few words why"),
        (("pin", "nowhere", "4", "--for", "2h", "--why", "x"), "known lanes: mail, support"),
        (("unpin", "support", "--why", "x"), "support has no pin"),
    ],
)
def test_bad_input_is_a_sentence(penstock: Any, deployed: Stage, arguments: tuple[str, ...], sentence: str) -> None:
    """Which field, and what would be right."""
    assert sentence in " ".join(penstock("capacity", *arguments, code=1).err.split())


def test_a_pin_is_taken_away(penstock: Any, deployed: Stage) -> None:
    """The cap stays until the next decision; both are in the history."""
    penstock(*PIN)
    shown = penstock("capacity", "unpin", "support", "--why", "well again", "--json").document
    assert (shown["lane"]["pin"], shown["lane"]["cap"]) == (None, 4)
    assert [event.kind for event in deployed.history.of("capacity/support", limit=5)] == ["unpin", "pin"]


@pytest.mark.fault("E1")
def test_a_pin_meets_a_governor_that_writes_meanwhile(penstock: Any, deployed: Stage) -> None:
    """It looks again and wins; the governor's own write from the older row is refused."""
    seen = decided(deployed)
    penstock(*PIN)
    assert not deployed.control.set_capacity("support", seen, replace(seen, cap=8, version=2))
    state = deployed.control.capacity("support")
    assert state is not None
    assert (state.cap, state.version) == (4, 2)


@pytest.mark.req("C3")
def test_status_shows_severity_cap_and_reason(penstock: Any, deployed: Stage) -> None:
    """For people and programs; a pin with the time it has left."""
    decided(deployed, severity=Severity.SEVERE)
    text = penstock("status").out
    assert "severe" in text
    assert "6 of 10" in text
    assert "backlog" in text
    penstock(*PIN)
    (support, _) = penstock("status", "--json").document["lanes"]
    assert (support["cap"], support["severity"], support["reason"]) == (4, "severe", "operator_pin")
    assert support["pinned_until"] is not None
    assert "operator pin" in penstock("status").out
