"""The promises of `JobStore`, kept by every adapter."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta

import pytest

from shared.adapters import rows
from shared.contract import table
from shared.core import lifecycle
from shared.core.errors import RowMoved, UnknownLane
from shared.core.job import KEPT_MOVES, Category, Job, Move, Status
from shared.core.outcome import Defer, Done, Fail, Retry, Submitted
from shared.core.ports import Claimed, NotClaimed
from tests.builders import NOW, a_job
from tests.contract.worlds import LANES, World

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
LANE = LANES["support"]


def claimed(world: World, job: Job, by: str = "w1/a") -> Job:
    """The job after it was put and claimed."""
    assert world.jobs.put(job) is None
    answer = world.jobs.claim(job.job_id, by=by, now=NOW)
    assert isinstance(answer, Claimed)
    return answer.job


# ------------------------------------------------------------------------------------------- put and get
def test_a_job_is_read_back_as_it_was_written(world: World) -> None:
    """Every field survives the row, waiting or not."""
    plain = a_job()
    full = a_job(
        key="event-2",
        priority=0,
        not_before_at=NOW + MINUTE,
        due=NOW + MINUTE,
        blocked_by="schedule:not_before_at",
        waiting_since=NOW,
        taken_from=NOW,
        payload_ref="payload/x/y",
        result_ref="result/x",
        plan_id="plan-1",
        replay_count=2,
        last_error="vendor_timeout",
        last_error_at=NOW,
        withheld={"reply": "lane/support", "chat": "tenant/support/acme@example.com"},
        routing_decision={"queue": "billing", "score": 0.5, "rules": [1, 2], "auto": True, "none": None},
    )
    for job in (plain, full):
        assert world.jobs.put(job) is None
        assert world.jobs.get(job.job_id) == job
    assert world.jobs.get("00000000-0000-0000-0000-000000000000") is None


@pytest.mark.req("R2")
def test_a_second_put_returns_the_first_job(world: World) -> None:
    """The same cause enqueued again changes nothing and gives the job that stands there."""
    first = a_job()
    assert world.jobs.put(first) is None
    again = replace(first, created_at=NOW + SECOND, updated_at=NOW + SECOND, payload_hash="other", priority=0)
    assert world.jobs.put(again) == first
    assert world.jobs.get(first.job_id) == first


@pytest.mark.fault("C3")
def test_a_put_whose_reply_was_lost_counts_as_written(world: World) -> None:
    """The very same write again is a success and changes nothing."""
    for job in (a_job(), a_job(key="event-2", due=NOW, not_before_at=NOW, routing_decision={"score": 1.0})):
        assert world.jobs.put(job) is None
        assert world.jobs.put(job) is None
        assert world.jobs.get(job.job_id) == job


def test_a_waiting_job_of_an_unknown_lane_is_refused(world: World) -> None:
    """Nobody would ever look at it: it is refused before it is written."""
    job = a_job(lane="nowhere", due=NOW)
    with pytest.raises(UnknownLane, match="nowhere"):
        world.jobs.put(job)
    assert world.jobs.get(job.job_id) is None


# ------------------------------------------------------------------------------------------------- claim
@pytest.mark.fault("A3")
def test_a_job_is_claimed_by_one_worker_only(world: World) -> None:
    """However many ask at once, one gets it and the others see whose it is."""
    job = a_job()
    world.jobs.put(job)
    callers = [f"w{n}/a" for n in range(world.threads)]
    with ThreadPoolExecutor(world.threads) as pool:
        answers = list(pool.map(lambda by: world.jobs.claim(job.job_id, by=by, now=NOW), callers))
    answers.append(world.jobs.claim(job.job_id, by="late/a", now=NOW))
    winners = [answer.job for answer in answers if isinstance(answer, Claimed)]
    assert len(winners) == 1
    for answer in answers:
        assert answer.job == winners[0]


def test_a_claim_says_who_when_and_with_which_fence(world: World) -> None:
    """The claimed job is processing, with its claim on it, and is what stands in the table."""
    job = a_job()
    taken = claimed(world, job, by="w1/a")
    assert taken == replace(
        job,
        status=Status.PROCESSING,
        claimed_at=NOW,
        claimed_by="w1/a",
        fence=1,
        updated_at=NOW,
        moves=(*job.moves, Move(at=NOW, to=Status.PROCESSING, reason="claim")),
    )
    assert world.jobs.get(job.job_id) == taken


def test_a_claim_takes_the_job_out_of_the_waiting_index(world: World) -> None:
    """A claimed job has no due time, and no reason to wait."""
    job = a_job(due=NOW, not_before_at=NOW, blocked_by="capacity:support")
    taken = claimed(world, job)
    assert (taken.due, taken.blocked_by) == (None, None)
    assert world.jobs.waiting(LANE, due_before=NOW + MINUTE, limit=10) == []


@pytest.mark.req("R8")
@pytest.mark.parametrize(("ahead_ms", "takes"), [(0, True), (2000, True), (2001, False), (60_000, False)])
def test_a_claim_accepts_a_job_up_to_two_seconds_early(world: World, ahead_ms: int, takes: bool) -> None:
    """Exactly the claim condition of the lifecycle: queued, and due within the slack."""
    at = NOW + timedelta(milliseconds=ahead_ms)
    job = a_job(not_before_at=at, due=at)
    world.jobs.put(job)
    answer = world.jobs.claim(job.job_id, by="w1/a", now=NOW)
    assert isinstance(answer, Claimed) == takes
    assert takes == lifecycle.is_due(job, NOW)
    if not takes:
        assert answer == NotClaimed(job=job)


@pytest.mark.fault("C3")
def test_claiming_again_with_the_same_token_is_still_a_claim(world: World) -> None:
    """A claim whose reply was lost is asked for again: the same claim, the fence not raised."""
    job = a_job()
    first = claimed(world, job)
    again = world.jobs.claim(job.job_id, by="w1/a", now=NOW + SECOND)
    assert again == Claimed(job=first)
    other = world.jobs.claim(job.job_id, by="w2/a", now=NOW + SECOND)
    assert other == NotClaimed(job=first)


@pytest.mark.req("R8")
@pytest.mark.parametrize("status", [status for status in Status if status not in (Status.QUEUED, Status.PROCESSING)])
def test_only_a_queued_job_is_claimed(world: World, status: Status) -> None:
    """Ended, submitted: the claim changes nothing and shows the row."""
    job = a_job(status=status)
    world.jobs.put(job)
    assert world.jobs.claim(job.job_id, by="w1/a", now=NOW) == NotClaimed(job=job)
    assert world.jobs.get(job.job_id) == job


def test_a_claim_of_no_job_creates_none(world: World) -> None:
    """A ticket without a row is not made into one."""
    job_id = a_job().job_id
    assert world.jobs.claim(job_id, by="w1/a", now=NOW) == NotClaimed(job=None)
    assert world.jobs.get(job_id) is None


@pytest.mark.fault("A4")
def test_each_claim_raises_the_fence(world: World) -> None:
    """After a job came back, its next claim has a higher fence than any before."""
    first = claimed(world, a_job())
    back = lifecycle.settled(first, Defer(NOW, "not_yet"), LANE, NOW)
    world.jobs.move(first, back)
    answer = world.jobs.claim(first.job_id, by="w2/a", now=NOW)
    assert isinstance(answer, Claimed)
    assert answer.job.fence == first.fence + 1


# -------------------------------------------------------------------------------------------------- move
@pytest.mark.parametrize(
    "outcome",
    [
        Done("replied", ref="result/x"),
        Retry("vendor_timeout"),
        Defer(NOW + MINUTE, "vendor:helpdesk:rate"),
        Fail(Category.VENDOR_PERMANENT, "vendor_permanent:helpdesk:422"),
        Submitted("batch-1"),
    ],
    ids=lambda outcome: type(outcome).__name__,
)
def test_a_move_is_read_back_as_it_was_made(world: World, outcome: Done | Retry | Defer | Fail | Submitted) -> None:
    """However an attempt ends, the row says exactly what the lifecycle said."""
    taken = claimed(world, a_job())
    after = lifecycle.settled(taken, outcome, LANE, NOW + SECOND)
    world.jobs.move(taken, after)
    assert world.jobs.get(taken.job_id) == rows.stored(after)


def test_what_a_move_clears_is_gone_from_the_row(world: World) -> None:
    """None in the job is an absent attribute in the row, also when it was there before."""
    job = a_job(due=NOW, not_before_at=NOW, blocked_by="capacity:support", waiting_since=NOW)
    world.jobs.put(job)
    after = lifecycle.canceled(job, LANE, "ops", NOW + SECOND)
    world.jobs.move(job, after)
    item = world.row("jobs", table.job_pk(job.job_id))
    assert item is not None
    assert {"wpk", "wsk", "blocked_by", "claimed_by"} & set(item) == set()
    assert world.jobs.get(job.job_id) == rows.stored(after)


@pytest.mark.fault("A4")
def test_a_move_with_an_old_fence_is_lost(world: World) -> None:
    """A worker whose claim was taken from it writes nothing, and sees the row as it stands."""
    slow = claimed(world, a_job())
    recovered = lifecycle.recovered(slow, LANE, NOW + MINUTE, open_intent=False)
    world.jobs.move(slow, recovered)
    late = lifecycle.settled(slow, Done("replied"), LANE, NOW + 2 * MINUTE)
    with pytest.raises(RowMoved) as moved:
        world.jobs.move(slow, late)
    assert moved.value.current == recovered
    again = world.jobs.claim(slow.job_id, by="w2/a", now=NOW + MINUTE)
    assert isinstance(again, Claimed)
    # The status is the same again; only the fence tells the two claims apart.
    with pytest.raises(RowMoved):
        world.jobs.move(slow, late)
    assert world.jobs.get(slow.job_id) == again.job


def test_a_move_from_another_status_is_lost(world: World) -> None:
    """A job that was claimed in between is not canceled as if it still waited."""
    job = a_job()
    taken = claimed(world, job)
    with pytest.raises(RowMoved) as moved:
        world.jobs.move(job, lifecycle.canceled(job, LANE, "ops", NOW))
    assert moved.value.current == taken


def test_a_claim_is_settled_once(world: World) -> None:
    """The fence is still the same after a settle, so only the status keeps a second, different one out."""
    taken = claimed(world, a_job())
    world.jobs.move(taken, lifecycle.settled(taken, Submitted("batch-1"), LANE, NOW))
    submitted = world.jobs.get(taken.job_id)
    with pytest.raises(RowMoved) as moved:
        world.jobs.move(taken, lifecycle.settled(taken, Done("replied"), LANE, NOW + SECOND))
    assert moved.value.current == submitted
    assert world.jobs.get(taken.job_id) == submitted


@pytest.mark.fault("A4")
def test_a_job_claimed_for_the_first_time_in_between_is_not_as_it_was_read(world: World) -> None:
    """Back in the same state and at the same place in line: the fence, which it had not before, tells."""
    job = a_job(due=NOW, not_before_at=NOW)
    taken = claimed(world, job)
    back = lifecycle.settled(taken, Defer(NOW, "not_yet"), LANE, NOW + SECOND)
    world.jobs.move(taken, back)
    assert (back.status, back.due) == (job.status, job.due)
    with pytest.raises(RowMoved) as moved:
        world.jobs.move(job, lifecycle.handed_off(job, NOW + SECOND))
    assert moved.value.current == back


@pytest.mark.fault("C4")
def test_a_move_from_another_place_in_line_is_lost(world: World) -> None:
    """Two dispatchers that saw the same due time: one hand-off is written."""
    job = a_job(due=NOW, not_before_at=NOW)
    world.jobs.put(job)
    first = lifecycle.rescheduled(job, NOW + 2 * MINUTE, "ops", NOW)
    world.jobs.move(job, first)
    with pytest.raises(RowMoved) as moved:
        world.jobs.move(job, lifecycle.handed_off(job, NOW))
    assert moved.value.current == first
    with pytest.raises(RowMoved):
        world.jobs.move(replace(job, due=None), lifecycle.canceled(job, LANE, "ops", NOW))


def test_a_move_of_no_row_is_lost(world: World) -> None:
    """A row that expired is not made again by a late write."""
    job = a_job()
    with pytest.raises(RowMoved) as moved:
        world.jobs.move(job, lifecycle.canceled(job, LANE, "ops", NOW))
    assert moved.value.current is None
    assert world.jobs.get(job.job_id) is None


@pytest.mark.fault("C3")
def test_a_move_applied_twice_counts_as_success(world: World) -> None:
    """A move whose reply was lost is made again: nothing changes, nothing is raised."""
    taken = claimed(world, a_job())
    after = lifecycle.settled(taken, Retry("vendor_timeout"), LANE, NOW + SECOND)
    world.jobs.move(taken, after)
    world.jobs.move(taken, after)
    assert world.jobs.get(taken.job_id) == after


def test_another_move_in_the_same_millisecond_is_not_taken_for_ours(world: World) -> None:
    """Two different moves at one moment: the second is lost, not silently counted as applied."""
    job = a_job(due=NOW, not_before_at=NOW)
    world.jobs.put(job)
    world.jobs.move(job, lifecycle.handed_off(job, NOW))
    with pytest.raises(RowMoved):
        world.jobs.move(job, lifecycle.held(job, "capacity:support", NOW))


def test_moves_are_kept_up_to_a_limit(world: World) -> None:
    """A job that comes back for ever keeps its last moves only: the row does not grow."""
    job = claimed(world, a_job())
    for turn in range(12):
        back = lifecycle.settled(job, Defer(NOW, f"turn_{turn}"), LANE, NOW)
        world.jobs.move(job, back)
        assert len(back.moves) <= KEPT_MOVES
        answer = world.jobs.claim(job.job_id, by=f"w{turn}/b", now=NOW)
        assert isinstance(answer, Claimed)
        job = answer.job
    assert job.fence == 13
    assert [move.reason for move in job.moves][-2:] == ["defer:turn_11", "claim"]
    assert len(job.moves) <= KEPT_MOVES + 1


def test_a_job_of_a_lane_that_is_gone_can_still_leave_the_index(world: World) -> None:
    """An operator can cancel what a removed lane left waiting."""
    job = a_job(lane="removed", due=NOW)
    world.plant("jobs", rows.job_item(job, table.ordered_wpk("removed", 0, job.priority)))
    after = lifecycle.canceled(job, LANE, "ops", NOW)
    world.jobs.move(job, after)
    assert world.jobs.get(job.job_id) == rows.stored(after)
