"""Rules about alarms and dashboards."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from infra import signals
from infra.rules.access import joined
from infra.rules.assembly import Assembly, Resource, Role, texts
from infra.rules.queues import failure_queues
from infra.rules.registry import rule
from shared.contract import metrics
from shared.core.stage import StageSpec


@rule("N11")
def somebody_hears_of_it(assembly: Assembly) -> Iterator[str]:
    """An alarm without an action is a picture; a failure queue without an alarm is a grave."""
    watched: set[str] = set()
    for alarm in assembly.resources("AWS::CloudWatch::Alarm"):
        if not alarm.properties.get("AlarmActions"):
            yield f"{alarm}: needs an action"
        if "docs/runbooks/" not in alarm.properties.get("AlarmDescription", ""):
            yield f"{alarm}: its description must name the runbook's section"
        watched.update(texts(alarm.properties.get("Dimensions", [])))
        watched.update(texts(alarm.properties.get("Metrics", [])))
    for queue in failure_queues(assembly).values():
        if queue.properties.get("QueueName") not in watched:
            yield f"{queue}: no alarm looks at it"


@rule("METRICS")
def somebody_counts_it(assembly: Assembly) -> Iterator[str]:
    """An alarm on a metric that nobody writes never rings, and a graph of it is empty: neither says why."""
    told_of = {
        dimension: {str(one.properties.get(dimension)) for one in assembly.resources(kind)}
        for dimension, kind in (("FunctionName", "AWS::Lambda::Function"), ("QueueName", "AWS::SQS::Queue"))
    }
    roles = assembly.roles()
    for place, look in _looks(assembly):
        of_aws = look.namespace in metrics.FROM_AWS
        mistake = _not_of_aws(told_of, look) if of_aws else _not_of_ours(assembly.stage, roles, look)
        if mistake:
            yield f"{place}: {mistake}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """A metric that somebody looks at."""

    namespace: str
    name: str
    dimensions: Mapping[str, str]
    """An empty value stands for all there are."""


_SEARCH = re.compile(r"SEARCH\('\{([^}]+)\} MetricName=\"([^\"]+)\"([^']*)'")


def _looks(assembly: Assembly) -> Iterator[tuple[Resource, Look]]:
    for alarm in assembly.resources("AWS::CloudWatch::Alarm"):
        stats = [one["MetricStat"]["Metric"] for one in alarm.properties.get("Metrics", []) if "MetricStat" in one]
        for told in stats or [alarm.properties]:
            dimensions = {one["Name"]: one["Value"] for one in told.get("Dimensions", [])}
            name = told.get("MetricName", "")
            yield alarm, Look(namespace=told.get("Namespace", ""), name=name, dimensions=dimensions)
    for page in assembly.resources("AWS::CloudWatch::Dashboard"):
        body = json.loads(joined(page.properties["DashboardBody"]))
        for line in (line for widget in body["widgets"] for line in widget["properties"].get("metrics", [])):
            for look in _drawn(line):
                yield page, look


def _drawn(line: list[Any]) -> Iterator[Look]:
    if isinstance(line[0], str):
        namespace, name, *named = (part for part in line if isinstance(part, str))
        dimensions = dict(zip(named[::2], named[1::2], strict=True))
        yield Look(namespace=namespace, name=name, dimensions=dimensions)
        return
    for asked, name, having in _SEARCH.findall(line[0]["expression"]):
        namespace, *by = asked.split(",")
        dimensions = dict.fromkeys(by, "") | dict(re.findall(r'(\w+)="([^"]*)"', having))
        yield Look(namespace=namespace, name=name, dimensions=dimensions)


def _not_of_aws(told_of: Mapping[str, set[str]], look: Look) -> str:
    dimension, known = metrics.FROM_AWS[look.namespace]
    if look.name not in known or set(look.dimensions) != {dimension}:
        return f"{look.namespace} counts no {look.name} by {', '.join(look.dimensions)}"
    of = look.dimensions[dimension]
    return "" if of in told_of[dimension] else f"{look.namespace} {look.name} of {of}, which is not in this stage"


def _not_of_ours(stage: StageSpec, roles: Mapping[str, Role], look: Look) -> str:
    if look.namespace != metrics.NAMESPACE or look.name not in metrics.COUNTED_BY:
        return f"nobody counts {look.namespace} {look.name}"
    by = {metrics.LANE, signals.SERVICE, metrics.STAGE, *([metrics.ACCOUNT] * (look.name in metrics.OF_AN_ACCOUNT))}
    if set(look.dimensions) != by:
        return f"{look.name} is not counted by {', '.join(look.dimensions)}"
    lane, service = look.dimensions[metrics.LANE], look.dimensions[signals.SERVICE]
    counted_for = (metrics.ALL_LANES,) if look.name in metrics.OF_THE_STAGE else stage.lanes
    if look.dimensions[metrics.STAGE] != stage.name or (lane and lane not in counted_for):
        return f"{look.name} is not counted for {lane or 'any lane'} of {look.dimensions[metrics.STAGE]}"
    counting = [
        function
        for function, role in roles.items()
        if role.kind in metrics.COUNTED_BY[look.name]
        and service in ("", function)
        and (lane not in stage.lanes or role.lane is None or role.lane.name == lane)
    ]
    return "" if counting else f"{service or 'this stage'} counts no {look.name} of {lane or 'any lane'}"
