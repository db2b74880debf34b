"""Which IAM action a request is, asked of requests that botocore itself makes."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import boto3
import pytest
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.config import Config

from ops.local.actions import Request, actions, signature

WHERE = "us-east-1:000000000000"
TABLE = f"arn:aws:dynamodb:{WHERE}:table/jobs"
QUEUE = f"arn:aws:sqs:{WHERE}:lane"
MAPPING = "8e22681a-321a-49af-8ba6-a7d43a7365e2"
KEY = {"pk": {"S": "a"}}


class _Sent(Exception):
    def __init__(self, request: AWSPreparedRequest) -> None:
        self.request = request


def asked(service: str, operation: str, **arguments: Any) -> set[tuple[str, str]]:
    """What the recorder would read from this call as boto3 sends it."""

    def stop(request: AWSPreparedRequest, **_: Any) -> AWSResponse | None:
        raise _Sent(request)

    client = boto3.client(
        service,  # type: ignore[call-overload]
        endpoint_url="http://127.0.0.1:1",
        region_name="us-east-1",
        aws_access_key_id="LAMBDA.worker",
        aws_secret_access_key="x",
        config=Config(retries={"total_max_attempts": 1}),
    )
    client.meta.events.register("before-send", stop)
    with pytest.raises(_Sent) as caught:
        getattr(client, operation)(**arguments)
    sent = caught.value.request
    url = urlsplit(sent.url)
    headers = {
        name.lower(): value.decode() if isinstance(value, bytes) else value for name, value in sent.headers.items()
    }
    signer = signature(headers["authorization"])
    assert signer is not None
    assert signer.access_key == "LAMBDA.worker"
    stream: Any = sent.body
    body = stream.read() if hasattr(stream, "read") else stream
    request = Request(
        method=sent.method,
        path=url.path,
        query=url.query,
        headers=headers,
        body=body.encode() if isinstance(body, str) else body or b"",
    )
    return actions(request, service=signer.service, region=signer.region, account="000000000000")


@pytest.mark.parametrize(
    ("service", "operation", "arguments", "expected"),
    [
        ("dynamodb", "put_item", {"TableName": "jobs", "Item": KEY}, {("dynamodb:PutItem", TABLE)}),
        ("dynamodb", "put_item", {"TableName": TABLE, "Item": KEY}, {("dynamodb:PutItem", TABLE)}),
        (
            "dynamodb",
            "query",
            {"TableName": "jobs", "IndexName": "waiting", "KeyConditionExpression": "a = b"},
            {("dynamodb:Query", f"{TABLE}/index/waiting")},
        ),
        (
            "dynamodb",
            "batch_get_item",
            {"RequestItems": {"jobs": {"Keys": [KEY]}, "effects": {"Keys": [KEY]}}},
            {("dynamodb:BatchGetItem", TABLE), ("dynamodb:BatchGetItem", TABLE.replace("jobs", "effects"))},
        ),
        (
            "dynamodb",
            "transact_write_items",
            {
                "TransactItems": [
                    {"Put": {"TableName": "jobs", "Item": KEY}},
                    {"ConditionCheck": {"TableName": "jobs", "Key": KEY, "ConditionExpression": "a = b"}},
                ]
            },
            {("dynamodb:PutItem", TABLE), ("dynamodb:ConditionCheckItem", TABLE)},
        ),
        ("sqs", "send_message", {"QueueUrl": "http://x/1/lane", "MessageBody": "b"}, {("sqs:SendMessage", QUEUE)}),
        (
            "sqs",
            "send_message_batch",
            {"QueueUrl": "http://x/1/lane", "Entries": [{"Id": "1", "MessageBody": "b"}]},
            {("sqs:SendMessage", QUEUE)},
        ),
        ("sqs", "get_queue_url", {"QueueName": "lane"}, {("sqs:GetQueueUrl", QUEUE)}),
        ("sqs", "start_message_move_task", {"SourceArn": QUEUE}, {("sqs:StartMessageMoveTask", QUEUE)}),
        ("s3", "get_object", {"Bucket": "b", "Key": "k/1"}, {("s3:GetObject", "arn:aws:s3:::b/*")}),
        ("s3", "head_object", {"Bucket": "b", "Key": "k/1"}, {("s3:GetObject", "arn:aws:s3:::b/*")}),
        ("s3", "put_object", {"Bucket": "b", "Key": "k/1", "Body": b"{}"}, {("s3:PutObject", "arn:aws:s3:::b/*")}),
        ("s3", "delete_object", {"Bucket": "b", "Key": "k"}, {("s3:DeleteObject", "arn:aws:s3:::b/*")}),
        (
            "s3",
            "delete_object",
            {"Bucket": "b", "Key": "k", "VersionId": "v"},
            {("s3:DeleteObjectVersion", "arn:aws:s3:::b/*")},
        ),
        (
            "s3",
            "delete_objects",
            {"Bucket": "b", "Delete": {"Objects": [{"Key": "k"}]}},
            {("s3:DeleteObject", "arn:aws:s3:::b/*")},
        ),
        ("s3", "list_objects_v2", {"Bucket": "b"}, {("s3:ListBucket", "arn:aws:s3:::b")}),
        ("s3", "list_object_versions", {"Bucket": "b"}, {("s3:ListBucketVersions", "arn:aws:s3:::b")}),
        ("s3", "get_object_tagging", {"Bucket": "b", "Key": "k"}, {("s3:GetObjectTagging", "arn:aws:s3:::b/*")}),
        (
            "s3",
            "copy_object",
            {"Bucket": "b", "Key": "k", "CopySource": "a/k"},
            {("s3:PutObject", "arn:aws:s3:::b/*"), ("s3:GetObject", "arn:aws:s3:::a/*")},
        ),
        (
            "lambda",
            "invoke",
            {"FunctionName": "worker"},
            {("lambda:InvokeFunction", f"arn:aws:lambda:{WHERE}:function:worker")},
        ),
        (
            "lambda",
            "get_event_source_mapping",
            {"UUID": MAPPING},
            {("lambda:GetEventSourceMapping", f"arn:aws:lambda:{WHERE}:event-source-mapping:{MAPPING}")},
        ),
        (
            "lambda",
            "update_event_source_mapping",
            {"UUID": MAPPING, "Enabled": False},
            {("lambda:UpdateEventSourceMapping", f"arn:aws:lambda:{WHERE}:event-source-mapping:{MAPPING}")},
        ),
        (
            "lambda",
            "list_event_source_mappings",
            {"FunctionName": "worker"},
            {("lambda:ListEventSourceMappings", "*")},
        ),
        (
            "scheduler",
            "get_schedule",
            {"Name": "tick", "GroupName": "ours"},
            {("scheduler:GetSchedule", f"arn:aws:scheduler:{WHERE}:schedule/ours/tick")},
        ),
        (
            "secretsmanager",
            "get_secret_value",
            {"SecretId": "penstock/local/support"},
            {("secretsmanager:GetSecretValue", f"arn:aws:secretsmanager:{WHERE}:secret:penstock/local/support")},
        ),
        (
            "events",
            "put_events",
            {"Entries": [{"EventBusName": "penstock-local", "Source": "s", "DetailType": "t", "Detail": "{}"}]},
            {("events:PutEvents", f"arn:aws:events:{WHERE}:event-bus/penstock-local")},
        ),
        (
            "sns",
            "publish",
            {"TopicArn": f"arn:aws:sns:{WHERE}:alarms", "Message": "m"},
            {("sns:Publish", f"arn:aws:sns:{WHERE}:alarms")},
        ),
        (
            "cloudwatch",
            "put_metric_data",
            {"Namespace": "n", "MetricData": [{"MetricName": "m", "Value": 1.0}]},
            {("cloudwatch:PutMetricData", "*")},
        ),
        ("sts", "get_caller_identity", {}, {("sts:GetCallerIdentity", "*")}),
    ],
)
def test_a_call_is_read_as_the_action_iam_checks(
    service: str, operation: str, arguments: dict[str, Any], expected: set[tuple[str, str]]
) -> None:
    """The pair read from a real request is the action and the resource a grant must name."""
    assert expected == asked(service, operation, **arguments)


def test_an_unknown_request_is_named_by_its_method() -> None:
    """A request nobody foresaw is still seen, under a name no grant can have by accident."""
    strange = Request(method="PATCH", path="/2099-01-01/moons", query="", headers={}, body=b"\xff{")
    assert {("lambda:PATCH", "*")} == actions(strange, service="lambda", region="r", account="a")
    assert {("moon:PATCH", "*")} == actions(strange, service="moon", region="r", account="a")


@pytest.mark.parametrize("header", ["", "Bearer x", "AWS4-HMAC-SHA256 Credential=nonsense"])
def test_only_a_full_signature_names_a_signer(header: str) -> None:
    """What is not a SigV4 signature names nobody."""
    assert signature(header) is None
