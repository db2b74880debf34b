"""Collect: each line ends its own job; what is wrong with a line has a rule, a counter, and harms no other line."""

from __future__ import annotations

from datetime import timedelta

import pytest

from shared.adapters.memory.batch_provider import Behaviour, LineSays
from shared.core import lifecycle
from shared.core.batch import Vanished
from shared.core.errors import BadInput, Unavailable
from shared.core.job import Category, Status
from shared.core.run import RunConfig
from tests.builders import a_switch
from tests.unit.usecases.rewriting import RewriteDesk


def submitted(count: int = 3, **lane: object) -> RewriteDesk:
    """A desk whose jobs are all in one batch."""
    desk = RewriteDesk(**lane)  # type: ignore[arg-type]
    for number in range(1, count + 1):
        desk.enqueue(number)
        desk.clock.advance(0.001)
    desk.submit()
    return desk


def spoil(desk: RewriteDesk, number: int, says: LineSays) -> None:
    """One job's line in the batch that is under way."""
    job = desk.job(number)
    for batch in desk.provider.batches.values():
        batch.does = Behaviour(**{f: getattr(batch.does, f) for f in batch.does.__dataclass_fields__})
        batch.does.lines = {**batch.does.lines, f"{job.job_id}.{job.fence}": says}


@pytest.mark.req("R12")
def test_each_line_ends_its_own_job() -> None:
    """Answers are kept in the content store and named by the row; the batch has ended and is found among the ended."""
    desk = submitted()
    counts = desk.collect()
    assert counts["succeeded"] == 3
    assert counts["openai/model-a.succeeded"] == 3
    assert desk.states() == {Status.COMPLETED: 3}
    job = desk.job(2)
    assert job.result == "rewritten"
    assert desk.text_of(job) == f"rewritten {job.job_id}.{job.fence}"
    assert desk.batches.under_way("rewrite") == []
    assert [batch.ending for batch in desk.batches.ended("rewrite", limit=5)] == ["completed"]
    assert "batches" not in desk.collect()


@pytest.mark.parametrize(
    ("says", "counter", "error"),
    [
        (LineSays.MISSING, "line_missing", "line_missing"),
        (LineSays.CONFLICT, "line_conflict", "line_conflict"),
        (LineSays.MALFORMED, "line_malformed", "line_malformed"),
        (LineSays.NAMELESS, "line_missing", "line_missing"),
        (LineSays.EXPIRED, "line_expired", "line_expired"),
        (LineSays.CUT, None, "answer_cut"),
        (LineSays.ERROR, None, "vendor:"),
    ],
)
@pytest.mark.req("R10")
def test_a_line_that_brings_no_end_is_submitted_again(says: LineSays, counter: str | None, error: str) -> None:
    """Its job alone goes back, one attempt used, after its backoff; the neighbours are completed."""
    desk = submitted(run=RunConfig(retry_backoff_seconds=(900, 7200)))
    spoil(desk, 2, says)
    counts = desk.collect()
    assert (counts["succeeded"], counts["requeued"], counts["failed"]) == (2, 1, 0)
    if counter is not None:
        assert counts[counter] == 1
    job = desk.job(2)
    assert (job.status, job.attempt_count) == (Status.QUEUED, 1)
    assert (job.last_error or "").startswith(error)
    assert job.not_before_at == desk.clock.now() + timedelta(seconds=900)
    desk.clock.advance(901)
    assert desk.submit()["submitted"] == 1, "only the unfinished line"
    desk.collect()
    assert desk.states() == {Status.COMPLETED: 3}


@pytest.mark.req("R11")
def test_the_last_try_fails_with_its_error() -> None:
    """Two tries in all; no other provider is asked."""
    desk = submitted(1)
    for _ in range(2):
        spoil(desk, 1, LineSays.ERROR)
        desk.collect()
        desk.clock.advance(10_000)
        desk.submit()
    job = desk.job(1)
    assert (job.status, job.category, job.attempt_count) == (Status.FAILED, Category.RETRIES_EXHAUSTED, 2)
    assert job.last_error_at is not None


def test_a_line_refused_for_good_fails_its_job() -> None:
    """The same again would be refused again."""
    desk = submitted()
    spoil(desk, 1, LineSays.REFUSED)
    counts = desk.collect()
    assert (counts["succeeded"], counts["failed"]) == (2, 1)
    assert desk.job(1).category is Category.VENDOR_PERMANENT


def test_lines_twice_and_lines_nobody_asked_for_change_nothing() -> None:
    """Counted, and that is all."""
    desk = submitted()
    spoil(desk, 1, LineSays.DUPLICATE)
    for batch in desk.provider.batches.values():
        batch.does.unknown_lines = 2
    counts = desk.collect()
    assert counts["succeeded"] == 3
    assert (counts["line_duplicate"], counts["line_unknown"]) == (1, 2)


def test_a_job_that_left_its_batch_is_not_ended_by_it() -> None:
    """Withdrawn meanwhile: its answer comes too late and is left out."""
    desk = submitted()
    job = desk.job(1)
    desk.jobs.move(job, lifecycle.canceled(job, desk.lane, "ops", desk.clock.now()))
    counts = desk.collect()
    assert (counts["succeeded"], counts["line_late"]) == (2, 1)
    assert desk.job(1).status is Status.CANCELED


@pytest.mark.fault("A4", "G3")
def test_a_line_of_an_earlier_claim_ends_nobody() -> None:
    """Sent back and submitted anew, the job is in two batches: only the one that has its present claim ends it."""
    desk = submitted(1)
    (first,) = desk.batches.under_way("rewrite")
    job = desk.job(1)
    desk.jobs.move(job, lifecycle.sent_back(job, "batch_lost", desk.lane, desk.clock.now()))
    desk.clock.advance(3600)
    desk.submit()
    again = desk.job(1)
    assert (again.status, again.fence) == (Status.BATCH_SUBMITTED, job.fence + 1)
    keeper = desk.keeper()
    (old,), (new,) = (keeper.members(batch) for batch in desk.batches.under_way("rewrite"))
    assert (old.fence, new.fence) == (job.fence, again.fence)
    assert keeper.row(old, Status.BATCH_SUBMITTED) is None
    assert keeper.row(new, Status.BATCH_SUBMITTED) == again
    counts = desk.collect()
    assert (counts["succeeded"], counts["line_late"]) == (1, 1)
    assert desk.text_of(desk.job(1)) == f"rewritten {again.job_id}.{again.fence}"
    assert first.tag in {batch.tag for batch in desk.batches.ended("rewrite", limit=5)}


def test_a_batch_that_vanished_is_given_up_after_a_while() -> None:
    """A provider that does not know it is believed only some time after the submission."""
    desk = submitted()
    desk.provider.looks.append(Vanished())
    assert desk.collect().get("batches_vanished", 0) == 0
    assert desk.states() == {Status.BATCH_SUBMITTED: 3}
    desk.clock.advance(700)
    desk.provider.looks.append(Vanished())
    assert desk.collect()["requeued"] == 0, "once may be the provider's mistake"
    desk.provider.looks.append(Vanished())
    counts = desk.collect()
    assert (counts["batches_vanished"], counts["requeued"]) == (1, 3)
    assert {job.last_error for job in desk.rows()} == {"batch_vanished"}


def test_a_batch_that_was_only_mislaid_is_collected() -> None:
    """One look that did not find it costs nothing: the next one ends its jobs, and nobody pays twice."""
    desk = submitted()
    desk.clock.advance(700)
    desk.provider.looks.append(Vanished())
    desk.collect()
    assert desk.collect()["succeeded"] == 3
    assert max(desk.provider.paid().values()) == 1


@pytest.mark.req("R17", "R13")
def test_a_line_that_met_a_limit_costs_no_attempt() -> None:
    """However often: it waits its overflow time, is counted, and never fails for it."""
    desk = submitted(1)
    for _ in range(4):
        spoil(desk, 1, LineSays.RATE)
        counts = desk.collect()
        assert (counts["requeued"], counts["rate_limited"]) == (1, 1)
        desk.clock.advance(61)
        desk.submit()
    assert (desk.job(1).status, desk.job(1).attempt_count) == (Status.BATCH_SUBMITTED, 0)


def test_an_answer_that_cannot_be_written_harms_no_other() -> None:
    """Half of a surrogate pair is legal JSON and no text: its job is asked again, the others are done."""
    desk = RewriteDesk()
    desk.provider.does.answer = lambda request: "\ud83d" if request.custom_id.startswith(desk.job(2).job_id) else "kind"
    for number in (1, 2, 3):
        desk.enqueue(number)
    desk.submit()
    assert (desk.collect()["succeeded"], desk.job(2).last_error) == (2, "answer_invalid")
    assert desk.batches.under_way("rewrite") == []


def test_results_that_cannot_be_read_now_are_read_later() -> None:
    """A file that is not there yet costs nothing; one of the wrong size is given up, and its jobs go back."""
    desk = submitted()
    desk.provider.reads.append(Unavailable("openai", "timeout"))
    assert desk.collect()["results_unavailable"] == 1
    assert desk.states() == {Status.BATCH_SUBMITTED: 3}
    desk.provider.reads.append(BadInput("results", "is too large"))
    counts = desk.collect()
    assert (counts["results_unreadable"], counts["requeued"]) == (1, 3)


def test_a_batch_that_takes_its_time_is_left_alone() -> None:
    """Nothing is written for it."""
    desk = RewriteDesk()
    desk.provider.does.takes_s = 3600
    desk.enqueue()
    desk.submit()
    assert desk.collect()["batches_under_way"] == 1
    assert desk.states() == {Status.BATCH_SUBMITTED: 1}
    desk.clock.advance(4000)
    assert desk.collect()["succeeded"] == 1


def test_a_collector_goes_on_where_its_time_ended() -> None:
    """Who has an end keeps it; the next run ends the others, and nobody twice."""
    desk = submitted(5)
    put = desk.content.put
    written: list[str] = []

    def slow(ref: str, data: bytes) -> None:
        desk.clock.advance(10)
        written.append(ref)
        put(ref, data)

    desk.content.put = slow  # type: ignore[method-assign]
    first = desk.collect(seconds=25)
    assert 0 < first["succeeded"] < 5
    assert desk.collect(seconds=600)["succeeded"] == 5 - first["succeeded"]
    assert len(written) == len(set(written)) == 5


def test_collecting_goes_on_behind_a_closed_switch() -> None:
    """What is paid for is collected: records stay open on every rung."""
    from shared.core.switches import Level

    desk = submitted()
    desk.control.set_switch(a_switch(scope="all", level=Level.HALT))
    assert desk.collect()["succeeded"] == 3


@pytest.mark.req("R7", "R17")
def test_a_batch_that_the_provider_had_no_room_for_costs_no_attempt() -> None:
    """It was taken and then failed by the provider's enqueued-token limit: its jobs wait, and nothing was paid."""
    desk = RewriteDesk()
    desk.provider.does.enqueued_tokens = 1
    desk.enqueue()
    desk.submit()
    counts = desk.collect()
    assert (counts["requeued"], counts["rate_limited"]) == (1, 1)
    job = desk.job()
    assert (job.status, job.attempt_count) == (Status.QUEUED, 0)
    assert job.not_before_at == desk.clock.now() + timedelta(seconds=60)


def test_results_that_never_come_are_given_up_after_two_days() -> None:
    """Else its tokens would be held, and its jobs wait, for ever."""
    desk = submitted()
    desk.clock.advance(49 * 3600)
    desk.provider.reads.append(Unavailable("openai", "404"))
    assert desk.collect()["requeued"] == 3
    assert {job.last_error for job in desk.rows()} == {"results_lost"}
    assert desk.batches.under_way("rewrite") == []


@pytest.mark.req("C15", "R13")
def test_what_a_batch_cost_is_told_once_a_run() -> None:
    """Calls and tokens by provider, where the lane's spending is watched; what was not answered costs nothing."""
    from dataclasses import replace

    from shared.adapters.memory.stores import MemorySignalLedger

    desk = submitted()
    spoil(desk, 2, LineSays.REFUSED)
    signals = MemorySignalLedger()
    replace(desk.collector(), signals=signals).run("run-9", desk._deadline(240))
    (minute,) = signals.minutes("rewrite", since=desk.clock.now() - timedelta(hours=1))
    assert minute.counts.vendors["openai"].calls == 2
    assert minute.counts.vendors["openai"].tokens > 0
    assert (minute.counts.completed, minute.counts.failed) == (2, 1)
