"""Rules about what remembers, and about how stacks know of each other."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from infra.rules.assembly import Assembly, Resource
from infra.rules.queues import queue_sources
from infra.rules.registry import rule
from shared.contract import names
from shared.contract.table import TTL

TABLE = "AWS::DynamoDB::GlobalTable"
KEPT = (TABLE, "AWS::DynamoDB::Table", "AWS::S3::Bucket", "AWS::SecretsManager::Secret")
NEVER_EXPIRE = ("control", "history")
"""Switches and caps hold until somebody changes them; what was decided is never forgotten."""
MAX_READERS = 2
MAX_RECORD_AGE_S = 12 * 3600


@rule("N6")
def stores_outlive_mistakes(assembly: Assembly) -> Iterator[str]:
    """A renamed construct must not delete a table, and a wrong write must be undoable."""
    for table in assembly.resources("AWS::DynamoDB::Table"):
        yield f"{table}: use TableV2, which can gain a region later"
    for table in assembly.resources(TABLE):
        for replica in table.properties.get("Replicas", []):
            recovery = replica.get("PointInTimeRecoverySpecification", {}).get("PointInTimeRecoveryEnabled")
            if _holds_text(assembly, table):
                yield from _text_can_be_erased(table, replica, recovered=bool(recovery))
            elif not recovery:
                yield f"{table}: needs point-in-time recovery"
            if assembly.stage.retain and not replica.get("DeletionProtectionEnabled"):
                yield f"{table}: needs deletion protection"
    if not assembly.stage.retain:
        return
    for store in assembly.resources(*KEPT):
        if store.body.get("DeletionPolicy") != "Retain" or store.body.get("UpdateReplacePolicy") != "Retain":
            yield f"{store}: must be retained when its stack is deleted or it is replaced"
    for key in assembly.resources("AWS::KMS::Key"):
        # A key is worth what it encrypts: an alarm message needs no second reading.
        if key.stack == "State" and key.body.get("DeletionPolicy") != "Retain":
            yield f"{key}: without its key the content store is unreadable; retain it"


def _holds_text(assembly: Assembly, store: Resource) -> bool:
    """The one table that holds what customers wrote."""
    return bool(store.properties.get("TableName") == names.table(assembly.stage.name, names.CONTENT_TABLE))


def _text_can_be_erased(store: Resource, replica: Mapping[str, Any], *, recovered: bool) -> Iterator[str]:
    """The one exception: what was erased must be gone, so nothing keeps a second copy; and its key alone reads it."""
    if recovered:
        yield f"{store}: must have no point-in-time recovery, or erased text comes back"
    if "StreamSpecification" in store.properties or "KinesisStreamSpecification" in replica:
        yield f"{store}: must have no stream, or erased text is read there"
    if len(store.properties["Replicas"]) > 1:
        yield f"{store}: must have no second copy in another region"
    if not replica.get("SSESpecification", {}).get("KMSMasterKeyId"):
        yield f"{store}: needs the content key"


@rule("TTL")
def rows_expire_where_their_code_says_so(assembly: Assembly) -> Iterator[str]:
    """By the attribute that is written; another one keeps every row, and the bill, for ever."""
    stage = assembly.stage.name
    for_good = {names.table(stage, table) for table in NEVER_EXPIRE}
    for table in assembly.resources(TABLE):
        told = table.properties.get("TimeToLiveSpecification")
        if table.properties.get("TableName") in for_good:
            if told is not None:
                yield f"{table}: its rows never expire"
        elif told != {"AttributeName": TTL, "Enabled": True}:
            yield f"{table}: TimeToLiveSpecification must name {TTL}, and be enabled"


@rule("N17")
def the_outbox_loses_nothing(assembly: Assembly) -> Iterator[str]:
    """The stream is read from its start, retried for a while, and what is given up on is written down."""
    for table in assembly.resources(TABLE):
        stream = table.properties.get("StreamSpecification")
        if stream is not None and stream.get("StreamViewType") != "NEW_AND_OLD_IMAGES":
            yield f"{table}: the stream's view type must be NEW_AND_OLD_IMAGES; it cannot be changed later"
    of_queues = {str(mapping) for mapping, _, _ in queue_sources(assembly)}
    readers: dict[str, int] = defaultdict(int)
    for mapping in assembly.resources("AWS::Lambda::EventSourceMapping"):
        if str(mapping) in of_queues:
            continue
        told = mapping.properties
        readers[json.dumps(told.get("EventSourceArn"), sort_keys=True)] += 1
        if told.get("StartingPosition") != "TRIM_HORIZON":
            yield f"{mapping}: must start at TRIM_HORIZON, or jobs stored before it are never sent"
        if told.get("MaximumRetryAttempts", -1) < 0:
            yield f"{mapping}: retries must be finite, or one bad record stops the lane for a day"
        if not 0 < told.get("MaximumRecordAgeInSeconds", -1) <= MAX_RECORD_AGE_S:
            yield f"{mapping}: the record age must be at most {MAX_RECORD_AGE_S} s, half of what the stream keeps"
        if not told.get("BisectBatchOnFunctionError"):
            yield f"{mapping}: must bisect a failing batch"
        if not told.get("DestinationConfig", {}).get("OnFailure", {}).get("Destination"):
            yield f"{mapping}: needs a failure queue"
        yield from _only_what_concerns_it(mapping)
    for source, count in readers.items():
        if count > MAX_READERS:
            yield f"{source}: {count} readers of one stream; more than {MAX_READERS} are throttled"


def _only_what_concerns_it(mapping: Resource) -> Iterator[str]:
    """Lambda promises filters under `dynamodb` alone: a filter must tell new from changed, and both from removed, by
    the images, too."""
    filters = mapping.properties.get("FilterCriteria", {}).get("Filters")
    if not filters:
        yield f"{mapping}: needs filters, or every write of a job starts a function"
    for one in filters or ():
        pattern = json.loads(one["Pattern"])
        if pattern.get("eventName") not in (["INSERT"], ["MODIFY"]):
            yield f"{mapping}: a filter is for INSERT or for MODIFY; a removal is no news"
        if not {"OldImage", "NewImage"} <= pattern.get("dynamodb", {}).keys():
            yield f"{mapping}: a filter must ask both images, OldImage and NewImage; eventName alone may not count"


@rule("N19")
def no_exports(assembly: Assembly) -> Iterator[str]:
    """An export locks the stack that made it: it can no longer be changed while another one uses it."""
    for stack, template in assembly.templates.items():
        for name, output in template.get("Outputs", {}).items():
            if "Export" in output:
                yield f"{stack}: output {name} is an export"
        if '"Fn::ImportValue"' in json.dumps(template):
            yield f"{stack}: imports a value of another stack"
