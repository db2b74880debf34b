"""What every lane has, however its jobs are taken: dead letters, a secret, and a place in its stage."""

from __future__ import annotations

from aws_cdk import SecretValue, Stack
from aws_cdk import aws_secretsmanager as secretsmanager
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra import queues
from infra.deployment import Deployment
from shared.contract import names
from shared.core.lane import LaneSpec

LANE_TAG = "penstock:lane"


def dead_letter_queue(scope: Construct, lane: str, *, stage: str, has_source: bool = True) -> sqs.Queue:
    """Where a lane's failed jobs stand; SQS itself moves something there only from the lane's own queue."""
    allow = sqs.RedriveAllowPolicy(redrive_permission=sqs.RedrivePermission.DENY_ALL)
    if has_source:
        # By name: the two queues point at each other.
        source_arn = Stack.of(scope).format_arn(service="sqs", resource=names.queue(stage, lane))
        allow = sqs.RedriveAllowPolicy(
            redrive_permission=sqs.RedrivePermission.BY_QUEUE,
            source_queues=[sqs.Queue.from_queue_arn(scope, "QueueByName", source_arn)],
        )
    dead_letters = sqs.Queue(
        scope,
        "DeadLetters",
        queue_name=names.dead_letter_queue(stage, lane),
        retention_period=queues.FAILURES_KEPT,
        redrive_allow_policy=allow,
        encryption=sqs.QueueEncryption.SQS_MANAGED,
        enforce_ssl=True,
    )
    queues.keep_from_moving(dead_letters, stage=stage, but_redriver=has_source)
    return dead_letters


def vendor_secret(scope: Construct, spec: LaneSpec, deployment: Deployment) -> secretsmanager.Secret | None:
    """The tokens of a lane's vendors, if it has any."""
    if spec.secret is None:
        return None
    stage = deployment.stage.name
    return secretsmanager.Secret(
        scope,
        "Secret",
        secret_name=names.secret(stage, spec.secret),
        description=f"Penstock {stage}: vendor tokens of lane {spec.name}, JSON: vendor to token",
        # Made empty and filled by hand (docs/deploy.md). A deploy writes it again only if this line changes.
        secret_string_value=SecretValue.unsafe_plain_text("{}"),
        removal_policy=deployment.removal_policy,
    )


def check_lane(spec: LaneSpec, deployment: Deployment) -> None:
    """What a lane's own checks cannot see, because it concerns the rest of the stage."""
    if spec.name in (*names.ENGINE_FUNCTIONS, names.INTAKE):
        raise ValueError(f"lanes.{spec.name}: the engine has a function of that name; choose another")
    missing = [vendor for vendor in spec.vendors if vendor not in deployment.stage.vendors]
    if missing:
        raise ValueError(f"lanes.{spec.name}.vendors: {', '.join(missing)} is not defined in this stage")
