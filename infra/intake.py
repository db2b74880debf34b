"""`Intake`: a lane's address for events from outside, with the function that verifies them and nothing around it."""

from __future__ import annotations

import json

from aws_cdk import ArnFormat, CfnOutput, RemovalPolicy, SecretValue, Stack
from aws_cdk import aws_apigatewayv2 as apigateway
from aws_cdk import aws_apigatewayv2_integrations as integrations
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct

from infra import naming, settings
from infra.arns import Arns
from infra.deployment import Deployment
from infra.function import PlatformFunction, retention
from infra.grants import INTAKE
from shared.contract import names
from shared.core.lane import LaneSpec

ROUTE = "/events/{tenant}"
TIMEOUT_S = 29
"""Below the 30 seconds for which API Gateway waits."""
MEMORY_MB = 512
BURST = 2
"""Times the rate that may come at once."""
NOTED = {
    "requestId": "$context.requestId",
    "time": "$context.requestTimeEpoch",
    "ip": "$context.identity.sourceIp",
    "route": "$context.routeKey",
    "status": "$context.status",
    "bytes": "$context.responseLength",
    "latencyMs": "$context.responseLatency",
    "integration": "$context.integrationStatus",
}
"""What the access log says of a request. Not its path, headers or body: whoever calls writes what they like there."""


class Intake(Construct):
    """One address, one route, one function that verifies, one secret with the senders' keys."""

    def __init__(
        self, scope: Construct, construct_id: str, *, spec: LaneSpec, deployment: Deployment, key_arn: str
    ) -> None:
        super().__init__(scope, construct_id)
        self._spec, self._deployment = spec, deployment
        self._name = names.function(deployment.stage.name, names.intake(spec.name))

        self.secret = self._secret()
        self.door = self._door(key_arn)
        self.live = lambda_.Alias(self, "Live", alias_name=names.LIVE, version=self.door.function.current_version)
        self.api = apigateway.HttpApi(
            self,
            "Api",
            api_name=self._name,
            description=f"Penstock {deployment.stage.name}: events of lane {spec.name}",
            create_default_stage=False,
        )
        (self.route,) = self.api.add_routes(
            path=ROUTE,
            methods=[apigateway.HttpMethod.POST],
            integration=integrations.HttpLambdaIntegration("Door", self.live),
        )
        self.stage = self._stage()
        CfnOutput(
            self,
            "Url",
            value=f"{self.api.api_endpoint}{ROUTE}",
            description=f"Where events of lane {spec.name} are sent to, one address a tenant (docs/intake.md)",
        )

    def _secret(self) -> secretsmanager.Secret:
        stage = self._deployment.stage.name
        return secretsmanager.Secret(
            self,
            "Keys",
            secret_name=names.secret(stage, names.intake(self._spec.name)),
            description=f"Penstock {stage}: keys of the senders of lane {self._spec.name}, JSON: tenant to its keys",
            # Made empty, which lets nobody in, and filled by hand. A deploy writes it again only if this line changes.
            secret_string_value=SecretValue.unsafe_plain_text("{}"),
            removal_policy=self._deployment.removal_policy,
        )

    def _door(self, key_arn: str) -> PlatformFunction:
        stack, stage = Stack.of(self), self._deployment.stage
        secret_arn = self.secret.secret_arn
        return PlatformFunction(
            self,
            "Door",
            deployment=self._deployment,
            name=names.intake(self._spec.name),
            package=names.INTAKE,
            granted_as=INTAKE,
            arns=Arns(stack=stack, stage=stage, lane=self._spec.name, key_arn=key_arn, secret_arn=secret_arn),
            settings=settings.of_intake(self._spec),
            timeout_s=TIMEOUT_S,
            memory_mb=MEMORY_MB,
            # A flood at the address leaves the rest of the account alone.
            reserved=self._spec.intake_at_once if stage.reserved_concurrency else None,
        )

    def _stage(self) -> apigateway.CfnStage:
        log_name = naming.access_log(self._name)
        log = logs.LogGroup(
            self,
            "AccessLog",
            log_group_name=log_name,
            retention=retention(self._deployment.stage.log_retention_days),
            removal_policy=RemovalPolicy.DESTROY,
        )
        stage = apigateway.CfnStage(
            self,
            "Stage",
            api_id=self.api.api_id,
            stage_name="$default",
            auto_deploy=True,
            default_route_settings=apigateway.CfnStage.RouteSettingsProperty(
                throttling_rate_limit=self._spec.intake_per_s,
                throttling_burst_limit=self._spec.intake_per_s * BURST,
            ),
            access_log_settings=apigateway.CfnStage.AccessLogSettingsProperty(
                # By name: the attribute ends in a wildcard, which API Gateway cuts off and then calls drift.
                destination_arn=Stack.of(self).format_arn(
                    service="logs",
                    resource="log-group",
                    resource_name=log_name,
                    arn_format=ArnFormat.COLON_RESOURCE_NAME,
                ),
                format=json.dumps(NOTED, separators=(",", ":")),
            ),
        )
        stage.node.add_dependency(log)
        return stage
