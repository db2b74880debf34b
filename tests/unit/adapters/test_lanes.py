"""What a deployment leaves for producers and tools is read as it was written, in one parameter or in many."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from moto import mock_aws

from shared.adapters.aws.clients import client
from shared.adapters.aws.lanes import deployed_lanes, deployed_routing, deployed_vendors
from shared.contract import names, parts
from shared.core.errors import BadInput
from shared.core.lane import LaneSpec
from tests.builders import ROUTING, a_lane

MANY = tuple(a_lane(name=f"support_of_region_{n:02}", tasks=("answer_event", "handle_event")) for n in range(50))


@pytest.fixture
def stage() -> Iterator[str]:
    with mock_aws():
        yield "dev"


def put(parameter: str, told: object) -> None:
    """Write a parameter as a deployment does."""
    first, *others = parts.in_parts(json.dumps(told))
    written = {parameter: first} | {names.parameter_part(parameter, n): one for n, one in enumerate(others, 1)}
    for name, value in written.items():
        client("ssm").put_parameter(Name=name, Value=value, Type="String", Overwrite=True)


def put_lanes(stage: str, lanes: tuple[LaneSpec, ...]) -> None:
    put(names.lanes_parameter(stage), {lane.name: lane.to_mapping() for lane in lanes})


@pytest.mark.fault("K6")
@pytest.mark.parametrize("lanes", [MANY[:1], MANY], ids=["one", "fifty"])
def test_every_lane_is_read(stage: str, lanes: tuple[LaneSpec, ...]) -> None:
    """As many parts as there are; those that an earlier deployment left over are not looked at."""
    put_lanes(stage, MANY)
    put_lanes(stage, lanes)
    assert deployed_lanes(stage) == {lane.name: lane for lane in lanes}


@pytest.mark.fault("K6")
def test_lanes_that_are_half_written_are_not_read(stage: str) -> None:
    """A part of another deployment, or one that is not there yet: the sentence says what to do."""
    put_lanes(stage, MANY)
    second = names.parameter_part(names.lanes_parameter(stage), 2)
    client("ssm").put_parameter(Name=second, Value="x", Type="String", Overwrite=True)
    with pytest.raises(BadInput, match="is being deployed: /penstock/dev/lanes is half written; ask again"):
        deployed_lanes(stage)
    client("ssm").delete_parameter(Name=second)
    with pytest.raises(BadInput, match="is being deployed"):
        deployed_lanes(stage)


def test_a_stage_that_does_not_tell_is_not_taken_for_one_without(stage: str) -> None:
    """Vendors and routing of a stage that was deployed before they were told are unknown, not none."""
    assert deployed_vendors(stage) is None
    assert deployed_routing(stage) is None
    put(names.vendors_parameter(stage), {"desk": {"kind": "helpdesk", "base_url": "https://desk.test"}})
    put(names.routing_parameter(stage), {"support": ROUTING})
    vendors, routing = deployed_vendors(stage), deployed_routing(stage)
    assert vendors is not None
    assert routing is not None
    assert (vendors["desk"].base_url, set(routing)) == ("https://desk.test", {"support"})
