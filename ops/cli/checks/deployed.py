"""Checks of what was deployed: stacks, tables, mappings and caps, the stream, the account's quota."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

from ops.cli.checks.line import Line, fail, ok, skip, warn
from ops.cli.show import span
from ops.cli.stage import Stage
from shared.contract import names, table
from shared.core.capacity import cap_wanted
from shared.core.lane import LaneSpec
from shared.core.switches import Level, lane_scopes

STREAM_AGE_S = 60
STREAM_LOOK_MIN = 15
ENGINE_CONCURRENCY = 8
"""Four batches of the stream at once, and the four scheduled functions."""
QUOTA = "ask for a higher quota: Lambda, Concurrent executions (L-B99A9384)"
EXPIRING = ("jobs", "effects", "ledger")


def stacks(stage: Stage) -> Iterator[Line]:
    """Every stack is there, and none stopped half-way."""
    lanes = [f"{of}-{lane.replace('_', '-')}" for lane in stage.lanes for of in ("Lane", "Watch")]
    wanted = [names.stack(stage.name, part) for part in ("State", "Control", *lanes, "Watch")]
    pages = stage.client("cloudformation").get_paginator("describe_stacks").paginate()
    found = {one["StackName"]: one["StackStatus"] for page in pages for one in page["Stacks"]}
    bad = False
    for name in wanted:
        state = found.get(name)
        if state is None:
            bad = True
            yield fail("stacks", f"{name} is not deployed", f"deploy it: `cdk deploy {name} -c stage={stage.name}`")
        elif state.endswith("_IN_PROGRESS"):
            bad = True
            yield warn("stacks", f"{name} is being changed ({state})", "look again when the deployment has ended")
        elif "ROLLBACK" in state or state.endswith("_FAILED"):
            bad = True
            yield fail("stacks", f"{name} is {state}", "read its events in CloudFormation, then deploy again")
    if not bad:
        yield ok(
            "stacks", f"{len(wanted)} deployed: {', '.join(name.rsplit(f'{stage.name}-', 1)[1] for name in wanted)}"
        )


def tables(stage: Stage) -> Iterator[Line]:
    """Every table is active; the jobs' stream and index are what the engine needs; what ends expires."""
    dynamodb = stage.client("dynamodb")
    bad = False
    every = (*names.TABLES, names.CONTENT_TABLE)
    for name in every:
        for line in _table(dynamodb, stage, name):
            bad = True
            yield line
    if not bad:
        yield ok("tables", f"{len(every)} active, stream and waiting index as needed")


def _table(dynamodb: Any, stage: Stage, name: str) -> Iterator[Line]:
    physical = stage.table(name)
    told = dynamodb.describe_table(TableName=physical)["Table"]
    if told["TableStatus"] not in ("ACTIVE", "UPDATING"):
        yield fail("tables", f"{physical} is {told['TableStatus']}", "wait, or read its events")
    if name == "jobs":
        view = told.get("StreamSpecification", {}).get("StreamViewType")
        if view != "NEW_AND_OLD_IMAGES":
            yield fail("tables", f"{physical} has no stream of new and old images", "deploy the State stack")
        indexes = {one["IndexName"]: one.get("IndexStatus", "ACTIVE") for one in told.get("GlobalSecondaryIndexes", [])}
        if indexes.get(names.WAITING_INDEX) != "ACTIVE":
            state = indexes.get(names.WAITING_INDEX, "missing")
            yield fail(
                "tables", f"{physical}'s waiting index is {state}", "nothing that waits is found until it is active"
            )
    if name in EXPIRING:
        expiry = dynamodb.describe_time_to_live(TableName=physical)["TimeToLiveDescription"]
        if expiry.get("TimeToLiveStatus") not in ("ENABLED", "ENABLING") or expiry.get("AttributeName") != table.TTL:
            yield warn("tables", f"{physical} expires nothing", f"turn on time to live by {table.TTL}")


def workers(stage: Stage) -> Iterator[Line]:
    """Each lane's worker takes from its queue, with the cap that is wanted. A lane with runs has no queue."""
    switches = stage.control.switches()
    for lane in (lane for lane in stage.lanes.values() if lane.run is None):
        about = f"worker {lane.name}"
        mapping = _mapping(stage, names.function(stage.name, names.worker(lane.name)), qualifier=names.LIVE)
        if mapping is None:
            yield fail(about, "nothing feeds it from its queue", "deploy the lane's stack")
            continue
        kept = stage.control.capacity(lane.name)
        halted = switches.standing(lane_scopes(lane.name, lane.shared_vendors)).level is Level.HALT
        # A pin of 0 stops a lane, too; the governor remembers what it disabled itself.
        halted = halted or (kept is not None and kept.stopped)
        state = mapping.get("State", "")
        if state == "Disabled" and not halted:
            yield fail(about, "its event source is disabled", f"enable event source mapping {mapping['UUID']}")
        elif state not in ("Enabled", "Disabled"):
            yield warn(about, f"its event source is {state}", "look again in a minute")
        else:
            yield _cap(stage, lane, mapping, about, "stopped on purpose" if halted else "enabled")


def versions(stage: Stage) -> Iterator[Line]:
    """What is started of each worker and intake is what was deployed last, not what a rollback put back."""
    functions = [names.worker(lane.name) for lane in stage.lanes.values() if lane.run is None]
    functions += [names.intake(lane.name) for lane in stage.lanes.values() if lane.intake]
    bad = False
    for function in functions:
        name = names.function(stage.name, function)
        live = stage.client("lambda").get_alias(FunctionName=name, Name=names.LIVE)
        pages = stage.client("lambda").get_paginator("list_versions_by_function").paginate(FunctionName=name)
        numbers = (one["Version"] for page in pages for one in page["Versions"])
        newest = max((int(number) for number in numbers if number.isdigit()), default=None)
        if newest is not None and str(newest) != live["FunctionVersion"]:
            bad = True
            todo = f"a rollback: deploy the revert, or point the alias at {newest}; see docs/deploy.md#rollback"
            yield warn(f"version {function}", f"{names.LIVE} is {live['FunctionVersion']}, deployed is {newest}", todo)
    if not bad:
        yield ok("versions", f"{names.LIVE} is what was deployed last, of {len(functions)} functions")


def _cap(stage: Stage, lane: LaneSpec, mapping: Mapping[str, Any], about: str, state: str) -> Line:
    if "ReportBatchItemFailures" not in mapping.get("FunctionResponseTypes", []):
        return fail(about, "one failed message returns its whole batch", "deploy the lane's stack")
    cap = mapping.get("ScalingConfig", {}).get("MaximumConcurrency")
    wanted = cap_wanted(stage.control.capacity(lane.name), lane)
    if cap is None or cap > lane.ceiling:
        return fail(about, f"{state}, cap {cap or 'none'}: above its ceiling of {lane.ceiling}", f"set it to {wanted}")
    if cap != wanted:
        advice = "the governor sets it within a minute; if it does not, look at its runs"
        return warn(about, f"{state}, cap {cap}, wanted {wanted}", advice)
    return ok(about, f"{state}, cap {cap} of at most {lane.ceiling}")


def stream(stage: Stage) -> Iterator[Line]:
    """The stream's two readers read: admission and the change feed."""
    for reader, else_ in (("stream", "no new job is sent"), ("feed", "subscribers hear of no job")):
        mapping = _mapping(stage, names.function(stage.name, reader))
        if mapping is None:
            yield fail(reader, f"it does not read the jobs table's stream: {else_}", "deploy the Control stack")
        elif mapping.get("State") != "Enabled":
            todo = f"enable event source mapping {mapping['UUID']}: {else_} without it"
            yield fail(reader, f"its mapping is {mapping.get('State')}", todo)
        elif "PROBLEM" in mapping.get("LastProcessingResult", ""):
            yield warn(reader, "its last batch failed", f"read the log of the function `{reader}`")
        else:
            yield ok(reader, "its mapping is enabled")


def stream_age(stage: Stage) -> Iterator[Line]:
    """Nothing has been waiting in the stream for long."""
    now = stage.clock.now()
    points = stage.client("cloudwatch").get_metric_statistics(
        Namespace="AWS/Lambda",
        MetricName="IteratorAge",
        Dimensions=[{"Name": "FunctionName", "Value": names.function(stage.name, "stream")}],
        StartTime=now - timedelta(minutes=STREAM_LOOK_MIN),
        EndTime=now,
        Period=60,
        Statistics=["Maximum"],
    )["Datapoints"]
    if not points:
        yield skip(
            "stream age",
            f"no data in {STREAM_LOOK_MIN} minutes: nothing was read, or this endpoint keeps no metrics",
        )
        return
    age_s = max(points, key=lambda point: point["Timestamp"])["Maximum"] / 1000
    if age_s > STREAM_AGE_S:
        todo = "read the log of the function `stream`; jobs are stored and safe, and are sent when it catches up"
        yield fail("stream age", f"the oldest record waits for {span(age_s)}", todo)
    else:
        yield ok("stream age", f"{span(age_s)} behind")


def quota(stage: Stage) -> Iterator[Line]:
    """The account allows as many functions at once as the lanes may use."""
    limit = int(stage.client("lambda").get_account_settings()["AccountLimit"]["ConcurrentExecutions"])
    others = ENGINE_CONCURRENCY + sum(lane.intake_at_once for lane in stage.lanes.values())
    base = sum(lane.baseline for lane in stage.lanes.values()) + others
    most = sum(lane.ceiling for lane in stage.lanes.values()) + others
    numbers = f"{limit} functions at once; this stage uses {base} at its baselines, at most {most}"
    if limit < base:
        yield fail("quota", numbers, QUOTA)
    elif limit < most:
        yield warn("quota", numbers, QUOTA)
    else:
        yield ok("quota", numbers)


def _mapping(stage: Stage, function: str, qualifier: str = "") -> dict[str, Any] | None:
    """The function's one event source."""
    name = f"{function}:{qualifier}" if qualifier else function
    found = stage.client("lambda").list_event_source_mappings(FunctionName=name)["EventSourceMappings"]
    if not found:
        return None
    # Some endpoints list without the details.
    whole: dict[str, Any] = stage.client("lambda").get_event_source_mapping(UUID=found[0]["UUID"])
    return whole
