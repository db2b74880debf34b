"""Rules about addresses that anybody can reach."""

from __future__ import annotations

from collections.abc import Iterator

from infra.rules.assembly import Assembly, Resource
from infra.rules.registry import rule
from shared.contract import env, names

API, ROUTE, INTEGRATION, STAGE = (f"AWS::ApiGatewayV2::{what}" for what in ("Api", "Route", "Integration", "Stage"))
NEVER_DOORS = (
    "AWS::Lambda::Url",
    "AWS::ApiGateway::RestApi",
    "AWS::ElasticLoadBalancingV2::Listener",
)
"""Addresses that no lane has, so that no rule looks at what stands behind them."""
VERIFIER = f"functions.{names.INTAKE}.handler.handler"
"""The one handler that verifies a signature before it reads anything (tests/functions/test_intake.py)."""


@rule("N13")
def no_open_door(assembly: Assembly) -> Iterator[str]:
    """Whoever can reach a public address can enqueue, unless the function behind every route verifies who calls."""
    for door in assembly.resources(*NEVER_DOORS):
        yield f"{door}: a public address needs a verifier; events come in through a lane's intake"
    for integration in assembly.resources(INTEGRATION):
        function = assembly.function_of(integration.stack, integration.properties.get("IntegrationUri"))
        if function is None or function.properties.get("Handler") != VERIFIER:
            yield f"{integration}: a public address needs a verifier; only {VERIFIER} is one"
        elif not function.properties.get("Environment", {}).get("Variables", {}).get(env.SECRET_ARN):
            yield f"{function}: a verifier needs {env.SECRET_ARN}, the keys of its senders"
    for route in assembly.resources(ROUTE):
        if "$default" in str(route.properties.get("RouteKey")):
            yield f"{route}: takes every request there is; name the one route"
    for api in assembly.resources(API):
        yield from _bounded(assembly, api)
    for permission in assembly.resources("AWS::Lambda::Permission"):
        if permission.properties.get("Principal") == "*":
            yield f"{permission}: everybody may invoke the function"


def _bounded(assembly: Assembly, api: Resource) -> Iterator[str]:
    """A stranger's requests are counted and cost little."""
    stages = [
        stage
        for stage in assembly.resources(STAGE)
        if stage.stack == api.stack and stage.properties.get("ApiId") == {"Ref": api.id}
    ]
    if not stages:
        yield f"{api}: needs a stage in its own stack"
    for stage in stages:
        if not stage.properties.get("DefaultRouteSettings", {}).get("ThrottlingRateLimit"):
            yield f"{stage}: needs a ThrottlingRateLimit"
        written = stage.properties.get("AccessLogSettings", {}).get("Format", "")
        if not written:
            yield f"{stage}: needs an access log"
        if any(word in written for word in ("$context.path", "$context.error", "$request", "header", "body")):
            yield f"{stage}: its access log would hold what a stranger wrote"
