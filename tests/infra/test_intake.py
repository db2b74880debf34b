"""What a lane's address for events promises."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from infra.intake import TIMEOUT_S
from infra.rules.assembly import Resource, texts
from infra.rules.registry import check
from infra.stage import load_stage
from shared.contract import env, names
from shared.core.errors import BadInput
from shared.core.lane import LaneSpec
from shared.runtime.intake_settings import IntakeSettings
from tests.infra.conftest import Synthesize, Synthesized
from tests.infra.test_functions import environment

pytestmark = [pytest.mark.synth, pytest.mark.xdist_group("synth")]
API = "AWS::ApiGatewayV2"
SUPPORT = names.intake("support")


def _door(stage: Synthesized) -> Resource:
    integration = stage.the(f"{API}::Integration")
    function = stage.assembly.function_of(integration.stack, integration.properties["IntegrationUri"])
    assert function is not None
    return function


@pytest.mark.fault("J1")
def test_one_route_leads_to_the_verifier_and_nowhere_else(every_stage: Synthesized) -> None:
    """POST to one address a tenant, in the format the handler reads; no other method, path or function."""
    route = every_stage.the(f"{API}::Route")
    assert route.properties["RouteKey"] == "POST /events/{tenant}"
    integration = every_stage.the(f"{API}::Integration")
    assert integration.id in str(route.properties["Target"])
    assert integration.properties["IntegrationType"] == "AWS_PROXY"
    assert integration.properties["PayloadFormatVersion"] == "2.0"
    door = _door(every_stage)
    assert door.properties["FunctionName"] == names.function(every_stage.spec.name, SUPPORT)
    assert door.properties["Handler"] == "functions.intake.handler.handler"
    assert door.properties["Timeout"] == TIMEOUT_S < 30


def test_a_rollback_of_the_door_repoints_its_alias(every_stage: Synthesized) -> None:
    """The address calls the alias `live`, as a worker's event source does, and may invoke nothing else."""
    integration = every_stage.the(f"{API}::Integration")
    alias = every_stage.assembly.referred(integration.stack, integration.properties["IntegrationUri"])
    assert alias is not None
    assert (alias.type, alias.properties["Name"]) == ("AWS::Lambda::Alias", names.LIVE)
    permission = every_stage.the("AWS::Lambda::Permission", Principal="apigateway.amazonaws.com")
    assert permission.properties["FunctionName"] == {"Ref": alias.id}
    assert "".join(texts(permission.properties["SourceArn"])).endswith("/*/*/events/{tenant}")


def test_the_door_understands_its_environment(every_stage: Synthesized) -> None:
    """Its own lane and task, the jobs table, the bucket and the secret with its senders' keys; not the worker's."""
    settings = IntakeSettings.from_env(environment(every_stage, SUPPORT))
    stage, lane = every_stage.spec.name, every_stage.spec.lanes["support"]
    assert (settings.stage, settings.lane, settings.task) == (stage, lane.for_engine, lane.intake)
    assert settings.text(env.JOBS_TABLE) == names.table(stage, "jobs")
    assert settings.text(env.CONTENT_BUCKET) == names.bucket(stage, "123456789012", "eu-central-1")
    variables = _door(every_stage).properties["Environment"]["Variables"]
    secret = every_stage.the("AWS::SecretsManager::Secret", Name=names.secret(stage, SUPPORT))
    assert variables["PENSTOCK_SECRET_ARN"] == {"Ref": secret.id}


def test_the_keys_are_made_empty_and_kept(prod: Synthesized) -> None:
    """Nobody is let in until a person has put a key there; a deploy never writes one."""
    secret = prod.the("AWS::SecretsManager::Secret", Name=names.secret("prod", SUPPORT))
    assert secret.properties["SecretString"] == "{}"
    assert secret.body["DeletionPolicy"] == "Retain"


@pytest.mark.fault("J5")
def test_a_flood_is_bounded(prod: Synthesized) -> None:
    """By the lane's own number at the address, and by a reserve behind it where the stage reserves."""
    stage, lane = prod.the(f"{API}::Stage").properties, prod.spec.lanes["support"]
    assert stage["DefaultRouteSettings"] == {
        "ThrottlingRateLimit": lane.intake_per_s,
        "ThrottlingBurstLimit": 2 * lane.intake_per_s,
    }
    assert _door(prod).properties["ReservedConcurrentExecutions"] == lane.intake_at_once == 20


@pytest.mark.req("R14")
def test_the_access_log_holds_nothing_that_a_stranger_wrote(every_stage: Synthesized) -> None:
    """JSON of numbers and ids, kept as long as every other log."""
    settings = every_stage.the(f"{API}::Stage").properties["AccessLogSettings"]
    noted = json.loads(settings["Format"])
    assert set(noted.values()) == {
        f"$context.{name}"
        for name in (
            *("requestId", "requestTimeEpoch", "identity.sourceIp", "routeKey", "status", "responseLength"),
            *("responseLatency", "integrationStatus"),
        )
    }
    name = f"/aws/vendedlogs/{names.function(every_stage.spec.name, SUPPORT)}"
    group = every_stage.the("AWS::Logs::LogGroup", LogGroupName=name)
    assert group.properties["RetentionInDays"] == every_stage.spec.log_retention_days
    assert "".join(texts(settings["DestinationArn"])).endswith(f":log-group:{name}")


def test_the_deploy_says_where_events_are_sent_to(every_stage: Synthesized) -> None:
    """One output with the address."""
    outputs = every_stage.assembly.templates["Lane-support"]["Outputs"]
    (url,) = [one["Value"] for one in outputs.values() if "events" in one.get("Description", "")]
    assert url["Fn::Join"][1][-1] == "/events/{tenant}"


def test_a_lane_that_takes_no_events_has_no_door(prod: Synthesized, synthesize: Synthesize) -> None:
    """Extraction has none, and support would have none without its entry."""
    assert not [one for one in prod.assembly.resources() if "Intake" in one.id and one.stack == "Lane-extraction"]
    spec = load_stage("dev")
    closed = synthesize(
        replace(spec, lanes={"support": replace(spec.lanes["support"], intake=None)}), thorough=False
    ).assembly
    assert not [one for one in closed.resources() if "ApiGateway" in one.type or "Intake" in one.id]
    assert not check(closed)


def test_what_a_lane_may_not_be_called(synthesize: Synthesize) -> None:
    """Its package would be the intake's."""
    spec = load_stage("dev")
    with pytest.raises(ValueError, match=r"lanes\.intake: the engine has a function of that name"):
        synthesize(replace(spec, lanes={"intake": LaneSpec(name="intake", tasks=("do_it",))}), thorough=False)


def test_the_keys_of_senders_are_no_lanes_secret(tmp_path: Path) -> None:
    """A worker that could read them could sign for everybody."""
    lanes = "lanes: {a: {tasks: [x], intake: x}, b: {tasks: [x], secret: a-intake}}"
    (tmp_path / "parameter_defaults.yaml").write_text(lanes)
    (tmp_path / "dev.yaml").write_text("")
    with pytest.raises(BadInput, match=r"lanes\.b\.secret.* already the secret of lane a's intake"):
        load_stage("dev", config=tmp_path)
