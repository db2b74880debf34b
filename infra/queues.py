"""Queues with the settings every queue here has: encrypted, TLS only, and kept long when they hold failures."""

from __future__ import annotations

from aws_cdk import Duration, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra import naming

FAILURES_KEPT = Duration.days(14)
"""The longest SQS allows. A message keeps its age when it is moved, so the source must be much shorter."""

MOVES_MESSAGES = ("sqs:StartMessageMoveTask", "sqs:PurgeQueue")


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


def keep_from_moving(queue: sqs.Queue, *, stage: str) -> None:
    """Moving or purging a dead-letter queue from the console goes around every review: only break-glass may.

    A deny on more than these two (SetQueueAttributes, say) would lock out the role that deploys."""
    stack = Stack.of(queue)
    break_glass = stack.format_arn(
        service="iam", region="", resource="role", resource_name=f"{naming.break_glass_role(stage)}*"
    )
    queue.add_to_resource_policy(
        iam.PolicyStatement(
            sid="OnlyBreakGlassMovesMessages",
            effect=iam.Effect.DENY,
            principals=[iam.StarPrincipal()],
            actions=list(MOVES_MESSAGES),
            resources=[queue.queue_arn],
            conditions={"ArnNotLike": {"aws:PrincipalArn": break_glass}},
        )
    )
