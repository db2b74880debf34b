"""A stage of fifty lanes is a stage like any other: it synthesizes, and it fits into every limit of AWS."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from infra.rules.assembly import listed, texts
from infra.rules.registry import check
from infra.stage import CONFIG, DEFAULTS
from shared.contract import names
from shared.core.lane import LaneSpec
from shared.core.stage import StageSpec, merged
from tests.infra.conftest import Synthesize, Synthesized

pytestmark = [pytest.mark.synth, pytest.mark.xdist_group("synth")]

LANES = 50


@pytest.fixture(scope="module")
def fifty(synthesize: Synthesize) -> Synthesized:
    """The shipped lanes again and again, under names of ordinary length, each with a secret of its own."""
    told: dict[str, Any] = merged(
        yaml.safe_load((CONFIG / DEFAULTS).read_text(encoding="utf-8")),
        yaml.safe_load((CONFIG / "prod.yaml").read_text(encoding="utf-8")),
    )
    shipped = list(told["lanes"].items())
    lanes = {}
    for number in range(LANES):
        kind, entry = shipped[number % len(shipped)]
        name = f"{kind}_of_region_{number:02}"
        lanes[name] = {**entry, "secret": name}
    vendors = {f"openai_{number:02}": told["vendors"]["openai"] for number in range(LANES)}
    accounts = {
        f"openai_{number:02}": {**told["accounts"]["openai"], "vendor": f"openai_{number:02}"}
        for number in range(LANES)
    }
    told |= {"lanes": lanes, "vendors": {**told["vendors"], **vendors}, "accounts": {**told["accounts"], **accounts}}
    return synthesize(StageSpec.from_mappings("prod", told), thorough=False)


@pytest.mark.fault("K6")
def test_fifty_lanes_synthesize(fifty: Synthesized) -> None:
    """Every rule of ours is met, the limits of CloudFormation, Lambda, IAM and Systems Manager among them."""
    assert fifty.refused == ""
    assert len(fifty.spec.lanes) == LANES
    assert [str(one) for one in check(fifty.assembly)] == []


def test_every_environment_stays_far_below_its_limit(fifty: Synthesized) -> None:
    """Lambda takes 4,096 bytes; the fiftieth lane costs an environment nothing."""
    for function in fifty.assembly.resources("AWS::Lambda::Function"):
        told = function.properties["Environment"]["Variables"]
        assert sum(len(name) + len(str(value)) for name, value in told.items()) < 1024, function


def test_producers_and_tools_read_all_fifty(fifty: Synthesized) -> None:
    """The lanes stand in several parameters, and are the lanes again; whoever works for one lane is told that one."""
    told = fifty.parameter(names.lanes_parameter("prod"))
    assert {name: LaneSpec.from_mapping(name, values) for name, values in told.items()} == {
        name: lane.for_engine for name, lane in fifty.spec.lanes.items()
    }
    assert len(fifty.settings("governor")["lanes"]) == LANES
    assert list(fifty.settings(names.worker("support_of_region_00"))["lanes"]) == ["support_of_region_00"]


def test_fifty_lanes_are_granted_what_one_is(fifty: Synthesized) -> None:
    """However many statements that takes: the governor may steer every worker and nothing else."""
    workers: set[str] = set()
    for policy in fifty.assembly.resources("AWS::IAM::Policy", "AWS::IAM::ManagedPolicy"):
        for statement in policy.properties["PolicyDocument"]["Statement"]:
            if "lambda:UpdateEventSourceMapping" in listed(statement["Action"]):
                named = statement["Condition"]["ArnEquals"]["lambda:FunctionArn"]
                workers |= {"".join(texts(one)).rpartition("function:")[2] for one in named}
    queued = [names.function("prod", names.worker(name)) for name, lane in fifty.spec.lanes.items() if lane.run is None]
    assert workers == {*queued, *(f"{worker}:{names.LIVE}" for worker in queued)}
