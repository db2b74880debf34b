"""Dashboards: one per lane, one for the engine. Left to right: what waits, what runs, how it ends."""

from __future__ import annotations

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from infra import naming, signals
from shared.contract import metrics, names
from shared.core.account import AccountSpec
from shared.core.lane import LaneSpec
from shared.core.stage import StageSpec

WIDTH = 8


def lane_dashboard(scope: Construct, construct_id: str, *, lane: LaneSpec, stage: StageSpec) -> None:
    """Everything about one lane on one page."""
    if lane.run is not None:
        _run_dashboard(scope, construct_id, lane, stage)
        return
    queue = names.queue(stage.name, lane.name)
    dead_letters = names.dead_letter_queue(stage.name, lane.name)
    worker = names.worker(lane.name)
    outcomes = (metrics.COMPLETED, metrics.RETRIED, metrics.DEFERRED, metrics.FAILED)
    effects = (metrics.SENT, metrics.UNKNOWN, metrics.CONTRADICTED)
    # Jobs that a producer puts itself are counted when they are admitted.
    flow = (*([metrics.ENQUEUED] if lane.intake else []), metrics.ADMITTED, metrics.HELD)
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
        _graph("Jobs in", *(signals.in_lane(name, stage=stage.name, lane=lane.name) for name in flow)),
        _graph("Jobs out", *(signals.in_lane(name, stage=stage.name, lane=lane.name) for name in outcomes)),
        _graph("Effects", *(signals.in_lane(name, stage=stage.name, lane=lane.name) for name in effects)),
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
        _graph("Rescued", *(signals.in_lane(name, stage=stage.name, lane=lane.name) for name in rescue)),
        *_governed(lane, stage),
        *([_events(lane, stage)] if lane.intake else []),
        *([_scheduled(lane, stage)] if lane.accounts else []),
        *(widget for name in lane.accounts for widget in _budget(lane, stage, stage.accounts[name])),
    )


def _run_dashboard(scope: Construct, construct_id: str, lane: LaneSpec, stage: StageSpec) -> None:
    """A lane that runs take: who waits, what its runs do, how jobs end."""
    dead_letters = names.dead_letter_queue(stage.name, lane.name)
    functions = [names.run(lane.name, role) for role in lane.runs]
    outcomes = (metrics.COMPLETED, metrics.RETRIED, metrics.DEFERRED, metrics.FAILED)
    _dashboard(scope, construct_id, stage, lane.name).add_widgets(
        *([_waiting(lane, stage)] if lane.accounts else []),
        _graph("Jobs in", signals.in_lane(metrics.ADMITTED, stage=stage.name, lane=lane.name)),
        _graph("Jobs out", *(signals.in_lane(name, stage=stage.name, lane=lane.name) for name in outcomes)),
        _graph(
            "Dead letters",
            signals.visible(dead_letters),
            signals.of_queue(dead_letters, "ApproximateNumberOfMessagesNotVisible"),
        ),
        _graph("Runs", *(signals.of_function(stage.name, name, "Invocations") for name in functions)),
        _graph(
            "Run time, ms",
            *(signals.of_function(stage.name, name, "Duration", statistic="Maximum") for name in functions),
        ),
        _graph("Run trouble", *(signals.of_function(stage.name, name, "Errors") for name in functions)),
        *_governed(lane, stage),
        *(widget for name in lane.accounts for widget in _budget(lane, stage, stage.accounts[name])),
    )


def _governed(lane: LaneSpec, stage: StageSpec) -> list[cloudwatch.GraphWidget]:
    """What the governor sees and decides, and what the lane's vendors cost. A lane that runs start has no cap."""

    def level(metric: str, label: str) -> cloudwatch.IMetric:
        return signals.level_in_lane(metric, stage=stage.name, lane=lane.name, label=label)

    money, most = stage.prices.currency, lane.cost_spike_per_hour
    marks = [] if most is None else [cloudwatch.HorizontalAnnotation(value=most, label="cost_spike_per_hour")]
    of_accounts = [
        signals.level_of_account(metrics.ACCOUNT_COST, stage=stage.name, account=name, lane=lane.name)
        for name in lane.accounts
    ]
    switch = level(metrics.SWITCH_LEVEL, "switch")
    judged = [
        _graph("Severity (0 normal to 3) and switch (0 normal to 4)", level(metrics.SEVERITY, "severity"), switch),
        _graph("Cap that the governor wants", level(metrics.CAP, "cap")),
    ]
    return [
        *(judged if lane.admission != "scheduled" else [_graph("Switch (0 normal to 4)", switch)]),
        *(
            [_graph("Canary: seconds from enqueue to end", level(metrics.CANARY_AGE, "canary"))]
            if lane.has_canaries
            else []
        ),
        cloudwatch.GraphWidget(
            title=f"Cost of the vendors, {money} an hour",
            width=WIDTH,
            left=[level(metrics.COST, lane.name), *of_accounts],
            left_annotations=marks,
        ),
    ]


def _events(lane: LaneSpec, stage: StageSpec) -> cloudwatch.GraphWidget:
    """Events from outside: all that came, and those that were not taken."""
    intake = names.intake(lane.name)
    return _graph(
        "Events from outside",
        signals.of_function(stage.name, intake, "Invocations"),
        *(
            signals.in_lane(name, stage=stage.name, lane=lane.name)
            for name in (metrics.EVENTS_REFUSED, metrics.EVENTS_UNANSWERED)
        ),
        signals.of_function(stage.name, intake, "Errors"),
        signals.of_function(stage.name, intake, "Throttles"),
    )


def _waiting(lane: LaneSpec, stage: StageSpec) -> cloudwatch.GraphWidget:
    """Jobs that wait for a run, or for their time: no failure, and no delay."""
    waiting = signals.level_in_lane(metrics.WAITING, stage=stage.name, lane=lane.name, label="waiting")
    return _graph("Waiting for a run, jobs", waiting)


def _scheduled(lane: LaneSpec, stage: StageSpec) -> cloudwatch.GraphWidget:
    """Jobs that wait for their time beside those in workers' hands: levels, both in jobs."""
    running = signals.of_queue(names.queue(stage.name, lane.name), "ApproximateNumberOfMessagesNotVisible")
    waiting = signals.level_in_lane(metrics.WAITING, stage=stage.name, lane=lane.name, label="scheduled")
    return _graph("Scheduled beside running, jobs", waiting, running.with_(label="running"))


def _budget(lane: LaneSpec, stage: StageSpec, account: AccountSpec) -> list[cloudwatch.GraphWidget]:
    """One account a lane spends: what everybody uses of it beside what is allowed, and how this lane waits for it."""
    others = [other.name for other in stage.lanes.values() if account.name in other.accounts and other != lane]

    def used(metric: str) -> list[cloudwatch.IMetric]:
        whole = signals.of_account(metric, stage=stage.name, account=account.name, label="used")
        if not others:
            return [whole]
        label = f"of it by {lane.name}"
        return [whole, signals.of_account(metric, stage=stage.name, account=account.name, lane=lane.name, label=label)]

    def in_lane(metric: str, label: str = "") -> cloudwatch.IMetric:
        return signals.of_account(metric, stage=stage.name, account=account.name, lane=lane.name, label=label)

    deferred = in_lane(metrics.RATE_DEFERRED, "deferrals")
    wait_s = cloudwatch.MathExpression(
        expression="waited / deferred",
        label="mean of those refused",
        period=signals.MINUTE,
        using_metrics={"waited": in_lane(metrics.RATE_WAIT), "deferred": deferred},
    )
    return [
        _used(f"{account.name}: requests a minute", used(metrics.PERMITS), account, account.requests_per_minute),
        _used(f"{account.name}: tokens a minute", used(metrics.TOKENS), account, account.tokens_per_minute),
        _graph(f"{account.name}: deferrals a minute", deferred),
        _graph(f"{account.name}: time to the next permit, s", wait_s),
    ]


def _used(
    title: str, lines: list[cloudwatch.IMetric], account: AccountSpec, limit: int | None
) -> cloudwatch.GraphWidget:
    most = None if limit is None else limit * 60 / account.minute_s
    marks = [] if most is None else [cloudwatch.HorizontalAnnotation(value=most, label="configured limit")]
    return cloudwatch.GraphWidget(title=title, width=WIDTH, left=lines, left_annotations=marks)


def engine_dashboard(scope: Construct, construct_id: str, *, stage: StageSpec) -> None:
    """The engine's functions on one page."""
    _dashboard(scope, construct_id, stage, "engine").add_widgets(
        _graph("Stream, ms behind", signals.of_function(stage.name, "stream", "IteratorAge", statistic="Maximum")),
        _graph(
            "Failure queues",
            *(signals.visible(naming.failure_queue(stage.name, of)) for of in naming.FAILURES),
        ),
        _graph("Change feed, ms behind", signals.of_function(stage.name, "feed", "IteratorAge", statistic="Maximum")),
        _graph(
            "Changes",
            *(
                signals.counted(name, stage=stage.name, lane=metrics.ALL_LANES, service="feed")
                for name in (metrics.PUBLISHED, metrics.UNPUBLISHED)
            ),
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
