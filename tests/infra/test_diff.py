"""`make diff` tells what a deploy changes and refuses what would lose a store or what guards it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from infra import release
from infra.diff import changes
from shared.core.stage import STAGES
from tests.infra.conftest import Stages, Synthesized

pytestmark = [pytest.mark.synth, pytest.mark.xdist_group("synth")]

Templates = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def released(prod: Synthesized) -> Templates:
    """prod as it would be recorded."""
    return {stack: release.normalized(template) for stack, template in prod.assembly.templates.items()}


def _id(templates: Templates, stack: str, kind: str) -> str:
    resources: dict[str, Any] = templates[stack]["Resources"]
    return next(key for key, body in resources.items() if body["Type"] == kind)


def _rename_table(templates: Templates) -> None:
    resources = templates["State"]["Resources"]
    resources["Renamed"] = resources.pop(_id(templates, "State", "AWS::DynamoDB::GlobalTable"))


def _change(stack: str, kind: str, **values: Any) -> Callable[[Templates], None]:
    def change(templates: Templates) -> None:
        templates[stack]["Resources"][_id(templates, stack, kind)]["Properties"].update(values)

    return change


def _unguard(templates: Templates) -> None:
    templates["State"]["Resources"][_id(templates, "State", "AWS::S3::Bucket")]["DeletionPolicy"] = "Delete"


@pytest.mark.fault("K2")
@pytest.mark.parametrize(
    "mistake",
    [
        pytest.param(_rename_table, id="a renamed construct"),
        pytest.param(lambda t: t.pop("State"), id="a stack that is gone"),
        pytest.param(_change("State", "AWS::DynamoDB::GlobalTable", KeySchema=[]), id="another key"),
        pytest.param(_change("State", "AWS::DynamoDB::GlobalTable", TableName="x"), id="another name"),
        pytest.param(_change("State", "AWS::S3::Bucket", BucketName="x"), id="another bucket"),
        pytest.param(_change("Lane-support", "AWS::SecretsManager::Secret", Name="x"), id="another secret"),
        pytest.param(_change("Lane-support", "AWS::SQS::Queue", QueueName="x"), id="another queue"),
        pytest.param(_unguard, id="a store that is no longer retained"),
    ],
)
def test_a_lost_store_is_marked(released: Templates, mistake: Callable[[Templates], Any]) -> None:
    """A store that would be removed, replaced or left unguarded makes the command fail."""
    after = copy.deepcopy(released)
    mistake(after)
    assert any(change.loses for change in changes("prod", released, after))


def _at(stack: str, kind: str, path: str, value: Any) -> Callable[[Templates], None]:
    """Put a value where a path leads, or take away what stands there."""

    def change(templates: Templates) -> None:
        body = next(
            one
            for one in templates[stack]["Resources"].values()
            if one["Type"] == kind and _leads(one["Properties"], path.split("."))
        )
        *way, last = path.split(".")
        inner = body["Properties"]
        for step in way:
            inner = inner[int(step) if step.isdecimal() else step]
        if value is GONE:
            del inner[int(last) if last.isdecimal() else last]
        else:
            inner[last] = value

    return change


def _leads(inner: Any, path: list[str]) -> bool:
    for step in path[:-1]:
        if isinstance(inner, list):
            inner = inner[int(step)]
        elif step not in inner:
            return False
        else:
            inner = inner[step]
    return True


def _texts(templates: Templates) -> dict[str, Any]:
    """The one copy of the table that holds small texts."""
    tables = (one["Properties"] for one in templates["State"]["Resources"].values() if one["Type"] == TABLE)
    (found,) = [one["Replicas"][0] for one in tables if one["TableName"] == "penstock-prod-content"]
    replica: dict[str, Any] = found
    return replica


GONE = object()
TABLE, BUCKET, QUEUE = "AWS::DynamoDB::GlobalTable", "AWS::S3::Bucket", "AWS::SQS::Queue"
SECRET, LOG = "AWS::SecretsManager::Secret", "AWS::Logs::LogGroup"
RECOVERY = "Replicas.0.PointInTimeRecoverySpecification"
RULE, BLOCK = "LifecycleConfiguration.Rules.0", "PublicAccessBlockConfiguration"
ENCRYPTION = "BucketEncryption.ServerSideEncryptionConfiguration.0.ServerSideEncryptionByDefault"
EVERYBODY = [{"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject", "Resource": "*"}]


@pytest.mark.fault("K5")
@pytest.mark.parametrize(
    ("mistake", "sentence"),
    [
        (_at("State", TABLE, f"{RECOVERY}.PointInTimeRecoveryEnabled", False), "can no longer be undone"),
        (_at("State", TABLE, RECOVERY, GONE), "can no longer be undone"),
        (_at("State", TABLE, f"{RECOVERY}.RecoveryPeriodInDays", 7), "restored for longer"),
        (_at("State", TABLE, "Replicas.0.DeletionProtectionEnabled", False), "deleted by mistake"),
        (_at("State", TABLE, "Replicas.0", GONE), "copy of the table is lost"),
        (_at("State", TABLE, "TimeToLiveSpecification.AttributeName", "ttl"), "expire by another attribute"),
        (_at("State", TABLE, "TimeToLiveSpecification", GONE), "expire by another attribute"),
        (_at("State", TABLE, "TimeToLiveSpecification.Enabled", False), "or the reverse"),
        (_at("State", BUCKET, f"{RULE}.ExpirationInDays", 1), "expire sooner than jobs need them"),
        (_at("State", BUCKET, f"{RULE}.ExpirationInDays", GONE), "or never"),
        (_at("State", BUCKET, RULE, GONE), "texts are kept for ever"),
        (_at("State", BUCKET, f"{RULE}.Status", "Disabled"), "is switched"),
        (_at("State", BUCKET, f"{BLOCK}.RestrictPublicBuckets", False), "texts may become public"),
        (_at("State", BUCKET, BLOCK, GONE), "texts may become public"),
        (_at("State", BUCKET, "BucketEncryption", GONE), "no longer encrypted"),
        (_at("State", BUCKET, f"{ENCRYPTION}.SSEAlgorithm", "AES256"), "no longer encrypted"),
        (_at("State", BUCKET, f"{RULE}.Prefix", "result/"), "for other texts"),
        (_at("State", BUCKET, "OwnershipControls", GONE), "access lists count again"),
        (_at("State", BUCKET, "OwnershipControls.Rules.0.ObjectOwnership", "ObjectWriter"), "access lists count again"),
        (lambda t: _texts(t)["SSESpecification"].clear(), "small texts are no longer encrypted"),
        (_at("State", "AWS::KMS::Key", "KeyPolicy.Statement", EVERYBODY), "everybody may use the key"),
        (_at("State", "AWS::S3::BucketPolicy", "PolicyDocument.Statement", []), "no longer denied"),
        (_at("State", "AWS::S3::BucketPolicy", "PolicyDocument.Statement", EVERYBODY), "everybody is let in"),
        (_at("State", "AWS::KMS::Key", "EnableKeyRotation", False), "no longer rotated"),
        (_at("Lane-support", SECRET, "SecretString", '{"helpdesk": ""}'), "over the tokens that stand there"),
        (_at("Lane-support", SECRET, "SecretString", GONE), "over the tokens that stand there"),
        (_at("Lane-support", SECRET, "GenerateSecretString", {}), "a value of its own"),
        (_at("Lane-support", QUEUE, "MessageRetentionPeriod", 3600), "dropped sooner"),
        (_at("Lane-support", QUEUE, "MessageRetentionPeriod", GONE), "dropped sooner"),
        (_at("Lane-support", QUEUE, "SqsManagedSseEnabled", False), "no longer encrypted"),
        (_at("Lane-support", LOG, "RetentionInDays", 1), "older logs are deleted at once"),
        (lambda t: t["Lane-support"]["Resources"].pop(_id(t, "Lane-support", "AWS::SQS::QueuePolicy")), "removed"),
    ],
)
def test_a_weakened_guard_is_marked(released: Templates, mistake: Callable[[Templates], Any], sentence: str) -> None:
    """Nothing is lost by it yet: it is lost when the guard would have been needed."""
    after = copy.deepcopy(released)
    mistake(after)
    assert [one for one in changes("prod", released, after) if one.loses and sentence in one.what]


@pytest.mark.parametrize(
    "change",
    [
        _at("State", TABLE, f"{RECOVERY}.RecoveryPeriodInDays", 35),
        _at("State", BUCKET, f"{RULE}.ExpirationInDays", 4000),
        _at("Lane-support", LOG, "RetentionInDays", 3653),
        _at("Lane-support", LOG, "RetentionInDays", GONE),
        lambda t: t["State"]["Resources"].update(Added={"Type": BUCKET, "Properties": {"BucketName": "x"}}),
    ],
)
def test_a_stronger_guard_is_only_told(released: Templates, change: Callable[[Templates], Any]) -> None:
    """Keeping longer, and a store that was not there before, lose nothing."""
    after = copy.deepcopy(released)
    change(after)
    assert list(changes("prod", released, after))
    assert not [str(one) for one in changes("prod", released, after) if one.loses]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(_change("Lane-support", "AWS::Lambda::Function", MemorySize=1024), id="a bigger function"),
        pytest.param(_change("Lane-support", "AWS::SQS::Queue", VisibilityTimeout=900), id="a longer visibility"),
        pytest.param(lambda t: t.pop("Watch"), id="no more alarms"),
    ],
)
def test_other_changes_are_only_told(released: Templates, change: Callable[[Templates], Any]) -> None:
    """What can be undone is listed and does not fail."""
    after = copy.deepcopy(released)
    change(after)
    found = list(changes("prod", released, after))
    assert found
    assert not [one for one in found if one.loses]


def test_a_new_build_of_the_same_is_no_change(prod: Synthesized, released: Templates) -> None:
    """Asset hashes, version ids and the version tag are left out of what is recorded."""
    again = copy.deepcopy(dict(prod.assembly.templates))
    for template in again.values():
        for key, body in list(template["Resources"].items()):
            if body["Type"] == "AWS::Lambda::Function":
                body["Properties"]["Code"]["S3Key"] = "another.zip"
            if body["Type"] == "AWS::Lambda::Version":
                template["Resources"][key[:-32] + "f" * 32] = template["Resources"].pop(key)
            for tag in body.get("Properties", {}).get("Tags", []):
                if isinstance(tag, dict) and tag["Key"] == "penstock:version":
                    tag["Value"] = "10.0.0"
    after = {stack: release.normalized(template) for stack, template in again.items()}
    # References to the version id are normalized, too; only an alias that kept the old id would differ.
    assert not [one for one in changes("prod", released, after) if "FunctionVersion" not in one.what]


def test_what_is_recorded_is_read_back(tmp_path: Path, released: Templates) -> None:
    """Writing and reading a release changes nothing, and a stack that is gone leaves no file."""
    release.write("prod", {**released, "Old": {}}, tmp_path)
    release.write("prod", released, tmp_path)
    assert release.read("prod", tmp_path) == released


@pytest.mark.parametrize("name", STAGES)
def test_this_version_loses_nothing_of_the_last_release(stages: Stages, name: str) -> None:
    """Deployed over the last release, every store stays what it is."""
    stage = stages(name)
    after = {stack: release.normalized(template) for stack, template in stage.assembly.templates.items()}
    before = release.read(name)
    assert before, f"the release of {release.version()} holds no stage {name}"
    assert not [str(change) for change in changes(name, before, after) if change.loses]
