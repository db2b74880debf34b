"""Audit: every job in one state and on its way; what is not is found, and mended under a second look."""

from __future__ import annotations

from datetime import timedelta

import pytest

from shared.contract import metrics
from shared.core import lifecycle
from shared.core.errors import UnreadableRow
from shared.core.job import Category, Job, Status
from shared.core.message import dead_letter_of
from shared.usecases.audit import AuditReport, Fault
from tests.builders import NOW, a_job, an_effect_row
from tests.unit.usecases.desk import Desk, Flaky

HOUR = 3600


@pytest.fixture
def desk() -> Desk:
    return Desk()


def audited(desk: Desk, *, repair: bool = False, segments: int = 1) -> AuditReport:
    return desk.auditor().run(repair=repair, segments=segments)


def faults(report: AuditReport) -> dict[str, Fault]:
    return {finding.job_id: finding.fault for finding in report.findings}


def healthy(desk: Desk) -> list[Job]:
    """One job in every state, each as it should be."""
    jobs = [desk.put(a_job(key=f"{status}", status=status)) for status in Status]
    desk.dead_letters.send([dead_letter_of(job) for job in jobs if job.status is Status.FAILED])
    jobs.append(desk.put(a_job(key="waiting", due=NOW + timedelta(hours=2), not_before_at=NOW + timedelta(hours=2))))
    return jobs


@pytest.mark.parametrize("segments", [1, 4])
def test_a_healthy_table_is_conserved(desk: Desk, segments: int) -> None:
    """Every job counted once, in one state; nothing to mend, whatever the number of segments."""
    jobs = healthy(desk)
    report = audited(desk, repair=True, segments=segments)
    assert report.conserved
    assert report.jobs == len(jobs) == sum(report.by_status.values())
    assert report.by_status["queued"] == 2
    assert report.by_lane == {"support": len(jobs)}
    assert report.counts() == {"jobs": len(jobs), "findings": 0, "repaired": 0, "unchecked": 0, "listed": 0}


@pytest.mark.fault("B8", "B12")
def test_a_job_whose_message_was_lost_is_sent_again(desk: Desk) -> None:
    """Queued, due, in no index and untouched for an hour: the only finder of a lost stream record."""
    job = desk.put(a_job())
    desk.clock.advance(HOUR - 1)
    assert audited(desk).conserved
    desk.clock.advance(1)
    assert faults(audited(desk)) == {job.job_id: Fault.NO_MESSAGE}
    assert desk.queued_messages() == []
    report = audited(desk, repair=True)
    assert [finding.repaired for finding in report.findings] == [True]
    assert desk.queued_messages() == [job.job_id]
    assert desk.telemetry.total(metrics.REPAIRED) == 1


@pytest.mark.fault("B12")
def test_a_consumer_off_for_thirty_hours_strands_nobody(desk: Desk) -> None:
    """A hundred jobs whose records were trimmed: one audit sends them all."""
    jobs = [desk.put(a_job(key=f"event-{n}")) for n in range(100)]
    desk.clock.advance(30 * HOUR)
    report = audited(desk, repair=True, segments=3)
    assert report.counts() == {"jobs": 100, "findings": 100, "repaired": 100, "unchecked": 0, "listed": 0}
    assert sorted(desk.queued_messages()) == sorted(job.job_id for job in jobs)


def test_a_dead_claim_is_recovered_when_no_message_comes(desk: Desk) -> None:
    """Not while a redelivery may still do it: two visibility time-outs after the claim is stale."""
    job = desk.put(a_job(status=Status.PROCESSING))
    rescue_s = desk.lane.claim_timeout_s + 2 * desk.lane.visibility_s
    desk.clock.advance(rescue_s - 1)
    assert audited(desk).conserved
    desk.clock.advance(1)
    assert faults(audited(desk, repair=True)) == {job.job_id: Fault.DEAD_CLAIM}
    after = desk.job(job.job_id)
    assert (after.status, after.attempt_count, after.waits) == (Status.QUEUED, 1, True)


@pytest.mark.req("R9")
def test_a_dead_claims_effects_are_looked_at_first(desk: Desk) -> None:
    """The last try with an open intent is unknown."""
    job = desk.put(a_job(status=Status.PROCESSING, max_attempts=1))
    desk.effects.intend(an_effect_row(job_id=job.job_id))
    desk.clock.advance(HOUR)
    audited(desk, repair=True)
    assert desk.job(job.job_id).category is Category.OUTCOME_UNKNOWN


@pytest.mark.req("C8")
def test_a_failed_job_without_its_letter_gets_it(desk: Desk) -> None:
    """Only the one that lacks it; one that failed just now may still be on its way."""
    there = desk.put(a_job(key="a", status=Status.FAILED))
    lacking = desk.put(a_job(key="b", status=Status.FAILED))
    desk.dead_letters.send([dead_letter_of(there)])
    desk.clock.advance(60)
    fresh = desk.put(a_job(key="c", status=Status.FAILED, updated_at=desk.clock.now()))
    assert faults(audited(desk)) == {lacking.job_id: Fault.NO_DEAD_LETTER}
    desk.clock.advance(60)
    desk.dead_letters.send([dead_letter_of(fresh)])
    report = audited(desk, repair=True)
    assert [(one.job_id, one.repaired) for one in report.findings] == [(lacking.job_id, True)]
    desk.clock.advance(60)
    assert audited(desk).conserved
    assert desk.dead_letters.depth("support").total == 3


@pytest.mark.fault("K1")
def test_an_unreadable_row_is_counted_named_and_left(desk: Desk) -> None:
    """It is one of the jobs, and nobody touches it."""
    job = desk.put(a_job())
    item = {**(desk.jobs.item(job.job_id) or {}), "status": {"S": "hibernating"}}
    desk.jobs.plant(item)
    report = audited(desk, repair=True)
    assert list(faults(report).values()) == [Fault.UNREADABLE]
    assert (report.jobs, report.by_status["unreadable"], report.conserved) == (1, 1, False)
    assert desk.jobs.item(job.job_id) == item


def test_a_job_of_no_lane_is_reported_and_left(desk: Desk) -> None:
    """Configure the lane or cancel the job; one that has ended is of no concern."""
    stranger = desk.put(a_job(lane="mail"))
    desk.put(a_job(lane="mail", key="b", status=Status.COMPLETED))
    desk.clock.advance(2 * HOUR)
    assert faults(audited(desk, repair=True)) == {stranger.job_id: Fault.UNKNOWN_LANE}
    assert desk.job(stranger.job_id) == stranger


@pytest.mark.fault("C4")
@pytest.mark.parametrize("happened", ["claimed", "held", "gone", "unreadable"])
def test_a_repair_looks_a_second_time(desk: Desk, happened: str) -> None:
    """The scan may be minutes old: what has moved since is not mended, and the audit goes on."""
    job = desk.put(a_job(key="a"))
    desk.put(a_job(key="b"))
    desk.clock.advance(HOUR)

    class Racing(Flaky):
        def get(self, job_id: str) -> Job | None:
            if job_id == job.job_id:
                match happened:
                    case "claimed":
                        jobs.claim(job_id, by="w", now=desk.clock.now())
                    case "held":
                        jobs.move(job, lifecycle.held(job, "x", desk.clock.now()))
                    case "gone":
                        jobs.expire(job_id)
                    case "unreadable":
                        raise UnreadableRow(job_id, "status is not one this version knows")
            return jobs.get(job_id)

    jobs = desk.jobs
    desk.jobs = Racing(jobs)  # type: ignore[assignment]
    report = audited(desk, repair=True)
    assert {one.job_id: one.repaired for one in report.findings}[job.job_id] is False
    assert sum(one.repaired for one in report.findings) == 1
    assert job.job_id not in desk.queued_messages()


def test_every_fault_says_what_is_done_about_it() -> None:
    """For the command line."""
    assert len({fault.repair for fault in Fault}) == len(Fault)


def test_without_repair_nothing_is_written(desk: Desk) -> None:
    """Looking changes nothing, whatever is found."""
    for n, status in enumerate(Status):
        desk.put(a_job(key=f"{n}", status=status))
    before = [desk.jobs.item(job.job_id) for job in desk.jobs.scan() if isinstance(job, Job)]
    desk.clock.advance(100 * HOUR)
    assert not audited(desk).conserved
    assert [desk.jobs.item(job.job_id) for job in desk.jobs.scan() if isinstance(job, Job)] == before
    assert desk.queued_messages() == []
