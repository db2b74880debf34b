"""A subscriber's own stack: a rule on Penstock's bus, a function behind it, a queue for what could not be delivered.

cdk deploy --app "python -m examples.change_feed.stack prod"
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from aws_cdk import App, Duration, RemovalPolicy, Stack
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from shared.contract import names

HERE = Path(__file__).parent
RULE = json.loads((HERE / "rule.json").read_text(encoding="utf-8"))


class StatusBoard(Stack):
    """Knows Penstock by the name of its bus alone."""

    def __init__(self, scope: Construct, construct_id: str, *, stage: str) -> None:
        super().__init__(scope, construct_id)
        table = dynamodb.TableV2(
            self,
            "Status",
            partition_key=dynamodb.Attribute(name="job_id", type=dynamodb.AttributeType.STRING),
            removal_policy=RemovalPolicy.DESTROY,
        )
        function = lambda_.Function(
            self,
            "Subscriber",
            runtime=lambda_.Runtime.PYTHON_3_13,
            handler="subscriber.handler",
            code=lambda_.Code.from_asset(str(HERE), exclude=["*", "!subscriber.py"]),
            environment={"STATUS_TABLE": table.table_name},
            timeout=Duration.seconds(10),
        )
        table.grant(function, "dynamodb:UpdateItem")
        undelivered = sqs.Queue(self, "Undelivered", retention_period=Duration.days(14), enforce_ssl=True)
        bus = events.EventBus.from_event_bus_name(self, "Bus", names.event_bus(stage))
        # The rule is JSON, so that the same file serves `aws events put-rule --event-pattern file://rule.json`.
        rule = events.Rule(
            self,
            "Ended",
            event_bus=bus,
            event_pattern=events.EventPattern(
                source=RULE["source"], detail_type=RULE["detail-type"], detail=RULE["detail"]
            ),
        )
        rule.add_target(
            targets.LambdaFunction(
                function, dead_letter_queue=undelivered, max_event_age=Duration.hours(2), retry_attempts=20
            )
        )


if __name__ == "__main__":
    app = App()
    StatusBoard(app, "StatusBoard", stage=sys.argv[1])
    app.synth()
