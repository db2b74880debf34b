"""How an attempt ends: attempt counts, backoff, the wait that is too long, recovery, evidence."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.core import lifecycle
from shared.core.backoff import GiveUp, RetryAt, check_backoff, decide_retry
from shared.core.errors import BadInput, IllegalMove
from shared.core.job import Category, Job, Status
from shared.core.lifecycle import Defer, Done, Fail, Retry, Submitted, recovered, settled
from shared.core.outcome import Outcome
from tests.builders import NOW, a_job, a_lane
from tests.unit.core.strategies import claimed_jobs, codes, few, moments, outcomes

LANE = a_lane(max_attempts=5, retry_backoff_s=(5, 10, 20, 40), max_wait_s=3600)
backoffs = st.lists(st.integers(0, 86_400), min_size=4, max_size=8).map(tuple)


@pytest.mark.req("R10", "R11", "M5")
@few
@given(job=claimed_jobs(), outcome=outcomes())
def test_only_a_retry_uses_an_attempt(job: Job, outcome: Outcome) -> None:
    """Done, deferral, failure and submission leave the count; a passing failure adds exactly one."""
    after = settled(job, outcome, LANE, NOW)
    assert after.attempt_count == job.attempt_count + isinstance(outcome, Retry)
    assert after.max_attempts == job.max_attempts
    assert (after.claimed_at, after.claimed_by, after.fence) == (None, None, job.fence)


@pytest.mark.req("R1")
@given(job=claimed_jobs(), outcome=outcomes(), open_intent=st.booleans())
def test_every_ending_is_where_the_outcome_says(job: Job, outcome: Outcome, open_intent: bool) -> None:
    """Each kind of outcome has its state, and a job that waits again stands in the index."""
    after = settled(job, outcome, LANE, NOW, open_intent=open_intent)
    last_try = job.attempt_count + 1 >= job.max_attempts
    wanted = {
        Done: Status.COMPLETED,
        Submitted: Status.BATCH_SUBMITTED,
        Fail: Status.FAILED,
        Retry: Status.FAILED if last_try else Status.QUEUED,
        Defer: Status.FAILED
        if job.waiting_since and NOW - job.waiting_since >= timedelta(seconds=LANE.max_wait_s)
        else Status.QUEUED,
    }
    assert after.status is wanted[type(outcome)]
    assert after.waits == (after.status is Status.QUEUED)
    assert (after.category is not None) == (after.status is Status.FAILED)
    assert (after.expires_at is not None) == after.status.ended


@pytest.mark.req("R10")
@few
@given(attempt=st.integers(0, 3), backoff=backoffs, now=moments)
def test_the_wait_is_the_lists_own_without_jitter(attempt: int, backoff: tuple[int, ...], now: datetime) -> None:
    """After the n-th failure a job waits the n-th number, and asking twice gives the same time."""
    lane = a_lane(max_attempts=5, retry_backoff_s=backoff)
    job = a_job(status=Status.PROCESSING, attempt_count=attempt, max_attempts=5)
    after = settled(job, Retry("vendor_timeout"), lane, now)
    assert after.not_before_at == after.due == now + timedelta(seconds=backoff[attempt])
    assert (after.last_error, after.last_error_at, after.blocked_by) == ("vendor_timeout", now, "backoff")
    assert after == settled(job, Retry("vendor_timeout"), lane, now)


@pytest.mark.req("R10", "R11")
@given(max_attempts=st.integers(1, 6), error=codes)
def test_a_job_that_always_fails_is_tried_max_attempts_times(max_attempts: int, error: str) -> None:
    """Tries in all, the first included; then failed, with its last error and when it was."""
    lane = a_lane(max_attempts=max_attempts, retry_backoff_s=(1,) * (max_attempts - 1))
    job, tries = a_job(max_attempts=max_attempts), 0
    while job.status is Status.QUEUED:
        claimed = lifecycle.move(job, Status.PROCESSING, "claim", NOW, fence=job.fence + 1, due=None)
        job, tries = settled(claimed, Retry(error), lane, NOW), tries + 1
    assert tries == job.attempt_count == max_attempts
    assert (job.status, job.category) == (Status.FAILED, Category.RETRIES_EXHAUSTED)
    assert (job.last_error, job.last_error_at) == (error, NOW)


@pytest.mark.req("R10")
@given(max_attempts=st.integers(2, 9), data=st.data())
def test_a_backoff_list_that_is_too_short_is_refused(max_attempts: int, data: st.DataObject) -> None:
    """A wait for every retry there can be, or no lane."""
    waits = data.draw(st.lists(st.integers(0, 9), max_size=max_attempts - 2))
    with pytest.raises(BadInput, match=f"has {len(waits)} waits, but {max_attempts} attempts need") as refused:
        check_backoff(max_attempts, waits)
    assert refused.value.field == "retry_backoff_s"


@pytest.mark.parametrize("wait", [-1, 1.5, True, "5", None])
def test_a_wait_is_whole_seconds(wait: object) -> None:
    """Anything else in the list is refused by name."""
    with pytest.raises(BadInput) as refused:
        check_backoff(2, [wait])  # type: ignore[list-item]
    assert refused.value.field == "retry_backoff_s"
    with pytest.raises(BadInput, match="max_attempts: must be at least 1"):
        check_backoff(0, [])


@given(attempt=st.integers(0, 20), stored=st.integers(1, 20), backoff=st.lists(st.integers(0, 9), max_size=3))
def test_a_job_enqueued_under_another_configuration_still_gets_an_answer(
    attempt: int, stored: int, backoff: list[int]
) -> None:
    """The row's number of tries counts; where the lane's list has since become shorter, its last wait is used."""
    decision = decide_retry(attempt, stored, backoff, NOW)
    assert isinstance(decision, GiveUp) == (attempt + 1 >= stored)
    if isinstance(decision, RetryAt):
        usual = (backoff or [0])[min(attempt, len(backoff) - 1) if backoff else 0]
        assert decision.at == NOW + timedelta(seconds=usual)


@few
@given(job=claimed_jobs(), until=moments, reason=codes)
def test_a_deferral_waits_until_its_time_and_uses_nothing(job: Job, until: datetime, reason: str) -> None:
    """The job stands in the index under its reason; the first deferral is remembered."""
    after = settled(job, Defer(until, reason), LANE, NOW)
    if after.status is Status.FAILED:
        return
    assert after.not_before_at == after.due == until
    assert (after.blocked_by, after.waiting_since) == (reason, job.waiting_since or NOW)
    assert (after.last_error, after.attempt_count) == (job.last_error, job.attempt_count)


@pytest.mark.req("F9")
@given(waited_s=st.integers(0, 7200))
def test_waiting_is_bounded_from_the_first_deferral(waited_s: int) -> None:
    """No unbounded retry: past `max_wait_s` the next deferral fails the job, and says which wait it was."""
    job = a_job(status=Status.PROCESSING, waiting_since=NOW - timedelta(seconds=waited_s))
    after = settled(job, Defer(NOW, "vendor:helpdesk:429"), LANE, NOW)
    if waited_s < 3600:
        assert after.status is Status.QUEUED
        return
    assert (after.status, after.category) == (Status.FAILED, Category.RETRIES_EXHAUSTED)
    assert after.last_error == "max_wait:vendor:helpdesk:429"


@pytest.mark.req("C8")
@given(job=claimed_jobs(), category=st.sampled_from(Category), error=codes)
def test_a_failure_is_sorted(job: Job, category: Category, error: str) -> None:
    """Category, signature, last error and when: what a dead letter is found by."""
    after = settled(job, Fail(category, error), LANE, NOW)
    assert (after.status, after.category, after.last_error) == (Status.FAILED, category, error)
    assert (after.signature, after.last_error_at) == (lifecycle.signature_of(error), NOW)
    assert not after.waits


@given(max_attempts=st.integers(1, 4), open_intent=st.booleans())
def test_a_last_try_with_an_open_intent_is_unknown_not_exhausted(max_attempts: int, open_intent: bool) -> None:
    """Nobody may take "all tries failed" for "certainly not sent"."""
    job = a_job(status=Status.PROCESSING, attempt_count=max_attempts - 1, max_attempts=max_attempts)
    lane = a_lane(max_attempts=max_attempts, retry_backoff_s=(1,) * max_attempts)
    after = settled(job, Retry("x"), lane, NOW, open_intent=open_intent)
    wanted = Category.OUTCOME_UNKNOWN if open_intent else Category.RETRIES_EXHAUSTED
    assert (after.status, after.category) == (Status.FAILED, wanted)


@pytest.mark.req("R9")
@given(job=claimed_jobs(), open_intent=st.booleans())
def test_a_dead_workers_job_is_queued_again_or_failed(job: Job, open_intent: bool) -> None:
    """One attempt used, the fence raised, the error named; at `max_attempts` failed as poison or unknown."""
    after = recovered(job, LANE, NOW, open_intent=open_intent)
    assert (after.attempt_count, after.fence) == (job.attempt_count + 1, job.fence + 1)
    assert (after.last_error, after.last_error_at) == ("stale_claim_requeued", NOW)
    assert (after.claimed_at, after.claimed_by) == (None, None)
    if after.attempt_count < job.max_attempts:
        assert (after.status, after.due, after.blocked_by) == (Status.QUEUED, NOW, "stale_claim")
        return
    wanted = Category.OUTCOME_UNKNOWN if open_intent else Category.POISON
    assert (after.status, after.category, after.due) == (Status.FAILED, wanted, None)


def test_only_a_claimed_job_is_recovered_or_settled() -> None:
    """The law holds here, too: no caller can end a job that is not in a worker's hands."""
    for status in set(Status) - {Status.PROCESSING}:
        with pytest.raises(IllegalMove):
            recovered(a_job(status=status, attempt_count=0), LANE, NOW, open_intent=False)
        with pytest.raises(IllegalMove):
            settled(a_job(status=status), Retry("x"), LANE, NOW)


@pytest.mark.req("R1")
@given(status=st.sampled_from(sorted(set(Status) - {Status.PROCESSING, Status.BATCH_SUBMITTED})))
def test_no_task_can_complete_what_was_not_claimed(status: Status) -> None:
    """Never straight from queued to completed."""
    with pytest.raises(IllegalMove):
        settled(a_job(status=status), Done("ok"), LANE, NOW)


def test_evidence_completes_what_was_parked() -> None:
    """A send proven later ends the job well: no category, a result, an expiry of its own."""
    parked = a_job(status=Status.FAILED, category=Category.OUTCOME_UNKNOWN)
    after = lifecycle.completed_by_evidence(parked, LANE, NOW, "replied", "result/1")
    assert (after.status, after.category, after.result) == (Status.COMPLETED, None, "replied")
    assert (after.result_ref, after.completed_at) == ("result/1", NOW)
    with pytest.raises(IllegalMove):
        lifecycle.completed_by_evidence(a_job(), LANE, NOW, "replied", None)


@pytest.mark.parametrize(("error", "reason"), [("receives_without_claim", "triage"), ("max_wait:capacity", "max_wait")])
def test_a_job_that_never_ran_says_why_it_failed(error: str, reason: str) -> None:
    """Its message died, or it waited too long: the history keeps which."""
    after = lifecycle.failed_unclaimed(a_job(due=NOW), LANE, NOW, Category.INFRASTRUCTURE, error)
    assert (after.status, after.moves[-1].reason, after.due) == (Status.FAILED, reason, None)
    with pytest.raises(IllegalMove):
        lifecycle.failed_unclaimed(a_job(status=Status.PROCESSING), LANE, NOW, Category.POISON, error)
