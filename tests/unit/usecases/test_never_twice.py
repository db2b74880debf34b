"""What a refusal, an end and late evidence say of an intent that stands open."""

from __future__ import annotations

from datetime import timedelta

import pytest

from shared.adapters.memory.vendor import Says
from shared.contract import metrics
from shared.core import lifecycle
from shared.core.effects import EffectState, Lookup
from shared.core.job import Category, Job, Status
from tests.builders import a_job, a_ticket, an_account
from tests.unit.usecases.desk import Desk
from tests.vendors_and_tasks import VendorKind

DAY_S = 86_400
REFUSALS = (Says.REFUSE_RATE, Says.REFUSE_PERMANENT, Says.REFUSE_AUTH, Says.UNREACHABLE, Says.UNSENT)
PASSING = (Says.REFUSE_RATE, Says.UNREACHABLE, Says.UNSENT)


def ran(desk: Desk, job: Job, by: str = "w1/1") -> Job:
    """The job after one attempt, once it is due."""
    due = desk.job(job.job_id).due
    if due is not None:
        desk.clock.advance_to(due)
    desk.work(a_ticket(job), by=by)
    return desk.job(job.job_id)


def released(desk: Desk, job_id: str, by: str = "w9/9") -> Job:
    """A failed job after a plan let it go and it ran once."""
    failed = desk.job(job_id)
    desk.jobs.move(failed, lifecycle.replayed(failed, "plan-1", desk.clock.now()))
    return ran(desk, desk.job(job_id), by)


def accepted_and_lost(desk: Desk, *then: Says) -> Job:
    """A job whose first request was accepted and whose answer was lost; `then` is said to the next ones."""
    desk.vendor.script.extend([Says.ACCEPTED_BUT_UNKNOWN, *then])
    job = desk.put(a_job())
    ran(desk, job)
    return desk.job(job.job_id)


# ------------------------------------------------------------------------------------- refused re-sends
@pytest.mark.req("R8")
@pytest.mark.fault("A13")
@pytest.mark.parametrize("says", REFUSALS)
def test_a_refused_re_send_leaves_the_intent_open(says: Says) -> None:
    """The *no* is to the second request. The first was accepted: after the window, nothing is sent again."""
    desk = Desk(kind=VendorKind.DEDUPES)
    job = accepted_and_lost(desk, says)
    after = ran(desk, job, by="w2/2")
    (row,) = desk.rows(job.job_id)
    assert (row.state, row.taken_over) == (EffectState.INTENT, True)
    assert after.status is (Status.QUEUED if says in PASSING else Status.FAILED)
    assert after.category is (None if says in PASSING else Category.OUTCOME_UNKNOWN)
    desk.clock.advance(2 * DAY_S)
    later = ran(desk, job, by="w3/3") if after.status is Status.QUEUED else released(desk, job.job_id)
    assert (later.status, later.category) == (Status.FAILED, Category.OUTCOME_UNKNOWN)
    assert len(desk.vendor.accepts) == 1


@pytest.mark.req("R8")
@pytest.mark.fault("A13")
@pytest.mark.parametrize("says", PASSING)
def test_a_passing_refusal_of_a_re_send_is_tried_again_inside_the_window(says: Says) -> None:
    """The vendor still remembers the key: the third request finds what the first one did."""
    desk = Desk(kind=VendorKind.DEDUPES)
    job = accepted_and_lost(desk, says)
    ran(desk, job, by="w2/2")
    after = ran(desk, job, by="w3/3")
    assert (after.status, len(desk.vendor.accepts)) == (Status.COMPLETED, 1)


@pytest.mark.fault("A13")
def test_refused_credentials_wait_for_their_account() -> None:
    """An account to wait for: the re-send is put back, not parked, and finds the accept once the key is good."""
    desk = Desk(kind=VendorKind.DEDUPES, account=an_account())
    job = accepted_and_lost(desk, Says.REFUSE_AUTH)
    after = ran(desk, job, by="w2/2")
    assert (after.status, [row.open for row in desk.rows(job.job_id)]) == (Status.QUEUED, [True])
    assert ran(desk, job, by="w3/3").status is Status.COMPLETED
    assert len(desk.vendor.accepts) == 1


@pytest.mark.fault("A13")
@pytest.mark.parametrize("says", REFUSALS)
def test_a_refused_re_send_is_looked_up(says: Says) -> None:
    """A vendor that also tells what it accepted is asked at once: found is a record."""
    desk = Desk(kind=VendorKind.DEDUPES)
    desk.vendor.lookup = Lookup.EXACT
    job = accepted_and_lost(desk, says)
    after = ran(desk, job, by="w2/2")
    assert (after.status, len(desk.vendor.accepts)) == (Status.COMPLETED, 1)
    assert [row.state for row in desk.rows(job.job_id)] == [EffectState.ACCEPTED]


@pytest.mark.fault("A13")
def test_a_re_send_refused_for_good_is_looked_up_until_its_grace_ends() -> None:
    """A look-up that lags does not find it at once: asked again from the first intent on, then a person decides."""
    desk = Desk(kind=VendorKind.DEDUPES)
    desk.vendor.lookup = Lookup.EXACT
    desk.vendor.script.extend([Says.UNKNOWN, *[Says.REFUSE_PERMANENT] * 50])
    job = desk.put(a_job())
    after, begun = ran(desk, job), desk.clock.now()
    for number in range(2, 40):
        after = ran(desk, job, by=f"w{number}/{number}")
        if after.status is Status.FAILED:
            break
    assert after.category is Category.OUTCOME_UNKNOWN
    assert desk.clock.now() - begun <= timedelta(seconds=desk.lane.lookup_grace_s + 60)


@pytest.mark.req("R8")
@pytest.mark.fault("A13")
@pytest.mark.parametrize("kind", list(VendorKind))
def test_ten_clean_refusals_in_a_row_end_in_one_accept(kind: VendorKind) -> None:
    """Each request was begun, none taken over: its 429 is the whole truth, and nobody has to be asked."""
    desk = Desk(kind=kind)
    desk.vendor.script.extend([Says.REFUSE_RATE] * 10)
    job = desk.put(a_job())
    after = ran(desk, job)
    for number in range(10):
        assert after.status is Status.QUEUED
        assert [row.state for row in desk.rows(job.job_id)] == [EffectState.REFUSED]
        after = ran(desk, job, by=f"w{number + 2}/1")
    assert (after.status, after.attempt_count, len(desk.vendor.accepts)) == (Status.COMPLETED, 0, 1)
    assert desk.telemetry.counts[metrics.UNKNOWN, "support"] == 0


# --------------------------------------------------------------------------------- waiting over an intent
@pytest.mark.req("F9")
@pytest.mark.fault("A18")
def test_a_wait_that_ends_over_an_open_intent_is_an_unknown_outcome() -> None:
    """The vendor says 429 to every re-send for a day: what it did with the first request, nobody knows."""
    desk = Desk(kind=VendorKind.DEDUPES, max_wait_s=3600)
    desk.vendor._rate_retry_s = 600.0
    job = accepted_and_lost(desk, *[Says.REFUSE_RATE] * 100)
    after = desk.job(job.job_id)
    number = 2
    while after.status is Status.QUEUED:
        after, number = ran(desk, job, by=f"w{number}/1"), number + 1
    assert (after.category, after.last_error) == (Category.OUTCOME_UNKNOWN, "max_wait:vendor:helpdesk:429")
    assert len(desk.vendor.accepts) == 1
