"""What every function is given: its own log, and an environment that its settings can read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

import pytest

from infra.grants import RUN_ROLES
from infra.stage import load_stage
from shared.contract import env, names
from shared.core.errors import BadInput
from shared.runtime.engine_settings import EngineSettings
from shared.runtime.settings import WorkerSettings
from tests.infra.conftest import Synthesize, Synthesized

pytestmark = [pytest.mark.synth, pytest.mark.xdist_group("synth")]


def environment(stage: Synthesized, function: str) -> dict[str, str]:
    """A function's variables as it finds them, with account and region filled in."""
    variables: Mapping[str, object] = stage.function(function).properties["Environment"]["Variables"]
    return {name: _text(value) for name, value in variables.items()}


def workers(stage: Synthesized) -> dict[str, str]:
    """Every function that works for one lane alone, with its lane: its worker, or those that its schedules start."""
    return {
        function: name
        for name, lane in stage.spec.lanes.items()
        for function in ([names.worker(name)] if lane.run is None else [names.run(name, role) for role in lane.runs])
    }


def _text(value: object) -> str:
    match value:
        case {"Ref": "AWS::AccountId"}:
            return "111122223333"
        case {"Ref": "AWS::Region"}:
            return "eu-central-1"
        case {"Ref": "AWS::URLSuffix"}:
            return "amazonaws.com"
        case {"Ref": _}:
            return "arn:aws:secretsmanager:eu-central-1:111122223333:secret:x"
        case {"Fn::Join": [str(separator), list(parts)]}:
            return separator.join(_text(part) for part in parts)
        case _:
            return str(value)


def test_a_worker_understands_its_environment(every_stage: Synthesized) -> None:
    """A worker's settings are its own lane, its own vendors, its tables, its bucket and its secret."""
    for function, name in workers(every_stage).items():
        settings = WorkerSettings.from_env(environment(every_stage, function))
        stage, lane = every_stage.spec.name, every_stage.spec.lanes[name]
        assert (settings.stage, settings.lane) == (stage, lane)
        assert settings.vendors == {vendor: every_stage.spec.vendors[vendor] for vendor in lane.vendors}
        assert settings.jobs_table == names.table(stage, "jobs")
        assert settings.effects_table == names.table(stage, "effects")
        assert settings.control_table == names.table(stage, "control")
        assert settings.content_bucket == names.bucket(stage, "111122223333", "eu-central-1")
        assert (settings.secret_arn is not None) == (lane.secret is not None)


def test_an_engine_function_knows_every_lane_and_where_its_queues_are(every_stage: Synthesized) -> None:
    """Lanes as configured; queue addresses that SQS would give; the period of what is scheduled."""
    host = "https://sqs.eu-central-1.amazonaws.com/111122223333"
    stage = every_stage.spec.name
    for name in names.ENGINE_FUNCTIONS:
        if name == "feed":
            continue  # it reads no lane's settings
        told = environment(every_stage, name)
        settings = EngineSettings.from_env(told)
        lanes = every_stage.spec.lanes
        assert settings.lanes == {name: replace(lane.for_engine, router=None) for name, lane in lanes.items()}
        sent = [name for name, lane in lanes.items() if lane.run is None]
        for variable, name_of, having in (
            (env.QUEUE_URLS, names.queue, sent),
            (env.DLQ_URLS, names.dead_letter_queue, list(lanes)),
        ):
            if variable in told:
                assert settings.urls(variable) == {lane: f"{host}/{name_of(stage, lane)}" for lane in having}
        if name in names.SCHEDULED:
            assert settings.period_s == getattr(every_stage.spec.schedules, name)


def test_the_stream_consumer_does_not_know_the_content_store(every_stage: Synthesized) -> None:
    """Only workers, runs, intakes and triage are told where customers' text is."""
    told = {
        name: env.CONTENT_BUCKET in environment(every_stage, name)
        for name in (*names.ENGINE_FUNCTIONS, *workers(every_stage), names.intake("support"))
    }
    knowing = {"triage", *workers(every_stage), names.intake("support")}
    assert {name for name, knows in told.items() if knows} == knowing


def test_every_function_is_made_the_same_way(every_stage: Synthesized) -> None:
    """One runtime, one architecture, its handler by full path, its own log group that forgets."""
    for function in every_stage.assembly.resources("AWS::Lambda::Function"):
        told = function.properties
        assert (told["Runtime"], told["Architectures"]) == ("python3.13", ["arm64"])
        package, _, entry = told["Handler"].partition(".handler.")
        assert package.startswith("functions.")
        assert entry in ("handler", *RUN_ROLES)
        group = every_stage.assembly.referred(function.stack, told["LoggingConfig"]["LogGroup"])
        assert group is not None
        assert group.properties["LogGroupName"] == f"/aws/lambda/{told['FunctionName']}"
        assert group.properties["RetentionInDays"] == every_stage.spec.log_retention_days
        assert told["Environment"]["Variables"]["AWS_SDK_UA_APP_ID"] == told["FunctionName"]


def test_vendors_of_the_local_stage_are_the_simulator(synthesize: Synthesize) -> None:
    """With `vendor_url`, every vendor is at the simulator's path for its kind; elsewhere it is refused."""
    spec = load_stage("local", vendor_url="http://127.0.0.1:4242/")
    assert {name: vendor.base_url for name, vendor in spec.vendors.items()} == {
        "helpdesk": "http://127.0.0.1:4242/helpdesk",
        "openai": "http://127.0.0.1:4242/openai/v1",
    }
    told = environment(synthesize(spec, thorough=False), names.worker("support"))
    assert json.loads(told[env.VENDORS])["helpdesk"]["base_url"] == "http://127.0.0.1:4242/helpdesk"
    with pytest.raises(BadInput, match="vendor_url"):
        load_stage("prod", vendor_url="http://127.0.0.1:4242")
