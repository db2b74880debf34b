"""Says again, through the services' own APIs, what the emulator's CloudFormation left out.

A repair is a difference with a remedy: nothing is touched that already is as the template says, and what has no
remedy stays a difference and fails the start.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from ops.local import doors
from ops.local.clients import Clients
from ops.local.compare import Difference
from ops.local.template import Resolver, Resource, StackTemplate

Properties = Mapping[str, Any]
Remedy = Callable[[Clients, str, Properties], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """One API call that made a property true."""

    resource: Resource
    property: str

    def __str__(self) -> str:
        return f"{self.resource.path} ({self.resource.type}) {self.property}"


def repair(differences: Sequence[Difference], templates: Sequence[StackTemplate], clients: Clients) -> list[Repair]:
    """Make true what can be; returns what was done. A remedy is applied once, however many properties it covers."""
    resolver = Resolver(tuple(templates), clients)
    done: dict[tuple[str, str, int], Repair] = {}
    for difference in differences:
        resource = difference.resource
        remedy = _remedy(difference)
        physical_id = resolver.physical_id(resource)
        if remedy is None or physical_id is None:
            continue
        key = (*resource.key, id(remedy))
        if key not in done:
            remedy(clients, physical_id, resolver.resolve(dict(resource.properties), resource.stack))
            done[key] = Repair(resource=resource, property=difference.property)
    return list(done.values())


def _remedy(difference: Difference) -> Remedy | None:
    for (kind, name), remedy in REMEDIES.items():
        if fnmatchcase(difference.resource.type, kind) and fnmatchcase(difference.property, name):
            return remedy
    return None


def _time_to_live(clients: Clients, name: str, wanted: Properties) -> None:
    clients.of("dynamodb").update_time_to_live(
        TableName=name, TimeToLiveSpecification=wanted["TimeToLiveSpecification"]
    )


def _local_replica(clients: Clients, wanted: Properties) -> Properties:
    """What a table is in this region: its own properties, and those of its replica here."""
    here = [one for one in wanted.get("Replicas", []) if one.get("Region") == clients.region]
    return here[0] if here else wanted


def _recovery(clients: Clients, name: str, wanted: Properties) -> None:
    clients.of("dynamodb").update_continuous_backups(
        TableName=name,
        PointInTimeRecoverySpecification=_local_replica(clients, wanted)["PointInTimeRecoverySpecification"],
    )


def _deletion_protection(clients: Clients, name: str, wanted: Properties) -> None:
    clients.of("dynamodb").update_table(
        TableName=name, DeletionProtectionEnabled=_local_replica(clients, wanted)["DeletionProtectionEnabled"]
    )


def _table_encryption(clients: Clients, name: str, wanted: Properties) -> None:
    key = _local_replica(clients, wanted).get("SSESpecification", {}).get("KMSMasterKeyId")
    asked = wanted.get("SSESpecification", {})
    specification = {"Enabled": asked.get("SSEEnabled", True), "SSEType": asked.get("SSEType", "KMS")}
    if key:
        specification["KMSMasterKeyId"] = key
    clients.of("dynamodb").update_table(TableName=name, SSESpecification=specification)


def _bucket_encryption(clients: Clients, name: str, wanted: Properties) -> None:
    rules = [
        {
            "ApplyServerSideEncryptionByDefault": rule["ServerSideEncryptionByDefault"],
            "BucketKeyEnabled": rule.get("BucketKeyEnabled", False),
        }
        for rule in wanted["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    ]
    clients.of("s3").put_bucket_encryption(Bucket=name, ServerSideEncryptionConfiguration={"Rules": rules})


def _lifecycle(clients: Clients, name: str, wanted: Properties) -> None:
    rules = []
    for rule in wanted["LifecycleConfiguration"]["Rules"]:
        said: dict[str, Any] = {"Status": rule["Status"], "Filter": {"Prefix": rule.get("Prefix", "")}}
        if "Id" in rule:
            said["ID"] = rule["Id"]
        expiration = {
            **({"Days": int(rule["ExpirationInDays"])} if "ExpirationInDays" in rule else {}),
            **({"ExpiredObjectDeleteMarker": True} if rule.get("ExpiredObjectDeleteMarker") else {}),
        }
        if expiration:
            said["Expiration"] = expiration
        for same in ("NoncurrentVersionExpiration", "AbortIncompleteMultipartUpload"):
            if same in rule:
                said[same] = rule[same]
        rules.append(said)
    clients.of("s3").put_bucket_lifecycle_configuration(Bucket=name, LifecycleConfiguration={"Rules": rules})


def _secret_value(clients: Clients, name: str, wanted: Properties) -> None:
    shape = wanted["GenerateSecretString"]
    manager = clients.of("secretsmanager")
    value = manager.get_random_password(PasswordLength=int(shape.get("PasswordLength", 32)))["RandomPassword"]
    if "SecretStringTemplate" in shape:
        value = json.dumps({**json.loads(shape["SecretStringTemplate"]), shape["GenerateStringKey"]: value})
    manager.put_secret_value(SecretId=name, SecretString=value)


def _topic_key(clients: Clients, arn: str, wanted: Properties) -> None:
    clients.of("sns").set_topic_attributes(
        TopicArn=arn, AttributeName="KmsMasterKeyId", AttributeValue=str(wanted["KmsMasterKeyId"])
    )


def _reserved_concurrency(clients: Clients, name: str, wanted: Properties) -> None:
    clients.of("lambda").put_function_concurrency(
        FunctionName=name, ReservedConcurrentExecutions=int(wanted["ReservedConcurrentExecutions"])
    )


def _configuration(*names: str) -> Remedy:
    def say_again(clients: Clients, name: str, wanted: Properties) -> None:
        clients.of("lambda").update_function_configuration(
            FunctionName=name, **{key: wanted[key] for key in names if key in wanted}
        )

    return say_again


def _recursive_loop(clients: Clients, name: str, wanted: Properties) -> None:
    clients.of("lambda").put_function_recursion_config(FunctionName=name, RecursiveLoop=wanted["RecursiveLoop"])


REMEDIES: Mapping[tuple[str, str], Remedy] = {
    ("AWS::DynamoDB::*", "TimeToLiveSpecification*"): _time_to_live,
    ("AWS::DynamoDB::*", "*PointInTimeRecoverySpecification*"): _recovery,
    ("AWS::DynamoDB::*", "*DeletionProtectionEnabled"): _deletion_protection,
    ("AWS::DynamoDB::*", "*SSESpecification*"): _table_encryption,
    ("AWS::S3::Bucket", "BucketEncryption*"): _bucket_encryption,
    ("AWS::S3::Bucket", "LifecycleConfiguration*"): _lifecycle,
    ("AWS::SecretsManager::Secret", "GenerateSecretString*"): _secret_value,
    ("AWS::SNS::Topic", "KmsMasterKeyId"): _topic_key,
    ("AWS::Lambda::Function", "ReservedConcurrentExecutions"): _reserved_concurrency,
    ("AWS::Lambda::Function", "DeadLetterConfig*"): _configuration("DeadLetterConfig"),
    ("AWS::Lambda::Function", "RecursiveLoop"): _recursive_loop,
    ("AWS::ApiGatewayV2::Stage", "DefaultRouteSettings*"): doors.throttle,
}
"""(type, property), both as patterns, and what makes it true."""
