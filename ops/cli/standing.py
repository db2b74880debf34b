"""What stands in a stage and costs by the hour, counted from the templates it was deployed with."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ops.cli.prices import HOURS, Standing
from ops.cli.stage import Stage
from shared.contract import metrics, names
from shared.core.errors import BadInput

Template = Mapping[str, Any]
_RATE = re.compile(r"rate\((\d+) (minute|hour|day)s?\)")
_MINUTES = {"minute": 1, "hour": 60, "day": 1440}
_RETIRED = ("DELETE_COMPLETE", "REVIEW_IN_PROGRESS")


@dataclass(frozen=True, slots=True)
class _Found:
    """The resources of some templates."""

    templates: tuple[Template, ...]

    def of(self, kind: str) -> Iterator[Mapping[str, Any]]:
        """The properties of each resource of a type."""
        for template in self.templates:
            for resource in template.get("Resources", {}).values():
                if resource.get("Type") == kind:
                    yield resource.get("Properties", {})


def deployed(stage: Stage) -> Standing:
    """What the stage's stacks hold now, and which metrics of ours were written in the last hours."""
    formation = stage.client("cloudformation")
    prefix = names.stack(stage.name, "")
    stacks = [
        one["StackName"]
        for page in formation.get_paginator("describe_stacks").paginate()
        for one in page["Stacks"]
        if one["StackName"].startswith(prefix) and one["StackStatus"] not in _RETIRED
    ]
    if not stacks:
        raise BadInput("stage", f"{stage.name} has no stacks: is it deployed?")
    templates = [_read(formation.get_template(StackName=name)["TemplateBody"]) for name in stacks]
    return counted(templates, written=_written(stage))


def counted(templates: Iterable[Template], *, written: int) -> Standing:
    """What is paid for by its being there."""
    found = _Found(tuple(templates))
    return Standing(
        alarm_metrics=sum(_metrics_of(alarm) for alarm in found.of("AWS::CloudWatch::Alarm")),
        alarms=len([*found.of("AWS::CloudWatch::Alarm")]),
        metrics=written,
        dashboards=len([*found.of("AWS::CloudWatch::Dashboard")]),
        secrets=len([*found.of("AWS::SecretsManager::Secret")]),
        keys=len([*found.of("AWS::KMS::Key")]),
        # Only a mapping of a queue is polled for money; a stream's is free for Lambda.
        polled_queues=len(
            [one for one in found.of("AWS::Lambda::EventSourceMapping") if "StartingPosition" not in one]
        ),
        runs=sum(_runs(schedule) for schedule in found.of("AWS::Scheduler::Schedule")),
    )


def _metrics_of(alarm: Mapping[str, Any]) -> int:
    """An alarm is paid for by each metric that it looks at."""
    return sum(1 for one in alarm.get("Metrics", ()) if "MetricStat" in one) or 1


def _runs(schedule: Mapping[str, Any]) -> float:
    """How often a schedule fires in a month."""
    rate = _RATE.fullmatch(str(schedule.get("ScheduleExpression", "")))
    if rate is None or schedule.get("State") == "DISABLED":
        return 0
    return HOURS * 60 / (int(rate[1]) * _MINUTES[rate[2]])


def _written(stage: Stage) -> int:
    pages = stage.client("cloudwatch").get_paginator("list_metrics")
    asked = {"Namespace": metrics.NAMESPACE, "Dimensions": [{"Name": metrics.STAGE, "Value": stage.name}]}
    return sum(len(page["Metrics"]) for page in pages.paginate(**asked, RecentlyActive="PT3H"))


def _read(body: object) -> Template:
    """A template as CloudFormation keeps it: the SDK has read JSON already."""
    if isinstance(body, str):
        body = json.loads(body)
    return body if isinstance(body, Mapping) else {}
