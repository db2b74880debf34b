"""What guards a store, and when a change weakens it: looked at in the last release and in this version."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from infra.rules.assembly import listed

Weaker = Callable[[Any, Any], bool]
MISSING = None
ABSENT_IN_AWS: Mapping[str, int] = {
    "MessageRetentionPeriod": 345_600,
    "RecoveryPeriodInDays": 35,
    "PendingWindowInDays": 30,
}
"""What a property means that a template does not say."""


def _is_given_up(old: Any, new: Any) -> bool:
    return bool(old) and not new


def _differs(old: Any, new: Any) -> bool:
    return bool(old != new)


def _is_changed(old: Any, new: Any) -> bool:
    """What stood there is not what stands there; what is added is no loss."""
    return old is not MISSING and bool(old != new)


def _is_less(old: Any, new: Any) -> bool:
    """Nothing said is for ever: a number in its place is less."""
    return new is not MISSING and (old is MISSING or float(new) < float(old))


def _is_another_period(old: Any, new: Any) -> bool:
    """Sooner loses what is still needed; never keeps what was promised to go."""
    return old is not MISSING and (new is MISSING or float(new) < float(old))


def _is_lost(old: Any, new: Any) -> bool:
    """An action that was denied is denied no more."""
    return not _denied(old) <= _denied(new)


def _denied(document: Any) -> set[str]:
    statements = (document or {}).get("Statement", [])
    return {action for one in statements if one.get("Effect") == "Deny" for action in listed(one.get("Action"))}


def _is_opened(old: Any, new: Any) -> bool:
    """A statement lets everybody in that did not before."""
    known = [] if old is MISSING else list(old.get("Statement", []))
    return any(_lets_everybody_in(one) for one in (new or {}).get("Statement", []) if one not in known)


def _lets_everybody_in(statement: Mapping[str, Any]) -> bool:
    principal = statement.get("Principal")
    return (
        statement.get("Effect") == "Allow"
        and principal in ("*", {"AWS": "*"}, {"AWS": ["*"]})
        and not statement.get("Condition")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """One property of one kind of resource; `*` on its way stands for every entry of a list."""

    kind: str
    path: str
    weaker: Weaker
    says: str


TABLE, BUCKET, QUEUE = "AWS::DynamoDB::GlobalTable", "AWS::S3::Bucket", "AWS::SQS::Queue"
SECRET, KEY, LOG = "AWS::SecretsManager::Secret", "AWS::KMS::Key", "AWS::Logs::LogGroup"
EXPIRY = "TimeToLiveSpecification"
LIFECYCLE = "LifecycleConfiguration.Rules.*"
RECOVERY = "Replicas.*.PointInTimeRecoverySpecification"
NARROWS = ("Prefix", "TagFilters", "ObjectSizeGreaterThan", "ObjectSizeLessThan")
PUBLIC = ("BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets")
POLICIES = ("AWS::S3::BucketPolicy", "AWS::SQS::QueuePolicy")

GUARDS: tuple[Guard, ...] = (
    Guard(kind=TABLE, path="Replicas.*", weaker=_is_given_up, says="a region's copy of the table is lost"),
    Guard(
        kind=TABLE,
        path=f"{RECOVERY}.PointInTimeRecoveryEnabled",
        weaker=_is_given_up,
        says="a wrong write can no longer be undone, and what could be restored is lost",
    ),
    Guard(
        kind=TABLE,
        path=f"{RECOVERY}.RecoveryPeriodInDays",
        weaker=_is_less,
        says="what could be restored for longer is lost",
    ),
    Guard(
        kind=TABLE,
        path="Replicas.*.DeletionProtectionEnabled",
        weaker=_is_given_up,
        says="the table can be deleted by mistake",
    ),
    Guard(
        kind=TABLE,
        path=f"{EXPIRY}.AttributeName",
        weaker=_differs,
        says="rows expire by another attribute: too early, or never",
    ),
    Guard(kind=TABLE, path=f"{EXPIRY}.Enabled", weaker=_differs, says="rows expire that were kept, or the reverse"),
    Guard(kind=BUCKET, path=LIFECYCLE, weaker=_is_given_up, says="a rule for expiry is gone: texts are kept for ever"),
    Guard(
        kind=BUCKET,
        path=f"{LIFECYCLE}.ExpirationInDays",
        weaker=_is_another_period,
        says="texts expire sooner than jobs need them, or never",
    ),
    Guard(kind=BUCKET, path=f"{LIFECYCLE}.Status", weaker=_differs, says="a rule for expiry is switched"),
    *(
        Guard(kind=BUCKET, path=f"{LIFECYCLE}.{one}", weaker=_differs, says="a rule for expiry is for other texts")
        for one in NARROWS
    ),
    *(
        Guard(
            kind=BUCKET,
            path=f"PublicAccessBlockConfiguration.{one}",
            weaker=_is_given_up,
            says="texts may become public",
        )
        for one in PUBLIC
    ),
    Guard(kind=BUCKET, path="BucketEncryption", weaker=_is_changed, says="texts are no longer encrypted with our key"),
    Guard(kind=BUCKET, path="OwnershipControls", weaker=_is_changed, says="access lists count again"),
    Guard(
        kind=TABLE,
        path="Replicas.*.SSESpecification.KMSMasterKeyId",
        weaker=_is_changed,
        says="small texts are no longer encrypted with our key",
    ),
    Guard(kind=KEY, path="KeyPolicy", weaker=_is_opened, says="everybody may use the key"),
    Guard(
        kind=SECRET,
        path="SecretString",
        weaker=_differs,
        says="a deploy would write its first value over the tokens that stand there",
    ),
    Guard(
        kind=SECRET,
        path="GenerateSecretString",
        weaker=_differs,
        says="a deploy would write a value of its own over the tokens that stand there",
    ),
    Guard(kind=KEY, path="EnableKeyRotation", weaker=_is_given_up, says="the key is no longer rotated"),
    Guard(kind=KEY, path="PendingWindowInDays", weaker=_is_less, says="a deleted key is gone sooner"),
    Guard(
        kind=QUEUE,
        path="MessageRetentionPeriod",
        weaker=_is_less,
        says="messages are dropped sooner, those that wait there now as well",
    ),
    Guard(kind=QUEUE, path="SqsManagedSseEnabled", weaker=_is_given_up, says="messages are no longer encrypted"),
    Guard(kind=LOG, path="RetentionInDays", weaker=_is_less, says="older logs are deleted at once"),
    *(
        guard
        for kind in POLICIES
        for guard in (
            Guard(kind=kind, path="PolicyDocument", weaker=_is_lost, says="something is no longer denied"),
            Guard(kind=kind, path="PolicyDocument", weaker=_is_opened, says="everybody is let in"),
        )
    ),
)


def weakened(kind: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    """One sentence for each guard that the new properties weaken."""
    for guard in GUARDS:
        if guard.kind != kind:
            continue
        before, after = dict(_found(old, guard.path)), dict(_found(new, guard.path))
        for place in before | after:
            name = guard.path.rpartition(".")[2]
            usual = ABSENT_IN_AWS.get(name)
            if guard.weaker(before.get(place, usual), after.get(place, usual)):
                yield f"{place}: {guard.says}"


def _found(value: Any, path: str, place: str = "") -> Iterator[tuple[str, Any]]:
    """Where the path leads, by where it was found; an entry of a list is known by its name, not by its position."""
    step, _, rest = path.partition(".")
    if step == "*":
        entries = value if isinstance(value, list) else []
        inner = [(f"{place}[{_name(one)}]", one) for one in entries]
    else:
        has = isinstance(value, Mapping) and step in value
        inner = [(f"{place}.{step}" if place else step, value[step])] if has else []
    for where, one in inner:
        if rest:
            yield from _found(one, rest, where)
        else:
            yield where, one


def _name(entry: Any) -> str:
    told = entry.get("Region", entry.get("Id")) if isinstance(entry, Mapping) else entry
    return told if isinstance(told, str) else json.dumps(told, sort_keys=True)
