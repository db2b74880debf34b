"""What the emulator's CloudFormation leaves out is said again."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from ops.local.clients import Clients
from ops.local.compare import assert_deployed
from ops.local.repair import repair
from ops.local.template import StackTemplate

Deployed = Callable[..., tuple[StackTemplate, ...]]

TABLE: dict[str, Any] = {
    "Type": "AWS::DynamoDB::Table",
    "Properties": {
        "TableName": "jobs",
        "BillingMode": "PAY_PER_REQUEST",
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
    },
}


def _with(properties: dict[str, Any]) -> dict[str, Any]:
    return {**TABLE, "Properties": {**TABLE["Properties"], **properties}}


def test_a_table_becomes_what_its_template_says(clients: Clients, deployed: Deployed) -> None:
    """Expiry, recovery and deletion protection are made true, and only what differs is touched."""
    (bare,) = deployed(Jobs=TABLE)
    wanted = _with(
        {
            "TimeToLiveSpecification": {"AttributeName": "expires_at", "Enabled": True},
            "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True},
            "DeletionProtectionEnabled": True,
        }
    )
    templates = [StackTemplate(name=bare.name, body={"Resources": {"Jobs": wanted}})]
    found = assert_deployed(templates, clients)
    done = repair(found, templates, clients)
    assert {one.property.split(".")[0] for one in done} == {
        "TimeToLiveSpecification",
        "PointInTimeRecoverySpecification",
        "DeletionProtectionEnabled",
    }
    assert assert_deployed(templates, clients) == []
    assert repair(assert_deployed(templates, clients), templates, clients) == []


def test_a_bucket_becomes_what_its_template_says(clients: Clients, deployed: Deployed) -> None:
    """Encryption by a key and the expiry of objects are made true."""
    (bare,) = deployed(Content={"Type": "AWS::S3::Bucket", "Properties": {"BucketName": "content"}})
    wanted = {
        "Type": "AWS::S3::Bucket",
        "Properties": {
            "BucketName": "content",
            "BucketEncryption": {
                "ServerSideEncryptionConfiguration": [
                    {
                        "BucketKeyEnabled": True,
                        "ServerSideEncryptionByDefault": {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": "key"},
                    }
                ]
            },
            "LifecycleConfiguration": {
                "Rules": [
                    {
                        "Id": "expire",
                        "Status": "Enabled",
                        "ExpirationInDays": 30,
                        "NoncurrentVersionExpiration": {"NoncurrentDays": 1},
                        "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 1},
                    }
                ]
            },
        },
    }
    templates = [StackTemplate(name=bare.name, body={"Resources": {"Content": wanted}})]
    repair(assert_deployed(templates, clients), templates, clients)
    assert assert_deployed(templates, clients) == []


def test_a_generated_secret_gets_a_value(clients: Clients, deployed: Deployed) -> None:
    """A secret the emulator left empty is filled in the shape the template asks for."""
    properties = {
        "Name": "vendor",
        "GenerateSecretString": {"SecretStringTemplate": '{"user":"x"}', "GenerateStringKey": "token"},
    }
    templates = deployed(Vendor={"Type": "AWS::SecretsManager::Secret", "Properties": properties})
    found = assert_deployed(templates, clients)
    assert [one.property for one in found] == ["GenerateSecretString"]
    repair(found, templates, clients)
    value = json.loads(clients.of("secretsmanager").get_secret_value(SecretId="vendor")["SecretString"])
    assert (value["user"], len(value["token"])) == ("x", 32)
    assert assert_deployed(templates, clients) == []


def test_what_has_no_remedy_stays_a_difference(clients: Clients, deployed: Deployed) -> None:
    """Nothing is papered over: without a remedy the difference is still there afterwards."""
    (bare,) = deployed(Jobs=TABLE)
    other_key = _with({"KeySchema": [{"AttributeName": "other", "KeyType": "HASH"}]})
    templates = [StackTemplate(name=bare.name, body={"Resources": {"Jobs": other_key}})]
    found = assert_deployed(templates, clients)
    assert repair(found, templates, clients) == []
    assert [str(one) for one in found] == [str(one) for one in assert_deployed(templates, clients)]
