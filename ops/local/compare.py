"""Deployed equals template, or each difference is named.

The emulator ignores some properties of a template without a word. So every property the template sets is read
back through the service's own API, and a property nobody reads back counts as a difference too: silence is
never taken for agreement.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from botocore.exceptions import ClientError

from ops.local import doors, functions, messaging, stores
from ops.local.clients import Clients
from ops.local.template import Resolver, Resource, StackTemplate, Unresolvable

Properties = Mapping[str, Any]
Observer = Callable[[Clients, str, Properties], Properties]

OBSERVED: Mapping[str, Observer] = {
    "AWS::DynamoDB::GlobalTable": stores.global_table,
    "AWS::DynamoDB::Table": stores.table,
    "AWS::S3::Bucket": stores.bucket,
    "AWS::KMS::Key": stores.key,
    "AWS::KMS::Alias": stores.key_alias,
    "AWS::SecretsManager::Secret": stores.secret,
    "AWS::Logs::LogGroup": stores.log_group,
    "AWS::SSM::Parameter": stores.parameter,
    "AWS::SQS::Queue": messaging.queue,
    "AWS::SQS::QueuePolicy": messaging.queue_policy,
    "AWS::Events::EventBus": messaging.event_bus,
    "AWS::SNS::Topic": messaging.topic,
    "AWS::SNS::Subscription": messaging.subscription,
    "AWS::Scheduler::Schedule": messaging.schedule,
    "AWS::Scheduler::ScheduleGroup": messaging.schedule_group,
    "AWS::CloudWatch::Alarm": messaging.alarm,
    "AWS::CloudWatch::Dashboard": messaging.dashboard,
    "AWS::Lambda::Function": functions.function,
    "AWS::Lambda::Version": functions.version,
    "AWS::Lambda::Alias": functions.alias,
    "AWS::Lambda::EventSourceMapping": functions.event_source,
    "AWS::Lambda::EventInvokeConfig": functions.invoke_config,
    "AWS::ApiGatewayV2::Api": doors.api,
    "AWS::ApiGatewayV2::Stage": doors.stage,
    "AWS::ApiGatewayV2::Integration": doors.integration,
    "AWS::ApiGatewayV2::Route": doors.route,
}

NOT_COMPARED: Mapping[str, str] = {
    "AWS::CDK::Metadata": "holds nothing",
    "AWS::IAM::Role": "the emulator enforces no IAM; grants are compared with the recorded calls instead",
    "AWS::IAM::Policy": "the emulator enforces no IAM; grants are compared with the recorded calls instead",
    "AWS::IAM::ManagedPolicy": "the emulator enforces no IAM; grants are compared with the recorded calls instead",
    "AWS::Lambda::Permission": "the emulator enforces no IAM",
    "AWS::S3::BucketPolicy": "the emulator enforces no IAM",
    "AWS::SNS::TopicPolicy": "the emulator enforces no IAM",
}
"""Types whose presence is all that is checked, and why."""

EXCUSED: Mapping[tuple[str, str], str] = {
    ("*", "Tags*"): "tags are for people and bills",
    ("AWS::DynamoDB::GlobalTable", "Replicas[*].Tags*"): "tags are for people and bills",
    ("AWS::KMS::Key", "KeyPolicy*"): "the emulator enforces no IAM",
    ("AWS::KMS::Key", "PendingWindowInDays"): "said only when the key is deleted",
    ("AWS::SecretsManager::Secret", "SecretString"): "a placeholder: the value is not the template's to say",
}
"""Properties that may differ, and why: (type, property), both as patterns."""

MOVED_WHILE_RUNNING: Mapping[tuple[str, str], str] = {
    ("AWS::Lambda::EventSourceMapping", "ScalingConfig*"): "a lane's cap follows its signals, not its template",
    ("AWS::Lambda::EventSourceMapping", "Enabled"): "a halted lane's mapping is off",
}
"""Properties the app itself changes: compared when a stack is new, not when an app is deployed over a running one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One property that is not as the template says."""

    resource: Resource
    property: str
    wanted: Any
    found: Any

    def __str__(self) -> str:
        return (
            f"{self.resource.path} ({self.resource.type}) {self.property}:"
            f" wanted {_short(self.wanted)}, found {_short(self.found)}"
        )


class _Nothing:
    def __repr__(self) -> str:
        return "nothing"


NOTHING = _Nothing()


def assert_deployed(
    templates: Sequence[StackTemplate],
    clients: Clients,
    *,
    only: Callable[[Resource], bool] = lambda resource: True,
) -> list[Difference]:
    """Every unexplained difference between what is deployed and what the templates say; none is the promise."""
    resolver = Resolver(tuple(templates), clients)
    return [
        difference
        for template in templates
        for resource in template.resources()
        if only(resource)
        for difference in _differences(resource, resolver, clients)
        if not excuse(difference)
    ]


def excuse(difference: Difference, excuses: Mapping[tuple[str, str], str] = EXCUSED) -> str | None:
    """Why this difference is accepted; None when nobody explained it."""
    for (kind, name), reason in excuses.items():
        if fnmatchcase(difference.resource.type, kind) and fnmatchcase(difference.property, _literal(name)):
            return reason
    return None


def _literal(pattern: str) -> str:
    return pattern.replace("[", "[[]")


def _differences(resource: Resource, resolver: Resolver, clients: Clients) -> Iterator[Difference]:
    def differs(name: str, wanted: Any, found: Any) -> Difference:
        return Difference(resource=resource, property=name, wanted=wanted, found=found)

    physical_id = resolver.physical_id(resource)
    if physical_id is None:
        yield differs("(the resource)", "deployed", NOTHING)
        return
    if resource.type in NOT_COMPARED:
        return
    if resource.type not in OBSERVED:
        yield differs("(the type)", "a way to read it back", NOTHING)
        return
    try:
        wanted = resolver.resolve(dict(resource.properties), resource.stack)
        found = OBSERVED[resource.type](clients, physical_id, wanted)
    except Unresolvable as exc:
        yield differs("(a reference)", str(exc), NOTHING)
        return
    except ClientError as exc:
        yield differs("(the resource)", "an answer", exc.response.get("Error", {}).get("Code", "an error"))
        return
    for name, want, have in unlike(wanted, found):
        yield differs(name, want, have)


def unlike(wanted: Any, found: Any, name: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Where `found` lacks what `wanted` says: (property, wanted, found). What `found` has beyond it is no matter."""
    if isinstance(wanted, Mapping) and isinstance(found, Mapping):
        for key, one in wanted.items():
            yield from unlike(one, found.get(key, NOTHING), f"{name}.{key}" if name else str(key))
    elif isinstance(wanted, list) and isinstance(found, list):
        yield from _unlike_lists(wanted, found, name)
    elif not _same(wanted, found):
        yield name, wanted, found


def _unlike_lists(wanted: list[Any], found: list[Any], name: str) -> Iterator[tuple[str, Any, Any]]:
    """Order is no matter; an item that has no equal is compared with the one that has the same name."""
    left = list(found)
    odd = []
    for position, one in enumerate(wanted):
        equal = next((have for have in left if not list(unlike(one, have))), NOTHING)
        if equal is NOTHING:
            odd.append((position, one))
        else:
            left.remove(equal)
    for position, one in odd:
        like = next((have for have in left if _identity(have) == _identity(one) is not None), NOTHING)
        if like is NOTHING:
            yield f"{name}[{position}]", one, NOTHING
        else:
            left.remove(like)
            yield from unlike(one, like, f"{name}[{position}]")
    for extra in left:
        yield f"{name}[+]", NOTHING, extra


def _identity(item: Any) -> tuple[str, Any] | None:
    if isinstance(item, Mapping):
        for key in ("Region", "IndexName", "AttributeName", "Id", "Name", "Key"):
            if item.get(key) is not None:
                return key, item[key]
    return None


def _same(wanted: Any, found: Any) -> bool:
    if wanted == found:
        return True
    if isinstance(wanted, (dict, list)) or isinstance(found, (dict, list)):
        return False
    # CloudFormation and the APIs disagree on types: 180 and "180", true and "true".
    return _text(wanted) == _text(found)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _short(value: Any) -> str:
    text = repr(value) if value is NOTHING or isinstance(value, str) else json.dumps(value, default=str)
    return text if len(text) <= 200 else text[:197] + "…"
