"""The calls each function makes equal its grants: a missing action would fail on AWS, an unused one is too much."""

from __future__ import annotations

import pytest

from infra.grants import GRANTS, INTAKE, RUN_ROLES, WORKER, Resource, of_role
from ops.local import stack
from shared.contract import names
from tests.e2e.paths import EXTRACTION, LANE, STAGE, LocalStage, walk_every_path
from tests.e2e.redrive_paths import walk_a_redrive
from tests.e2e.rewrite_paths import REWRITE, walk_the_rewrites

UNUSED: dict[tuple[str, Resource, str], str] = {
    (WORKER, Resource.CONTENT_KEY, "kms:Decrypt"): "S3 calls it on the function's behalf",
    (WORKER, Resource.CONTENT_KEY, "kms:GenerateDataKey"): "S3 calls it on the function's behalf",
    ("triage", Resource.CONTENT_KEY, "kms:GenerateDataKey"): "S3 calls it on the function's behalf",
    (INTAKE, Resource.CONTENT_KEY, "kms:GenerateDataKey"): "S3 calls it on the function's behalf",
    **{
        (entry, Resource.CONTENT_KEY, f"kms:{action}"): "S3 calls it on the function's behalf"
        for entry, actions in (
            ("run_batch_submitter", ("Decrypt",)),
            ("run_batch_collector", ("GenerateDataKey",)),
            ("run_worker", ("Decrypt", "GenerateDataKey")),
        )
        for action in actions
    },
    **{
        ("redriver", Resource.DEAD_LETTERS, f"sqs:{action}"): "no emulator has move tasks; a stub checks the requests"
        for action in ("StartMessageMoveTask", "ListMessageMoveTasks", "CancelMessageMoveTask")
    },
}
"""Grants that no call on the local stack can show, each with its reason."""


@pytest.fixture(scope="module")
def called(stage: LocalStage) -> dict[str, set[tuple[str, str]]]:
    walk_every_path(stage)
    walk_the_rewrites(stage)
    walk_a_redrive(stage)
    return stack.calls(stage.state.name)


@pytest.mark.fault("J7")
@pytest.mark.parametrize("function", sorted(GRANTS))
def test_a_function_calls_what_it_is_granted_and_nothing_else(
    function: str, called: dict[str, set[tuple[str, str]]]
) -> None:
    """Action by action, resource by resource; an exception is listed with its reason."""
    # One entry serves every worker: what any lane calls is needed.
    several = {WORKER: [names.worker(lane) for lane in (LANE, EXTRACTION)], INTAKE: [names.intake(LANE)]}
    several |= {of_role(role): [names.run(REWRITE, role)] for role in RUN_ROLES}
    deployed = several.get(function, [function])
    calls = set().union(*(called.get(names.function(STAGE, name), set()) for name in deployed))
    made = {(_resource(arn, function), action) for action, arn in calls}
    granted = {(grant.on, action) for grant in GRANTS[function] if not grant.by_platform for action in grant.actions}
    excused = {(on, action) for of, on, action in UNUSED if of == function}
    assert set() == made - granted, "called without a grant"
    assert excused == granted - made, "granted and never called (or an exception that no longer holds)"


def _resource(arn: str, function: str) -> Resource:
    """What an ARN is, in the words of the grants."""
    if arn == "*":
        return Resource.ANY_EVENT_SOURCE
    kind = arn.split(":")[2]
    tail = arn.rpartition(":")[2]
    if kind == "dynamodb":
        name = tail.removeprefix("table/").removeprefix(f"penstock-{STAGE}-")
        named = {"jobs/index/waiting": Resource.WAITING, names.CONTENT_TABLE: Resource.PAYLOAD_ROWS}
        return named[name] if name in named else Resource(name)
    if kind == "sqs":
        return Resource.DEAD_LETTERS if tail.endswith("-dlq") else Resource.LANE_QUEUES
    if kind == "events":
        return Resource.EVENT_BUS
    if kind == "lambda":
        return Resource.EVENT_SOURCES
    # Keys of objects are not recorded; that the intake puts payloads alone, its role says.
    objects = Resource.PAYLOADS if function == INTAKE else Resource.CONTENT
    return {"s3": objects, "secretsmanager": Resource.SECRET, "kms": Resource.CONTENT_KEY}[kind]
