"""Run configuration: each setting is checked by name, and decides who is taken, in which order, until when."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.core.errors import BadInput
from shared.core.ports import WaitingEntry
from shared.core.run import Order, RunConfig
from tests.builders import NOW, a_lane, a_run_lane


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        *(("max_jobs_per_run", bad) for bad in (0, -1, 1.5, "25", True, None, 10_001)),
        *(("max_runtime_seconds", bad) for bad in (0, 9, 781, "240")),
        *(("claim_timeout_seconds", bad) for bad in (0, 269, "600")),
        *(("order", bad) for bad in ("random", None, 3)),
        *(("eligible_statuses", bad) for bad in ([], ["failed"], ["queued", "failed"], "queued")),
        *(("respect_not_before_at", bad) for bad in ("no", 0, None)),
        *(("retry_backoff_seconds", bad) for bad in (900, [900, -1], [0], ["900"])),
        *(("overflow_backoff_seconds", bad) for bad in (-1, "60")),
        ("max_job_per_run", 5),
    ],
)
@pytest.mark.req("R6")
def test_what_cannot_work_is_refused_by_name(setting: str, value: Any) -> None:
    """The error says which setting of which lane to change."""
    with pytest.raises(BadInput) as refused:
        RunConfig.from_mapping("lanes.rewrite.run", {setting: value})
    assert refused.value.field in (f"lanes.rewrite.run.{setting}", "lanes.rewrite.run")


@pytest.mark.req("R10")
def test_a_backoff_list_shorter_than_its_retries_is_refused() -> None:
    """A wait for every retry there can be."""
    with pytest.raises(BadInput) as refused:
        a_run_lane(max_attempts=4, run=RunConfig(retry_backoff_seconds=(900, 7200)))
    assert refused.value.field == "lanes.rewrite.run.retry_backoff_seconds"


def test_only_a_lane_with_runs_has_a_run_configuration() -> None:
    """And it names what is scheduled."""
    with pytest.raises(BadInput, match=r"lanes\.support\.run"):
        a_lane(run=RunConfig())
    with pytest.raises(BadInput, match=r"lanes\.rewrite\.runs"):
        a_run_lane(runs={})
    with pytest.raises(BadInput, match=r"runs\.worker: must be whole minutes"):
        a_run_lane(runs={"worker": 90})


@given(
    st.builds(
        RunConfig,
        max_jobs_per_run=st.integers(1, 500),
        max_runtime_seconds=st.integers(10, 400),
        claim_timeout_seconds=st.integers(430, 5000),
        order=st.sampled_from(Order),
        respect_not_before_at=st.booleans(),
        retry_backoff_seconds=st.lists(st.integers(1, 9999), max_size=5).map(tuple),
        overflow_backoff_seconds=st.integers(0, 600),
    )
)
def test_a_configuration_survives_its_journey(run: RunConfig) -> None:
    """What infra writes down is what the run reads; its claims outlive its function."""
    assert RunConfig.from_mapping("here", run.to_mapping()) == run
    assert run.function_timeout_s < run.claim_timeout_seconds


def an_entry(number: int, *, due_s: int, created_s: int) -> WaitingEntry:
    """An entry of the index."""
    due, created = NOW + timedelta(seconds=due_s), NOW + timedelta(seconds=created_s)
    return WaitingEntry(job_id=f"j-{number}", due=due, created=created, priority=2)


@pytest.mark.req("R6")
def test_the_order_is_the_configured_one() -> None:
    """A job that was put off is old by its creation and late by its due time."""
    entries = [
        an_entry(1, due_s=5, created_s=5),
        an_entry(2, due_s=9, created_s=1),
        an_entry(3, due_s=7, created_s=7),
    ]
    chosen = {order: [one.job_id for one in RunConfig(order=order).in_order(entries)] for order in Order}
    assert chosen[Order.CREATED] == ["j-2", "j-1", "j-3"]
    assert chosen[Order.DUE] == ["j-1", "j-3", "j-2"]
