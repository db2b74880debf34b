"""`penstock doctor`: each line is what AWS says, with what to do; it ends with 1 exactly when a check fails."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError, NoCredentialsError

from infra.grants import PEOPLE
from ops.cli.stage import Caller, Stage
from shared.contract import names
from shared.core.job import Status
from shared.core.message import dead_letter_of
from shared.core.switches import Level
from tests.builders import NOW, a_job, a_lane, a_switch
from tests.unit.ops.cli.cloud import CALLER, Cloud, failure


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> Cloud:
    """The stage that `penstock` opens."""
    stage = Cloud()
    monkeypatch.setattr(Stage, "open", classmethod(lambda cls, name: stage))
    return stage


def marks(document: dict[str, Any]) -> dict[str, str]:
    """check → the worst of its lines."""
    order = ("skip", "ok", "warn", "fail")
    found: dict[str, str] = {}
    for line in document["checks"]:
        before = found.get(line["about"], "skip")
        found[line["about"]] = max(before, line["mark"], key=order.index)
    return found


def test_a_stage_in_order(penstock: Any, cloud: Cloud) -> None:
    """Every check is made, none fails, and what cannot be known is skipped with its reason."""
    document = penstock("doctor", "--json").document
    found = marks(document)
    assert document["ok"]
    assert {about for about, mark in found.items() if mark != "ok"} == {"stream age"}
    wanted = {"credentials", "lanes", "stacks", "tables", "worker mail", "worker support", "stream", "quota"}
    wanted |= {"alarms", "subscribers", "dead letters support", "failures", "schedules", "runs dispatcher"}
    assert wanted <= set(found)
    text = penstock("doctor").out
    assert CALLER.arn in text
    assert "skip" in text


def test_a_stage_on_an_emulator(penstock: Any, deployed: Stage) -> None:
    """Whatever an endpoint lacks, every check ends in a line, and a stage half deployed is not called fit."""
    document = penstock("doctor", "--json", code=1).document
    found = marks(document)
    assert {"credentials", "lanes", "tables", "stream", "alarms", "schedules"} <= set(found)
    assert (found["stream"], found["alarms"], found["schedules"]) == ("fail", "fail", "fail")
    assert found["dead letters support"] == "ok"


def _set(mapping: str, **values: Any) -> Any:
    return lambda cloud: cloud.mappings[f"penstock-dev-{mapping}"].update(values)


WORKER = "support-worker:live"
SPOILED: dict[str, Any] = {
    "stack missing": lambda cloud: cloud.stacks.pop(names.stack("dev", "Watch")),
    "stack rolled back": lambda cloud: cloud.stacks.update({names.stack("dev", "State"): "UPDATE_ROLLBACK_COMPLETE"}),
    "stack in progress": lambda cloud: cloud.stacks.update({names.stack("dev", "State"): "UPDATE_IN_PROGRESS"}),
    "table missing": lambda cloud: cloud.tables.pop(cloud.table("effects")),
    "table being made": lambda cloud: cloud.tables[cloud.table("jobs")].update(TableStatus="CREATING"),
    "no stream": lambda cloud: cloud.tables[cloud.table("jobs")].pop("StreamSpecification"),
    "no index": lambda cloud: cloud.tables[cloud.table("jobs")].pop("GlobalSecondaryIndexes"),
    "no expiry": lambda cloud: cloud.expiry.update(TimeToLiveStatus="DISABLED"),
    "mapping missing": lambda cloud: cloud.mappings.pop(f"penstock-dev-{WORKER}"),
    "mapping disabled": _set(WORKER, State="Disabled"),
    "mapping updating": _set(WORKER, State="Updating"),
    "cap differs": _set(WORKER, ScalingConfig={"MaximumConcurrency": 5}),
    "cap above ceiling": _set(WORKER, ScalingConfig={"MaximumConcurrency": 11}),
    "no cap": _set(WORKER, ScalingConfig={}),
    "whole batches fail": _set(WORKER, FunctionResponseTypes=[]),
    "rolled back by hand": lambda cloud: cloud.live.update({"penstock-dev-support-worker": "9"}),
    "stream unread": lambda cloud: cloud.mappings.pop("penstock-dev-stream"),
    "stream disabled": _set("stream", State="Disabled"),
    "stream failing": _set("stream", LastProcessingResult="PROBLEM: Function call failed"),
    "feed unread": lambda cloud: cloud.mappings.pop("penstock-dev-feed"),
    "feed disabled": _set("feed", State="Disabled"),
    "stream behind": lambda cloud: cloud.age_ms.append(61_000.0),
    "quota tiny": lambda cloud: cloud.quota["AccountLimit"].update(ConcurrentExecutions=10),
    "quota small": lambda cloud: cloud.quota["AccountLimit"].update(ConcurrentExecutions=20),
    "no alarms": lambda cloud: cloud.alarms.clear(),
    "alarm mute": lambda cloud: cloud.alarms.append({"AlarmName": "penstock-dev-x", "StateValue": "OK"}),
    "alarm rings": lambda cloud: cloud.alarms[0].update(StateValue="ALARM"),
    "nobody listens": lambda cloud: cloud.subscribers.clear(),
    "not confirmed": lambda cloud: cloud.subscribers.__setitem__(0, "PendingConfirmation"),
    "dead letters": lambda cloud: cloud.dead_letters.send([dead_letter_of(a_job(status=Status.FAILED))]),
    "undelivered": lambda cloud: setattr(cloud, "undelivered", 3),
    "schedule missing": lambda cloud: cloud.schedules.pop("penstock-dev-triage"),
    "schedule disabled": lambda cloud: cloud.schedules.update({"penstock-dev-triage": "DISABLED"}),
    "never ran": lambda cloud: cloud.ledger._rows.pop("sweeper"),
    "ran long ago": lambda cloud: cloud.ran("triage", timedelta(hours=1)),
}


@pytest.mark.parametrize(
    ("change", "about", "mark"),
    [
        ("stack missing", "stacks", "fail"),
        ("stack rolled back", "stacks", "fail"),
        ("stack in progress", "stacks", "warn"),
        ("table missing", "tables", "fail"),
        ("table being made", "tables", "fail"),
        ("no stream", "tables", "fail"),
        ("no index", "tables", "fail"),
        ("no expiry", "tables", "warn"),
        ("mapping missing", "worker support", "fail"),
        ("mapping disabled", "worker support", "fail"),
        ("mapping updating", "worker support", "warn"),
        ("cap differs", "worker support", "warn"),
        ("cap above ceiling", "worker support", "fail"),
        ("no cap", "worker support", "fail"),
        ("whole batches fail", "worker support", "fail"),
        ("rolled back by hand", "version support-worker", "warn"),
        ("stream unread", "stream", "fail"),
        ("stream disabled", "stream", "fail"),
        ("stream failing", "stream", "warn"),
        ("feed unread", "feed", "fail"),
        ("feed disabled", "feed", "fail"),
        ("stream behind", "stream age", "fail"),
        ("quota tiny", "quota", "fail"),
        ("quota small", "quota", "warn"),
        ("no alarms", "alarms", "fail"),
        ("alarm mute", "alarms", "fail"),
        ("alarm rings", "alarms", "warn"),
        ("nobody listens", "subscribers", "warn"),
        ("not confirmed", "subscribers", "warn"),
        ("dead letters", "dead letters support", "warn"),
        ("undelivered", "failures", "warn"),
        ("schedule missing", "schedules", "fail"),
        ("schedule disabled", "schedules", "fail"),
        ("never ran", "runs sweeper", "warn"),
        ("ran long ago", "runs triage", "fail"),
    ],
)
def test_what_is_wrong_is_found(penstock: Any, cloud: Cloud, change: str, about: str, mark: str) -> None:
    """Each fault is found by its check alone, with something to do; a warning does not fail the command."""
    SPOILED[change](cloud)
    document = penstock("doctor", "--json", code=1 if mark == "fail" else 0).document
    found = marks(document)
    assert found.pop(about) == mark
    assert set(found.values()) <= {"ok", "skip"}
    assert all(line["todo"] for line in document["checks"] if line["mark"] in ("warn", "fail"))


def test_every_fault_is_tried() -> None:
    """No way to spoil a stage is left out of the table above."""
    (mark,) = [one for one in test_what_is_wrong_is_found.pytestmark if one.name == "parametrize"]  # type: ignore[attr-defined]
    assert {row[0] for row in mark.args[1]} == set(SPOILED)


def test_nobody_listens_in_production(penstock: Any, cloud: Cloud) -> None:
    """In production, alarms that nobody hears are a failure."""
    cloud.name = "prod"
    cloud.subscribers.clear()
    assert marks(penstock("doctor", "--json", code=1).document)["subscribers"] == "fail"


def test_a_halted_lane_may_be_disabled(penstock: Any, cloud: Cloud) -> None:
    """A mapping that a halt switch turned off is as it should be."""
    cloud.control.set_switch(a_switch("lane/support", Level.HALT))
    cloud.mappings[f"penstock-dev-{WORKER}"]["State"] = "Disabled"
    assert marks(penstock("doctor", "--json").document)["worker support"] == "ok"


FIRST, FILLED = {"v-1": ["AWSCURRENT"]}, {"v-1": ["AWSPREVIOUS"], "v-2": ["AWSCURRENT"]}


@pytest.mark.parametrize(
    ("told", "mark", "todo"),
    [
        (None, "fail", "put-secret-value --secret-id penstock/dev/support"),
        ({"VersionIdsToStages": FIRST}, "fail", "put-secret-value --secret-id penstock/dev/support"),
        ({"VersionIdsToStages": FILLED, "DeletedDate": NOW}, "fail", "restore-secret --secret-id penstock/dev/support"),
        ({"VersionIdsToStages": FILLED}, "ok", ""),
    ],
    ids=["missing", "as it was made", "going to be deleted", "filled"],
)
def test_secrets(penstock: Any, cloud: Cloud, told: dict[str, Any] | None, mark: str, todo: str) -> None:
    """A lane's secret must have been filled; that is known without a right to read any value."""
    cloud.told["support"] = a_lane(secret="support")
    if told is not None:
        cloud.secrets["penstock/dev/support"] = told
    said = penstock("doctor", "--json", code=1 if mark == "fail" else 0)
    assert marks(said.document)["secret support"] == mark
    (line,) = [one for one in said.document["checks"] if one["about"] == "secret support"]
    assert todo in line["todo"]


@pytest.mark.fault("J9")
@pytest.mark.parametrize(
    ("arn", "free", "mark", "said"),
    [
        ("arn:aws:iam::123456789012:user/ada", False, "ok", "this caller is ada"),
        ("arn:aws:sts::123456789012:assumed-role/penstock-dev-reader/ada", False, "ok", "this caller is ada"),
        ("arn:aws:sts::123456789012:assumed-role/Admin/ada", False, "warn", "assume one of penstock-dev-approver"),
        ("arn:aws:iam::123456789012:root", True, "warn", "config/dev.yaml"),
    ],
)
def test_whose_yes_counts(penstock: Any, cloud: Cloud, arn: str, free: bool, mark: str, said: str) -> None:
    """Whether this caller can be a second person, and whether the stage lets one person be two."""
    caller = Caller(account="123456789012", arn=arn, region="eu-central-1")
    cloud.__dict__.update(caller=caller, people=replace(cloud.people, free_session_names=free))
    (line,) = [one for one in penstock("doctor", "--json").document["checks"] if one["about"] == "people"]
    assert line["mark"] == mark
    assert said in line["found"] + line["todo"]


@pytest.mark.fault("J7")
def test_a_reader_may_ask_all_of_it(penstock: Any, cloud: Cloud) -> None:
    """Whatever `doctor` and `cost --idle` ask AWS for, the stage's role for readers may; it opens no secret."""
    cloud.told["support"] = a_lane(secret="support")
    cloud.secrets["penstock/dev/support"] = {"VersionIdsToStages": FILLED}
    cloud.templates = {"Penstock-dev-State": {"Resources": {}}}
    asked, client = set[str](), cloud.client

    class Watched:
        def __init__(self, service: str) -> None:
            self._service = service

        def __getattr__(self, operation: str) -> Any:
            self._ask(operation)
            return getattr(client(self._service), operation)

        def get_paginator(self, operation: str) -> Any:
            self._ask(operation)
            return client(self._service).get_paginator(operation)

        def _ask(self, operation: str) -> None:
            asked.add(f"{self._service}:{''.join(word.capitalize() for word in operation.split('_'))}")

    cloud.__dict__["client"] = Watched
    penstock("doctor", "--json")
    penstock("cost", "--idle", "--json")
    may = {action for grant in PEOPLE["reader"] for action in grant.actions}
    assert {"secretsmanager:DescribeSecret", "dynamodb:DescribeTable", "scheduler:GetSchedule"} <= asked
    assert asked <= may


def test_stream_age(penstock: Any, cloud: Cloud) -> None:
    """Under a minute behind is fine."""
    cloud.age_ms.append(2_000.0)
    assert marks(penstock("doctor", "--json").document)["stream age"] == "ok"


@pytest.mark.parametrize(
    ("error", "mark"),
    [
        (failure("NotImplemented", "GetAccountSettings"), "skip"),
        (failure("UnknownOperationException", "GetAccountSettings"), "skip"),
        (failure("AccessDeniedException", "GetAccountSettings"), "warn"),
        (failure("InternalFailure", "GetAccountSettings"), "fail"),
    ],
    ids=["no such operation", "unknown operation", "denied", "down"],
)
def test_a_check_that_cannot_be_made_is_a_line(penstock: Any, cloud: Cloud, error: ClientError, mark: str) -> None:
    """An emulator without the operation: skip. A caller without the permission: warn, naming it. Else: fail."""
    cloud.quota = error
    document = penstock("doctor", "--json", code=1 if mark == "fail" else 0).document
    (line,) = [one for one in document["checks"] if one["about"] == "quota"]
    assert line["mark"] == mark
    assert "GetAccountSettings" in line["found"]
    assert document["checks"][-1]["about"] == f"runs {names.SCHEDULED[-1]}"


def test_without_credentials(penstock: Any, deployed: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody to ask as: one failed line, and what to do."""

    def nobody(_: Stage) -> None:
        raise NoCredentialsError

    monkeypatch.setattr(Stage, "caller", property(nobody))
    document = penstock("doctor", "--json", code=1).document
    assert [line["about"] for line in document["checks"]] == ["credentials"]
    assert "aws sso login" in document["checks"][0]["todo"]


def test_a_stage_that_is_not_deployed(penstock: Any, deployed: Stage) -> None:
    """Without its lanes there is nothing more to look at."""
    checks = penstock("-s", "prod", "doctor", "--json", code=1).document["checks"]
    assert [(line["about"], line["mark"]) for line in checks] == [("credentials", "ok"), ("lanes", "fail")]
    assert "cdk deploy" in json.dumps(checks)


def test_a_source_that_was_stopped_on_purpose_is_in_order() -> None:
    """A pin of 0 disables it; doctor does not tell anybody to enable it."""
    from ops.cli.checks.deployed import workers
    from shared.core.capacity import CapacityState

    cloud = Cloud()
    cloud.control.set_capacity("support", None, CapacityState(cap=0, version=1, stopped=True))
    cloud.mappings["penstock-dev-support-worker:live"]["State"] = "Disabled"
    assert next(line.mark.value for line in workers(cloud)) == "ok"
