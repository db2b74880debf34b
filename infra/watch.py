"""The Watch stacks: dashboards, alarms, and the topic that carries them to people. Each lane has one of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from aws_cdk import Annotations, RemovalPolicy, Stack
from aws_cdk import aws_chatbot as chatbot
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from constructs import Construct

from infra import alarms, dashboards, naming
from infra.deployment import Deployment
from shared.contract import names
from shared.core.lane import LaneSpec
from shared.core.stage import ALL_ALARMS, StageSpec

NO_CHANNEL = "penstock:no-alarm-channel"
ESSENTIAL = frozenset(
    (
        *("dead-letters", "effects-unknown", "effects-contradicted", "quarantined", "jobs-repaired", "canary-late"),
        *("stream-gave-up", "feed-gave-up", "schedule-undelivered", "run-failed", "cost-spike"),
    )
)
"""What a stage with `alarms: essential` rings for: something is lost, unknown, doubled, stands still or costs much."""


class WatchStack(Stack):
    """Looks at the other stacks by name only: it comes after them, and can be deleted without them."""

    def __init__(self, scope: Construct, construct_id: str, *, deployment: Deployment) -> None:
        self._stage = deployment.stage
        super().__init__(
            scope,
            construct_id,
            env=deployment.environment,
            stack_name=names.stack(self._stage.name, "Watch"),
            description=f"Penstock {self._stage.name}: dashboards and alarms of the engine",
        )
        self.topic = self._topic()
        self.email: sns.Subscription | None = None
        self._connect_people()
        dashboards.engine_dashboard(self, "EngineDashboard", stage=self._stage)
        for spec in _wanted(alarms.of_engine(self._stage), self._stage):
            _alarm(self, spec, stage=self._stage.name, topic=self.topic)

    def _topic(self) -> sns.Topic:
        # A key of its own: CloudWatch may not use the key that AWS keeps for SNS.
        key = kms.Key(
            self,
            "AlarmKey",
            alias=naming.alarm_key_alias(self._stage.name),
            description=f"Penstock {self._stage.name}: alarm messages",
            enable_key_rotation=True,
            removal_policy=RemovalPolicy.DESTROY,
        )
        topic = sns.Topic(
            self,
            "Alarms",
            topic_name=naming.alarm_topic(self._stage.name),
            display_name=f"Penstock {self._stage.name}",
            master_key=key,
            enforce_ssl=True,
        )
        from_here = {"StringEquals": {"aws:SourceAccount": self.account}}
        cloudwatch_alarms = iam.ServicePrincipal("cloudwatch.amazonaws.com")
        key.add_to_resource_policy(
            iam.PolicyStatement(
                sid="AlarmsAreEncrypted",
                principals=[cloudwatch_alarms],
                actions=["kms:Decrypt", "kms:GenerateDataKey"],
                resources=["*"],
                conditions=from_here,
            )
        )
        # A topic with a policy (TLS only) loses the default one, which let alarms publish.
        topic.add_to_resource_policy(
            iam.PolicyStatement(
                sid="AlarmsPublish",
                principals=[cloudwatch_alarms],
                actions=["sns:Publish"],
                resources=[topic.topic_arn],
                conditions=from_here,
            )
        )
        return topic

    def _connect_people(self) -> None:
        stage = self._stage
        if stage.alarm_email:
            self.email = self.topic.add_subscription(subscriptions.EmailSubscription(stage.alarm_email))
        slack = stage.slack_workspace_id and stage.slack_channel_id
        if slack:
            self._slack_channel(str(stage.slack_workspace_id), str(stage.slack_channel_id))
        if not stage.alarm_email and not slack:
            Annotations.of(self).add_warning_v2(
                NO_CHANNEL,
                f"alarms of stage {stage.name} reach nobody: set alarm_email, or slack_workspace_id and"
                f" slack_channel_id, in config/{stage.name}.yaml",
            )

    def _slack_channel(self, workspace_id: str, channel_id: str) -> None:
        role = iam.Role(
            self,
            "SlackRole",
            description="Shows alarms in Slack and may do nothing else",
            assumed_by=iam.ServicePrincipal(
                "chatbot.amazonaws.com", conditions={"StringEquals": {"aws:SourceAccount": self.account}}
            ),
        )
        chatbot.CfnSlackChannelConfiguration(
            self,
            "Slack",
            configuration_name=naming.alarm_topic(self._stage.name),
            iam_role_arn=role.role_arn,
            slack_workspace_id=workspace_id,
            slack_channel_id=channel_id,
            sns_topic_arns=[self.topic.topic_arn],
            # Without a guard rail a channel may do whatever AdministratorAccess may.
            guardrail_policies=[f"arn:{self.partition}:iam::aws:policy/AWSDenyAll"],
            logging_level="ERROR",
        )


class LaneWatchStack(Stack):
    """One lane's dashboard and alarms: as many lanes as a stage has, no stack outgrows CloudFormation."""

    def __init__(self, scope: Construct, construct_id: str, *, lane: LaneSpec, deployment: Deployment) -> None:
        stage = deployment.stage
        super().__init__(
            scope,
            construct_id,
            env=deployment.environment,
            stack_name=names.stack(stage.name, naming.lane_watch_part(lane.name)),
            description=f"Penstock {stage.name}: dashboard and alarms of lane {lane.name}",
        )
        topic_arn = self.format_arn(service="sns", resource=naming.alarm_topic(stage.name))
        topic = sns.Topic.from_topic_arn(self, "Alarms", topic_arn)
        dashboards.lane_dashboard(self, f"{naming.title(lane.name)}Dashboard", lane=lane, stage=stage)
        for spec in _wanted(alarms.of_lane(lane, stage), stage):
            _alarm(self, spec, stage=stage.name, topic=topic)


def _wanted(specs: Iterable[alarms.AlarmSpec], stage: StageSpec) -> Iterator[alarms.AlarmSpec]:
    return (spec for spec in specs if stage.alarms == ALL_ALARMS or spec.problem in ESSENTIAL)


def _alarm(scope: Construct, spec: alarms.AlarmSpec, *, stage: str, topic: sns.ITopic) -> None:
    alarm = cloudwatch.Alarm(
        scope,
        f"{naming.title(spec.subject)}{naming.title(spec.problem)}",
        alarm_name=naming.alarm(stage, spec.subject, spec.problem),
        alarm_description=spec.description,
        metric=spec.metric,
        threshold=spec.threshold,
        comparison_operator=spec.comparison,
        evaluation_periods=spec.of,
        datapoints_to_alarm=spec.at_least,
        treat_missing_data=(
            cloudwatch.TreatMissingData.BREACHING if spec.silence_is_bad else cloudwatch.TreatMissingData.NOT_BREACHING
        ),
    )
    alarm.add_alarm_action(actions.SnsAction(topic))
    alarm.add_ok_action(actions.SnsAction(topic))
