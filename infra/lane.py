"""`Lane`: one statement gives a lane its queue, dead letters, worker, alias and event source."""

from __future__ import annotations

from aws_cdk import Duration, Stack, Tags
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra import naming, settings
from infra.arns import Arns
from infra.deployment import Deployment
from infra.function import PlatformFunction
from infra.grants import WORKER
from infra.intake import Intake
from infra.lane_parts import LANE_TAG, check_lane, dead_letter_queue, vendor_secret
from infra.runs import RunLane
from shared.contract import names
from shared.core.lane import LaneSpec


class Lane(Construct):
    """A lane, built from its entry in `config/`: `Lane(self, "Support", spec=…, deployment=…, key_arn=…)`."""

    def __init__(
        self, scope: Construct, construct_id: str, *, spec: LaneSpec, deployment: Deployment, key_arn: str
    ) -> None:
        check_lane(spec, deployment)
        super().__init__(scope, construct_id)
        self.spec = spec
        self._deployment = deployment

        self.dead_letters = dead_letter_queue(self, spec.name, stage=deployment.stage.name)
        self.queue = self._queue()
        self.secret = vendor_secret(self, spec, deployment)
        self.worker = self._worker(key_arn)
        self.live = lambda_.Alias(self, "Live", alias_name=names.LIVE, version=self.worker.function.current_version)
        self.source = lambda_.EventSourceMapping(
            self,
            "Source",
            # The alias, not the function: a rollback repoints it and touches nothing else.
            target=self.live,
            event_source_arn=self.queue.queue_arn,
            batch_size=spec.batch_size,
            # The throttle. Reserved concurrency would throttle by failing receives, which dead-letters good jobs.
            max_concurrency=spec.baseline,
            report_batch_item_failures=True,
        )
        self.intake = None if spec.intake is None else self._intake(key_arn)
        Tags.of(self).add(LANE_TAG, spec.name)

    def _queue(self) -> sqs.Queue:
        return sqs.Queue(
            self,
            "Queue",
            queue_name=names.queue(self._deployment.stage.name, self.spec.name),
            visibility_timeout=Duration.seconds(self.spec.visibility_s),
            retention_period=Duration.days(self.spec.source_retention_days),
            dead_letter_queue=sqs.DeadLetterQueue(
                queue=self.dead_letters, max_receive_count=self.spec.max_receive_count
            ),
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
        )

    def _worker(self, key_arn: str) -> PlatformFunction:
        stack = Stack.of(self)
        stage = self._deployment.stage
        secret_arn = self.secret.secret_arn if self.secret is not None else None
        return PlatformFunction(
            self,
            "Worker",
            deployment=self._deployment,
            name=names.worker(self.spec.name),
            package=self.spec.name,
            granted_as=WORKER,
            arns=Arns(stack=stack, stage=stage, lane=self.spec.name, key_arn=key_arn, secret_arn=secret_arn),
            settings=settings.of_worker(self.spec, stage),
            timeout_s=self.spec.function_timeout_s,
            memory_mb=self.spec.memory_mb,
            reserved=self.spec.ceiling if stage.reserved_concurrency else None,
        )

    def _intake(self, key_arn: str) -> Intake:
        return Intake(self, "Intake", spec=self.spec, deployment=self._deployment, key_arn=key_arn)


class LaneStack(Stack):
    """One lane, deployed and rolled back on its own."""

    def __init__(
        self, scope: Construct, construct_id: str, *, spec: LaneSpec, deployment: Deployment, key_arn: str
    ) -> None:
        stage = deployment.stage.name
        super().__init__(
            scope,
            construct_id,
            env=deployment.environment,
            stack_name=names.stack(stage, naming.lane_part(spec.name)),
            description=f"Penstock {stage}: lane {spec.name}",
        )
        kind = Lane if spec.run is None else RunLane
        self.lane: Lane | RunLane = kind(self, "Lane", spec=spec, deployment=deployment, key_arn=key_arn)
