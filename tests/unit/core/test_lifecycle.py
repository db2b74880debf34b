"""The lifecycle: only the moves of the one table, and what each of them does to the record."""

from __future__ import annotations

from datetime import timedelta
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.core import lifecycle, liveness
from shared.core.errors import IllegalMove
from shared.core.job import KEPT_MOVES, STATUS_ALIASES, Category, Job, Status, read_status
from shared.core.lifecycle import MOVES
from tests.builders import NOW, a_job, a_lane
from tests.unit.core.strategies import claimed_jobs, few, moments

REASONS = sorted({rule.reason for rule in MOVES})
LEGAL = {(rule.was, rule.to, rule.reason) for rule in MOVES}
LATER = NOW + timedelta(hours=1)


@pytest.mark.req("R1")
def test_there_are_six_states_and_no_others() -> None:
    """The words of the record, exactly."""
    words = ["queued", "processing", "batch_submitted", "completed", "failed", "canceled"]
    assert [status.value for status in Status] == words


@pytest.mark.req("R1")
@pytest.mark.parametrize(("was", "to"), list(product(Status, Status)))
def test_only_a_move_of_the_table_is_made(was: Status, to: Status) -> None:
    """For every pair of states and every reason: the table's moves are made, all others refused unwritten."""
    job = a_job(status=was)
    for reason in (*REASONS, "", "anything"):
        if (was, to, reason) in LEGAL:
            after = lifecycle.move(job, to, reason, LATER)
            assert (after.status, after.moves[-1].to, after.moves[-1].reason) == (to, to, reason)
            assert after.updated_at == LATER
            continue
        with pytest.raises(IllegalMove) as refused:
            lifecycle.move(job, to, reason, LATER)
        assert (refused.value.job_id, refused.value.was, refused.value.to) == (job.job_id, was, to)


@pytest.mark.req("R1")
def test_what_is_final_stays_final() -> None:
    """Nothing leaves completed or canceled, and nothing reaches completed without having been claimed."""
    assert not [rule for rule in MOVES if rule.was in (Status.COMPLETED, Status.CANCELED)]
    to_completed = {rule.was for rule in MOVES if rule.to is Status.COMPLETED}
    assert to_completed == {Status.PROCESSING, Status.BATCH_SUBMITTED, Status.FAILED}


def test_every_move_has_its_own_words() -> None:
    """No two rules say the same, and each has a sentence for the picture."""
    assert len(LEGAL) == len(MOVES)
    assert all(rule.when and not rule.when.endswith(".") for rule in MOVES)


@pytest.mark.req("M8")
@pytest.mark.parametrize("rule", [rule for rule in MOVES if rule.was.ended], ids=lambda r: f"{r.was}-{r.to}")
def test_leaving_an_end_state_removes_the_expiry(rule: lifecycle.MoveRule) -> None:
    """A live job is never deleted: the write that brings one back takes its expiry away."""
    job = a_job(status=rule.was, expires_at=NOW + timedelta(days=1))
    after = lifecycle.move(job, rule.to, rule.reason, LATER)
    assert (after.expires_at is None) == (not rule.to.ended)


@pytest.mark.req("M8")
@few
@given(job=claimed_jobs(), kept=st.integers(1, 60))
def test_every_end_has_its_expiry(job: Job, kept: int) -> None:
    """Completed and canceled jobs are kept as long as the lane says, failed ones as long as it says for those."""
    lane = a_lane(completed_kept_days=kept, failed_kept_days=kept + 5)
    queued, parked = a_job(), a_job(status=Status.FAILED, category=Category.OUTCOME_UNKNOWN)
    well = [
        lifecycle.settled(job, lifecycle.Done("ok"), lane, LATER),
        lifecycle.canceled(job, lane, "op", LATER),
        lifecycle.canceled(queued, lane, "op", LATER),
        lifecycle.completed_by_evidence(parked, lane, LATER, "ok", None),
    ]
    badly = [
        lifecycle.settled(job, lifecycle.Fail(Category.AUTH, "x"), lane, LATER),
        lifecycle.failed_unclaimed(queued, lane, LATER, Category.INFRASTRUCTURE, "x"),
    ]
    assert {after.expires_at for after in well} == {LATER + timedelta(days=kept)}
    assert {after.expires_at for after in badly} == {LATER + timedelta(days=kept + 5)}


@pytest.mark.req("M8")
@few
@given(job=claimed_jobs(), until=moments)
def test_a_live_job_never_has_an_expiry(job: Job, until: object) -> None:
    """Retry, deferral and recovery leave a job that nothing may delete."""
    lane = a_lane()
    assert lifecycle.settled(job, lifecycle.Defer(until, "x"), lane, NOW).expires_at is None  # type: ignore[arg-type]
    for after in (
        lifecycle.settled(job, lifecycle.Retry("x"), lane, NOW),
        lifecycle.recovered(job, lane, NOW, open_intent=False),
    ):
        assert (after.expires_at is None) == (after.status is Status.QUEUED)


def test_the_history_keeps_the_newest_moves() -> None:
    """The story of a job is bounded, so its row stays in one write unit."""
    job = a_job()
    for turn in range(3 * KEPT_MOVES):
        job = lifecycle.held(job, f"switches:{turn}", NOW + timedelta(seconds=turn))
    assert len(job.moves) == KEPT_MOVES
    assert job.moves[-1].reason == f"held:switches:{3 * KEPT_MOVES - 1}"


def test_a_hold_keeps_the_place_in_line() -> None:
    """A job held for hours stands where its own time put it, so opening the gate serves the oldest first."""
    job = a_job(not_before_at=NOW + timedelta(seconds=30))
    after = lifecycle.held(job, "switches:all", LATER)
    assert (after.due, after.blocked_by) == (job.not_before_at, "switches:all")
    assert (after.not_before_at, after.attempt_count, after.fence) == (job.not_before_at, 0, job.fence)


def test_a_hand_off_leaves_the_index_and_changes_nothing_else() -> None:
    """Its place and what blocked it are gone; the history does not grow with every dispatch."""
    job = a_job(due=NOW, blocked_by="capacity:support")
    after = lifecycle.handed_off(job, NOW)
    assert (after.due, after.blocked_by, after.moves) == (None, None, job.moves)
    with pytest.raises(IllegalMove):
        lifecycle.handed_off(a_job(status=Status.PROCESSING), NOW)


@given(slack_ms=st.integers(-10_000, 10_000))
def test_a_claim_accepts_a_job_two_seconds_early(slack_ms: int) -> None:
    """Clocks that disagree a little do not bounce a job; more than that and it waits."""
    job = a_job(not_before_at=NOW)
    now = NOW + timedelta(milliseconds=slack_ms)
    assert lifecycle.is_due(job, now) == (slack_ms >= -2000)
    assert lifecycle.is_due(a_job(), now)


@pytest.mark.fault("D4")
@pytest.mark.parametrize("skew_s", [-30, -5, 0, 5, 29])
def test_a_clock_that_runs_ahead_takes_no_claim_from_a_worker_that_may_run(skew_s: int) -> None:
    """At the last second of its function, by any clock that is less than half a minute off, a claim is live."""
    lane = a_lane(function_timeout_s=20, visibility_s=400, job_timeout_s=15)
    job = a_job(status=Status.PROCESSING, claimed_at=NOW)
    assert not liveness.is_stale(job, lane, NOW + timedelta(seconds=lane.function_timeout_s + skew_s))


@pytest.mark.req("R9")
@given(age_s=st.integers(0, 600))
def test_a_claim_is_stale_exactly_at_its_timeout(age_s: int) -> None:
    """Function time-out plus thirty seconds: before it the worker may live, from then on it cannot."""
    lane, job = a_lane(function_timeout_s=20), a_job(status=Status.PROCESSING, claimed_at=NOW)
    assert liveness.is_stale(job, lane, NOW + timedelta(seconds=age_s)) == (age_s >= 50)
    for status in set(Status) - {Status.PROCESSING}:
        assert not liveness.is_stale(a_job(status=status, claimed_at=NOW), lane, LATER)


@given(receives=st.integers(1, 12), fence=st.integers(1, 5))
def test_poison_is_a_job_that_was_claimed_before_and_came_back_too_often(receives: int, fence: int) -> None:
    """Receives without a claim are the platform's doing and never count against the job."""
    job = a_job(status=Status.PROCESSING, fence=fence)
    assert lifecycle.is_poison(job, receives, 8) == (receives >= 8 and fence > 1)


@pytest.mark.parametrize(
    ("status", "reason"), [(Status.QUEUED, "cancel"), (Status.PROCESSING, "cancel"), (Status.FAILED, "dismiss")]
)
def test_canceling_raises_the_fence(status: Status, reason: str) -> None:
    """Whoever holds the job can no longer write: its fence is not current any more."""
    job = a_job(status=status, due=NOW)
    after = lifecycle.canceled(job, a_lane(), "operator", LATER)
    assert (after.status, after.fence, after.due) == (Status.CANCELED, job.fence + 1, None)
    assert after.moves[-1].reason == f"{reason}:operator"


@pytest.mark.req("R1")
@pytest.mark.parametrize(("word", "meant"), STATUS_ALIASES.items())
def test_older_words_are_read_and_never_written(word: str, meant: Status) -> None:
    """running, succeeded and pending mean their present words; no status has such a value."""
    assert read_status(word) is meant
    assert word not in {status.value for status in Status}


@given(word=st.text(max_size=20).filter(lambda w: w not in {*Status, *STATUS_ALIASES}))
def test_an_unknown_status_is_refused_without_repeating_it(word: str) -> None:
    """A newer version's word is no licence to guess."""
    with pytest.raises(ValueError, match="status is not one this version knows") as refused:
        read_status(word)
    assert refused.value.__cause__ is None


@given(numbers=st.lists(st.integers(0, 10**9), min_size=1, max_size=4))
def test_errors_that_differ_in_numbers_share_a_signature(numbers: list[int]) -> None:
    """A cohort is named by its kind of error, not by its ids."""
    one = lifecycle.signature_of(" ".join(f"timeout after {n} s" for n in numbers))
    assert one == lifecycle.signature_of(" ".join("TIMEOUT after 7 s" for _ in numbers))
    assert len(lifecycle.signature_of("x" * 1000)) <= 96
