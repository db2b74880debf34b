"""`PlatformFunction`: the one way a Lambda function is made here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

from infra import environment
from infra.arns import Arns
from infra.deployment import Deployment
from infra.grants import GRANTS, Grant, Resource
from infra.settings import text
from shared.contract import env, metrics, names

WORKERS_A_STATEMENT = 40
KEY_SERVES: Mapping[Resource, str] = {Resource.CONTENT_KEY: "s3", Resource.PAYLOAD_ROWS_KEY: "dynamodb"}
"""The service that each use of the content key goes through."""
MAX_APP_ID = 50
"""Longest application id the SDK puts into its user agent."""


class PlatformFunction(Construct):
    """A function with its own role, its own log group and exactly the permissions its entry in `GRANTS` lists."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        deployment: Deployment,
        name: str,
        package: str,
        granted_as: str,
        arns: Arns,
        settings: Mapping[str, Any],
        also: Mapping[str, str] | None = None,
        timeout_s: int,
        memory_mb: int,
        reserved: int | None = None,
        entry: str = "handler",
    ) -> None:
        super().__init__(scope, construct_id)
        variables = {**environment.of(granted_as, arns), **(also or {})}
        forbidden = [variable for variable in variables if variable in env.FORBIDDEN]
        if forbidden:
            raise ValueError(f"{name}: {', '.join(forbidden)} would write payloads to the log")

        function_name = names.function(deployment.stage.name, name)
        self.log_group = logs.LogGroup(
            self,
            "Logs",
            log_group_name=f"/aws/lambda/{function_name}",
            retention=retention(deployment.stage.log_retention_days),
            removal_policy=RemovalPolicy.DESTROY,
        )
        self.role = iam.Role(
            self,
            "Role",
            assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"),
            description=f"What {function_name} may do; infra/grants.py lists it",
        )
        self.log_group.grant(self.role, "logs:CreateLogStream", "logs:PutLogEvents")
        nth = Counter[Resource]()
        for grant in GRANTS[granted_as]:
            if resources := arns.of(grant.on):
                for statement in statements(grant, resources, arns, nth):
                    self.role.add_to_principal_policy(statement)

        with deployment.packages.code(package, text(settings) if settings else "") as code:
            self.function = lambda_.Function(
                self,
                "Function",
                function_name=function_name,
                description=f"Penstock {deployment.stage.name}: {name}",
                runtime=lambda_.Runtime.PYTHON_3_13,
                architecture=lambda_.Architecture.ARM_64,
                handler=f"functions.{package}.handler.{entry}",
                code=code,
                role=self.role,
                log_group=self.log_group,
                timeout=Duration.seconds(timeout_s),
                memory_size=memory_mb,
                reserved_concurrent_executions=reserved,
                tracing=lambda_.Tracing.DISABLED,
                environment={**variables, **_library_variables(function_name)},
                # Old versions stay: a rollback points the alias at one of them.
                current_version_options=lambda_.VersionOptions(removal_policy=RemovalPolicy.RETAIN),
            )


def _library_variables(function_name: str) -> dict[str, str]:
    """What the SDK and Powertools read themselves. The application id lets each AWS call be told apart."""
    return {
        "AWS_SDK_UA_APP_ID": function_name[:MAX_APP_ID],
        "POWERTOOLS_SERVICE_NAME": function_name,
        "POWERTOOLS_METRICS_NAMESPACE": metrics.NAMESPACE,
    }


def statements(grant: Grant, resources: list[str], arns: Arns, nth: Counter[Resource]) -> Iterator[iam.PolicyStatement]:
    """A grant as IAM reads it; `nth` counts those on one resource, whose names must differ."""
    for conditions in _conditions(grant, arns):
        nth[grant.on] += 1
        named = "".join(part.capitalize() for part in grant.on.value.replace("/", "-").split("-"))
        yield iam.PolicyStatement(
            sid=named + (str(nth[grant.on]) if nth[grant.on] > 1 else ""),
            actions=list(grant.actions),
            resources=resources,
            conditions=conditions,
        )


def _conditions(grant: Grant, arns: Arns) -> Iterator[Mapping[str, Mapping[str, str | list[str]]] | None]:
    """The conditions of a grant's statements: none, one, or one for so many workers: IAM takes policies of 6 KB."""
    if grant.on in KEY_SERVES:
        # The key is of use through its store alone: a leaked role cannot decrypt what it got by other ways.
        service = f"{KEY_SERVES[grant.on]}.{arns.stack.region}.{arns.stack.url_suffix}"
        yield {"StringEquals": {"kms:ViaService": service}}
    elif grant.on is Resource.CONTENT_BUCKET:
        # Asked about one absent object, S3 takes its key for the prefix.
        yield {"StringLike": {"s3:prefix": [f"{place}*" for place in names.READ_BY_WORKERS]}}
    elif grant.on is Resource.EVENT_SOURCES:
        # An event source has no name of its own; what it feeds has.
        workers = arns.workers()
        for start in range(0, len(workers), WORKERS_A_STATEMENT):
            yield {"ArnEquals": {"lambda:FunctionArn": workers[start : start + WORKERS_A_STATEMENT]}}
    else:
        yield None


def retention(days: int) -> logs.RetentionDays:
    """CloudWatch keeps logs for certain numbers of days only."""
    known = {
        1: logs.RetentionDays.ONE_DAY,
        3: logs.RetentionDays.THREE_DAYS,
        5: logs.RetentionDays.FIVE_DAYS,
        7: logs.RetentionDays.ONE_WEEK,
        14: logs.RetentionDays.TWO_WEEKS,
        30: logs.RetentionDays.ONE_MONTH,
        60: logs.RetentionDays.TWO_MONTHS,
        90: logs.RetentionDays.THREE_MONTHS,
        180: logs.RetentionDays.SIX_MONTHS,
        365: logs.RetentionDays.ONE_YEAR,
    }
    if days not in known:
        raise ValueError(f"log_retention_days: {days} is none of {', '.join(map(str, known))}")
    return known[days]
