"""The Control stack: the two readers of the stream and the scheduled functions."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from aws_cdk import Duration, Stack
from aws_cdk import aws_events as events
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_scheduler as scheduler
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra import environment, naming, queues, settings
from infra.arns import Arns
from infra.deployment import Deployment
from infra.function import PlatformFunction
from infra.schedules import ScheduledRun
from shared.contract import names, table

_Image = Mapping[str, Mapping[str, Sequence[object]]]
"""What a filter asks of a row: attribute, its type, and the values or conditions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """What an engine function gets."""

    timeout_s: int
    memory_mb: int


SIZES: Mapping[str, Size] = {
    "stream": Size(timeout_s=60, memory_mb=512),
    "feed": Size(timeout_s=30, memory_mb=256),
    "dispatcher": Size(timeout_s=58, memory_mb=512),
    "sweeper": Size(timeout_s=120, memory_mb=256),
    "triage": Size(timeout_s=50, memory_mb=256),
    "auditor": Size(timeout_s=600, memory_mb=512),
    "redriver": Size(timeout_s=55, memory_mb=256),
    "governor": Size(timeout_s=50, memory_mb=256),
}

ALONE = ("governor",)
"""One at a time, where the stage reserves: it is the only writer of caps."""
STREAM_BATCH = 10
STREAM_PARALLEL = 4
"""Batches of one shard at a time; a job's own records stay in order."""
STREAM_RETRIES = 100
STREAM_MAX_AGE = Duration.hours(12)
"""The stream forgets after 24 h: half of it is left to notice and mend."""


class ControlStack(Stack):
    """Admission, dispatch, sweep, triage and audit."""

    def __init__(
        self, scope: Construct, construct_id: str, *, deployment: Deployment, stream_arn: str, key_arn: str
    ) -> None:
        stage = deployment.stage
        super().__init__(
            scope,
            construct_id,
            env=deployment.environment,
            stack_name=names.stack(stage.name, "Control"),
            description=f"Penstock {stage.name}: admission, dispatch, sweep, triage, audit",
        )
        self._deployment = deployment
        self._arns = Arns(stack=self, stage=stage, stream_arn=stream_arn, key_arn=key_arn)
        self._settings = settings.of_engine(stage)
        self.functions = {name: self._function(name) for name in names.ENGINE_FUNCTIONS}
        self.failures = {of: self._failure_queue(of) for of in naming.FAILURES}
        # Subscribers put their rules on this bus; of these functions only the feed may publish there.
        events.EventBus(
            self,
            "Changes",
            event_bus_name=names.event_bus(stage.name),
            description=f"Penstock {stage.name}: jobs that changed their state, ids and states only",
        )
        self._read_stream("stream", "Outbox", stream_arn, stream_filters())
        self._read_stream("feed", "ChangeFeed", stream_arn, feed_filters(), goes_on_from="ReportBatchItemFailures")
        self._schedule_runs()

    def _function(self, name: str) -> PlatformFunction:
        stage = self._deployment.stage
        scheduled = name in names.SCHEDULED
        return PlatformFunction(
            self,
            name.capitalize(),
            deployment=self._deployment,
            name=name,
            package=name,
            granted_as=name,
            arns=self._arns,
            settings=self._settings if environment.reads_rows(name) else {},
            also=environment.of_schedule(name, getattr(stage.schedules, name), stage) if scheduled else {},
            timeout_s=SIZES[name].timeout_s,
            memory_mb=SIZES[name].memory_mb,
            reserved=1 if name in ALONE and stage.reserved_concurrency else None,
        )

    def _read_stream(
        self, name: str, construct_id: str, stream_arn: str, filters: list[str], *, goes_on_from: str | None = None
    ) -> None:
        consumer = self.functions[name]
        mapping = lambda_.CfnEventSourceMapping(
            self,
            construct_id,
            function_name=consumer.function.function_name,
            event_source_arn=stream_arn,
            batch_size=STREAM_BATCH,
            parallelization_factor=STREAM_PARALLEL,
            # From the first record: a job stored before the consumer existed is still sent.
            starting_position="TRIM_HORIZON",
            maximum_retry_attempts=STREAM_RETRIES,
            maximum_record_age_in_seconds=int(STREAM_MAX_AGE.to_seconds()),
            bisect_batch_on_function_error=True,
            function_response_types=[goes_on_from] if goes_on_from else None,
            # Holds positions, not records: the auditor mends what admission left, subscribers read the table.
            destination_config=lambda_.CfnEventSourceMapping.DestinationConfigProperty(
                on_failure=lambda_.CfnEventSourceMapping.OnFailureProperty(destination=self.failures[name].queue_arn)
            ),
            filter_criteria=lambda_.CfnEventSourceMapping.FilterCriteriaProperty(
                filters=[lambda_.CfnEventSourceMapping.FilterProperty(pattern=pattern) for pattern in filters]
            ),
        )
        # Lambda looks at the stream and the failure queue while it makes the mapping: the role must be whole.
        mapping.node.add_dependency(consumer.role)

    def _schedule_runs(self) -> None:
        stage = self._deployment.stage
        group = scheduler.CfnScheduleGroup(self, "Schedules", name=naming.schedule_group(stage.name))
        for name in names.SCHEDULED:
            period_s = getattr(stage.schedules, name)
            if SIZES[name].timeout_s >= period_s:
                raise ValueError(f"schedules.{name}: a run may take {SIZES[name].timeout_s} s, so runs would overlap")
            ScheduledRun(
                self,
                f"{name.capitalize()}Run",
                stage=stage.name,
                name=name,
                period_s=period_s,
                function=self.functions[name].function,
                group=group,
                undelivered=self.failures["schedule"],
                failed_runs=self.failures["run"],
            )

    def _failure_queue(self, of: str) -> sqs.Queue:
        stage = self._deployment.stage.name
        return queues.failure_queue(
            self, f"{of.capitalize()}Failures", name=naming.failure_queue(stage, of), stage=stage
        )


_NEW_ROW = {table.PK: {"S": [{"exists": False}]}}
"""The image before a row's first write. AWS promises filters for what stands under `dynamodb` alone: the images tell by
themselves what `eventName` says beside them."""


def stream_filters() -> list[str]:
    """New jobs and jobs that moved to `queued`, in no index; jobs that became `failed`. Never a removal.

    A row that stays in its state is passed over: it was held, handed off or given another time.
    """
    queued: _Image = {"status": {"S": ["queued"]}, table.WAITING_PK: {"S": [{"exists": False}]}}
    failed: _Image = {"status": {"S": ["failed"]}}
    patterns: list[str] = []
    for word, image in (("queued", queued), ("failed", failed)):
        patterns.append(_pattern("INSERT", before=_NEW_ROW, after=image))
        patterns.append(_pattern("MODIFY", before={"status": {"S": [{"anything-but": [word]}]}}, after=image))
    return patterns


def feed_filters() -> list[str]:
    """New jobs and jobs that changed their state. Never a removal, never a row that is no job.

    Only queued and failed jobs are written without changing their state. Lambda takes five filters.
    """
    job = {table.PK: {"S": [{"prefix": table.job_pk("")}]}}
    any_state, stay = {"status": {"S": [{"exists": True}]}}, ("queued", "failed")
    moved_on = {"status": {"S": [{"anything-but": list(stay)}]}}
    patterns = [
        _pattern("INSERT", before=_NEW_ROW, after=any_state, keys=job),
        _pattern("MODIFY", before=any_state, after=moved_on, keys=job),
    ]
    for word in stay:
        before, after = {"status": {"S": [{"anything-but": [word]}]}}, {"status": {"S": [word]}}
        patterns.append(_pattern("MODIFY", before=before, after=after, keys=job))
    return patterns


def _pattern(event: str, *, before: _Image, after: _Image, keys: _Image | None = None) -> str:
    images = {"OldImage": before, "NewImage": after}
    return json.dumps({"eventName": [event], "dynamodb": {**({"Keys": keys} if keys else {}), **images}})
