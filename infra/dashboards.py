"""Dashboards: one per lane, one for the engine. Left to right: what waits, what runs, how it ends."""

from __future__ import annotations

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from infra import naming, signals
from shared.contract import metrics, names
from shared.core.lane import LaneSpec
from shared.core.stage import StageSpec

WIDTH = 8


def lane_dashboard(scope: Construct, construct_id: str, *, lane: LaneSpec, stage: StageSpec) -> None:
    """Everything about one lane on one page."""
    queue = names.queue(stage.name, lane.name)
    dead_letters = names.dead_letter_queue(stage.name, lane.name)
    worker = names.worker(lane.name)
    outcomes = (metrics.COMPLETED, metrics.RETRIED, metrics.DEFERRED, metrics.FAILED)
    effects = (metrics.SENT, metrics.UNKNOWN)
    flow = (metrics.ENQUEUED, metrics.ADMITTED, metrics.HELD)
    rescue = (metrics.STALE, metrics.NACKED, metrics.QUARANTINED)
    _dashboard(scope, construct_id, stage, lane.name).add_widgets(
        _graph(
            "Queue",
            signals.visible(queue),
            signals.of_queue(queue, "ApproximateNumberOfMessagesNotVisible"),
            signals.of_queue(queue, "ApproximateNumberOfMessagesDelayed"),
        ),
        _graph("Age of the oldest message, s", signals.of_queue(queue, "ApproximateAgeOfOldestMessage")),
        _graph(
            "Dead letters",
            signals.visible(dead_letters),
            signals.of_queue(dead_letters, "ApproximateNumberOfMessagesNotVisible"),
        ),
        _graph("Jobs in", *(signals.in_lane(name, lane=lane.name) for name in flow)),
        _graph("Jobs out", *(signals.in_lane(name, lane=lane.name) for name in outcomes)),
        _graph("Effects", *(signals.in_lane(name, lane=lane.name) for name in effects)),
        _graph(
            f"Worker at once (baseline {lane.baseline}, ceiling {lane.ceiling})",
            signals.of_function(stage.name, worker, "ConcurrentExecutions", statistic="Maximum"),
        ),
        _graph(
            "Worker time, ms",
            signals.of_function(stage.name, worker, "Duration", statistic="p50"),
            signals.of_function(stage.name, worker, "Duration", statistic="p99"),
        ),
        _graph(
            "Worker trouble",
            signals.of_function(stage.name, worker, "Errors"),
            signals.of_function(stage.name, worker, "Throttles"),
        ),
        _graph("Rescued", *(signals.in_lane(name, lane=lane.name) for name in rescue)),
    )


def engine_dashboard(scope: Construct, construct_id: str, *, stage: StageSpec) -> None:
    """The engine's functions on one page."""
    _dashboard(scope, construct_id, stage, "engine").add_widgets(
        _graph("Stream, ms behind", signals.of_function(stage.name, "stream", "IteratorAge", statistic="Maximum")),
        _graph(
            "Failure queues",
            *(signals.visible(naming.failure_queue(stage.name, of)) for of in ("stream", "schedule", "run")),
        ),
        *(
            _graph(
                name.capitalize(),
                *(signals.of_function(stage.name, name, what) for what in ("Invocations", "Errors", "Throttles")),
            )
            for name in names.ENGINE_FUNCTIONS
        ),
    )


def _dashboard(scope: Construct, construct_id: str, stage: StageSpec, subject: str) -> cloudwatch.Dashboard:
    return cloudwatch.Dashboard(
        scope,
        construct_id,
        dashboard_name=naming.dashboard(stage.name, subject),
        default_interval=Duration.hours(3),
        period_override=cloudwatch.PeriodOverride.INHERIT,
    )


def _graph(title: str, *lines: cloudwatch.IMetric) -> cloudwatch.GraphWidget:
    return cloudwatch.GraphWidget(title=title, width=WIDTH, left=list(lines))
