"""What the State stack promises: nothing that remembers is lost by a deploy."""

from __future__ import annotations

from typing import Any

import pytest

from shared.contract import names, table
from tests.infra.conftest import Synthesized

pytestmark = [pytest.mark.synth, pytest.mark.xdist_group("synth")]
TABLE = "AWS::DynamoDB::GlobalTable"


def _table(stage: Synthesized, name: str) -> dict[str, Any]:
    return dict(stage.the(TABLE, TableName=names.table(stage.spec.name, name)).properties)


def _keys(schema: list[dict[str, str]]) -> dict[str, str]:
    return {entry["KeyType"]: entry["AttributeName"] for entry in schema}


def test_every_table_of_the_contract_exists_under_its_name(every_stage: Synthesized) -> None:
    """The five tables and the one of payloads, no more and no less, under the names that the runtime looks up."""
    found = {resource.properties["TableName"] for resource in every_stage.assembly.resources(TABLE)}
    assert found == {names.table(every_stage.spec.name, name) for name in (*names.TABLES, names.CONTENT_TABLE)}


@pytest.mark.fault("K2")
def test_a_table_survives_a_renamed_construct_and_a_deleted_stack(prod: Synthesized) -> None:
    """Retained, protected against deletion, recoverable to any second."""
    for resource in prod.assembly.resources(TABLE):
        assert (resource.body["DeletionPolicy"], resource.body["UpdateReplacePolicy"]) == ("Retain", "Retain")
        (replica,) = resource.properties["Replicas"]
        assert replica["DeletionProtectionEnabled"] is True
    for name in names.TABLES:
        (replica,) = _table(prod, name)["Replicas"]
        assert replica["PointInTimeRecoverySpecification"]["PointInTimeRecoveryEnabled"] is True


@pytest.mark.req("R14")
def test_text_in_rows_can_be_erased_for_good(every_stage: Synthesized) -> None:
    """The table of payloads has no recovery, no stream and no second copy; it expires, and the content key alone
    opens it. Like every store it is not deleted by mistake."""
    told = _table(every_stage, names.CONTENT_TABLE)
    (replica,) = told["Replicas"]
    assert replica["PointInTimeRecoverySpecification"]["PointInTimeRecoveryEnabled"] is False
    assert "StreamSpecification" not in told
    assert told["TimeToLiveSpecification"] == {"AttributeName": table.TTL, "Enabled": True}
    assert told["SSESpecification"] == {"SSEEnabled": True, "SSEType": "KMS"}
    key = replica["SSESpecification"]["KMSMasterKeyId"]
    assert every_stage.assembly.referred("State", key) == every_stage.the("AWS::KMS::Key", **_content_key(every_stage))
    assert replica["DeletionProtectionEnabled"] is every_stage.spec.retain


def test_a_stage_that_keeps_nothing_can_be_deleted(local: Synthesized) -> None:
    """`retain: false` leaves no table, bucket, key or secret behind."""
    for resource in local.assembly.resources():
        if resource.type != "AWS::Lambda::Version":
            assert resource.body.get("DeletionPolicy") != "Retain", str(resource)
    for resource in local.assembly.resources(TABLE):
        assert not resource.properties["Replicas"][0].get("DeletionProtectionEnabled")


def test_tables_have_the_keys_of_the_contract(prod: Synthesized) -> None:
    """Jobs and control by one key; effects, ledger and history by two."""
    one, two = {"HASH": table.PK}, {"HASH": table.PK, "RANGE": table.SK}
    wanted = {"jobs": one, "control": one, "effects": two, "ledger": two, "history": two}
    assert {name: _keys(_table(prod, name)["KeySchema"]) for name in names.TABLES} == wanted


def test_only_rows_that_may_expire_do(prod: Synthesized) -> None:
    """Jobs, effects and run slots carry an expiry; switches and history never do."""
    expiring = {
        name
        for name in names.TABLES
        if _table(prod, name).get("TimeToLiveSpecification", {}).get("AttributeName") == table.TTL
    }
    assert expiring == {"jobs", "effects", "ledger"}


def test_the_outbox_shows_both_images(prod: Synthesized) -> None:
    """The stream exists on jobs alone, with old and new image: it can never be changed to that later."""
    streams = {name: _table(prod, name).get("StreamSpecification") for name in names.TABLES}
    assert streams.pop("jobs") == {"StreamViewType": "NEW_AND_OLD_IMAGES"}
    assert not any(streams.values())


def test_the_waiting_index_nominates_by_keys_alone(prod: Synthesized) -> None:
    """One index, sparse by its keys, holding nothing a decision could be taken from."""
    (index,) = _table(prod, "jobs")["GlobalSecondaryIndexes"]
    assert index["IndexName"] == names.WAITING_INDEX
    assert _keys(index["KeySchema"]) == {"HASH": table.WAITING_PK, "RANGE": table.WAITING_SK}
    assert index["Projection"] == {"ProjectionType": "KEYS_ONLY"}


def test_tables_cost_nothing_while_idle(prod: Synthesized) -> None:
    """On demand: capacity is nobody's night shift."""
    assert {_table(prod, name)["BillingMode"] for name in names.TABLES} == {"PAY_PER_REQUEST"}


def test_content_is_encrypted_private_and_erasable(prod: Synthesized) -> None:
    """A key of its own, no public access, no versions: a deleted text is gone."""
    bucket = prod.the("AWS::S3::Bucket").properties
    (rule,) = bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    assert rule["ServerSideEncryptionByDefault"]["SSEAlgorithm"] == "aws:kms"
    key = rule["ServerSideEncryptionByDefault"]["KMSMasterKeyID"]
    assert prod.assembly.referred("State", key) == prod.the("AWS::KMS::Key", **_content_key(prod))
    assert rule["BucketKeyEnabled"] is True
    assert set(bucket["PublicAccessBlockConfiguration"].values()) == {True}
    assert "VersioningConfiguration" not in bucket


def test_content_outlives_every_job_that_needs_it(every_stage: Synthesized) -> None:
    """Objects expire, but not before the longest-kept failed job and two months have passed."""
    (rule,) = every_stage.the("AWS::S3::Bucket").properties["LifecycleConfiguration"]["Rules"]
    longest = max(lane.failed_kept_days for lane in every_stage.spec.lanes.values())
    assert rule["Status"] == "Enabled"
    assert rule["ExpirationInDays"] == every_stage.spec.content_kept_days >= longest + 60


def test_tools_can_read_which_lanes_were_deployed(every_stage: Synthesized) -> None:
    """The lanes parameter holds exactly the stage's lanes, as `LaneSpec.from_mapping` reads them."""
    from shared.core.lane import LaneSpec

    told = every_stage.parameter(names.lanes_parameter(every_stage.spec.name))
    read = {name: LaneSpec.from_mapping(name, values) for name, values in told.items()}
    assert read == {name: lane.for_engine for name, lane in every_stage.spec.lanes.items()}


@pytest.mark.req("C14")
def test_tools_judge_by_the_rules_that_the_governor_has(every_stage: Synthesized) -> None:
    """The rules parameter makes its thresholds, policies and prices again: who opens asks by the same numbers."""
    from shared.core.governing import Rules

    spec = every_stage.spec
    told = Rules.from_mapping(every_stage.parameter(names.rules_parameter(spec.name)))
    assert (told.thresholds, told.policies, told.prices) == (spec.severity, spec.policies, spec.prices)


def _content_key(stage: Synthesized) -> dict[str, object]:
    keys = [key for key in stage.assembly.resources("AWS::KMS::Key") if key.stack == "State"]
    return {"Description": keys[0].properties["Description"]}
