"""Triage: what stands in a dead-letter queue is named, kept, and deleted only when it is settled elsewhere."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.contract import envelope, metrics
from shared.core.errors import Unavailable
from shared.core.job import Category, Job, Status
from shared.core.message import dead_letter_of
from shared.usecases.triage import HIDE_S, Triaged
from tests.builders import NOW, a_job, an_effect_row
from tests.unit.core.strategies import few
from tests.unit.usecases.desk import Desk, Flaky

SECRET = "the customer's own words"


@pytest.fixture
def desk() -> Desk:
    return Desk()


def dead(desk: Desk, job: Job) -> Job:
    """A job whose ticket died."""
    desk.dead_letters.add("support", envelope.encode_ticket(job.job_id, job.lane))
    return job


def triaged(desk: Desk, last_depth: int | None = None) -> Triaged:
    desk.clock.advance(HIDE_S)
    return desk.triage().run(desk.lane, last_depth=last_depth)


def depth(desk: Desk) -> int:
    return desk.dead_letters.depth("support").total


@pytest.mark.fault("B2")
@pytest.mark.req("C8")
def test_receives_without_a_claim_are_the_platforms_doing(desk: Desk) -> None:
    """Throttled to death, never run: failed as `infrastructure`, no attempt used; its own letter follows."""
    job = dead(desk, desk.put(a_job()))
    done = triaged(desk)
    after = desk.job(job.job_id)
    assert (done.infrastructure, done.removed) == (1, 1)
    assert (after.status, after.category) == (Status.FAILED, Category.INFRASTRUCTURE)
    assert (after.last_error, after.attempt_count) == ("receives_without_claim", 0)
    desk.admit(after)
    assert (depth(desk), desk.job(job.job_id).status) == (1, Status.FAILED)


@pytest.mark.fault("F1")
def test_a_failed_jobs_letter_stays(desk: Desk) -> None:
    """Nothing empties the queue: it is looked at, hidden for a while, and stands there again."""
    job = desk.put(a_job(status=Status.FAILED))
    desk.dead_letters.send([dead_letter_of(job)])
    for _ in range(3):
        done = triaged(desk)
        assert (done.looked_at, done.kept, done.removed) == (1, 1, 0)
    assert depth(desk) == 1


@pytest.mark.parametrize("status", [Status.COMPLETED, Status.CANCELED, Status.BATCH_SUBMITTED])
def test_a_letter_of_a_job_that_is_no_longer_failed_goes(desk: Desk, status: Status) -> None:
    """The row is the memory; the message has nothing more to say."""
    dead(desk, desk.put(a_job(status=status)))
    assert triaged(desk).removed == 1
    assert depth(desk) == 0


def test_a_job_that_waits_needs_no_message(desk: Desk) -> None:
    """The dispatcher brings it."""
    job = dead(desk, desk.put(a_job(due=NOW + timedelta(hours=1))))
    before = desk.jobs.item(job.job_id)
    assert triaged(desk).removed == 1
    assert desk.jobs.item(job.job_id) == before


def test_a_live_claims_message_stays_until_it_is_over(desk: Desk) -> None:
    """Its worker may still finish; once the claim is stale, the job is recovered and the message goes."""
    job = dead(desk, desk.put(a_job(status=Status.PROCESSING, claimed_at=desk.clock.now())))
    assert triaged(desk).kept == 1
    desk.clock.advance(desk.lane.claim_timeout_s)
    assert triaged(desk).removed == 1
    after = desk.job(job.job_id)
    assert (after.status, after.waits, after.attempt_count) == (Status.QUEUED, True, 1)


@pytest.mark.req("R9")
def test_a_stale_claims_effects_are_looked_at_first(desk: Desk) -> None:
    """The last try with an open intent ends as unknown."""
    job = dead(desk, desk.put(a_job(status=Status.PROCESSING, max_attempts=1)))
    desk.effects.intend(an_effect_row(job_id=job.job_id))
    desk.clock.advance(desk.lane.claim_timeout_s)
    triaged(desk)
    assert desk.job(job.job_id).category is Category.OUTCOME_UNKNOWN


@pytest.mark.req("C8")
@pytest.mark.fault("A11", "F7")
@pytest.mark.parametrize("body", [SECRET, "", "{}", '{"v":1,"job":"x"}', "[" * 3000, '{"v":9}'])
def test_what_cannot_be_read_is_kept_where_an_operator_finds_it(desk: Desk, body: str) -> None:
    """Its bytes in the content store, a failed row with the reason, then the message goes; the text nowhere else."""
    desk.dead_letters.add("support", body)
    done = triaged(desk)
    assert (done.quarantined, done.removed, depth(desk)) == (1, 1, 0)
    (row,) = [job for job in desk.jobs.scan() if isinstance(job, Job)]
    assert (row.status, row.category, row.last_error) == (Status.FAILED, Category.MALFORMED, "envelope_unreadable")
    assert (row.tenant, row.task) == ("quarantine", "unreadable")
    assert desk.content.get(row.payload_ref or "") == body.encode()
    assert SECRET not in repr(desk.jobs.item(row.job_id)) + repr(desk.telemetry.events)
    assert desk.telemetry.counts[metrics.QUARANTINED, "support"] == 1


@few
@given(body=st.text(max_size=30))
def test_any_bytes_are_kept_once(body: str) -> None:
    """Lone surrogates, nulls and all; the same bytes twice are one row."""
    desk = Desk()
    desk.dead_letters.add("support", body)
    desk.dead_letters.add("support", body)
    assert triaged(desk).quarantined == 2
    (row,) = [job for job in desk.jobs.scan() if isinstance(job, Job)]
    assert desk.content.get(row.payload_ref or "") == body.encode(errors="surrogatepass")


def test_a_ticket_without_a_job_is_kept_too(desk: Desk) -> None:
    """Its row expired, or never was: an operator can still see that it came."""
    dead(desk, a_job())
    assert triaged(desk).quarantined == 1
    (row,) = [job for job in desk.jobs.scan() if isinstance(job, Job)]
    assert row.last_error == "job_missing"


def test_a_quarantined_message_has_its_own_dead_letter(desk: Desk) -> None:
    """The stream sends it, and triage leaves it there."""
    desk.dead_letters.add("support", SECRET)
    triaged(desk)
    (row,) = [job for job in desk.jobs.scan() if isinstance(job, Job)]
    desk.admit(row)
    done = triaged(desk)
    assert (done.kept, done.quarantined, depth(desk)) == (1, 0, 1)


@pytest.mark.fault("K1")
def test_a_row_of_another_version_keeps_its_message(desk: Desk) -> None:
    """A newer version may know what to do with it."""
    job = dead(desk, desk.put(a_job()))
    item = {**(desk.jobs.item(job.job_id) or {}), "status": {"S": "hibernating"}}
    desk.jobs.plant(item)
    assert triaged(desk).kept == 1
    assert desk.jobs.item(job.job_id) == item


def test_an_unchanged_queue_is_not_looked_at_again(desk: Desk) -> None:
    """Bounded: only when the depth changed; an empty one never."""
    desk.put(a_job(status=Status.FAILED))
    desk.dead_letters.send([dead_letter_of(a_job(status=Status.FAILED))])
    assert triaged(desk, last_depth=1).looked_at == 0
    assert triaged(desk, last_depth=2).looked_at == 1
    assert triaged(desk, last_depth=None).looked_at == 1
    empty = Desk()
    assert triaged(empty).looked_at == 0


def test_one_look_is_bounded(desk: Desk) -> None:
    """The rest is the next minute's."""
    for n in range(7):
        dead(desk, a_job(key=f"event-{n}"))
    assert desk.triage().run(desk.lane, limit=5).looked_at == 5


@pytest.mark.fault("F7")
def test_state_first_then_delete(desk: Desk) -> None:
    """The row cannot be written: the message stays, and the next look does it."""
    job = dead(desk, desk.put(a_job()))
    flaky = Flaky(desk.jobs, "move")
    flaky.down = True
    desk.jobs = flaky  # type: ignore[assignment]
    with pytest.raises(Unavailable):
        triaged(desk)
    assert (depth(desk), desk.job(job.job_id).status) == (1, Status.QUEUED)
    flaky.down = False
    assert triaged(desk).infrastructure == 1


@pytest.mark.fault("C4")
def test_a_job_that_moves_meanwhile_keeps_its_message(desk: Desk) -> None:
    """Claimed between the look and the write: not failed over its worker's head."""
    job = dead(desk, desk.put(a_job()))

    class Racing(Flaky):
        def get(self, job_id: str) -> Job | None:
            seen = jobs.get(job_id)
            jobs.claim(job_id, by="w", now=desk.clock.now())
            return seen

    jobs = desk.jobs
    desk.jobs = Racing(jobs)  # type: ignore[assignment]
    assert triaged(desk).kept == 1
    assert jobs.get(job.job_id).status is Status.PROCESSING  # type: ignore[union-attr]
