"""Checks of what is going on: secrets, alarms and who hears them, dead letters, schedules and their runs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from botocore.exceptions import ClientError

from ops.cli.checks.line import Line, fail, ok, warn
from ops.cli.show import ago, span
from ops.cli.stage import Stage
from shared.contract import names
from shared.core.lane import LaneSpec

_RATE = re.compile(r"rate\((\d+) (minute|hour|day)s?\)")
_UNIT_S = {"minute": 60, "hour": 3600, "day": 86_400}
PERIODS_MISSED = 3
FAILURE_QUEUE = "-failed"
FILLED = "AWSPREVIOUS"
"""The label that the value before the present one has."""


def people(stage: Stage) -> Iterator[Line]:
    """What takes two people takes two, and whether this caller can be one of them."""
    if stage.people.free_session_names:
        todo = f"take it out of config/{stage.name}.yaml and deploy, unless one person is meant to be two"
        yield warn("people", "free_session_names: whoever says it is somebody else counts as a second person", todo)
    elif stage.people.named(stage.caller.arn) is None:
        found = f"{stage.caller.arn} may have chosen its name: its yes to a replay does not count"
        yield warn("people", found, f"to replay, {stage.people.instead}")
    else:
        yield ok("people", f"a second yes counts from whom AWS names; this caller is {stage.caller.arn.split('/')[-1]}")


def secrets(stage: Stage) -> Iterator[Line]:
    """Each lane's secret was filled once. Its value is nobody's business here: it is not read."""
    for lane in stage.lanes.values():
        if lane.secret is not None:
            yield _secret(stage, lane, names.secret(stage.name, lane.secret))


def _secret(stage: Stage, lane: LaneSpec, name: str) -> Line:
    about = f"secret {lane.name}"
    shape = ", ".join(f'"{vendor}": "…"' for vendor in lane.vendors)
    todo = f"fill it: `aws secretsmanager put-secret-value --secret-id {name} --secret-string '{{{shape}}}'`"
    try:
        told = stage.client("secretsmanager").describe_secret(SecretId=name)
    except ClientError as exc:
        if exc.response.get("Error", {}).get("Code") != "ResourceNotFoundException":
            raise
        return fail(about, f"{name} does not exist", f"deploy the lane's stack, then {todo}")
    if told.get("DeletedDate"):
        restore = f"`aws secretsmanager restore-secret --secret-id {name}`"
        return fail(about, f"{name} is going to be deleted", f"take it back: {restore}")
    # A deploy writes the first value; what somebody puts after it makes that one the value before.
    if not any(FILLED in stages for stages in told.get("VersionIdsToStages", {}).values()):
        return fail(about, f"{name} holds nothing but what its stack made it with", todo)
    return ok(about, f"{name} was filled; it should hold {', '.join(lane.vendors) or 'nothing'}")


def alarms(stage: Stage) -> Iterator[Line]:
    """There are alarms, they speak to somebody, and none rings now."""
    pages = stage.client("cloudwatch").get_paginator("describe_alarms").paginate(AlarmNamePrefix=f"{_prefix(stage)}-")
    found = [alarm for page in pages for alarm in page.get("MetricAlarms", [])]
    if not found:
        yield fail("alarms", "there are none", "deploy the Watch stacks")
        return
    mute = [alarm["AlarmName"] for alarm in found if not alarm.get("AlarmActions")]
    if mute:
        yield fail(
            "alarms", f"{len(mute)} of {len(found)} speak to nobody: {', '.join(mute[:3])}", "deploy the Watch stacks"
        )
    ringing = sorted(alarm["AlarmName"] for alarm in found if alarm.get("StateValue") == "ALARM")
    if ringing:
        yield warn(
            "alarms",
            f"{len(ringing)} of {len(found)} ring: {', '.join(ringing)}",
            "their descriptions name the page to read",
        )
    elif not mute:
        yield ok("alarms", f"{len(found)}, none rings")
    topics = {action for alarm in found for action in alarm.get("AlarmActions", []) if ":sns:" in action}
    for topic in sorted(topics):
        yield _subscribers(stage, topic)


def _subscribers(stage: Stage, topic: str) -> Line:
    pages = stage.client("sns").get_paginator("list_subscriptions_by_topic").paginate(TopicArn=topic)
    found = [one["SubscriptionArn"] for page in pages for one in page["Subscriptions"]]
    heard = [arn for arn in found if arn.startswith("arn:")]
    name = topic.rsplit(":", 1)[1]
    if heard:
        return ok("subscribers", f"{len(heard)} hear {name}")
    if found:
        return warn("subscribers", f"{len(found)} of {name} never confirmed", "open the e-mail SNS sent and confirm it")
    todo = f"set alarm_email, or slack_workspace_id and slack_channel_id, in config/{stage.name}.yaml and deploy"
    # Only production wakes people: elsewhere silence may be meant.
    return (fail if stage.name == "prod" else warn)("subscribers", f"nobody hears {name}", todo)


def dead_letters(stage: Stage) -> Iterator[Line]:
    """Nothing failed, or somebody knows."""
    for lane in stage.lanes:
        depth = stage.dead_letters.depth(lane).total
        if depth:
            todo = f"`penstock jobs list --lane {lane} --status failed` shows which and why"
            yield warn(f"dead letters {lane}", f"{depth:,} failed jobs", todo)
        else:
            yield ok(f"dead letters {lane}", "none")


def failures(stage: Stage) -> Iterator[Line]:
    """Lambda and Scheduler left nothing that they could not deliver."""
    sqs = stage.client("sqs")
    urls = sqs.list_queues(QueueNamePrefix=f"{_prefix(stage)}-").get("QueueUrls", [])
    left: dict[str, int] = {}
    for url in urls:
        name = url.rsplit("/", 1)[1]
        if name.endswith(FAILURE_QUEUE):
            told = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["ApproximateNumberOfMessages"])
            left[name] = int(told["Attributes"]["ApproximateNumberOfMessages"])
    for name, many in left.items():
        if many:
            todo = "read the function's log; `penstock audit --repair` mends what a lost record left behind"
            yield warn("failures", f"{many:,} in {name}", todo)
    if not any(left.values()):
        yield ok("failures", f"{len(left)} queues for what could not be delivered, all empty")


def schedules(stage: Stage) -> Iterator[Line]:
    """Every schedule is enabled."""
    found = {one["Name"]: one for one in _schedules(stage)}
    bad = False
    for name in stage.every_schedule:
        one = found.get(names.schedule(stage.name, name))
        if one is None or one.get("State", "ENABLED") != "ENABLED":
            bad = True
            state = "missing" if one is None else str(one["State"]).lower()
            stack = "Control" if name in names.SCHEDULED else "lane's"
            todo = f"deploy the {stack} stack, or enable it in EventBridge Scheduler"
            yield fail("schedules", f"{name} is {state}", todo)
    if not bad:
        yield ok("schedules", f"{', '.join(stage.every_schedule)} enabled")


def runs(stage: Stage) -> Iterator[Line]:
    """Every schedule's last run is recent."""
    now = stage.clock.now()
    periods = {one["Name"]: _period_s(stage, one) for one in _schedules(stage)}
    for name in stage.every_schedule:
        about = f"runs {name}"
        newest = next(iter(stage.ledger.runs(name, limit=1)), None)
        period_s = periods.get(names.schedule(stage.name, name))
        if newest is None:
            yield warn(about, "never ran", f"wait {span(period_s or 3600)} after a first deployment, then look again")
        elif period_s is not None and (now - newest.started_at).total_seconds() > PERIODS_MISSED * period_s + 60:
            todo = f"read the log of the function `{name}`; it should run every {span(period_s)}"
            yield fail(about, f"last {ago(newest.started_at, now)}", todo)
        else:
            yield ok(about, f"last {ago(newest.started_at, now)}")


def _schedules(stage: Stage) -> list[dict[str, Any]]:
    pages = stage.client("scheduler").get_paginator("list_schedules").paginate(NamePrefix=f"{_prefix(stage)}-")
    return [one for page in pages for one in page["Schedules"]]


def _period_s(stage: Stage, schedule: dict[str, Any]) -> int | None:
    whole = stage.client("scheduler").get_schedule(
        Name=schedule["Name"], GroupName=schedule.get("GroupName", "default")
    )
    found = _RATE.fullmatch(whole.get("ScheduleExpression", ""))
    return int(found[1]) * _UNIT_S[found[2]] if found else None


def _prefix(stage: Stage) -> str:
    return f"{names.PREFIX}-{stage.name}"
