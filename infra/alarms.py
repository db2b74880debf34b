"""What wakes somebody, and which page tells them what to do.

An alarm is a value here; `infra.watch` makes it real and connects it to the topic. Each names the section of
the runbook that starts from it, and a test looks that section up.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch

from infra import naming, signals
from shared.contract import metrics, names
from shared.core.lane import LaneSpec
from shared.core.stage import StageSpec

RUNBOOK = "docs/runbooks/alarms.md"
ITERATOR_AGE_MS = 60_000
DAY_S = 86_400
SILENT_PERIODS = 3
"""A schedule that was not seen for this many periods is silent."""

CLOSED_S = 300
"""A switch that is closed for so long is told to everybody; a shorter stop is nobody else's business."""
SEVERE_OF = 3
"""Severe at so many looks in a row: no hiccup."""

AT_LEAST = cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD
ABOVE = cloudwatch.ComparisonOperator.GREATER_THAN_THRESHOLD
BELOW = cloudwatch.ComparisonOperator.LESS_THAN_THRESHOLD


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmSpec:
    """One alarm: `subject` is what it is about, `problem` what is wrong, `means` one sentence for a tired reader."""

    subject: str
    problem: str
    means: str
    metric: cloudwatch.IMetric
    threshold: float
    comparison: cloudwatch.ComparisonOperator = AT_LEAST
    of: int = 1
    """Points looked at."""
    at_least: int = 1
    """Points of these that must be bad."""
    silence_is_bad: bool = False

    @property
    def runbook(self) -> str:
        """The section of the runbook that starts from this alarm."""
        return f"{RUNBOOK}#{self.problem}"

    @property
    def description(self) -> str:
        """What the message on somebody's telephone says."""
        return f"{self.means} See {self.runbook}"


def of_lane(lane: LaneSpec, stage: StageSpec) -> Iterator[AlarmSpec]:
    """What can go wrong in one lane."""
    if lane.run is not None:
        yield from _of_runs(lane, stage)
        return
    worker = names.worker(lane.name)
    yield _dead_letters(lane, stage)
    yield AlarmSpec(
        subject=lane.name,
        problem="queue-age",
        means=f"The queue of lane {lane.name} is older than twice the work it may hold.",
        metric=signals.of_queue(names.queue(stage.name, lane.name), "ApproximateAgeOfOldestMessage"),
        threshold=2 * lane.queue_window_s,
        of=5,
        at_least=3,
    )
    yield AlarmSpec(
        subject=lane.name,
        problem="effects-unknown",
        means=f"Lane {lane.name} sent something and does not know whether it arrived.",
        metric=signals.counted(metrics.UNKNOWN, stage=stage.name, lane=lane.name, service=worker),
        threshold=1,
    )
    yield AlarmSpec(
        subject=lane.name,
        problem="effects-contradicted",
        means=f"A vendor of lane {lane.name} took something twice, or took what was written down as not sent.",
        metric=signals.counted(metrics.CONTRADICTED, stage=stage.name, lane=lane.name, service=worker),
        threshold=1,
    )
    yield _failures(lane, stage)
    yield AlarmSpec(
        subject=lane.name,
        problem="quarantined",
        means=f"Lane {lane.name} received something nobody can read.",
        metric=signals.counted(metrics.QUARANTINED, stage=stage.name, lane=lane.name, service="triage"),
        threshold=1,
    )
    if lane.accounts:
        yield AlarmSpec(
            subject=lane.name,
            problem="account-shut",
            means=f"A vendor account of lane {lane.name} takes no calls: an outage, or its credentials are refused.",
            metric=signals.counted(metrics.ACCOUNT_SHUT, stage=stage.name, lane=metrics.ALL_LANES, service=worker),
            threshold=1,
        )
    yield from _watched(lane, stage)
    if lane.has_canaries:
        yield _canary(lane, stage)
    if lane.admission != "scheduled":
        yield from _governed(lane, stage)
    yield from _of_function(worker, stage)
    if lane.intake is not None:
        yield from _of_intake(lane, stage)


def _of_runs(lane: LaneSpec, stage: StageSpec) -> Iterator[AlarmSpec]:
    """A lane that runs take: no queue grows old, but a run can be missing."""
    yield _dead_letters(lane, stage)
    for of, problem, means in (
        ("schedule", "schedule-undelivered", f"A schedule of lane {lane.name} could not start its function."),
        ("run", "run-failed", f"A run of lane {lane.name} ended with an error or was never started."),
    ):
        yield AlarmSpec(
            subject=naming.run_failures(lane.name, of),
            problem=problem,
            means=means,
            metric=signals.visible(naming.failure_queue(stage.name, naming.run_failures(lane.name, of))),
            threshold=1,
        )
    for role, period_s in lane.runs.items():
        function = names.run(lane.name, role)
        yield AlarmSpec(
            subject=function,
            problem="schedule-silent",
            means=f"The {function} has not run for {SILENT_PERIODS} periods.",
            metric=signals.of_function(stage.name, function, "Invocations", period=Duration.seconds(period_s)),
            threshold=1,
            comparison=BELOW,
            # CloudWatch looks back a day at most.
            of=max(1, min(SILENT_PERIODS, DAY_S // period_s)),
            at_least=max(1, min(SILENT_PERIODS, DAY_S // period_s)),
            silence_is_bad=True,
        )
        yield from _of_function(function, stage)
    yield from _watched(lane, stage)


def _watched(lane: LaneSpec, stage: StageSpec) -> Iterator[AlarmSpec]:
    """What only a person may end."""
    looks = -(-CLOSED_S // stage.schedules.governor)
    yield AlarmSpec(
        subject=lane.name,
        problem="switch-not-normal",
        means=f"A switch has held lane {lane.name} back for {CLOSED_S // 60} minutes: on purpose, or forgotten?",
        metric=_level(metrics.SWITCH_LEVEL, lane, stage),
        threshold=metrics.CLOSED,
        of=looks,
        at_least=looks,
    )
    if lane.cost_spike_per_hour is not None:
        yield AlarmSpec(
            subject=lane.name,
            problem="cost-spike",
            means=f"The vendors of lane {lane.name} cost more than {lane.cost_spike_per_hour:,.2f}"
            f" {stage.prices.currency} an hour.",
            metric=_level(metrics.COST, lane, stage),
            threshold=lane.cost_spike_per_hour,
            comparison=ABOVE,
        )


def _dead_letters(lane: LaneSpec, stage: StageSpec) -> AlarmSpec:
    dead_letters = names.dead_letter_queue(stage.name, lane.name)
    # Without metric math, only what is visible can be watched.
    standing = signals.depth(dead_letters) if stage.metrics_alarms else signals.visible(dead_letters)
    return AlarmSpec(
        subject=lane.name,
        problem="dead-letters",
        means=f"Jobs of lane {lane.name} have failed and wait for an operator.",
        metric=standing,
        threshold=1,
    )


def _canary(lane: LaneSpec, stage: StageSpec) -> AlarmSpec:
    """Rings, too, when nobody sends canaries any more."""
    return AlarmSpec(
        subject=lane.name,
        problem="canary-late",
        means=f"A job of lane {lane.name} that does nothing took more than {stage.schedules.sweeper // 60} minutes.",
        metric=signals.counted(
            metrics.CANARY_MISSED,
            stage=stage.name,
            lane=lane.name,
            service="sweeper",
            period=Duration.seconds(stage.schedules.sweeper),
        ),
        threshold=1,
        of=2,
        at_least=2,
        silence_is_bad=True,
    )


def _level(metric: str, lane: LaneSpec, stage: StageSpec, statistic: str = "Maximum") -> cloudwatch.Metric:
    """What the governor meters at each look: a point for each of its periods."""
    period = Duration.seconds(stage.schedules.governor)
    return signals.level(
        metric, stage=stage.name, lane=lane.name, service="governor", statistic=statistic, period=period
    )


def _governed(lane: LaneSpec, stage: StageSpec) -> Iterator[AlarmSpec]:
    """What the governor finds and cannot or may not mend."""
    yield AlarmSpec(
        subject=lane.name,
        problem="governor-silent",
        means=f"The governor has not judged lane {lane.name} for {SILENT_PERIODS} of its periods: nobody steers it.",
        metric=_level(metrics.CAP, lane, stage, statistic="SampleCount"),
        threshold=1,
        comparison=BELOW,
        of=SILENT_PERIODS,
        at_least=SILENT_PERIODS,
        silence_is_bad=True,
    )
    yield AlarmSpec(
        subject=lane.name,
        problem="severity",
        means=f"Lane {lane.name} is severely behind, or its dead letters grow.",
        metric=_level(metrics.SEVERITY, lane, stage),
        threshold=metrics.SEVERE,
        of=SEVERE_OF,
        at_least=SEVERE_OF,
    )
    yield AlarmSpec(
        subject=lane.name,
        problem="source-not-enabled",
        means=f"The event source of lane {lane.name} starts no worker, and no switch or pin asked for that.",
        metric=signals.counted(metrics.SOURCE_CLOSED, stage=stage.name, lane=lane.name, service="governor"),
        threshold=1,
        of=2,
        at_least=2,
    )
    if lane.trip_on_unstable:
        yield AlarmSpec(
            subject=lane.name,
            problem="lane-tripped",
            means=f"A vendor of lane {lane.name} is unstable: nothing a customer sees is sent until a person opens it.",
            metric=signals.counted(metrics.TRIPPED, stage=stage.name, lane=lane.name, service="governor"),
            threshold=1,
        )


def _of_intake(lane: LaneSpec, stage: StageSpec) -> Iterator[AlarmSpec]:
    """Every 5xx a sender can get: the function says 503 itself, or it fails, or it is throttled."""
    intake = names.intake(lane.name)
    yield AlarmSpec(
        subject=lane.name,
        problem="events-unanswered",
        means=f"Events of lane {lane.name} cannot be stored: their senders are told to come again.",
        metric=signals.counted(metrics.EVENTS_UNANSWERED, stage=stage.name, lane=lane.name, service=intake),
        threshold=1,
        of=5,
        at_least=2,
    )
    yield from _of_function(intake, stage)


def _failures(lane: LaneSpec, stage: StageSpec) -> AlarmSpec:
    five = Duration.minutes(5)
    worker = names.worker(lane.name)
    failed = signals.counted(metrics.FAILED, stage=stage.name, lane=lane.name, service=worker, period=five)
    if not stage.metrics_alarms:
        return AlarmSpec(
            subject=lane.name,
            problem="jobs-failing",
            means=f"At least ten jobs of lane {lane.name} failed within five minutes.",
            metric=failed,
            threshold=10,
        )
    completed = signals.counted(metrics.COMPLETED, stage=stage.name, lane=lane.name, service=worker, period=five)
    ended = "FILL(failed, 0) + FILL(completed, 0)"
    share = cloudwatch.MathExpression(
        # A share of very few jobs says nothing.
        expression=f"IF({ended} >= 20, 100 * FILL(failed, 0) / ({ended}), 0)",
        label="failed, percent",
        period=five,
        using_metrics={"failed": failed, "completed": completed},
    )
    return AlarmSpec(
        subject=lane.name,
        problem="jobs-failing",
        means=f"More than 5 % of the jobs of lane {lane.name} fail.",
        metric=share,
        threshold=5,
        comparison=ABOVE,
    )


def of_engine(stage: StageSpec) -> Iterator[AlarmSpec]:
    """What can go wrong in the engine."""
    yield AlarmSpec(
        subject="stream",
        problem="stream-behind",
        means="Admission is more than a minute behind: new jobs wait although they may run.",
        metric=signals.of_function(stage.name, "stream", "IteratorAge", statistic="Maximum"),
        threshold=ITERATOR_AGE_MS,
        comparison=ABOVE,
        of=3,
        at_least=2,
    )
    yield AlarmSpec(
        subject="feed",
        problem="feed-behind",
        means="The change feed is more than a minute behind: subscribers show old states.",
        metric=signals.of_function(stage.name, "feed", "IteratorAge", statistic="Maximum"),
        threshold=ITERATOR_AGE_MS,
        comparison=ABOVE,
        of=3,
        at_least=2,
    )
    for of, problem, means in (
        ("stream", "stream-gave-up", "Lambda gave up on records of the stream: jobs may be stored and not sent."),
        ("feed", "feed-gave-up", "Lambda gave up on changes of the feed: subscribers have missed them."),
        ("schedule", "schedule-undelivered", "A schedule could not start its function."),
        ("run", "run-failed", "A scheduled run ended with an error or was never started."),
    ):
        yield AlarmSpec(
            subject=of,
            problem=problem,
            means=means,
            metric=signals.visible(naming.failure_queue(stage.name, of)),
            threshold=1,
        )
    for name in names.SCHEDULED:
        period_s = getattr(stage.schedules, name)
        yield AlarmSpec(
            subject=name,
            problem="schedule-silent",
            means=f"The {name} has not run for {SILENT_PERIODS} periods.",
            metric=signals.of_function(stage.name, name, "Invocations", period=Duration.seconds(period_s)),
            threshold=1,
            comparison=BELOW,
            of=SILENT_PERIODS,
            at_least=SILENT_PERIODS,
            silence_is_bad=True,
        )
    yield AlarmSpec(
        subject="auditor",
        problem="jobs-repaired",
        means="The auditor found stranded jobs and mended them: something loses messages.",
        metric=signals.counted(metrics.REPAIRED, stage=stage.name, lane=metrics.ALL_LANES, service="auditor"),
        threshold=1,
    )
    for reader, means in (
        ("stream", "The stream consumer set aside rows it could not read or admit."),
        ("feed", "The change feed passed over rows it could not read."),
    ):
        yield AlarmSpec(
            subject=reader,
            problem="records-isolated",
            means=means,
            metric=signals.counted(metrics.STREAM_ERRORS, stage=stage.name, lane=metrics.ALL_LANES, service=reader),
            threshold=1,
        )
    for name in names.ENGINE_FUNCTIONS:
        yield from _of_function(name, stage)


def _of_function(function: str, stage: StageSpec) -> Iterator[AlarmSpec]:
    yield AlarmSpec(
        subject=function,
        problem="function-errors",
        means=f"{names.function(stage.name, function)} raises errors or runs out of time.",
        metric=signals.of_function(stage.name, function, "Errors"),
        threshold=1,
        of=5,
        at_least=3,
    )
    yield AlarmSpec(
        subject=function,
        problem="function-throttled",
        means=f"{names.function(stage.name, function)} is throttled: each refusal uses up a receive.",
        metric=signals.of_function(stage.name, function, "Throttles"),
        threshold=1,
        of=5,
        at_least=3,
    )
