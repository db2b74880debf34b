"""Submit: a run takes what it may in its order, hands it over as batches, and what it cannot hand over goes back."""

from __future__ import annotations

from datetime import timedelta

import pytest

from shared.adapters.memory.batch_provider import SubmitSays
from shared.core.batch import BatchState
from shared.core.job import Category, Status
from shared.core.run import RunConfig
from shared.core.switches import Level
from tests.builders import a_switch, an_account
from tests.unit.usecases.rewriting import RewriteDesk


@pytest.mark.req("R12")
def test_jobs_are_grouped_and_handed_over() -> None:
    """One batch for each provider, model, prompt, policy and pair of languages; every job says which it is in."""
    desk = RewriteDesk()
    for number in (1, 2, 3):
        desk.enqueue(number)
    desk.enqueue(4, rewrite_strength="full_reframe")
    desk.enqueue(5, language_pair={"from": "de-AT", "to": "fr"})
    counts = desk.submit()
    assert counts["claimed"] == counts["submitted"] == 5
    assert counts["batches"] == 3
    assert counts["openai/model-a.claimed"] == 4
    assert counts["openai/model-b.claimed"] == 1
    assert desk.states() == {Status.BATCH_SUBMITTED: 5}
    assert sorted(batch.count for batch in desk.batches.under_way("rewrite")) == [1, 1, 3]
    assert {batch.state for batch in desk.batches.under_way("rewrite")} == {BatchState.HANDED}
    job = desk.job(1)
    assert job.moves[-1].reason.startswith("submitted:penstock/test/")
    assert (job.attempt_count, job.claimed_by, job.due) == (0, None, None)


@pytest.mark.req("R7")
def test_above_the_limit_the_rest_stays_as_it_was() -> None:
    """Exactly `max_jobs_per_run`, the oldest; who is over is not written to and waits for the next run."""
    desk = RewriteDesk(run=RunConfig(max_jobs_per_run=2))
    for number in range(1, 6):
        desk.enqueue(number)
        desk.clock.advance(1)
    before = {job.job_id: job for job in desk.rows()}
    assert desk.submit()["submitted"] == 2
    taken = [number for number in range(1, 6) if desk.job(number).status is Status.BATCH_SUBMITTED]
    assert taken == [1, 2]
    assert all(desk.job(number) == before[desk.job(number).job_id] for number in (3, 4, 5))
    assert desk.submit()["submitted"] == 2
    assert desk.submit()["submitted"] == 1
    assert desk.submit()["claimed"] == 0


@pytest.mark.req("R7")
def test_what_does_not_fit_the_account_goes_back_in_the_same_run() -> None:
    """Overflow: no attempt used, due again after `overflow_backoff_seconds`; what fits is handed over."""
    desk = RewriteDesk(account=an_account(vendor="openai", batch_tokens=700))
    for number in (1, 2, 3):
        desk.enqueue(number)
    counts = desk.submit()
    assert 0 < counts["submitted"] < 3
    assert counts["submitted"] + counts["requeued"] == 3
    back = [job for job in desk.rows() if job.status is Status.QUEUED]
    assert all(job.attempt_count == 0 for job in back)
    assert {job.not_before_at for job in back} == {desk.clock.now() + timedelta(seconds=60)}
    desk.clock.advance(61)
    assert desk.submit().get("submitted", 0) == 0, "the tokens are still held"
    desk.collect()
    desk.clock.advance(61)
    assert desk.submit()["submitted"] > 0, "an ended batch has given them back"


@pytest.mark.req("R17")
@pytest.mark.parametrize("says", [SubmitSays.REFUSE_RATE, SubmitSays.REFUSE_TOKENS, SubmitSays.REFUSE_AUTH])
def test_a_refused_batch_costs_no_attempt(says: SubmitSays) -> None:
    """The provider's limit, or a key that expired, says nothing about the jobs: they wait, and the batch has ended."""
    desk = RewriteDesk()
    desk.enqueue()
    desk.provider.submits.append(says)
    counts = desk.submit()
    assert counts["requeued"] == 1
    assert counts.get("rate_limited", 0) + counts.get("refused_batches", 0) == 1
    job = desk.job()
    assert (job.status, job.attempt_count) == (Status.QUEUED, 0)
    assert job.not_before_at is not None
    assert job.not_before_at > desk.clock.now()
    assert desk.batches.under_way("rewrite") == []


@pytest.mark.req("R10")
def test_a_batch_that_is_refused_for_good_uses_an_attempt() -> None:
    """Transient or not cannot be told by line: each job has one try less, and fails when none is left."""
    desk = RewriteDesk(run=RunConfig(retry_backoff_seconds=(900, 7200)))
    desk.enqueue()
    desk.provider.submits.append(SubmitSays.REFUSE_PERMANENT)
    desk.submit()
    job = desk.job()
    assert (job.status, job.attempt_count) == (Status.QUEUED, 1)
    assert job.not_before_at == desk.clock.now() + timedelta(seconds=900)
    desk.clock.advance(901)
    desk.provider.submits.append(SubmitSays.REFUSE_PERMANENT)
    desk.submit()
    assert (desk.job().status, desk.job().category) == (Status.FAILED, Category.RETRIES_EXHAUSTED)


@pytest.mark.req("R8")
def test_a_lost_answer_is_adopted_by_its_tag() -> None:
    """The provider has it and we were never told: the next run finds it and nobody is submitted again."""
    desk = RewriteDesk()
    for number in (1, 2):
        desk.enqueue(number)
    desk.provider.submits.append(SubmitSays.LOSE_AFTER)
    assert desk.submit()["batches_unknown"] == 1
    assert desk.states() == {Status.PROCESSING: 2}
    desk.clock.advance(desk.lane.claim_timeout_s + 60)
    assert desk.sweep().recovered == 0, "claims of a batch under way are not dead"
    assert desk.submit()["batches_adopted"] == 1
    assert desk.states() == {Status.BATCH_SUBMITTED: 2}
    assert len(desk.provider.batches) == 1
    desk.collect()
    assert desk.states() == {Status.COMPLETED: 2}


def test_an_intent_nobody_has_is_given_up_only_when_nobody_can_be_at_it() -> None:
    """Absent before the claim time-out may still arrive; after it, the jobs go back with one attempt used."""
    desk = RewriteDesk()
    desk.enqueue()
    desk.provider.submits.append(SubmitSays.LOSE_BEFORE)
    desk.submit()
    desk.clock.advance(60)
    desk.submit()
    assert desk.states() == {Status.PROCESSING: 1}
    desk.clock.advance(desk.lane.claim_timeout_s)
    assert desk.submit()["batches_absent"] == 1
    assert (desk.job().status, desk.job().attempt_count) == (Status.QUEUED, 1)
    assert desk.batches.under_way("rewrite") == []


@pytest.mark.req("R6")
def test_a_closed_switch_stops_a_run_that_does_not_respect_times() -> None:
    """`respect_not_before_at: false` takes who is not due; never past a switch."""
    desk = RewriteDesk(run=RunConfig(respect_not_before_at=False))
    desk.enqueue(not_before=desk.clock.now() + timedelta(days=1))
    desk.control.set_switch(a_switch(scope="lane/rewrite", level=Level.NO_NEW_STARTS))
    assert desk.submit() == {
        "claimed": 0,
        "failed": 0,
        "held": 1,
        "max_jobs_per_run": 25,
        "requeued": 0,
        "succeeded": 0,
    }
    desk.control.set_switch(a_switch(scope="lane/rewrite", level=Level.NORMAL))
    desk.clock.advance(10)
    assert desk.submit()["submitted"] == 1


def test_a_tenants_closed_switch_holds_its_jobs_alone() -> None:
    """Its job goes back without an attempt; the neighbour is handed over."""
    desk = RewriteDesk()
    desk.enqueue(1)
    desk.control.set_switch(a_switch(scope="tenant/rewrite/home-1", level=Level.NO_NEW_STARTS))
    counts = desk.submit()
    assert (counts["claimed"], counts["requeued"], counts.get("submitted", 0)) == (1, 1, 0)
    assert desk.job().blocked_by == "switches:tenant/rewrite/home-1"


def test_a_job_that_cannot_be_asked_fails_alone() -> None:
    """An empty text, a payload that is gone: the job fails as malformed, the run goes on with the others."""
    desk = RewriteDesk()
    desk.enqueue(1, text="   ")
    desk.enqueue(2)
    desk.enqueue(3)
    ref = desk.job(3).payload_ref
    assert ref is not None
    desk.content.delete(ref)
    counts = desk.submit()
    assert (counts["failed"], counts["submitted"]) == (2, 1)
    assert desk.job(1).category is Category.MALFORMED
    assert desk.job(3).last_error == "payload_missing"


def test_no_time_left_takes_nobody() -> None:
    """A run that has no time begins nothing; one whose time ends hands over or gives back whom it claimed."""
    desk = RewriteDesk()
    desk.enqueue()
    assert desk.submit(seconds=0)["claimed"] == 0
    assert desk.submit(seconds=10)["requeued"] == 1
    assert desk.job().attempt_count == 0


def paused(desk: RewriteDesk) -> None:
    """The tenant of all jobs so far is held."""
    desk.control.set_switch(a_switch(scope="tenant/rewrite/home-1", level=Level.NO_NEW_STARTS))


@pytest.mark.req("R7")
def test_who_is_held_alone_does_not_take_the_others_turn() -> None:
    """Six of a paused tenant are older: they are put back, and the limit's worth of others goes in the same run."""
    desk = RewriteDesk(run=RunConfig(max_jobs_per_run=2))
    for number in range(6):
        desk.enqueue(number)
        desk.clock.advance(1)
    for number in (10, 11, 12):
        desk.enqueue(number, tenant="home-2")
        desk.clock.advance(1)
    paused(desk)
    assert desk.submit()["submitted"] == 2
    assert [desk.job(number).status for number in (10, 11, 12)] == [Status.BATCH_SUBMITTED] * 2 + [Status.QUEUED]
    desk.clock.advance(30 * 86_400)
    desk.submit()
    assert {desk.job(number).status for number in range(6)} == {Status.QUEUED}, "held, never failed for it"


@pytest.mark.fault("E6")
def test_a_switch_closed_while_it_claims_stops_the_batch() -> None:
    """Looked at again just before the intent: nothing is submitted, and who was claimed goes back unharmed."""
    desk = RewriteDesk()
    desk.enqueue(1)
    desk.enqueue(2)
    get = desk.content.get

    def and_halts(ref: str) -> bytes | None:
        desk.control.set_switch(a_switch(scope="all", level=Level.HALT))
        desk.clock.advance(30)
        return get(ref)

    desk.content.get = and_halts  # type: ignore[method-assign]
    counts = desk.submit()
    assert (counts["requeued"], len(desk.provider.batches)) == (2, 0)
    assert {job.attempt_count for job in desk.rows()} == {0}


def test_a_store_that_is_down_costs_nobody_an_attempt() -> None:
    """A payload that cannot be read now puts its own job back; the others are handed over."""
    from shared.core.errors import Unavailable

    desk = RewriteDesk()
    for number in (1, 2, 3):
        desk.enqueue(number)
        desk.clock.advance(1)
    get, bad = desk.content.get, desk.job(2).payload_ref

    def down(ref: str) -> bytes | None:
        if ref == bad:
            raise Unavailable("content", "throttled")
        return get(ref)

    desk.content.get = down  # type: ignore[method-assign]
    counts = desk.submit()
    assert (counts["submitted"], counts["requeued"]) == (2, 1)
    assert (desk.job(2).status, desk.job(2).attempt_count) == (Status.QUEUED, 0)


def test_a_row_nobody_can_read_is_passed_over() -> None:
    """Told, left alone, and those behind it go on."""
    desk = RewriteDesk()
    desk.enqueue(1)
    desk.clock.advance(1)
    desk.enqueue(2)
    item = desk.jobs.item(desk.job(1).job_id)
    assert item is not None
    desk.jobs.plant({**item, "fence": {"S": "x"}})
    assert desk.submit()["submitted"] == 1
    assert desk.telemetry.named("row_unreadable")


@pytest.mark.req("R12")
def test_what_a_run_has_is_not_taken_from_it() -> None:
    """A reset or a cancel between intent and answer would put a job into two batches: refused with a sentence."""
    from shared.adapters.memory.stores import MemoryHistory
    from shared.core.errors import BadInput
    from shared.usecases.steer import cancel, reset_to_pending

    desk = RewriteDesk()
    desk.enqueue()
    desk.provider.submits.append(SubmitSays.LOSE_AFTER)
    desk.submit()
    more = {"by": "ops", "why": "stuck", "jobs": desk.jobs, "effects": desk.effects, "clock": desk.clock}
    history = MemoryHistory()
    with pytest.raises(BadInput, match="in the hands of a scheduled run"):
        reset_to_pending(desk.job().job_id, history=history, **more)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="in the hands of a scheduled run"):
        cancel(desk.job().job_id, history=history, lanes=desk.lanes, **more)  # type: ignore[arg-type]
    desk.submit()
    desk.collect()
    assert list(desk.provider.paid().values()) == [1]


def test_a_batch_larger_than_the_providers_file_is_split() -> None:
    """By an estimate of its bytes: no job loses a try for it."""
    desk = RewriteDesk()
    desk.provider.most_bytes = 8_000
    for number in range(6):
        desk.enqueue(number)
    counts = desk.submit()
    assert counts["submitted"] == 6
    assert counts["batches"] > 1


def test_a_hold_that_was_lost_is_taken_again() -> None:
    """While its provider works on it, a batch holds its tokens, whatever became of the write that said so."""
    account = an_account(vendor="openai", batch_tokens=5_000)
    desk = RewriteDesk(account=account)
    desk.provider.does.takes_s = 36_000
    desk.enqueue()
    desk.submit()
    (batch,) = desk.batches.under_way("rewrite")
    from shared.core.budget import Want, us_of

    desk.budgets.give_back(account, Want(requests=0), now_us=us_of(desk.clock.now()), hold=batch.tag)
    assert batch.tag not in desk.budgets.read(account).holds
    desk.collect()
    assert desk.budgets.read(account).holds[batch.tag].batch_tokens == batch.tokens


def test_a_provider_that_gives_no_answer_is_asked_once_a_run() -> None:
    """Its open batches do not use up the run, and it is given nothing new."""
    from shared.core.batch import NoWord

    desk = RewriteDesk()
    for number in range(3):
        desk.enqueue(number, rewrite_strength=("light_touch", "full_reframe")[number % 2])
    desk.provider.submits.extend([SubmitSays.LOSE_BEFORE] * 2)
    assert desk.submit()["batches_unknown"] == 1
    desk.enqueue(9)
    desk.clock.advance(120)
    desk.provider.finds.extend([NoWord("timeout")] * 5)
    before = desk.provider.asked["find"]
    counts = desk.submit()
    assert desk.provider.asked["find"] - before == 1
    assert counts.get("submitted", 0) == 0
