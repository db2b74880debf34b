"""Rules about queues and what reads them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from infra.rules.assembly import Assembly, Resource, listed
from infra.rules.registry import rule

DAY_S = 86_400
KEPT_S = 14 * DAY_S
DEFAULT_RETENTION_S = 4 * DAY_S
DEFAULT_VISIBILITY_S = 30
DEFAULT_TIMEOUT_S = 3
OUTAGE_S = 3600


def queue_sources(assembly: Assembly) -> Iterator[tuple[Resource, Resource, Resource | None]]:
    """(mapping, queue, function) of every event source that is a queue."""
    for mapping in assembly.resources("AWS::Lambda::EventSourceMapping"):
        queue = assembly.queue_of(mapping.stack, mapping.properties.get("EventSourceArn"))
        if queue is not None:
            yield mapping, queue, assembly.function_of(mapping.stack, mapping.properties.get("FunctionName"))


def dead_letter_queues(assembly: Assembly) -> Iterator[tuple[Resource, Resource]]:
    """(queue, its dead-letter queue)."""
    for queue in assembly.resources("AWS::SQS::Queue"):
        target = queue.properties.get("RedrivePolicy", {}).get("deadLetterTargetArn")
        found = assembly.queue_of(queue.stack, target)
        if found is not None:
            yield queue, found


def failure_queues(assembly: Assembly) -> dict[str, Resource]:
    """Every queue where something ends that could not be delivered."""
    found = [dead for _, dead in dead_letter_queues(assembly)]
    for holder in assembly.resources(
        "AWS::Lambda::EventSourceMapping", "AWS::Lambda::EventInvokeConfig", "AWS::Scheduler::Schedule"
    ):
        on_failure = holder.properties.get("DestinationConfig", {}).get("OnFailure", {}).get("Destination")
        dead_letters = holder.properties.get("Target", {}).get("DeadLetterConfig", {}).get("Arn")
        for target in (on_failure, dead_letters):
            if (queue := assembly.queue_of(holder.stack, target)) is not None:
                found.append(queue)
    return {str(queue): queue for queue in found}


def policies_of(assembly: Assembly, queue: Resource) -> Iterator[Mapping[str, Any]]:
    """Statements of the resource policies of a queue (or a topic, or a bucket)."""
    for policy in assembly.resources("AWS::SQS::QueuePolicy", "AWS::SNS::TopicPolicy", "AWS::S3::BucketPolicy"):
        targets = [
            *listed(policy.properties.get("Queues")),
            *listed(policy.properties.get("Topics")),
            *listed(policy.properties.get("Bucket")),
        ]
        if policy.stack == queue.stack and any(
            (found := assembly.referred(policy.stack, target)) is not None and found.id == queue.id
            for target in targets
        ):
            yield from policy.properties["PolicyDocument"]["Statement"]


@rule("N1")
def failures_are_kept(assembly: Assembly) -> Iterator[str]:
    """What failed is kept 14 days; a message keeps its age when it moves, so its source keeps it less long."""
    for queue in failure_queues(assembly).values():
        if queue.properties.get("MessageRetentionPeriod", DEFAULT_RETENTION_S) != KEPT_S:
            yield f"{queue} holds failures: its retention must be 14 days"
    for queue, dead in dead_letter_queues(assembly):
        if queue.properties.get("MessageRetentionPeriod", DEFAULT_RETENTION_S) >= KEPT_S:
            yield f"{queue} must keep messages less long than {dead.id}, or they arrive there expired"


@rule("N2")
def ten_receives(assembly: Assembly) -> Iterator[str]:
    """Throttles use receives too: with few of them good jobs are dead-lettered."""
    for _, queue, _ in queue_sources(assembly):
        if not queue.properties.get("RedrivePolicy"):
            yield f"{queue} feeds a worker: it needs a dead-letter queue"
    for queue, _ in dead_letter_queues(assembly):
        if int(queue.properties["RedrivePolicy"].get("maxReceiveCount", 0)) < 10:
            yield f"{queue}: maxReceiveCount must be at least 10"


@rule("N3")
def visibility_covers_work(assembly: Assembly) -> Iterator[str]:
    """Six function timeouts: a batch that is still being worked on must not be delivered again."""
    for mapping, queue, function in queue_sources(assembly):
        if function is None:
            yield f"{mapping}: cannot tell which function reads {queue.id}"
            continue
        timeout = function.properties.get("Timeout", DEFAULT_TIMEOUT_S)
        window = mapping.properties.get("MaximumBatchingWindowInSeconds", 0)
        if queue.properties.get("VisibilityTimeout", DEFAULT_VISIBILITY_S) < 6 * timeout + window:
            yield f"{queue}: visibility must be at least {6 * timeout + window} s (6 × {timeout} + {window})"


@rule("N4")
def items_fail_alone(assembly: Assembly) -> Iterator[str]:
    """One bad item must not return the whole batch."""
    for mapping, _, _ in queue_sources(assembly):
        if "ReportBatchItemFailures" not in mapping.properties.get("FunctionResponseTypes", []):
            yield f"{mapping}: FunctionResponseTypes must hold ReportBatchItemFailures"


@rule("N14")
def only_break_glass_moves(assembly: Assembly) -> Iterator[str]:
    """A console redrive or a purge goes around every review; a lane's letters are moved by approved plans alone."""
    wanted = {"sqs:StartMessageMoveTask", "sqs:PurgeQueue"}
    for queue in failure_queues(assembly).values():
        denied = {
            action
            for statement in policies_of(assembly, queue)
            if statement["Effect"] == "Deny"
            and "aws:PrincipalArn" in statement.get("Condition", {}).get("ArnNotLike", {})
            for action in listed(statement["Action"])
        }
        if not wanted <= denied:
            yield f"{queue}: deny {' and '.join(sorted(wanted - denied))} to all but break-glass"


@rule("N16")
def tls_only(assembly: Assembly) -> Iterator[str]:
    """Said by the resource itself, whoever calls."""
    for resource in assembly.resources("AWS::SQS::Queue", "AWS::SNS::Topic", "AWS::S3::Bucket"):
        if not any(_denies_plain_text(statement) for statement in policies_of(assembly, resource)):
            yield f"{resource}: its policy must deny requests without TLS"


@rule("E3")
def outlasts_an_outage(assembly: Assembly) -> Iterator[str]:
    """When switches cannot be read, messages are returned: an hour of that must not dead-letter them."""
    if assembly.stage.name == "local":
        return  # nobody waits an hour there
    for queue, _ in dead_letter_queues(assembly):
        receives = int(queue.properties["RedrivePolicy"].get("maxReceiveCount", 0))
        lasts = queue.properties.get("VisibilityTimeout", DEFAULT_VISIBILITY_S) * receives
        if lasts <= OUTAGE_S:
            yield f"{queue}: visibility × maxReceiveCount is {lasts} s and must exceed {OUTAGE_S} s"


def _denies_plain_text(statement: Mapping[str, Any]) -> bool:
    secure = statement.get("Condition", {}).get("Bool", {}).get("aws:SecureTransport")
    return statement["Effect"] == "Deny" and json.loads(str(secure).lower() or "null") is False if secure else False
