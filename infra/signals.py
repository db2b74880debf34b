"""Every CloudWatch metric that dashboards and alarms look at, each said once."""

from __future__ import annotations

from collections.abc import Mapping

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch

from shared.contract import metrics, names

MINUTE = Duration.minutes(1)
SERVICE = "service"
"""The dimension Powertools adds: which function counted."""


def counted(name: str, *, stage: str, lane: str, service: str, period: Duration = MINUTE) -> cloudwatch.Metric:
    """One of Penstock's own metrics."""
    if name not in metrics.ALL:
        raise ValueError(f"{name} is not a metric of the contract")
    return _metric(metrics.NAMESPACE, name, {metrics.LANE: lane, SERVICE: service, metrics.STAGE: stage}, "Sum", period)


def level(
    name: str, *, stage: str, lane: str, service: str, statistic: str = "Maximum", period: Duration = MINUTE
) -> cloudwatch.Metric:
    """One of Penstock's own metrics that is a level: two that counted in one minute are not added."""
    return counted(name, stage=stage, lane=lane, service=service, period=period).with_(statistic=statistic)


def in_lane(name: str, *, stage: str, lane: str) -> cloudwatch.MathExpression:
    """One of Penstock's own metrics, whoever counted it. Dashboards only: an alarm cannot search."""
    return _searched(name, (metrics.LANE, SERVICE, metrics.STAGE), {metrics.LANE: lane, metrics.STAGE: stage})


def level_in_lane(name: str, *, stage: str, lane: str, label: str) -> cloudwatch.MathExpression:
    """One of Penstock's own metrics that is a level: two that counted in one minute are not added."""
    where = {metrics.LANE: lane, metrics.STAGE: stage}
    return _searched(name, (metrics.LANE, SERVICE, metrics.STAGE), where, by="Maximum", joined="MAX", label=label)


def of_account(
    name: str, *, stage: str, account: str, lane: str | None = None, label: str = ""
) -> cloudwatch.MathExpression:
    """What a vendor account was asked for: by one lane, or by everybody who spends it."""
    where = {metrics.ACCOUNT: account, **({} if lane is None else {metrics.LANE: lane}), metrics.STAGE: stage}
    return _searched(name, (metrics.ACCOUNT, metrics.LANE, SERVICE, metrics.STAGE), where, label=label)


def level_of_account(name: str, *, stage: str, account: str, lane: str) -> cloudwatch.MathExpression:
    """A level of one lane's use of a vendor account."""
    where = {metrics.ACCOUNT: account, metrics.LANE: lane, metrics.STAGE: stage}
    dimensions = (metrics.ACCOUNT, metrics.LANE, SERVICE, metrics.STAGE)
    return _searched(name, dimensions, where, by="Maximum", joined="MAX", label=account)


def _searched(
    name: str,
    dimensions: tuple[str, ...],
    where: Mapping[str, str],
    *,
    by: str = "Sum",
    joined: str = "SUM",
    label: str = "",
) -> cloudwatch.MathExpression:
    if name not in metrics.ALL:
        raise ValueError(f"{name} is not a metric of the contract")
    having = " ".join([f'MetricName="{name}"', *(f'{key}="{value}"' for key, value in where.items())])
    search = f"SEARCH('{{{','.join((metrics.NAMESPACE, *dimensions))}}} {having}', '{by}', 60)"
    return cloudwatch.MathExpression(
        expression=f"{joined}({search})", label=label or name, period=MINUTE, using_metrics={}
    )


def of_function(
    stage: str, function: str, name: str, *, statistic: str = "Sum", period: Duration = MINUTE
) -> cloudwatch.Metric:
    """What Lambda says of a function."""
    return _of_aws("AWS/Lambda", name, names.function(stage, function), statistic, period)


def of_queue(queue_name: str, name: str, *, statistic: str = "Maximum") -> cloudwatch.Metric:
    """What SQS says of a queue."""
    return _of_aws("AWS/SQS", name, queue_name, statistic, MINUTE)


def visible(queue_name: str) -> cloudwatch.Metric:
    """Messages that stand in a queue and nobody holds."""
    return of_queue(queue_name, "ApproximateNumberOfMessagesVisible")


def depth(queue_name: str) -> cloudwatch.MathExpression:
    """Everything in a queue. Visible alone would miss what triage holds in its hands while it looks."""
    return cloudwatch.MathExpression(
        expression="visible + held",
        label="depth",
        period=MINUTE,
        using_metrics={
            "visible": visible(queue_name),
            "held": of_queue(queue_name, "ApproximateNumberOfMessagesNotVisible"),
        },
    )


def _of_aws(namespace: str, name: str, of: str, statistic: str, period: Duration) -> cloudwatch.Metric:
    dimension, known = metrics.FROM_AWS[namespace]
    if name not in known:
        raise ValueError(f"{namespace} {name} is not a metric of the contract")
    return _metric(namespace, name, {dimension: of}, statistic, period)


def _metric(
    namespace: str, name: str, dimensions: Mapping[str, str], statistic: str, period: Duration
) -> cloudwatch.Metric:
    return cloudwatch.Metric(
        namespace=namespace, metric_name=name, dimensions_map=dimensions, statistic=statistic, period=period
    )
