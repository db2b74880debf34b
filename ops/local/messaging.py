"""What the deployed queues, topics, schedules and alarms are, told in the words of their templates."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ops.local.clients import Clients

Properties = Mapping[str, Any]


def queue(clients: Clients, url: str, wanted: Properties) -> Properties:
    """AWS::SQS::Queue."""
    found = clients.of("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    shown: dict[str, Any] = {"QueueName": found["QueueArn"].rpartition(":")[2]}
    for name, value in found.items():
        shown[name] = json.loads(value) if name in ("RedrivePolicy", "RedriveAllowPolicy", "Policy") else value
    return shown


def queue_policy(clients: Clients, physical_id: str, wanted: Properties) -> Properties:
    """AWS::SQS::QueuePolicy."""
    held = [queue(clients, url, {}).get("Policy") for url in wanted["Queues"]]
    agreed = all(policy == held[0] for policy in held)
    return {"Queues": wanted["Queues"], "PolicyDocument": held[0] if agreed else held}


def event_bus(clients: Clients, name: str, wanted: Properties) -> Properties:
    """AWS::Events::EventBus."""
    found = clients.of("events").describe_event_bus(Name=name)
    return {"Name": found["Name"], "Description": found.get("Description", "")}


def topic(clients: Clients, arn: str, wanted: Properties) -> Properties:
    """AWS::SNS::Topic."""
    found = clients.of("sns").get_topic_attributes(TopicArn=arn)["Attributes"]
    pages = clients.of("sns").get_paginator("list_subscriptions_by_topic").paginate(TopicArn=arn)
    return {
        "TopicName": found["TopicArn"].rpartition(":")[2],
        "DisplayName": found.get("DisplayName", ""),
        "KmsMasterKeyId": found.get("KmsMasterKeyId"),
        "Subscription": [
            {"Protocol": one["Protocol"], "Endpoint": one["Endpoint"]}
            for page in pages
            for one in page["Subscriptions"]
        ],
    }


def subscription(clients: Clients, arn: str, wanted: Properties) -> Properties:
    """AWS::SNS::Subscription."""
    found = clients.of("sns").get_subscription_attributes(SubscriptionArn=arn)["Attributes"]
    return {
        "TopicArn": found["TopicArn"],
        "Protocol": found["Protocol"],
        "Endpoint": found["Endpoint"],
        "RawMessageDelivery": found.get("RawMessageDelivery", "false"),
    }


def schedule(clients: Clients, name: str, wanted: Properties) -> Properties:
    """AWS::Scheduler::Schedule."""
    group = str(wanted.get("GroupName", "default"))
    found = dict(clients.of("scheduler").get_schedule(Name=name.rpartition("/")[2], GroupName=group))
    target = dict(found["Target"])
    return {
        "Name": found["Name"],
        "GroupName": found["GroupName"],
        "Description": found.get("Description", ""),
        "ScheduleExpression": found["ScheduleExpression"],
        "ScheduleExpressionTimezone": _zone(found.get("ScheduleExpressionTimezone", "UTC"), wanted),
        "State": found["State"],
        "FlexibleTimeWindow": found["FlexibleTimeWindow"],
        "StartDate": found.get("StartDate"),
        "EndDate": found.get("EndDate"),
        "KmsKeyArn": found.get("KmsKeyArn"),
        "Target": target,
    }


def _zone(found: str, wanted: Properties) -> str:
    """One zone, two names: the emulator writes UTC for whatever a template says, and only UTC fires there."""
    asked = str(wanted.get("ScheduleExpressionTimezone", "UTC"))
    return asked if {asked, found} <= {"UTC", "Etc/UTC"} else found


def schedule_group(clients: Clients, name: str, wanted: Properties) -> Properties:
    """AWS::Scheduler::ScheduleGroup."""
    return {"Name": clients.of("scheduler").get_schedule_group(Name=name)["Name"]}


def alarm(clients: Clients, name: str, wanted: Properties) -> Properties:
    """AWS::CloudWatch::Alarm."""
    alarms = clients.of("cloudwatch").describe_alarms(AlarmNames=[name])["MetricAlarms"]
    found = dict(alarms[0]) if alarms else {}
    found["AlarmDescription"] = found.get("AlarmDescription", "")
    for actions in ("AlarmActions", "OKActions", "InsufficientDataActions"):
        found.setdefault(actions, [])
    return found


def dashboard(clients: Clients, name: str, wanted: Properties) -> Properties:
    """AWS::CloudWatch::Dashboard: that it is there and readable; its layout is for people."""
    found = clients.of("cloudwatch").get_dashboard(DashboardName=name)
    same = bool(json.loads(found["DashboardBody"]))
    return {"DashboardName": found["DashboardName"], "DashboardBody": wanted["DashboardBody"] if same else ""}
