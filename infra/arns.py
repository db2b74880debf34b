"""Where each resource of the grants table is. Put together from physical names wherever there is one, so that
stacks do not hold on to each other; what has no name of its own (a stream, a key, a secret) is passed in.
"""

from __future__ import annotations

from dataclasses import dataclass

from aws_cdk import ArnFormat, Stack

from infra import naming
from infra.grants import RUN_ROLES, Resource
from shared.contract import names
from shared.core.stage import StageSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Arns:
    """The resources as one function's stack sees them."""

    stack: Stack
    stage: StageSpec
    lane: str | None = None
    stream_arn: str | None = None
    key_arn: str | None = None
    secret_arn: str | None = None

    def of(self, resource: Resource) -> list[str]:
        """Every ARN the word stands for; none when this stage does not have it (a lane without a secret)."""
        match resource:
            case Resource.JOBS | Resource.EFFECTS | Resource.CONTROL | Resource.LEDGER | Resource.HISTORY:
                return [self.table(resource.value)]
            case Resource.WAITING:
                return [f"{self.table('jobs')}/index/{names.WAITING_INDEX}"]
            case Resource.STREAM:
                return [_needed(self.stream_arn, resource)]
            case Resource.ANY_STREAM:
                return [f"{self.table('jobs')}/stream/*"]
            case Resource.EVENT_SOURCES:
                return [self.event_sources()]
            case Resource.ANY_EVENT_SOURCE:
                return ["*"]
            case Resource.OWN_QUEUE:
                return [self.queue(names.queue(self.stage.name, _needed(self.lane, resource)))]
            case Resource.LANE_QUEUES:
                return [self.queue(names.queue(self.stage.name, lane)) for lane in self.with_queues]
            case Resource.DEAD_LETTERS:
                return [self.queue(names.dead_letter_queue(self.stage.name, lane)) for lane in self.stage.lanes]
            case Resource.STREAM_FAILURES:
                return [self.queue(naming.failure_queue(self.stage.name, "stream"))]
            case Resource.FEED_FAILURES:
                return [self.queue(naming.failure_queue(self.stage.name, "feed"))]
            case Resource.EVENT_BUS:
                return [self.event_bus()]
            case Resource.RUN_FAILURES:
                of = "run" if self.lane is None else naming.run_failures(self.lane, "run")
                return [self.queue(naming.failure_queue(self.stage.name, of))]
            case Resource.CONTENT:
                return [f"{self.bucket()}/*"]
            case Resource.PAYLOADS:
                return [f"{self.bucket()}/{names.PAYLOADS}*"]
            case Resource.CONTENT_BUCKET:
                return [self.bucket()]
            case Resource.PAYLOAD_ROWS:
                return [self.table(names.CONTENT_TABLE)]
            case Resource.CONTENT_KEY | Resource.PAYLOAD_ROWS_KEY:
                return [_needed(self.key_arn, resource)]
            case Resource.SECRET:
                return [self.secret_arn] if self.secret_arn else []
            case _:
                return self._of_all(resource)

    def _of_all(self, resource: Resource) -> list[str]:
        """What people look at: every one of its kind in the stage, since one ARN a lane would not fit into a policy."""
        ours = f"{names.PREFIX}-{self.stage.name}"
        match resource:
            case Resource.PRODUCED:
                return [f"{self.bucket()}/{place}*" for place in names.PRODUCED]
            case Resource.ALL_QUEUES:
                return [self.queue(f"{ours}-*")]
            case Resource.ALL_DEAD_LETTERS:
                return [self.queue(names.dead_letter_queue(self.stage.name, "*"))]
            case Resource.ALL_EVENT_SOURCES:
                return [self.event_sources()]
            case Resource.ALL_FUNCTIONS:
                return [self._colon("lambda", "function", f"{ours}-*")]
            case Resource.ALL_RUNS:
                # Runs alone have an underscore before their part: no worker and no function of the engine is meant.
                return [self._colon("lambda", "function", f"{ours}-*_{role}") for role in RUN_ROLES]
            case Resource.ALL_LOGS:
                return [self._colon("logs", "log-group", f"/aws/lambda/{ours}-*")]
            case Resource.ALL_SCHEDULES:
                return [self._slash("scheduler", "schedule", f"{ours}*/*")]
            case Resource.ALL_STACKS:
                return [self._slash("cloudformation", "stack", f"{names.stack(self.stage.name, '*')}/*")]
            case Resource.ALL_SECRETS:
                return [self._colon("secretsmanager", "secret", names.secret(self.stage.name, "*"))]
            case Resource.PARAMETERS:
                return [self._slash("ssm", "parameter", f"{names.PREFIX}/{self.stage.name}/*")]
            case Resource.LANES_PARAMETER:
                lanes = names.lanes_parameter(self.stage.name).lstrip("/")
                return [self._slash("ssm", "parameter", one) for one in (lanes, f"{lanes}/*")]
            case Resource.ALARM_TOPIC:
                return [self._alone("sns", naming.alarm_topic(self.stage.name))]
        return ["*"]

    def _slash(self, service: str, kind: str, name: str) -> str:
        return str(self.stack.format_arn(service=service, resource=kind, resource_name=name))

    def _colon(self, service: str, kind: str, name: str) -> str:
        colon = ArnFormat.COLON_RESOURCE_NAME
        return str(self.stack.format_arn(service=service, resource=kind, resource_name=name, arn_format=colon))

    def _alone(self, service: str, name: str) -> str:
        return str(self.stack.format_arn(service=service, resource=name))

    @property
    def with_queues(self) -> list[str]:
        """The lanes whose jobs are sent; those with runs have no queue and no worker of that kind."""
        return [name for name, lane in self.stage.lanes.items() if lane.run is None]

    def table(self, name: str) -> str:
        """A table."""
        arn: str = self.stack.format_arn(
            service="dynamodb", resource="table", resource_name=names.table(self.stage.name, name)
        )
        return arn

    def queue(self, name: str) -> str:
        """A queue, by its physical name."""
        arn: str = self.stack.format_arn(service="sqs", resource=name)
        return arn

    def event_bus(self) -> str:
        """The bus of the change feed."""
        arn: str = self.stack.format_arn(
            service="events", resource="event-bus", resource_name=names.event_bus(self.stage.name)
        )
        return arn

    def event_sources(self) -> str:
        """Every event source: their ids are known only once they are made. A condition names whose they are."""
        arn: str = self.stack.format_arn(
            service="lambda",
            resource="event-source-mapping",
            resource_name="*",
            arn_format=ArnFormat.COLON_RESOURCE_NAME,
        )
        return arn

    def workers(self) -> list[str]:
        """The lanes' workers, each by its live alias and by itself."""
        found: list[str] = [
            self.stack.format_arn(
                service="lambda",
                resource="function",
                resource_name=names.function(self.stage.name, names.worker(lane)) + alias,
                arn_format=ArnFormat.COLON_RESOURCE_NAME,
            )
            for lane in self.with_queues
            for alias in ("", f":{names.LIVE}")
        ]
        return found

    def bucket(self) -> str:
        """The content store's bucket."""
        bucket = names.bucket(self.stage.name, self.stack.account, self.stack.region)
        arn: str = self.stack.format_arn(
            service="s3", resource=bucket, region="", account="", arn_format=ArnFormat.NO_RESOURCE_NAME
        )
        return arn


def _needed(value: str | None, resource: Resource) -> str:
    if value is None:
        raise ValueError(f"{resource.value}: this function's stack was not told where it is")
    return value
