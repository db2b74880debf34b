"""`ScheduledRun`: a schedule that starts one function, at most once per slot, and never piles up."""

from __future__ import annotations

import json

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_scheduler as scheduler
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from shared.contract import names


class ScheduledRun(Construct):
    """Period in, runs out. What is missed is not made up for by the platform: the run itself catches up."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        stage: str,
        name: str,
        period_s: int,
        function: lambda_.Function,
        group: scheduler.CfnScheduleGroup,
        undelivered: sqs.Queue,
        failed_runs: sqs.Queue,
    ) -> None:
        super().__init__(scope, construct_id)
        stack = Stack.of(self)
        self.role = iam.Role(
            self,
            "Role",
            description=f"Lets the schedule {names.schedule(stage, name)} start its one function",
            assumed_by=iam.ServicePrincipal(
                "scheduler.amazonaws.com",
                conditions={
                    "StringEquals": {"aws:SourceAccount": stack.account},
                    # A group, not a schedule: the service presents no finer name than this.
                    "ArnEquals": {"aws:SourceArn": group.attr_arn},
                },
            ),
        )
        self.role.add_to_principal_policy(
            iam.PolicyStatement(actions=["lambda:InvokeFunction"], resources=[function.function_arn])
        )
        # Said on the queue and not in the role: the role then holds exactly one permission.
        undelivered.add_to_resource_policy(
            iam.PolicyStatement(
                sid=f"{name.capitalize()}ScheduleLeavesWhatItCouldNotDeliver",
                principals=[iam.ArnPrincipal(self.role.role_arn)],
                actions=["sqs:SendMessage"],
                resources=[undelivered.queue_arn],
            )
        )
        # Scheduler invokes asynchronously: Lambda's own queue and retries come after the schedule's.
        lambda_.CfnEventInvokeConfig(
            self,
            "Invoke",
            function_name=function.function_name,
            qualifier="$LATEST",
            maximum_retry_attempts=0,
            maximum_event_age_in_seconds=period_s,
            destination_config=lambda_.CfnEventInvokeConfig.DestinationConfigProperty(
                on_failure=lambda_.CfnEventInvokeConfig.OnFailureProperty(destination=failed_runs.queue_arn)
            ),
        )
        scheduler.CfnSchedule(
            self,
            "Schedule",
            name=names.schedule(stage, name),
            description=f"Penstock {stage}: starts the {name}",
            group_name=group.ref,
            schedule_expression=f"rate({period_s // 60} minute{'s' if period_s > 60 else ''})",
            flexible_time_window=scheduler.CfnSchedule.FlexibleTimeWindowProperty(mode="OFF"),
            target=scheduler.CfnSchedule.TargetProperty(
                arn=function.function_arn,
                role_arn=self.role.role_arn,
                input=json.dumps({"schedule": name, "scheduled_at": "<aws.scheduler.scheduled-time>"}),
                dead_letter_config=scheduler.CfnSchedule.DeadLetterConfigProperty(arn=undelivered.queue_arn),
                retry_policy=scheduler.CfnSchedule.RetryPolicyProperty(
                    maximum_event_age_in_seconds=period_s, maximum_retry_attempts=0
                ),
            ),
        )
