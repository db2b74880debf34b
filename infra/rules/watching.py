"""Rules about alarms."""

from __future__ import annotations

from collections.abc import Iterator

from infra.rules.assembly import Assembly, texts
from infra.rules.queues import failure_queues
from infra.rules.registry import rule


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
