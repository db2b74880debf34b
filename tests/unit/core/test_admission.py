"""Admission: ordered gates, one verdict, and a reason a person can act on."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.core.admission import GATES, Capacity, GateAnswer, View, admit
from shared.core.job import Job
from shared.core.switches import Level, Switches
from tests.builders import NOW, a_job, a_lane, a_switch
from tests.unit.core.strategies import few

LANE = a_lane()
CLOSING = (Level.NO_NEW_STARTS, Level.DRAIN, Level.HALT)


def a_view(*, depth: int = 0, limit: int = 10, **switches: Level) -> View:
    """What admission may look at; switches as `all=…`, `lane_support=…`."""
    entries = {
        scope.replace("_", "/", 1): a_switch(scope.replace("_", "/", 1), level) for scope, level in switches.items()
    }
    return View(lane=LANE, switches=Switches(entries=entries), capacity=Capacity(depth=depth, limit=limit))


@st.composite
def views(draw: st.DrawFn) -> View:
    """Any mixture of switches and fullness."""
    scopes = draw(st.lists(st.sampled_from(["all", "lane_support", "vendor_helpdesk", "lane_other"]), unique=True))
    levels = {scope: draw(st.sampled_from(Level)) for scope in scopes}
    return a_view(depth=draw(st.integers(0, 20)), limit=draw(st.integers(1, 20)), **levels)


jobs = st.integers(-7200, 7200).map(lambda s: a_job(not_before_at=NOW + timedelta(seconds=s))) | st.just(a_job())


def test_a_job_that_nothing_holds_runs() -> None:
    """Every gate open: no blocking gate, no reason."""
    verdict = admit(a_job(), a_view(), NOW)
    assert (verdict.runs, verdict.blocked, verdict.reason) == (True, None, None)
    assert [answer.gate for answer in verdict.gates] == ["switches", "schedule", "capacity"]


@few
@given(job=jobs, view=views())
def test_the_verdict_is_the_first_closed_gate(job: Job, view: View) -> None:
    """Every gate is asked, in order; the first that is closed is what blocks."""
    verdict = admit(job, view, NOW)
    closed = [answer for answer in verdict.gates if not answer.open]
    assert verdict.blocked == (closed[0] if closed else None)
    assert verdict.runs == (not closed)
    assert len(verdict.gates) == len(GATES)


@pytest.mark.req("F9")
@few
@given(job=jobs, view=views())
def test_a_closed_gate_names_its_key_and_what_opens_it(job: Job, view: View) -> None:
    """Back-pressure is visible: no job waits without a key and a way out, and its reason says both."""
    verdict = admit(job, view, NOW)
    for answer in verdict.gates:
        if not answer.open:
            assert answer.key
            assert answer.unblock
    if verdict.blocked is not None:
        assert verdict.reason == f"{verdict.blocked.gate}:{verdict.blocked.key}"


@few
@given(job=jobs, view=views())
def test_admission_only_looks(job: Job, view: View) -> None:
    """The same job, view and time give the same verdict, however often it is asked."""
    assert admit(job, view, NOW) == admit(job, view, NOW)


@pytest.mark.parametrize(
    "scope", ["all", "lane_support", "vendor_helpdesk", "task_support/reply", "tenant_support/tenant-1"]
)
@pytest.mark.parametrize("level", list(Level))
def test_the_switch_gate_closes_from_no_new_starts_upwards(scope: str, level: Level) -> None:
    """On every scope the job is in, and the scope that closes it is named."""
    verdict = admit(a_job(), a_view(**{scope: level}), NOW)
    assert verdict.runs == (level not in CLOSING)
    if level in CLOSING:
        named = scope.replace("_", "/", 1)
        assert verdict.blocked is not None
        assert (verdict.blocked.gate, verdict.blocked.key) == ("switches", named)
        assert f"penstock control set {named} normal" in verdict.blocked.unblock


@pytest.mark.parametrize("scope", ["lane_outreach", "vendor_openai", "task_support/other", "tenant_support/tenant-2"])
def test_anothers_switch_holds_nobody_here(scope: str) -> None:
    """A scope the job is not in has no say."""
    assert admit(a_job(), a_view(**{scope: Level.HALT}), NOW).runs


@given(early_s=st.integers(-100, 100))
def test_the_schedule_gate_is_closed_until_the_jobs_time(early_s: int) -> None:
    """Closed while the job's own time is more than the claim's slack away, and says when it opens."""
    at = NOW + timedelta(seconds=early_s)
    verdict = admit(a_job(not_before_at=at), a_view(), NOW)
    assert verdict.runs == (early_s <= 2)
    if verdict.blocked is not None:
        assert (verdict.blocked.gate, verdict.blocked.retry_at) == ("schedule", at)


def test_the_schedule_gate_keeps_the_reason_of_the_wait() -> None:
    """A job deferred by a vendor says so; one that was enqueued for later says that."""
    later = NOW + timedelta(hours=1)
    waits = admit(a_job(not_before_at=later, blocked_by="vendor:helpdesk:429"), a_view(), NOW)
    assert waits.reason == "schedule:vendor:helpdesk:429"
    assert admit(a_job(not_before_at=later), a_view(), NOW).reason == "schedule:not_before_at"


@given(depth=st.integers(0, 30), limit=st.integers(1, 30))
def test_the_capacity_gate_closes_when_the_window_is_full(depth: int, limit: int) -> None:
    """A full window holds; one place free lets the next one through."""
    verdict = admit(a_job(), a_view(depth=depth, limit=limit), NOW)
    assert verdict.runs == (depth < limit)
    if not verdict.runs:
        assert verdict.reason == "capacity:support"


def test_switches_come_before_time_and_time_before_capacity() -> None:
    """With everything closed, the reason is the one a person must act on first."""
    later = a_job(not_before_at=NOW + timedelta(hours=1))
    assert (admit(later, a_view(depth=10, all=Level.HALT), NOW).reason or "").startswith("switches:")
    assert (admit(later, a_view(depth=10), NOW).reason or "").startswith("schedule:")
    assert (admit(a_job(), a_view(depth=10), NOW).reason or "").startswith("capacity:")


def test_a_new_gate_is_one_object() -> None:
    """Nothing else changes: a gate given to `admit` is asked in its place and can block."""

    class Quota:
        name = "quota"

        def look(self, job: Job, view: View, now: object) -> GateAnswer:
            return GateAnswer(gate=self.name, open=False, key=job.tenant, unblock="a slot of the tenant ends")

    verdict = admit(a_job(), a_view(), NOW, (GATES[0], Quota(), *GATES[1:]))
    assert [answer.gate for answer in verdict.gates] == ["switches", "quota", "schedule", "capacity"]
    assert verdict.reason == "quota:tenant-1"
