"""Roles hold what the table of grants says, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from infra.grants import GRANTS, INTAKE, RUN_ROLES, WORKER, Resource, granted, of_role
from infra.rules.assembly import Resource as TemplateResource
from infra.rules.assembly import listed
from shared.contract import names
from tests.infra.conftest import Synthesized

pytestmark = [pytest.mark.synth, pytest.mark.xdist_group("synth")]

LOGS = {"logs:CreateLogStream", "logs:PutLogEvents"}
SENDS = "sqs:SendMessage"


def _role(stage: Synthesized, function: str) -> TemplateResource:
    found = stage.function(function)
    role = stage.assembly.referred(found.stack, found.properties["Role"])
    assert role is not None
    return role


def _statements(stage: Synthesized, function: str) -> Iterator[Mapping[str, Any]]:
    role = _role(stage, function)
    for policy in stage.assembly.resources("AWS::IAM::Policy"):
        if policy.stack == role.stack and {"Ref": role.id} in policy.properties["Roles"]:
            yield from policy.properties["PolicyDocument"]["Statement"]


def _functions(stage: Synthesized) -> dict[str, str]:
    """Function → its entry in the table."""
    lanes = stage.spec.lanes.values()
    workers = {names.worker(lane.name): WORKER for lane in lanes if lane.run is None}
    workers |= {names.run(lane.name, role): of_role(role) for lane in lanes for role in lane.runs}
    intakes = {names.intake(lane.name): INTAKE for lane in stage.spec.lanes.values() if lane.intake}
    return {**{name: name for name in names.ENGINE_FUNCTIONS}, **workers, **intakes}


def test_a_role_holds_exactly_its_entry(every_stage: Synthesized) -> None:
    """Action by action, the deployed roles and the table of grants are equal; own logs come on top."""
    for function, entry in _functions(every_stage).items():
        held = [action for statement in _statements(every_stage, function) for action in listed(statement["Action"])]
        wanted = [action for grant in GRANTS[entry] for action in grant.actions]
        assert sorted(held) == sorted([*wanted, *LOGS]), function
        assert {statement["Effect"] for statement in _statements(every_stage, function)} == {"Allow"}


def test_a_worker_touches_its_own_lane_only(every_stage: Synthesized) -> None:
    """Its queue, its secret, the shared tables and the content store: no other queue, no second secret."""
    resources = {
        statement.get("Sid"): str(statement["Resource"])
        for statement in _statements(every_stage, names.worker("support"))
    }
    assert resources["OwnQueue"].endswith(f":{names.queue(every_stage.spec.name, 'support')}']]}}")
    secret = every_stage.the("AWS::SecretsManager::Secret", Name=names.secret(every_stage.spec.name, "support"))
    assert resources["Secret"] == str({"Ref": secret.id})


def test_what_nobody_may_do() -> None:
    """No function deletes a row, a worker sends no message and reads no table whole, and secrets are
    for workers, runs and intakes, each its own; text is read by those who ask vendors about it."""
    runs = {of_role(role) for role in RUN_ROLES}
    asking = {WORKER, *runs - {"run_batch_collector"}}
    everything = {(function, action) for function in GRANTS for _, action in granted(function)}
    assert not {pair for pair in everything if pair[1].endswith((":DeleteItem", ":BatchWriteItem", ":DeleteObject"))}
    assert (WORKER, SENDS) not in everything
    assert {function for function, action in everything if action == "dynamodb:Scan"} == {"auditor"}
    assert {function for function, action in everything if action.startswith("secretsmanager:")} == {
        WORKER,
        INTAKE,
        *runs,
    }
    assert {function for function, action in everything if action == "s3:GetObject"} == asking
    decrypting = {of for of in GRANTS if (Resource.CONTENT_KEY, "kms:Decrypt") in granted(of)}
    assert decrypting == asking
    in_rows = {of: {action for on, action in granted(of) if on is Resource.PAYLOAD_ROWS} for of in GRANTS}
    assert {of for of, actions in in_rows.items() if "dynamodb:GetItem" in actions} == asking
    assert {of for of, actions in in_rows.items() if "dynamodb:PutItem" in actions} == {INTAKE}


def test_triage_can_only_lose_what_is_written_elsewhere() -> None:
    """Triage is the only one whose code deletes messages from a dead-letter queue, and it sends none. SQS moves letters
    with the redriver's role; its code cannot be seen to delete one."""
    drops = (Resource.DEAD_LETTERS, "sqs:DeleteMessage")
    deletes = {function for function in GRANTS if drops in granted(function, to_code=True)}
    assert {function for function in GRANTS if drops in granted(function)} == {"triage", "redriver"}
    assert deletes == {"triage"}
    assert not any(action == SENDS for on, action in granted("triage", to_code=True))


def test_the_content_key_works_through_the_content_store_alone(every_stage: Synthesized) -> None:
    """A role may use the key only where S3, or DynamoDB for small payloads, uses it on the role's behalf."""
    for function in _functions(every_stage):
        for statement in _statements(every_stage, function):
            if any(action.startswith("kms:") for action in listed(statement["Action"])):
                through = {"ContentKey": "s3.", "PayloadRowsKey": "dynamodb."}[statement["Sid"]]
                assert through in str(statement["Condition"]["StringEquals"]["kms:ViaService"])


def test_an_absent_text_is_told_as_absent(every_stage: Synthesized) -> None:
    """Workers may list where they read, and nowhere else: without it S3 calls an absent object a denied one."""
    of_worker = _statements(every_stage, names.worker("support"))
    (statement,) = [one for one in of_worker if one.get("Sid") == "ContentBucket"]
    assert statement["Action"] == "s3:ListBucket"
    assert statement["Condition"] == {"StringLike": {"s3:prefix": ["payload/*", "document/*", "result/*"]}}
    listing = {function for function in GRANTS for _, action in granted(function) if action == "s3:ListBucket"}
    assert listing == {WORKER, "run_batch_submitter", "run_worker"}


def test_no_role_has_a_policy_that_somebody_else_wrote(every_stage: Synthesized) -> None:
    """No managed policies: what a role may do stands in this project."""
    for role in every_stage.assembly.resources("AWS::IAM::Role"):
        assert not role.properties.get("ManagedPolicyArns"), str(role)


def test_every_grant_says_why() -> None:
    """A reason for each line, and no action listed twice for one resource."""
    for function, grants in GRANTS.items():
        assert all(grant.why for grant in grants), function
        pairs = [(grant.on, action) for grant in grants for action in grant.actions]
        assert len(pairs) == len(set(pairs)), function


@pytest.mark.fault("J7")
def test_the_governor_changes_the_event_sources_of_workers_alone(every_stage: Synthesized) -> None:
    """By a condition that names each worker and its live alias; listing, which knows no single one, changes nothing."""
    statements = {one.get("Sid"): one for one in _statements(every_stage, "governor")}
    named = str(statements["EventSources"]["Condition"]["ArnEquals"]["lambda:FunctionArn"])
    for lane in every_stage.spec.lanes.values():
        worker = names.function(every_stage.spec.name, names.worker(lane.name))
        # A lane that runs take has no event source to change.
        assert (f":function:{worker}'" in named) == (lane.run is None)
        assert (f":function:{worker}:{names.LIVE}'" in named) == (lane.run is None)
    assert "*" not in named
    assert statements["AnyEventSource"]["Action"] == "lambda:ListEventSourceMappings"
    everything = {(function, action) for function in GRANTS for _, action in granted(function)}
    assert {function for function, action in everything if action.startswith("lambda:")} == {"governor"}


@pytest.mark.fault("E2")
def test_there_is_one_governor(prod: Synthesized, local: Synthesized) -> None:
    """Where the stage reserves, one at a time; elsewhere the slot of its run and the row's version see to it."""
    assert prod.function("governor").properties["ReservedConcurrentExecutions"] == 1
    assert "ReservedConcurrentExecutions" not in local.function("governor").properties


@pytest.mark.req("C7")
def test_the_reserved_concurrency_of_a_worker_is_its_ceiling(prod: Synthesized) -> None:
    """The hard stop that no run-time path can pass; a deploy starts at the baseline."""
    for lane in (lane for lane in prod.spec.lanes.values() if lane.run is None):
        worker = prod.function(names.worker(lane.name)).properties
        assert worker["ReservedConcurrentExecutions"] == lane.ceiling


@pytest.mark.fault("F4", "J6")
def test_the_executor_of_a_redrive_approves_nothing_and_alone_moves_letters() -> None:
    """It reads plans and appends steps, and releases by the table: no update of a plan, and of the queues nothing but
    their depth and the move task of an approved plan, which nobody else may start; nobody purges."""
    held = granted("redriver")
    assert {action for on, action in held if on is Resource.HISTORY} == {
        *("dynamodb:GetItem", "dynamodb:Query", "dynamodb:PutItem")
    }
    of_queues = {action for on, action in granted("redriver", to_code=True) if action.startswith("sqs:")}
    tasks = {f"sqs:{verb}MessageMoveTask{'s' if verb == 'List' else ''}" for verb in ("Start", "List", "Cancel")}
    assert of_queues == {"sqs:GetQueueAttributes", *tasks}
    assert {on for on, action in held if action in tasks} == {Resource.DEAD_LETTERS}
    movers = {function for function in GRANTS if tasks & {action for _, action in granted(function)}}
    assert movers == {"redriver"}
    assert not [function for function in GRANTS if "sqs:PurgeQueue" in {action for _, action in granted(function)}]
