"""`Lane`: one statement gives a lane its queue, dead letters, worker, alias and event source."""

from __future__ import annotations

from aws_cdk import Duration, SecretValue, Stack, Tags
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_secretsmanager as secretsmanager
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra import environment, naming, queues
from infra.arns import Arns
from infra.deployment import Deployment
from infra.function import PlatformFunction
from infra.grants import WORKER
from infra.intake import Intake
from shared.contract import names
from shared.core.lane import LaneSpec

LANE_TAG = "penstock:lane"


class Lane(Construct):
    """A lane, built from its entry in `config/`: `Lane(self, "Support", spec=…, deployment=…, key_arn=…)`."""

    def __init__(
        self, scope: Construct, construct_id: str, *, spec: LaneSpec, deployment: Deployment, key_arn: str
    ) -> None:
        _check(spec, deployment)
        super().__init__(scope, construct_id)
        self.spec = spec
        self._deployment = deployment

        self.dead_letters = self._dead_letter_queue()
        self.queue = self._queue()
        self.secret = self._secret()
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

    def _dead_letter_queue(self) -> sqs.Queue:
        stage = self._deployment.stage.name
        stack = Stack.of(self)
        # By name: the two queues point at each other.
        source_arn = stack.format_arn(service="sqs", resource=names.queue(stage, self.spec.name))
        dead_letters = sqs.Queue(
            self,
            "DeadLetters",
            queue_name=names.dead_letter_queue(stage, self.spec.name),
            retention_period=queues.FAILURES_KEPT,
            redrive_allow_policy=sqs.RedriveAllowPolicy(
                redrive_permission=sqs.RedrivePermission.BY_QUEUE,
                source_queues=[sqs.Queue.from_queue_arn(self, "QueueByName", source_arn)],
            ),
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
        )
        queues.keep_from_moving(dead_letters, stage=stage)
        return dead_letters

    def _secret(self) -> secretsmanager.Secret | None:
        if self.spec.secret is None:
            return None
        stage = self._deployment.stage.name
        return secretsmanager.Secret(
            self,
            "Secret",
            secret_name=names.secret(stage, self.spec.secret),
            description=f"Penstock {stage}: vendor tokens of lane {self.spec.name}, JSON: vendor to token",
            # Made empty and filled by hand (docs/deploy.md). A deploy writes it again only if this line changes.
            secret_string_value=SecretValue.unsafe_plain_text("{}"),
            removal_policy=self._deployment.removal_policy,
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
            environment=environment.of_worker(self.spec, stage, stack, secret_arn=secret_arn),
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
        self.lane = Lane(self, "Lane", spec=spec, deployment=deployment, key_arn=key_arn)


def _check(spec: LaneSpec, deployment: Deployment) -> None:
    """What a lane's own checks cannot see, because it concerns the rest of the stage."""
    if spec.name in (*names.ENGINE_FUNCTIONS, names.INTAKE):
        raise ValueError(f"lanes.{spec.name}: the engine has a function of that name; choose another")
    missing = [vendor for vendor in spec.vendors if vendor not in deployment.stage.vendors]
    if missing:
        raise ValueError(f"lanes.{spec.name}.vendors: {', '.join(missing)} is not defined in this stage")
