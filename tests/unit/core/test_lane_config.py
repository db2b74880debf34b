"""A lane's configuration: whatever cannot work is refused by the setting's name, before anything is deployed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.core.errors import BadInput
from shared.core.lane import ADMISSIONS, LaneSpec
from shared.core.run import RunConfig
from shared.core.stage import StageSpec
from tests.builders import a_lane
from tests.unit.core.strategies import few, names

WHOLE = (
    *("shards", "max_attempts", "max_wait_s", "function_timeout_s", "visibility_s", "max_receive_count"),
    *("batch_size", "parallel", "memory_mb", "job_timeout_s", "floor", "baseline", "ceiling", "queue_window_s"),
    *("completed_kept_days", "failed_kept_days", "source_retention_days", "lookup_grace_s"),
)
SECONDS = ("send_budget_s", "expected_job_s")

REFUSED: dict[str, tuple[str, dict[str, Any]]] = {
    "no task": ("tasks", {"tasks": []}),
    "a task that is one word, not a list": ("tasks", {"tasks": "reply"}),
    "a task's name": ("tasks", {"tasks": ["Reply to all"]}),
    "vendors as one word": ("vendors", {"vendors": "helpdesk"}),
    "a vendor's name": ("vendors", {"vendors": ["Help Desk"]}),
    "an unknown admission": ("admission", {"admission": "eager"}),
    "too many partitions": ("shards", {"shards": 65}),
    "fewer waits than retries": ("retry_backoff_s", {"max_attempts": 4, "retry_backoff_s": [1, 2]}),
    "waits as one number": ("retry_backoff_s", {"retry_backoff_s": 30}),
    "a negative wait": ("retry_backoff_s", {"retry_backoff_s": [30, -1]}),
    "no attempt at all": ("max_attempts", {"max_attempts": 0}),
    "a long function": ("function_timeout_s", {"function_timeout_s": 121, "visibility_s": 900}),
    "visibility under six time-outs": ("visibility_s", {"function_timeout_s": 60, "visibility_s": 359}),
    "visibility under the claim": (
        "visibility_s",
        {"function_timeout_s": 6, "visibility_s": 36, "job_timeout_s": 4, "send_budget_s": 2},
    ),
    "few receives": ("max_receive_count", {"max_receive_count": 9}),
    "a large batch": ("batch_size", {"batch_size": 11}),
    "a floor below Lambda's least": ("ceiling", {"floor": 1}),
    "a baseline below the floor": ("ceiling", {"floor": 4, "baseline": 3}),
    "a ceiling below the baseline": ("ceiling", {"baseline": 8, "ceiling": 7}),
    "a ceiling above Lambda's most": ("ceiling", {"ceiling": 1001}),
    "a send that never fits its job": ("send_budget_s", {"job_timeout_s": 10, "send_budget_s": 9.5}),
    "a send that never fits its function": (
        "send_budget_s",
        {"function_timeout_s": 10, "job_timeout_s": 10, "send_budget_s": 8, "visibility_s": 60},
    ),
    "a source that outlives its dead letters": ("source_retention_days", {"source_retention_days": 14}),
    "an empty secret": ("secret", {"secret": ""}),
    "a number as secret": ("secret", {"secret": 7}),
    "vendors of a task it does not have": ("task_vendors", {"task_vendors": {"answer": ["helpdesk"]}}),
    "a task's vendor that is not the lane's": ("task_vendors.reply", {"task_vendors": {"reply": ["openai"]}}),
    "a task's vendors as one word": ("task_vendors.reply", {"task_vendors": {"reply": "helpdesk"}}),
    "vendors of tasks as a list": ("task_vendors", {"task_vendors": ["helpdesk"]}),
    "no table for a routing": ("routing", {"routing": ["legal"]}),
    "events for a task it does not have": ("intake", {"intake": "answer"}),
    "events for nobody in particular": ("intake", {"intake": True}),
    "events forgotten too soon": ("completed_kept_days", {"intake": "reply", "completed_kept_days": 5}),
    **{f"{s} = {v!r}": (s, {s: v}) for s in WHOLE for v in ("3", 1.5, True, None, -1)},
    **{f"{s} = {v!r}": (s, {s: v}) for s in SECONDS for v in ("3", True, None, -1, 0, float("nan"), float("inf"))},
}


@pytest.mark.parametrize(("setting", "values"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_work_is_refused_by_name(setting: str, values: dict[str, Any]) -> None:
    """The error's field is the lane and the setting to change."""
    with pytest.raises(BadInput) as refused:
        LaneSpec.from_mapping("support", {"tasks": ["reply"], **values})
    assert refused.value.field == f"lanes.support.{setting}"


def test_an_unknown_setting_is_named() -> None:
    """A typing error is not silently a default."""
    with pytest.raises(BadInput, match=r"lanes\.support: has an unknown setting 'paralel'"):
        LaneSpec.from_mapping("support", {"tasks": ["reply"], "paralel": 4})


@pytest.mark.parametrize("name", ["Support", "a b", "", "x" * 33])
def test_a_lanes_name_becomes_resource_names(name: str) -> None:
    """So it is narrow, and refused here and not by CloudFormation."""
    with pytest.raises(BadInput, match="lower-case letters"):
        LaneSpec.from_mapping(name, {"tasks": ["reply"]})


@st.composite
def lanes(draw: st.DrawFn) -> LaneSpec:
    """Any lane that passes its own checks."""
    function_timeout_s = draw(st.integers(10, 120))
    max_attempts = draw(st.integers(1, 6))
    floor = draw(st.integers(2, 20))
    baseline = draw(st.integers(floor, 40))
    admission = draw(st.sampled_from(ADMISSIONS))
    waits = tuple(draw(st.lists(st.integers(1, 999), min_size=max_attempts - 1, max_size=8)))
    run = RunConfig(retry_backoff_seconds=waits) if admission == "scheduled" else None
    return LaneSpec(
        name=draw(names),
        tasks=tuple(draw(st.lists(names, min_size=1, max_size=3))),
        vendors=tuple(draw(st.lists(names, max_size=2))),
        admission=admission,
        run=run,
        runs={"worker": 3600} if run else {},
        shards=draw(st.integers(1, 64)),
        max_attempts=max_attempts,
        **({} if run else {"retry_backoff_s": waits}),
        function_timeout_s=function_timeout_s,
        visibility_s=draw(st.integers(6 * function_timeout_s, 1000)),
        job_timeout_s=function_timeout_s,
        send_budget_s=draw(st.floats(0.1, function_timeout_s * 0.8 - 1)),
        floor=floor,
        baseline=baseline,
        ceiling=draw(st.integers(baseline, 1000)),
        expected_job_s=draw(st.floats(0.01, 100)),
        secret=draw(st.none() | names),
    )


@few
@given(lane=lanes())
def test_a_lane_survives_its_journey_through_the_environment(lane: LaneSpec) -> None:
    """What infra writes down is what the function reads: every setting, exactly."""
    assert LaneSpec.from_mapping(lane.name, lane.to_mapping()) == lane


@few
@given(lane=lanes(), job=st.uuids())
def test_derived_numbers_hold_for_every_lane(lane: LaneSpec, job: object) -> None:
    """A redelivery always meets a stale claim, a window holds at least one, a shard exists and stays."""
    if lane.run is None:
        assert lane.function_timeout_s < lane.claim_timeout_s < lane.visibility_s
    else:
        assert lane.run.function_timeout_s < lane.claim_timeout_s
    assert lane.queue_limit >= 1
    assert lane.queue_limit_at(lane.ceiling) >= lane.queue_limit
    assert 0 <= lane.shard_of(str(job)) < lane.shards
    assert lane.shard_of(str(job)) == lane.shard_of(str(job))


@pytest.mark.req("C7")
@given(floor=st.integers(-5, 1200), baseline=st.integers(-5, 1200), ceiling=st.integers(-5, 1200))
def test_no_lane_without_a_hard_ceiling(floor: int, baseline: int, ceiling: int) -> None:
    """Floor, baseline and ceiling are always set, in order, and within what a mapping can be given."""
    legal = 2 <= floor <= baseline <= ceiling <= 1000
    try:
        lane = a_lane(floor=floor, baseline=baseline, ceiling=ceiling)
    except BadInput:
        assert not legal
        return
    assert legal
    assert lane.baseline <= lane.ceiling <= 1000
    assert a_lane().ceiling is not None


def test_what_is_usual_for_all_lanes_is_said_once() -> None:
    """`lane_defaults` holds for every lane that says nothing else, also for one that a stage does not know yet."""
    lanes = {"support": {"tasks": ["reply"], "minute_s": 30}, "orders": {"tasks": ["notify"]}}
    stage = StageSpec.from_mappings("local", {"lanes": lanes}, {"lane_defaults": {"minute_s": 2}})
    assert {name: lane.minute_s for name, lane in stage.lanes.items()} == {"support": 30, "orders": 2}


@pytest.mark.req("R4")
def test_a_lanes_own_schedules_have_rules_too() -> None:
    """Misfire and overlap are said for each schedule, of the engine and of a lane's runs; another name is refused."""
    lanes = {"rewrite": {"tasks": ["r"], "admission": "scheduled", "run": {}, "runs": {"worker": 3600}}}
    stage = StageSpec.from_mappings(
        "local", {"lanes": lanes, "schedule_rules": {"rewrite_worker": {"misfire": "run_once"}}}
    )
    assert str(stage.schedule_rules["rewrite_worker"].misfire) == "run_once"
    with pytest.raises(BadInput, match="is not a schedule"):
        StageSpec.from_mappings("local", {"lanes": lanes, "schedule_rules": {"rewrite_walker": {}}})
