"""What the deployed addresses are, told in the words of their templates, and where they are reached here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ops.local.clients import Clients
from shared.contract import names

Properties = Mapping[str, Any]
SERVICE = "apigatewayv2"


def api(clients: Clients, api_id: str, wanted: Properties) -> Properties:
    """AWS::ApiGatewayV2::Api."""
    return _shown(clients.of(SERVICE).get_api(ApiId=api_id))


def stage(clients: Clients, physical_id: str, wanted: Properties) -> Properties:
    """AWS::ApiGatewayV2::Stage. Its id is its name: the address it belongs to stands in the template."""
    name = str(wanted["StageName"])
    return {"ApiId": wanted["ApiId"], **_shown(clients.of(SERVICE).get_stage(ApiId=wanted["ApiId"], StageName=name))}


def integration(clients: Clients, physical_id: str, wanted: Properties) -> Properties:
    """AWS::ApiGatewayV2::Integration."""
    found = clients.of(SERVICE).get_integration(ApiId=wanted["ApiId"], IntegrationId=physical_id.rpartition("/")[2])
    return {"ApiId": wanted["ApiId"], **_shown(found)}


def route(clients: Clients, physical_id: str, wanted: Properties) -> Properties:
    """AWS::ApiGatewayV2::Route."""
    found = clients.of(SERVICE).get_route(ApiId=wanted["ApiId"], RouteId=physical_id.rpartition("/")[2])
    return {"ApiId": wanted["ApiId"], **_shown(found)}


def throttle(clients: Clients, physical_id: str, wanted: Properties) -> None:
    """Say a stage's throttling again: the emulator keeps it under names that its own API does not read."""
    clients.of(SERVICE).update_stage(
        ApiId=wanted["ApiId"],
        StageName=str(wanted["StageName"]),
        DefaultRouteSettings={
            "ThrottlingRateLimit": float(wanted["DefaultRouteSettings"]["ThrottlingRateLimit"]),
            "ThrottlingBurstLimit": int(wanted["DefaultRouteSettings"]["ThrottlingBurstLimit"]),
        },
    )


def events_address(clients: Clients, stage_name: str, lane: str) -> tuple[str, str]:
    """Where a lane's events are sent to here: the emulator's address, and the host a request must name.

    The address that the deploy prints is of a domain that nobody resolves.
    """
    wanted = names.function(stage_name, names.intake(lane))
    (found,) = [one for one in clients.of(SERVICE).get_apis()["Items"] if one["Name"] == wanted]
    return clients.endpoint, f"{found['ApiId']}.execute-api.localhost"


def _shown(answer: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in answer.items() if key != "ResponseMetadata"}
