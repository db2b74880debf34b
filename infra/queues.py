"""Queues with the settings every queue here has: encrypted, TLS only, and kept long when they hold failures."""

from __future__ import annotations

from aws_cdk import Duration, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra import naming

FAILURES_KEPT = Duration.days(14)
"""The longest SQS allows. A message keeps its age when it is moved, so the source must be much shorter."""

START_MOVE, PURGE = "sqs:StartMessageMoveTask", "sqs:PurgeQueue"


def failure_queue(scope: Construct, construct_id: str, *, name: str, stage: str) -> sqs.Queue:
    """A queue for what could not be delivered. Nobody reads it but people."""
    queue = sqs.Queue(
        scope,
        construct_id,
        queue_name=name,
        retention_period=FAILURES_KEPT,
        encryption=sqs.QueueEncryption.SQS_MANAGED,
        enforce_ssl=True,
    )
    keep_from_moving(queue, stage=stage)
    return queue


def keep_from_moving(queue: sqs.Queue, *, stage: str, but_redriver: bool = False) -> None:
    """Moving or purging a dead-letter queue from the console goes around every review: only break-glass may, and the
    executor of approved plans may move a lane's.

    A deny on more than these two (SetQueueAttributes, say) would lock out the role that deploys."""
    movers = [naming.break_glass_role(stage), *([naming.redriver_role(stage)] if but_redriver else [])]
    _deny_but(queue, "OnlyReviewedMoves", START_MOVE, movers)
    _deny_but(queue, "OnlyBreakGlassPurges", PURGE, [naming.break_glass_role(stage)])


def _deny_but(queue: sqs.Queue, sid: str, action: str, roles: list[str]) -> None:
    arns = [
        Stack.of(queue).format_arn(service="iam", region="", resource="role", resource_name=f"{role}*")
        for role in roles
    ]
    queue.add_to_resource_policy(
        iam.PolicyStatement(
            sid=sid,
            effect=iam.Effect.DENY,
            principals=[iam.StarPrincipal()],
            actions=[action],
            resources=[queue.queue_arn],
            conditions={"ArnNotLike": {"aws:PrincipalArn": arns}},
        )
    )
