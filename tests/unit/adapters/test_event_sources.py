"""What is asked of Lambda, to the letter, and what its refusals mean: no emulator ever says that it is busy."""

from __future__ import annotations

from collections.abc import Iterator

import boto3
import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber

from shared.adapters.aws.event_sources import LambdaActuator
from shared.core.capacity import EventSource
from shared.core.errors import Unavailable

U1, U2 = (f"00000000-0000-4000-8000-00000000000{n}" for n in (1, 2))
FOUND = {"EventSourceMappings": [{"UUID": U1}]}
WORKER = {"FunctionName": "penstock-dev-support-worker:live"}


@pytest.fixture
def lambda_() -> Iterator[tuple[LambdaActuator, Stubber]]:
    """The adapter on a client whose every request must be expected, in order."""
    client = boto3.client("lambda", region_name="eu-central-1")
    with Stubber(client) as stub:
        yield LambdaActuator(client=client, stage="dev"), stub
        stub.assert_no_pending_responses()


def test_the_source_is_found_once(lambda_: tuple[LambdaActuator, Stubber]) -> None:
    """By the worker's live alias; after that by its id."""
    actuator, stub = lambda_
    stub.add_response("list_event_source_mappings", FOUND, WORKER)
    for cap in (2, 4):
        told = {"State": "Enabled", "ScalingConfig": {"MaximumConcurrency": cap}}
        stub.add_response("get_event_source_mapping", told, {"UUID": U1})
    assert [actuator.source("support").cap for _ in range(2)] == [2, 4]


def test_what_is_asked_for(lambda_: tuple[LambdaActuator, Stubber]) -> None:
    """A cap enables, nought disables, and nothing else of the source is touched."""
    actuator, stub = lambda_
    stub.add_response("list_event_source_mappings", FOUND, WORKER)
    asked = {"UUID": U1, "Enabled": True, "ScalingConfig": {"MaximumConcurrency": 6}}
    stub.add_response("update_event_source_mapping", {"State": "Updating"}, asked)
    stub.add_response("update_event_source_mapping", {"State": "Disabling"}, {"UUID": U1, "Enabled": False})
    assert (actuator.assert_cap("support", 6), actuator.assert_cap("support", 0)) == (True, True)


@pytest.mark.fault("B9")
@pytest.mark.parametrize("code", ["ResourceInUseException", "ResourceConflictException"])
def test_a_source_that_is_being_changed_is_left_alone(lambda_: tuple[LambdaActuator, Stubber], code: str) -> None:
    """Busy is an answer, not an error."""
    actuator, stub = lambda_
    stub.add_response("list_event_source_mappings", FOUND, WORKER)
    stub.add_client_error("update_event_source_mapping", code)
    assert not actuator.assert_cap("support", 6)


@pytest.mark.fault("B9")
def test_a_state_on_its_way_is_not_settled(lambda_: tuple[LambdaActuator, Stubber]) -> None:
    """In the platform's own words."""
    actuator, stub = lambda_
    stub.add_response("list_event_source_mappings", FOUND, WORKER)
    stub.add_response("get_event_source_mapping", {"State": "Updating"}, {"UUID": U1})
    assert actuator.source("support") == EventSource(state="Updating", cap=None)
    assert not EventSource(state="Updating", cap=2).settled


@pytest.mark.fault("B10")
def test_a_source_that_was_made_anew_is_looked_up_again(lambda_: tuple[LambdaActuator, Stubber]) -> None:
    """Gone under its old id, found under its new one at the next look."""
    actuator, stub = lambda_
    stub.add_response("list_event_source_mappings", FOUND, WORKER)
    stub.add_client_error("get_event_source_mapping", "ResourceNotFoundException")
    with pytest.raises(Unavailable, match="missing"):
        actuator.source("support")
    stub.add_response("list_event_source_mappings", {"EventSourceMappings": [{"UUID": U2}]}, WORKER)
    stub.add_response("get_event_source_mapping", {"State": "Enabled"}, {"UUID": U2})
    assert actuator.source("support").enabled


def test_throttled_is_unavailable_and_denied_is_a_defect(lambda_: tuple[LambdaActuator, Stubber]) -> None:
    """The next tick asks again; a missing permission is raised as it came."""
    actuator, stub = lambda_
    stub.add_client_error("list_event_source_mappings", "TooManyRequestsException")
    with pytest.raises(Unavailable):
        actuator.source("support")
    stub.add_client_error("list_event_source_mappings", "AccessDeniedException")
    with pytest.raises(ClientError):
        actuator.source("support")
