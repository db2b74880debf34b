"""Lane `rewrite` as it is deployed: its numbers in each stage, its schedules, and who may start a run."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from infra import naming
from infra.stage import CONFIG, DEFAULTS, load_stage
from shared.contract import names
from shared.core.errors import BadInput
from shared.core.rewrite import RewriteFacts, Surface, route
from shared.core.run import Mode, Order, RunConfig
from shared.core.stage import ALL_ALARMS, merged
from tests.infra.conftest import Synthesized
from tests.unit.usecases.rewriting import facts

LANE = "rewrite"
R16 = {
    "dev": (7200, 5, 120, (120, 600), 300),
    "stage": (1800, 30, 180, (300, 1800), 900),
    "prod": (3600, 200, 240, (3600, 21600), 3600),
}
"""Seconds between two runs of the worker; jobs, seconds, back-off and claim time-out of a run."""


@pytest.mark.req("R16", "R6")
@pytest.mark.parametrize("stage", R16)
def test_a_stage_has_the_numbers_of_its_contract(stage: str) -> None:
    """The worker's cadence and a run's limits, which hold for the submitter, too: one table serves both."""
    lane = load_stage(stage, for_show=True).lanes[LANE]
    run = lane.run
    assert run is not None
    backoff = run.retry_backoff_seconds
    seen = lane.runs["worker"], run.max_jobs_per_run, run.max_runtime_seconds, backoff, run.claim_timeout_seconds
    assert seen == R16[stage]
    assert (run.order, run.eligible_statuses, run.respect_not_before_at) == (Order.CREATED, ("queued",), True)
    assert (lane.max_attempts, lane.backoff_s, lane.claim_timeout_s) == (2, backoff, run.claim_timeout_seconds)


@pytest.mark.req("R16", "R6")
def test_where_no_stage_is_named_the_base_values_hold() -> None:
    """In the defaults file, every one of them said, and the same where a lane says nothing."""
    told = yaml.safe_load((CONFIG / DEFAULTS).read_text(encoding="utf-8"))["lanes"][LANE]["run"]
    assert told == {
        "max_jobs_per_run": 25,
        "max_runtime_seconds": 240,
        "claim_timeout_seconds": 600,
        "order": "created_at_asc",
        "eligible_statuses": ["queued"],
        "respect_not_before_at": True,
        "retry_backoff_seconds": [900, 7200],
        "overflow_backoff_seconds": 60,
    }
    assert RunConfig.from_mapping("run", told) == RunConfig()


@pytest.mark.req("R4")
@pytest.mark.parametrize("stage", R16)
def test_batches_are_submitted_and_collected_at_fixed_times(stage: str) -> None:
    """Every 15 and every 30 minutes, in every stage but local."""
    runs = load_stage(stage, for_show=True).lanes[LANE].runs
    assert (runs["batch_submitter"], runs["batch_collector"]) == (900, 1800)
    assert set(runs) == {"batch_submitter", "batch_collector", "worker"}


@pytest.mark.req("R12", "R16")
@pytest.mark.parametrize("stage", ["local", *R16])
def test_the_shipped_policy_decides_by_facts(stage: str) -> None:
    """In batches, unless somebody waits for the answer; with a version."""
    policy = load_stage(stage, for_show=True).lanes[LANE].router
    assert policy is not None
    for surface, mode in ((Surface.WEEKLY_HARMONY, Mode.BATCH), (Surface.DIRECT_MESSAGE, Mode.ASYNC)):
        decided = route(RewriteFacts.from_mapping(facts(1, surface=surface.value)), policy)
        assert (decided.execution_mode, decided.provider) == (mode, "openai")
        assert decided.policy_version == policy.version


@pytest.mark.req("R6")
@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"run": {"max_jobs_per_run": 0}}, r"run\.max_jobs_per_run.*whole number from 1"),
        ({"run": {"max_jobs_per_run": -1}}, r"run\.max_jobs_per_run.*whole number from 1"),
        ({"max_attempts": 4}, r"run\.retry_backoff_seconds"),
        ({"run": {"max_runtime_seconds": 29}}, r"run\.max_runtime_seconds.*at least 30"),
        ({"run": {"max_runtime_seconds": 40}}, r"run\.max_runtime_seconds.*above job_timeout_s"),
        ({"retry_backoff_s": [1]}, r"retry_backoff_s.*run\.retry_backoff_seconds"),
        ({"runs": {"worker": 90}}, r"runs\.worker.*whole minutes"),
        ({"admission": "on_enqueue"}, r"run.*admission is scheduled"),
    ],
)
def test_a_configuration_that_would_not_run_is_refused(change: dict[str, Any], complaint: str) -> None:
    """With the setting's name and what it must be; nothing is built."""
    from shared.core.stage import StageSpec

    defaults = yaml.safe_load((CONFIG / DEFAULTS).read_text(encoding="utf-8"))
    with pytest.raises(BadInput, match=rf"lanes\.rewrite\.{complaint}"):
        StageSpec.from_mappings("dev", merged(defaults, {"lanes": {LANE: change}}))


@pytest.mark.synth
@pytest.mark.xdist_group("synth")
@pytest.mark.req("R4", "R16")
def test_each_run_has_its_schedule_and_nobody_else_starts_it(every_stage: Synthesized) -> None:
    """One schedule a function, at its period, without retries that pile up; and no address, queue or permission of
    anybody else's leads to it."""
    spec = every_stage.spec
    lane = spec.lanes[LANE]
    run = lane.run
    assert run is not None
    for role, period_s in lane.runs.items():
        name = names.run(LANE, role)
        function = every_stage.function(name)
        schedule = every_stage.the("AWS::Scheduler::Schedule", Name=names.schedule(spec.name, name)).properties
        minutes = period_s // 60
        assert schedule["ScheduleExpression"] == f"rate({minutes} minute{'s' if minutes > 1 else ''})"
        assert schedule["FlexibleTimeWindow"] == {"Mode": "OFF"}
        assert schedule["Target"]["RetryPolicy"]["MaximumRetryAttempts"] == 0
        assert function.properties["Timeout"] == run.max_runtime_seconds + 15
        assert function.properties["Timeout"] < period_s
        assert function.properties["Handler"] == f"functions.rewrite.handler.{role}"
        assert [
            str(one)
            for kind in ("AWS::Lambda::Permission", "AWS::Lambda::Url", "AWS::Lambda::EventSourceMapping")
            for one in every_stage.assembly.resources(kind)
            if function.id in json.dumps(dict(one.properties)) and one.stack == function.stack
        ] == []
        invoking = [
            policy
            for policy in every_stage.assembly.resources("AWS::IAM::Policy")
            if function.id in json.dumps(policy.properties["PolicyDocument"]) and policy.stack == function.stack
        ]
        assert len(invoking) == 1, "its schedule's role, and no other"


@pytest.mark.synth
@pytest.mark.xdist_group("synth")
def test_a_run_lane_has_no_queue_of_work(every_stage: Synthesized) -> None:
    """Nobody sends its jobs: there are its dead letters, and where failed runs and undelivered schedules stand."""
    stage = every_stage.spec.name
    mine = {
        one.properties["QueueName"]
        for one in every_stage.assembly.resources("AWS::SQS::Queue")
        if f"-{LANE}" in str(one.properties["QueueName"])
    }
    assert mine == {
        names.dead_letter_queue(stage, LANE),
        *(naming.failure_queue(stage, naming.run_failures(LANE, of)) for of in naming.RUN_FAILURES),
    }


@pytest.mark.synth
@pytest.mark.xdist_group("synth")
def test_a_run_that_stays_away_wakes_somebody(every_stage: Synthesized) -> None:
    """Three periods without one, counted in its own period, and no longer than CloudWatch looks back. A stage that
    keeps the essential alarms alone hears of a run that failed or could not be started."""
    stage = every_stage.spec
    if stage.alarms != ALL_ALARMS:
        for of, problem in (("schedule", "schedule-undelivered"), ("run", "run-failed")):
            every_stage.the(
                "AWS::CloudWatch::Alarm", AlarmName=naming.alarm(stage.name, naming.run_failures(LANE, of), problem)
            )
        return
    for role, period_s in stage.lanes[LANE].runs.items():
        name = naming.alarm(stage.name, names.run(LANE, role), "schedule-silent")
        alarm = every_stage.the("AWS::CloudWatch::Alarm", AlarmName=name).properties
        assert (alarm["Period"], alarm["EvaluationPeriods"]) == (period_s, 3)
        assert (alarm["MetricName"], alarm["TreatMissingData"]) == ("Invocations", "breaching")
        assert period_s * 3 <= 86_400
