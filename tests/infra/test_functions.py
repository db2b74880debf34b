"""What every function is given: its own log, and an environment that its settings can read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from moto import mock_aws

from infra.grants import RUN_ROLES
from infra.stage import load_stage
from shared.adapters.aws.clients import client
from shared.adapters.memory.telemetry import MemoryTelemetry
from shared.contract import env, names
from shared.core.errors import BadInput
from shared.runtime import runs, wiring
from shared.runtime.engine_settings import EngineSettings
from shared.runtime.governor import governor
from shared.runtime.intake_settings import IntakeSettings
from shared.runtime.run_door import Build
from shared.runtime.settings import WorkerSettings
from tests.infra.conftest import Synthesize, Synthesized
from tests.settings import settings_file

pytestmark = [pytest.mark.synth, pytest.mark.xdist_group("synth")]


def environment(stage: Synthesized, function: str) -> dict[str, str]:
    """A function's variables as it finds them, with account and region filled in."""
    variables: Mapping[str, object] = stage.function(function).properties["Environment"]["Variables"]
    told = {name: _text(value) for name, value in variables.items()}
    return {**told, env.SETTINGS: settings_file(**stage.settings(function))} if env.SETTINGS in told else told


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
            return "123456789012"
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
        told = environment(every_stage, function)
        settings = WorkerSettings.from_env(told)
        stage, lane = every_stage.spec.name, every_stage.spec.lanes[name]
        assert (settings.stage, settings.lane) == (stage, lane)
        assert settings.vendors == {vendor: every_stage.spec.vendors[vendor] for vendor in lane.vendors}
        assert told[env.JOBS_TABLE] == names.table(stage, "jobs")
        # A collector writes results and reads no payload.
        reads = not function.endswith("_collector")
        assert told.get(env.CONTENT_TABLE) == (names.table(stage, names.CONTENT_TABLE) if reads else None)
        assert told[env.CONTENT_BUCKET] == names.bucket(stage, "123456789012", "eu-central-1")
        assert (settings.secret_arn is not None) == (lane.secret is not None)


def test_an_engine_function_knows_every_lane_and_where_its_queues_are(every_stage: Synthesized) -> None:
    """Lanes as configured; queues under the addresses that SQS itself gives; the period of what is scheduled."""
    stage = every_stage.spec.name
    for name in names.ENGINE_FUNCTIONS:
        if name == "feed":
            continue  # it reads no lane's settings
        settings = EngineSettings.from_env(environment(every_stage, name))
        lanes = every_stage.spec.lanes
        assert settings.lanes == {name: replace(lane.for_engine, router=None) for name, lane in lanes.items()}
        if name in names.SCHEDULED:
            assert settings.period_s == getattr(every_stage.spec.schedules, name)
    settings = EngineSettings.from_env(environment(every_stage, "stream"))
    sent = [name for name, lane in every_stage.spec.lanes.items() if lane.run is None]
    with mock_aws():
        for build, name_of, having in (
            (wiring.lane_queues, names.queue, sent),
            (wiring.dead_letter_queues, names.dead_letter_queue, list(every_stage.spec.lanes)),
        ):
            for lane in having:
                client("sqs").create_queue(QueueName=name_of(stage, lane))
                assert build(settings).depth(lane).visible == 0


@pytest.mark.fault("J7")
def test_every_function_is_wired_by_what_it_is_told(every_stage: Synthesized) -> None:
    """Each finds every name it asks for; none is told the name of a thing that it is not granted."""
    telemetry: Any = MemoryTelemetry()
    built: dict[str, Callable[[EngineSettings], object]] = {
        **{name: partial(getattr(wiring, name), telemetry=telemetry) for name in names.SCHEDULED if name != "governor"},
        "governor": partial(governor, telemetry=telemetry),
        "stream": partial(wiring.viewer, telemetry=telemetry),
    }
    for name, build in built.items():
        assert build(EngineSettings.from_env(environment(every_stage, name)))
    door = IntakeSettings.from_env(environment(every_stage, names.intake("support")))
    assert wiring.intake(door, telemetry)
    roles: dict[str, Build] = {
        "batch_submitter": runs.submitter(group_of=lambda job: None, prompt_of=lambda job, told: None),  # type: ignore[arg-type, return-value]
        "batch_collector": runs.collector(accept=lambda told: None, result="r"),
        "worker": runs.worker({}, model_of=lambda job: ""),
    }
    for function, name in workers(every_stage).items():
        told = environment(every_stage, function)
        settings, role = WorkerSettings.from_env(told), function.removeprefix(f"{name}_")
        assert roles[role](settings, telemetry) if role in roles else wiring.worker(settings, {}, telemetry)
        assert (env.EFFECTS_TABLE in told) == (role not in ("batch_submitter", "batch_collector"))


def test_nothing_that_grows_with_the_stage_stands_in_an_environment(every_stage: Synthesized) -> None:
    """Names alone: none of a lane but a function's own, no setting of one, and no address."""
    for function in every_stage.assembly.resources("AWS::Lambda::Function"):
        told = {name: _text(value) for name, value in function.properties["Environment"]["Variables"].items()}
        assert not [name for name, value in told.items() if "://" in value or value.startswith("{")], function
        assert sum(len(name) + len(value) for name, value in told.items()) < 900


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
    told = synthesize(spec, thorough=False).settings(names.worker("support"))
    assert told["vendors"]["helpdesk"]["base_url"] == "http://127.0.0.1:4242/helpdesk"
    with pytest.raises(BadInput, match="vendor_url"):
        load_stage("prod", vendor_url="http://127.0.0.1:4242")
