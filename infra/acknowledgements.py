"""Findings of cdk-nag that are accepted, each with its reason. A test fails on one that no longer occurs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from aws_cdk import Acknowledgment, Validations
from constructs import IConstruct

from infra.application import Penstock
from infra.intake import Intake
from infra.runs import RunLane
from shared.contract import names

TRACING = "X-Ray is off on purpose: trace segments can carry what customers wrote, and nobody erases them"
RUNTIME = "the packages are built and tested for Python 3.13; runtime and wheels move together"
NOT_ASYNCHRONOUS = "never invoked asynchronously: an event source reads for it and keeps what fails"
NOT_INVOKED_ASYNC = "never invoked asynchronously: API Gateway waits for the answer and the sender comes again"
ON_FAILURE_QUEUE = "an on-failure queue takes what fails: it says why, a dead-letter target would not"
PEOPLE = "people look at every lane of a stage: infra/rules/access.py lists what may be wide for them, and why"
IS_A_LAST_STOP = "is itself the last stop: what fails ends here and waits for a person"


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """One accepted finding, where it is accepted (children included), and why."""

    where: IConstruct
    finding: str
    reason: str


def accepted(stacks: Penstock) -> Iterator[Accepted]:
    """Everything that is accepted in a stage."""
    stage = stacks.stage
    objects = (
        "AwsSolutions-IAM5[Resource::arn:<AWS::Partition>:s3:::"
        f"{names.bucket(stage, '<AWS::AccountId>', '<AWS::Region>')}/*]"
    )
    streams = (
        "AwsSolutions-IAM5[Resource::arn:<AWS::Partition>:dynamodb:<AWS::Region>:<AWS::AccountId>:table/"
        f"{names.table(stage, 'jobs')}/stream/*]"
    )
    for stack in (*stacks.lanes, stacks.control):
        for finding, reason in (
            ("Serverless-LambdaTracing", TRACING),
            ("AwsSolutions-L1", RUNTIME),
            ("Serverless-LambdaLatestVersion", RUNTIME),
        ):
            yield Accepted(where=stack, finding=finding, reason=reason)

    yield Accepted(
        where=stacks.state.content,
        finding="AwsSolutions-S1",
        reason="access logs would be a second store to guard; CloudTrail records the key's use, and object reads"
        " where the account has data events on (docs/deploy.md)",
    )

    for person in stacks.state.people.values():
        for resource in person.wide():
            yield Accepted(where=person.policy, finding=f"AwsSolutions-IAM5[Resource::{resource}]", reason=PEOPLE)

    for lane in (stack.lane for stack in stacks.lanes):
        yield Accepted(where=lane.dead_letters, finding="Serverless-SQSRedrivePolicy", reason=IS_A_LAST_STOP)
        if lane.secret is not None:
            yield Accepted(
                where=lane.secret,
                finding="AwsSolutions-SMG4",
                reason="vendors hand these tokens out by hand and have no way to rotate them by machine;"
                " looked at in November 2026, to be looked at again in November 2027",
            )
        if isinstance(lane, RunLane):
            yield from _of_runs(lane, objects)
            continue
        yield Accepted(where=lane.worker.function, finding="Serverless-LambdaDLQ", reason=NOT_ASYNCHRONOUS)
        yield Accepted(
            where=lane.source,
            finding="Serverless-LambdaEventSourceMappingDestination",
            reason="a queue's mapping has no destination: the queue's own dead-letter queue takes what fails",
        )
        yield Accepted(
            where=lane.worker.role, finding=objects, reason="objects of the content store have ids for names"
        )
        if lane.intake is not None:
            yield from _of_intake(lane.intake, stage)

    control = stacks.control
    for name, engine in control.functions.items():
        reason = ON_FAILURE_QUEUE if name in names.SCHEDULED else NOT_ASYNCHRONOUS
        yield Accepted(where=engine.function, finding="Serverless-LambdaDLQ", reason=reason)
    for queue in control.failures.values():
        yield Accepted(where=queue, finding="AwsSolutions-SQS3", reason=IS_A_LAST_STOP)
        yield Accepted(where=queue, finding="Serverless-SQSRedrivePolicy", reason=IS_A_LAST_STOP)
    yield Accepted(
        where=control.functions["triage"].role,
        finding=objects,
        reason="objects of the content store have ids for names",
    )
    for reader in ("stream", "feed"):
        yield Accepted(
            where=control.functions[reader].role,
            finding=streams,
            reason="ListStreams knows no single stream: this is every stream of the one table",
        )

    sources = "arn:<AWS::Partition>:lambda:<AWS::Region>:<AWS::AccountId>:event-source-mapping:*"
    for finding, reason in (
        (
            f"AwsSolutions-IAM5[Resource::{sources}]",
            "ids of event sources are made up at deploy: a condition on lambda:FunctionArn names whose they are",
        ),
        (
            "AwsSolutions-IAM5[Resource::*]",
            "ListEventSourceMappings takes no resource; it tells ids and caps, nothing else",
        ),
    ):
        yield Accepted(where=control.functions["governor"].role, finding=finding, reason=reason)

    if stacks.watch.email is not None:
        yield Accepted(
            where=stacks.watch.email,
            finding="Serverless-SNSRedrivePolicy",
            reason="a mail that SNS could not deliver for hours is no longer news; the alarm itself stays on",
        )


def _of_runs(lane: RunLane, objects: str) -> Iterator[Accepted]:
    yield Accepted(where=lane.dead_letters, finding="AwsSolutions-SQS3", reason=IS_A_LAST_STOP)
    for run in lane.functions.values():
        yield Accepted(where=run.function, finding="Serverless-LambdaDLQ", reason=ON_FAILURE_QUEUE)
        yield Accepted(where=run.role, finding=objects, reason="objects of the content store have ids for names")
    for queue in lane.failures.values():
        yield Accepted(where=queue, finding="AwsSolutions-SQS3", reason=IS_A_LAST_STOP)
        yield Accepted(where=queue, finding="Serverless-SQSRedrivePolicy", reason=IS_A_LAST_STOP)


def _of_intake(intake: Intake, stage: str) -> Iterator[Accepted]:
    payloads = (
        "AwsSolutions-IAM5[Resource::arn:<AWS::Partition>:s3:::"
        f"{names.bucket(stage, '<AWS::AccountId>', '<AWS::Region>')}/{names.PAYLOADS}*]"
    )
    yield Accepted(where=intake.door.function, finding="Serverless-LambdaDLQ", reason=NOT_INVOKED_ASYNC)
    yield Accepted(where=intake.door.role, finding=payloads, reason="objects of the content store have ids for names")
    yield Accepted(
        where=intake.route,
        finding="AwsSolutions-APIG4",
        reason="a signature over the raw body is the authorization: an authorizer is not given the body",
    )
    yield Accepted(
        where=intake.secret,
        finding="AwsSolutions-SMG4",
        reason="both sides of a key change together: two keys count at once, and docs/intake.md says how one is"
        " replaced; looked at in November 2026, to be looked at again in November 2027",
    )


def apply(stacks: Penstock) -> None:
    """Tell cdk-nag."""
    for one in accepted(stacks):
        Validations.of(one.where).acknowledge(Acknowledgment(id=one.finding, reason=one.reason))
