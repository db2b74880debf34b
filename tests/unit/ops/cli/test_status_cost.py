"""`penstock status` shows what a lane's vendors cost, and above the threshold what to do about it."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from ops.cli.stage import Stage
from shared.adapters.aws.clients import client
from shared.contract import names
from shared.core.signals import Counts, VendorCounts
from shared.core.switches import Level
from tests.builders import a_lane, a_switch
from tests.unit.ops.cli.conftest import deploy_lanes
from tests.unit.ops.cli.test_status import lane

PRICES = {"prices": {"vendors": {"helpdesk": {"per_call": 0.5, "per_1000_tokens": 0}}}}
ADVICE = 'penstock control automation off lane/support --why "cost spike"'


@pytest.fixture
def priced(deployed: Stage) -> Stage:
    """A lane with a threshold of 10 whose help desk takes half a dollar a call; another whose vendor has no price."""
    client("ssm").put_parameter(Name=names.rules_parameter(deployed.name), Value=json.dumps(PRICES), Type="String")
    deploy_lanes((a_lane(cost_spike_per_hour=10.0), a_lane(name="mail", vendors=("gmail",))))
    return Stage(deployed.name)


def called(stage: Stage, name: str, vendor: str, calls: int) -> None:
    """So many calls, half an hour ago."""
    at = stage.clock.now() - timedelta(minutes=30)
    stage.signals.add(name, at, Counts(vendors={vendor: VendorCounts(calls=calls)}))


@pytest.mark.req("C15")
def test_cost_by_lane_and_vendor(penstock: Any, priced: Stage) -> None:
    """At the threshold nothing is recommended; a vendor without a price is said to have none."""
    called(priced, "support", "helpdesk", 20)
    called(priced, "mail", "gmail", 3)
    document = penstock("status", "--json").document
    assert lane(document, "support")["cost"] == {
        "per_hour": 10.0,
        "words": "10.00 USD",
        "currency": "USD",
        "vendors": {"helpdesk": 10.0},
        "spike_per_hour": 10.0,
        "recommends": None,
    }
    assert lane(document, "mail")["cost"]["per_hour"] is None
    text = penstock("status").out
    for part in ("10.00 USD", "helpdesk 10.00", "no price: gmail"):
        assert part in text
    assert ADVICE not in text


@pytest.mark.req("C15")
def test_above_the_threshold_it_recommends_and_does_nothing(penstock: Any, priced: Stage) -> None:
    """The command is there to be copied; once it was done, it is not recommended again, and nobody undoes it."""
    called(priced, "support", "helpdesk", 21)
    assert ADVICE in penstock("status").out
    assert lane(penstock("status", "--json").document, "support")["cost"]["recommends"] == ADVICE
    assert priced.control.switches().entries == {}
    penstock("control", "automation", "off", "lane/support", "--why", "cost spike")
    assert ADVICE not in penstock("status").out


@pytest.mark.req("C15", "C6")
def test_automation_is_not_turned_on_again_while_it_is_too_dear(penstock: Any, priced: Stage) -> None:
    """The exit checklist has the cost among its lines."""
    called(priced, "support", "helpdesk", 21)
    priced.control.set_switch(a_switch("lane/support", Level.NORMAL, automation_enabled=False))
    said = penstock("control", "automation", "on", "lane/support", "--why", "x", code=1)
    assert "10.50 USD an hour, the threshold is 10.00" in said.out
    assert "support.cost" in said.err


def test_a_stage_without_rules_has_the_defaults(penstock: Any, deployed: Stage) -> None:
    """One that was deployed before there were prices: no vendor has one."""
    called(deployed, "support", "helpdesk", 5)
    assert lane(penstock("status", "--json").document, "support")["cost"]["words"] == "no price: helpdesk"
