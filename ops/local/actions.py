"""Which IAM action on which resource an AWS API request is: read from the request alone.

Runs inside the emulator's interpreter too, so it needs nothing but the standard library and botocore's
service descriptions. Where IAM and the API use different words (batches, transactions, HEAD, Invoke), the
answer is IAM's, because it is compared with grants.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import parse_qs, unquote

_CREDENTIAL = re.compile(r"Credential=([^/]+)/\d{8}/([^/]+)/([^/]+)/aws4_request")
_NAMESPACE = {"monitoring": "cloudwatch"}
"""Where a signature's service name is not IAM's."""
_REST = ("lambda", "scheduler")
"""Services whose operation is told by method and path alone."""
_RENAMED = {
    "lambda:Invoke": "lambda:InvokeFunction",
    "lambda:InvokeAsync": "lambda:InvokeFunction",
    "sqs:SendMessageBatch": "sqs:SendMessage",
    "sqs:DeleteMessageBatch": "sqs:DeleteMessage",
    "sqs:ChangeMessageVisibilityBatch": "sqs:ChangeMessageVisibility",
}
_IN_TRANSACTION = {
    "ConditionCheck": "ConditionCheckItem",
    "Put": "PutItem",
    "Update": "UpdateItem",
    "Delete": "DeleteItem",
    "Get": "GetItem",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What an HTTP request to AWS shows of itself; header names are lower case."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """Who signed a request, and for what."""

    access_key: str
    region: str
    service: str


def signature(authorization: str) -> Signature | None:
    """The signer named by a SigV4 header; None for anything else."""
    found = _CREDENTIAL.search(authorization)
    if found is None:
        return None
    return Signature(access_key=found[1], region=found[2], service=found[3])


def actions(request: Request, *, service: str, region: str, account: str) -> set[tuple[str, str]]:
    """The (action, resource ARN) pairs IAM would check; the resource is `*` where it has none."""
    if service == "s3":
        return set(_s3(request))
    namespace = _NAMESPACE.get(service, service)
    operation = _operation(request, service)
    if operation is None:
        return {(f"{namespace}:{request.method}", "*")}
    where = f"{region}:{account}"
    fields = _fields(request)
    if service == "dynamodb":
        return set(_dynamodb(operation, fields, where))
    action = f"{namespace}:{operation}"
    return {(_RENAMED.get(action, action), _resource(service, request, fields, where))}


def _operation(request: Request, service: str) -> str | None:
    target = request.headers.get("x-amz-target", "")
    if "." in target:
        return target.rpartition(".")[2]
    if "/operation/" in request.path:  # smithy RPC: /service/<name>/operation/<Operation>
        return request.path.rpartition("/")[2]
    if service in _REST:
        return _routed(service, request)
    named = _fields(request).get("Action")
    return str(named) if named else None


def _fields(request: Request) -> dict[str, Any]:
    """The request's parameters, whichever of JSON and form the service speaks."""
    if request.body.startswith(b"{"):
        try:
            parsed = json.loads(request.body)
        except ValueError:
            return {}
        return parsed if isinstance(parsed, dict) else {}
    form = parse_qs(request.body.decode("utf-8", "replace")) | parse_qs(request.query)
    return {key: values[0] for key, values in form.items()}


def _dynamodb(operation: str, fields: Mapping[str, Any], where: str) -> Iterator[tuple[str, str]]:
    def table(name: object) -> str:
        text = str(name)
        return text if text.startswith("arn:") else f"arn:aws:dynamodb:{where}:table/{text}"

    if operation in ("TransactWriteItems", "TransactGetItems"):
        for item in fields.get("TransactItems", []):
            for member, detail in item.items():
                yield f"dynamodb:{_IN_TRANSACTION.get(member, operation)}", table(detail.get("TableName"))
    elif isinstance(fields.get("RequestItems"), dict):
        for name in fields["RequestItems"]:
            yield f"dynamodb:{operation}", table(name)
    elif fields.get("TableName"):
        index = f"/index/{fields['IndexName']}" if fields.get("IndexName") else ""
        yield f"dynamodb:{operation}", table(fields["TableName"]) + index
    else:
        yield f"dynamodb:{operation}", str(fields.get("StreamArn", "*"))


def _s3(request: Request) -> Iterator[tuple[str, str]]:
    bucket, _, key = request.path.lstrip("/").partition("/")
    flags = parse_qs(request.query, keep_blank_values=True)
    # The key is left out: one grant covers all keys, and a record per object would never end.
    objects, whole = f"arn:aws:s3:::{bucket}/*", f"arn:aws:s3:::{bucket}"
    version = "Version" if "versionId" in flags else ""
    if not bucket:
        yield "s3:ListAllMyBuckets", "*"
    elif key:
        verb = {"GET": "Get", "HEAD": "Get", "PUT": "Put", "POST": "Put", "DELETE": "Delete"}[request.method]
        if "tagging" in flags:
            yield f"s3:{verb}Object{version}Tagging", objects
        elif request.method == "DELETE" and "uploadId" in flags:
            yield "s3:AbortMultipartUpload", objects
        else:
            yield f"s3:{verb}Object{'' if verb == 'Put' else version}", objects
        if "x-amz-copy-source" in request.headers:
            source = unquote(request.headers["x-amz-copy-source"]).lstrip("/").partition("/")[0]
            yield "s3:GetObject", f"arn:aws:s3:::{source}/*"
    elif "delete" in flags:
        yield "s3:DeleteObject", objects
    elif request.method in ("GET", "HEAD"):
        yield f"s3:ListBucket{'Versions' if 'versions' in flags else ''}", whole
    else:
        yield f"s3:{request.method}Bucket", whole


def _resource(service: str, request: Request, fields: Mapping[str, Any], where: str) -> str:
    if service == "lambda":
        return _function(request.path, where)
    if service == "scheduler":
        parts = unquote(request.path).strip("/").split("/")
        if parts[0] == "schedules" and len(parts) > 1:
            asked = parse_qs(request.query).get("groupName") or [str(fields.get("GroupName", "default"))]
            return f"arn:aws:scheduler:{where}:schedule/{asked[0]}/{parts[1]}"
        return "*"
    if service == "events":
        fields = {**fields, **(fields.get("Entries") or [{}])[0]}  # ours are all for one bus
    name = next((str(fields[field]) for field in _NAMED_BY.get(service, ()) if fields.get(field)), "")
    if not name or name.startswith("arn:"):
        return name or "*"
    return _ARN[service].format(where=where, name=name.rpartition("/")[2] if service == "sqs" else name)


_NAMED_BY = {
    "sqs": ("QueueUrl", "QueueName", "SourceArn", "TaskHandle"),
    "sns": ("TopicArn", "TargetArn"),
    "events": ("EventBusName",),
    "secretsmanager": ("SecretId", "Name"),
    "kms": ("KeyId",),
    "ssm": ("Name",),
    "logs": ("logGroupName",),
}
_ARN = {
    "sqs": "arn:aws:sqs:{where}:{name}",
    "sns": "arn:aws:sns:{where}:{name}",
    "events": "arn:aws:events:{where}:event-bus/{name}",
    "secretsmanager": "arn:aws:secretsmanager:{where}:secret:{name}",
    "kms": "arn:aws:kms:{where}:key/{name}",
    "ssm": "arn:aws:ssm:{where}:parameter/{name}",
    "logs": "arn:aws:logs:{where}:log-group:{name}",
}


def _function(path: str, where: str) -> str:
    parts = unquote(path).strip("/").split("/")
    for kind, prefix in (("functions", "function:"), ("event-source-mappings", "event-source-mapping:")):
        if kind in parts[:-1]:
            name = parts[parts.index(kind) + 1]
            return name if name.startswith("arn:") else f"arn:aws:lambda:{where}:{prefix}{name}"
    return "*"


def _routed(service: str, request: Request) -> str | None:
    """The operation whose method and path pattern fit; the longest pattern wins."""
    path = request.path.rstrip("/") or "/"
    for method, pattern, name in _routes(service):
        if method == request.method and pattern.fullmatch(path):
            return name
    return None


@cache
def _routes(service: str) -> list[tuple[str, re.Pattern[str], str]]:
    from botocore.loaders import Loader

    model = Loader().load_service_model(service, "service-2")
    routes = []
    for name, operation in model["operations"].items():
        uri = operation["http"]["requestUri"].partition("?")[0].rstrip("/") or "/"
        parts = re.split(r"\{\w+\+?\}", uri)
        pattern = re.compile("[^/]+".join(map(re.escape, parts)))
        routes.append((operation["http"]["method"], pattern, name, len(uri.split("/")), len(parts)))
    routes.sort(key=lambda route: (-route[3], route[4]))
    return [(method, pattern, name) for method, pattern, name, _, _ in routes]
