"""What the deployed stores hold, told in the words of their templates: tables, buckets, keys, secrets, logs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from botocore.exceptions import ClientError

from ops.local.clients import Clients

Properties = Mapping[str, Any]


def global_table(clients: Clients, name: str, wanted: Properties) -> Properties:
    """AWS::DynamoDB::GlobalTable, seen from the one region there is."""
    found = dict(table(clients, name, wanted))
    replica = {
        "Region": clients.region,
        "PointInTimeRecoverySpecification": found.pop("PointInTimeRecoverySpecification"),
        "DeletionProtectionEnabled": found.pop("DeletionProtectionEnabled"),
        "TableClass": found.pop("TableClass"),
        "GlobalSecondaryIndexes": [{"IndexName": one["IndexName"]} for one in found["GlobalSecondaryIndexes"]],
    }
    encryption = found["SSESpecification"]
    if "KMSMasterKeyId" in encryption:
        replica["SSESpecification"] = {"KMSMasterKeyId": encryption["KMSMasterKeyId"]}
    return {**found, "Replicas": [replica]}


def table(clients: Clients, name: str, wanted: Properties) -> Properties:
    """AWS::DynamoDB::Table."""
    dynamodb = clients.of("dynamodb")
    found = dynamodb.describe_table(TableName=name)["Table"]
    expiry = dynamodb.describe_time_to_live(TableName=name)["TimeToLiveDescription"]
    backups = dynamodb.describe_continuous_backups(TableName=name)["ContinuousBackupsDescription"]
    recovery = backups.get("PointInTimeRecoveryDescription", {})
    shown: dict[str, Any] = {
        "TableName": found["TableName"],
        "KeySchema": found["KeySchema"],
        "AttributeDefinitions": found["AttributeDefinitions"],
        "BillingMode": found.get("BillingModeSummary", {}).get("BillingMode", "PROVISIONED"),
        "DeletionProtectionEnabled": found.get("DeletionProtectionEnabled", False),
        "TableClass": found.get("TableClassSummary", {}).get("TableClass", "STANDARD"),
        "PointInTimeRecoverySpecification": {
            "PointInTimeRecoveryEnabled": recovery.get("PointInTimeRecoveryStatus") == "ENABLED",
            **(
                {"RecoveryPeriodInDays": recovery["RecoveryPeriodInDays"]} if "RecoveryPeriodInDays" in recovery else {}
            ),
        },
        "TimeToLiveSpecification": {
            "Enabled": expiry.get("TimeToLiveStatus") == "ENABLED",
            "AttributeName": expiry.get("AttributeName"),
        },
        "SSESpecification": _encryption(found.get("SSEDescription", {})),
    }
    if found.get("StreamSpecification", {}).get("StreamEnabled"):
        shown["StreamSpecification"] = {"StreamViewType": found["StreamSpecification"]["StreamViewType"]}
    for kind in ("GlobalSecondaryIndexes", "LocalSecondaryIndexes"):
        shown[kind] = [
            {key: one[key] for key in ("IndexName", "KeySchema", "Projection")} for one in found.get(kind, [])
        ]
    return shown


def _encryption(found: Mapping[str, Any]) -> dict[str, Any]:
    if found.get("Status") not in ("ENABLED", "ENABLING", "UPDATING"):
        return {"SSEEnabled": False}
    shown = {"SSEEnabled": True, "SSEType": found.get("SSEType")}
    return {**shown, "KMSMasterKeyId": found["KMSMasterKeyArn"]} if "KMSMasterKeyArn" in found else shown


def bucket(clients: Clients, name: str, wanted: Properties) -> Properties:
    """AWS::S3::Bucket."""
    s3 = clients.of("s3")
    rules = _ask(s3.get_bucket_encryption, Bucket=name).get("ServerSideEncryptionConfiguration", {})
    lifecycle = _ask(s3.get_bucket_lifecycle_configuration, Bucket=name).get("Rules", [])
    ownership = _ask(s3.get_bucket_ownership_controls, Bucket=name).get("OwnershipControls", {})
    logging = _ask(s3.get_bucket_logging, Bucket=name).get("LoggingEnabled", {})
    return {
        "BucketName": name,
        "BucketEncryption": {
            "ServerSideEncryptionConfiguration": [
                {
                    "ServerSideEncryptionByDefault": rule.get("ApplyServerSideEncryptionByDefault", {}),
                    "BucketKeyEnabled": rule.get("BucketKeyEnabled", False),
                }
                for rule in rules.get("Rules", [])
            ]
        },
        "VersioningConfiguration": {"Status": _ask(s3.get_bucket_versioning, Bucket=name).get("Status")},
        "PublicAccessBlockConfiguration": _ask(s3.get_public_access_block, Bucket=name).get(
            "PublicAccessBlockConfiguration", {}
        ),
        "LifecycleConfiguration": {"Rules": [_lifecycle(rule) for rule in lifecycle]},
        "OwnershipControls": {"Rules": ownership.get("Rules", [])},
        "LoggingConfiguration": {
            "DestinationBucketName": logging.get("TargetBucket"),
            "LogFilePrefix": logging.get("TargetPrefix"),
        },
    }


def _lifecycle(rule: Mapping[str, Any]) -> dict[str, Any]:
    scope = rule.get("Filter", {})
    shown: dict[str, Any] = {
        "Id": rule.get("ID"),
        "Status": rule["Status"],
        "Prefix": scope.get("Prefix", rule.get("Prefix", "")),
    }
    if "Expiration" in rule:
        shown["ExpirationInDays"] = rule["Expiration"].get("Days")
        shown["ExpiredObjectDeleteMarker"] = rule["Expiration"].get("ExpiredObjectDeleteMarker", False)
    if "NoncurrentVersionExpiration" in rule:
        shown["NoncurrentVersionExpiration"] = rule["NoncurrentVersionExpiration"]
    if "AbortIncompleteMultipartUpload" in rule:
        shown["AbortIncompleteMultipartUpload"] = rule["AbortIncompleteMultipartUpload"]
    return shown


def key(clients: Clients, key_id: str, wanted: Properties) -> Properties:
    """AWS::KMS::Key."""
    kms = clients.of("kms")
    found = kms.describe_key(KeyId=key_id)["KeyMetadata"]
    return {
        "Enabled": found["Enabled"],
        "Description": found.get("Description", ""),
        "KeySpec": found.get("KeySpec"),
        "KeyUsage": found.get("KeyUsage"),
        "EnableKeyRotation": kms.get_key_rotation_status(KeyId=key_id)["KeyRotationEnabled"],
    }


def key_alias(clients: Clients, name: str, wanted: Properties) -> Properties:
    """AWS::KMS::Alias."""
    target = clients.of("kms").describe_key(KeyId=name)["KeyMetadata"]
    same = str(wanted.get("TargetKeyId", "")) in (target["Arn"], target["KeyId"])
    return {"AliasName": name, "TargetKeyId": wanted["TargetKeyId"] if same else target["Arn"]}


def secret(clients: Clients, name: str, wanted: Properties) -> Properties:
    """AWS::SecretsManager::Secret; its value holds when it is not empty."""
    manager = clients.of("secretsmanager")
    found = manager.describe_secret(SecretId=name)
    value = _ask(manager.get_secret_value, SecretId=name).get("SecretString", "")
    return {
        "Name": found["Name"],
        "Description": found.get("Description", ""),
        "KmsKeyId": found.get("KmsKeyId"),
        "GenerateSecretString": wanted.get("GenerateSecretString") if value else "an empty value",
        # A person fills it after the first deploy: any value is as good as the template's placeholder.
        "SecretString": wanted.get("SecretString") if value else "an empty value",
    }


def log_group(clients: Clients, name: str, wanted: Properties) -> Properties:
    """AWS::Logs::LogGroup."""
    groups = clients.of("logs").describe_log_groups(logGroupNamePrefix=name)["logGroups"]
    found: dict[str, Any] = next((one for one in groups if one["logGroupName"] == name), {})
    return {
        "LogGroupName": found.get("logGroupName"),
        "RetentionInDays": found.get("retentionInDays"),
        "KmsKeyId": found.get("kmsKeyId"),
    }


def parameter(clients: Clients, name: str, wanted: Properties) -> Properties:
    """AWS::SSM::Parameter."""
    found = clients.of("ssm").get_parameter(Name=name)["Parameter"]
    return {"Name": found["Name"], "Type": found["Type"], "Value": found["Value"]}


def _ask(method: Any, **arguments: str) -> dict[str, Any]:
    """The answer, or nothing when the service says there is none."""
    try:
        return dict(method(**arguments))
    except ClientError as exc:
        code = exc.response.get("Error", {}).get("Code", "")
        if code.startswith("NoSuch") or code.endswith(("NotFoundError", "NotFoundException")):
            return {}
        raise
