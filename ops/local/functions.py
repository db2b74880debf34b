"""What the deployed functions and their event sources are, told in the words of their templates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ops.local.clients import Clients

Properties = Mapping[str, Any]


def function(clients: Clients, name: str, wanted: Properties) -> Properties:
    """AWS::Lambda::Function. The code is compared by the asset's presence: a function without it would not be there."""
    client = clients.of("lambda")
    found = client.get_function_configuration(FunctionName=name)
    shown = {key: found[key] for key in _AS_IS if key in found}
    shown["Code"] = wanted.get("Code") if found.get("CodeSize") else "no code"
    shown["Layers"] = [layer["Arn"] for layer in found.get("Layers", [])]
    concurrency = client.get_function_concurrency(FunctionName=name)
    shown["ReservedConcurrentExecutions"] = concurrency.get("ReservedConcurrentExecutions")
    if "RecursiveLoop" in wanted:
        shown["RecursiveLoop"] = client.get_function_recursion_config(FunctionName=name)["RecursiveLoop"]
    return shown


_AS_IS = (
    "FunctionName", "Runtime", "Handler", "Role", "Timeout", "MemorySize", "Description", "Environment",
    "Architectures", "EphemeralStorage", "LoggingConfig", "TracingConfig", "DeadLetterConfig", "PackageType",
    "SnapStart", "KMSKeyArn", "VpcConfig",
)  # fmt: skip


def version(clients: Clients, arn: str, wanted: Properties) -> Properties:
    """AWS::Lambda::Version."""
    found = clients.of("lambda").get_function_configuration(FunctionName=arn)
    return {"FunctionName": _as_asked(found["FunctionName"], found["FunctionArn"], wanted)}


def alias(clients: Clients, arn: str, wanted: Properties) -> Properties:
    """AWS::Lambda::Alias."""
    function_arn, _, name = arn.rpartition(":")
    found = clients.of("lambda").get_alias(FunctionName=function_arn, Name=name)
    plain = function_arn.rpartition(":")[2]
    return {
        "FunctionName": _as_asked(plain, function_arn, wanted),
        "Name": found["Name"],
        "FunctionVersion": found["FunctionVersion"],
        "Description": found.get("Description", ""),
    }


def event_source(clients: Clients, mapping_id: str, wanted: Properties) -> Properties:
    """AWS::Lambda::EventSourceMapping."""
    found = clients.of("lambda").get_event_source_mapping(UUID=mapping_id)
    plain = found["FunctionArn"].partition(":function:")[2]
    return {
        **{key: found[key] for key in _SOURCE_AS_IS if key in found},
        "FunctionName": _as_asked(plain, found["FunctionArn"], wanted),
        "Enabled": found["State"] in ("Enabled", "Enabling", "Creating", "Updating"),
    }


_SOURCE_AS_IS = (
    "EventSourceArn", "BatchSize", "MaximumBatchingWindowInSeconds", "ScalingConfig", "FunctionResponseTypes",
    "FilterCriteria", "StartingPosition", "MaximumRetryAttempts", "MaximumRecordAgeInSeconds",
    "BisectBatchOnFunctionError", "DestinationConfig", "ParallelizationFactor", "TumblingWindowInSeconds",
    "KmsKeyArn", "MetricsConfig", "ProvisionedPollerConfig",
)  # fmt: skip


def invoke_config(clients: Clients, physical_id: str, wanted: Properties) -> Properties:
    """AWS::Lambda::EventInvokeConfig."""
    qualifier = str(wanted.get("Qualifier", "$LATEST"))
    # The emulator finds the configuration only when the qualifier is said.
    found = clients.of("lambda").get_function_event_invoke_config(
        FunctionName=str(wanted["FunctionName"]), Qualifier=qualifier
    )
    return {
        "FunctionName": wanted["FunctionName"],
        "Qualifier": qualifier,
        "MaximumRetryAttempts": found.get("MaximumRetryAttempts"),
        "MaximumEventAgeInSeconds": found.get("MaximumEventAgeInSeconds"),
        "DestinationConfig": found.get("DestinationConfig", {}),
    }


def _as_asked(plain: str, arn: str, wanted: Properties) -> str:
    """A template may name a function by name or by ARN; the answer comes in the same form."""
    asked = str(wanted.get("FunctionName", ""))
    return arn if asked.startswith("arn:") else plain
