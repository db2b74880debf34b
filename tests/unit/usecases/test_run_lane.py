"""A lane whose jobs are taken by runs, seen by the rest of the engine: nobody asks a queue that it does not have."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from shared.adapters.memory.batch_provider import SubmitSays
from shared.adapters.memory.plans import MemoryPlanStore
from shared.adapters.memory.signals import MemorySignalLedger
from shared.adapters.memory.stores import MemoryHistory
from shared.core import redrive
from shared.core.cohort import Chosen
from shared.core.errors import BadInput
from shared.core.forecast import Outlook
from shared.core.job import Job, Status
from shared.core.message import QueueDepth, dead_letter_of
from shared.core.plan import Plan, Progress
from shared.core.run import RunConfig
from shared.core.schedule import next_run
from shared.core.switches import Level
from shared.usecases.admit import admit
from shared.usecases.approve_redrive import approve_redrive
from shared.usecases.audit import Auditor, AuditReport, Fault
from shared.usecases.explain import Turn, explain, role_for
from shared.usecases.foresee import Forecaster
from shared.usecases.plan_redrive import plan_redrive
from shared.usecases.run_redrive import Redriver
from shared.usecases.start_redrive import start_redrive
from shared.usecases.view import Viewer
from tests.builders import FREELY_NAMED, NOW, a_run_lane, a_switch
from tests.unit.usecases.rewriting import RewriteDesk

CAUSE = "the key had expired; it was renewed"
MINUTE = timedelta(minutes=1)


class NoQueues:
    """The queues of a stage that has none: whoever asks is wrong."""

    def depth(self, lane: str) -> QueueDepth:
        raise AssertionError(f"lane {lane} has no queue")

    def send(self, messages: Any) -> Any:
        raise AssertionError("a job of a lane with runs is never sent")


def viewer(desk: RewriteDesk) -> Viewer:
    return Viewer(
        lanes=desk.lanes,
        board=desk.board,
        control=desk.control,
        queues=NoQueues(),
        clock=desk.clock,  # type: ignore[arg-type]
    )


def auditor(desk: RewriteDesk) -> Auditor:
    return Auditor(
        lanes=desk.lanes,
        jobs=desk.jobs,
        effects=desk.effects,
        queues=NoQueues(),  # type: ignore[arg-type]
        dead_letters=desk.dead_letters,
        clock=desk.clock,
        telemetry=desk.telemetry,
        batches=desk.batches,
    )


def faults(report: AuditReport) -> list[tuple[Fault, bool]]:
    return [(finding.fault, finding.repaired) for finding in report.findings]


# ----------------------------------------------------------------------------------------------------- the audit
def test_every_state_of_a_run_lane_is_conserved() -> None:
    """Waiting, claimed by a run an hour ago, in a batch, done: an audit has nothing to say, and asks no queue."""
    desk = RewriteDesk(run=RunConfig(max_jobs_per_run=2))
    for number in range(1, 6):
        desk.enqueue(number)
    desk.submit()
    desk.collect()
    desk.submit()
    desk.provider.submits.append(SubmitSays.LOSE_AFTER)
    desk.submit()
    assert desk.states() == {Status.COMPLETED: 2, Status.BATCH_SUBMITTED: 2, Status.PROCESSING: 1}
    desk.enqueue(6)
    desk.clock.advance(7200)
    report = auditor(desk).run(repair=True)
    assert report.conserved, report.findings
    assert desk.states()[Status.PROCESSING] == 1, "the claims of runs are the sweeper's"


def test_a_job_in_no_line_is_put_in_line_and_not_sent() -> None:
    """Queued and in no index: a run would never find it."""
    desk = RewriteDesk()
    desk.enqueue()
    lost = replace(desk.job(), due=None, blocked_by=None)
    desk.jobs.move(desk.job(), lost)
    assert desk.submit()["claimed"] == 0
    desk.clock.advance(3599)
    assert auditor(desk).run(repair=True).conserved
    desk.clock.advance(1)
    assert faults(auditor(desk).run(repair=False)) == [(Fault.NOT_IN_LINE, False)]
    assert faults(auditor(desk).run(repair=True)) == [(Fault.NOT_IN_LINE, True)]
    assert desk.submit()["submitted"] == 1


def forgotten(desk: RewriteDesk) -> None:
    """The batch ends without its jobs: a defect, or a hand that wrote where it should not."""
    (batch,) = desk.batches.under_way("rewrite")
    desk.keeper().end(batch, "completed")


@pytest.mark.req("R10")
@pytest.mark.fault("B8")
def test_a_job_whose_batch_is_gone_is_submitted_again() -> None:
    """Nobody would ever collect it: found by the audit, one attempt used, back after its backoff."""
    desk = RewriteDesk(run=RunConfig(retry_backoff_seconds=(900, 7200)))
    desk.enqueue()
    desk.submit()
    assert auditor(desk).run(repair=True).conserved
    forgotten(desk)
    assert faults(auditor(desk).run(repair=False)) == [(Fault.NO_BATCH, False)]
    assert desk.job().status is Status.BATCH_SUBMITTED
    assert faults(auditor(desk).run(repair=True)) == [(Fault.NO_BATCH, True)]
    job = desk.job()
    assert (job.status, job.attempt_count, job.last_error) == (Status.QUEUED, 1, "batch_lost")
    assert job.due == desk.clock.now() + timedelta(seconds=900)
    assert auditor(desk).run(repair=True).conserved
    desk.clock.advance(901)
    assert desk.submit()["submitted"] == 1


def test_a_batch_that_ends_while_the_audit_reads_is_no_finding() -> None:
    """The rows are read first: whoever was collected meanwhile is looked at again, and left alone."""
    desk = RewriteDesk()
    desk.enqueue()
    desk.submit()

    class Collected(type(desk.batches)):  # type: ignore[misc]
        def under_way(self, lane: str, *, run_id: str = "") -> Any:
            if run_id == "":
                desk.collect()
            return super().under_way(lane, run_id=run_id)

    late = Collected()
    late.__dict__.update(desk.batches.__dict__)
    assert replace(auditor(desk), batches=late).run(repair=True).conserved
    assert desk.states() == {Status.COMPLETED: 1}


# ------------------------------------------------------------------------------------------------------- why
def why(desk: RewriteDesk, job: Job, *, last: Any = None) -> Any:
    role = role_for(job, desk.lane)
    turn = None if role is None else Turn(schedule=f"rewrite_{role}", period_s=desk.lane.runs[role], last=last)
    return explain(job, viewer(desk).of("rewrite", job.task), [], None, desk.clock.now(), turn)


@pytest.mark.req("F9")
def test_why_names_the_run_it_waits_for_and_when() -> None:
    """Each line has its own run; not due until, then the first run from there on; in step with the last start."""
    desk = RewriteDesk()
    desk.enqueue(1)
    desk.enqueue(2, surface="direct_message")
    desk.enqueue(3, not_before=NOW + 20 * MINUTE)
    desk.clock.advance(60)
    said = why(desk, desk.job(1))
    assert (said.standing, said.earliest) == ("waiting", NOW + 15 * MINUTE)
    assert "the next run of rewrite_batch_submitter: about 2026-01-01T00:15:00.000Z" in said.sentence
    assert why(desk, desk.job(1), last=NOW - 4 * MINUTE).earliest == NOW + 11 * MINUTE
    assert "rewrite_worker" in why(desk, desk.job(2)).sentence
    assert why(desk, desk.job(2)).earliest == NOW + 60 * MINUTE
    later = why(desk, desk.job(3))
    assert (later.verdict.reason, later.earliest) == ("schedule:not_before_at", NOW + 30 * MINUTE)
    assert "not before 2026-01-01T00:20:00.000Z" in later.sentence


@pytest.mark.req("F9")
def test_why_says_that_a_switch_holds_it() -> None:
    """The same admission as everywhere: no time then, a command instead."""
    desk = RewriteDesk()
    desk.enqueue()
    desk.control.set_switch(a_switch(scope="vendor/openai", level=Level.NO_NEW_STARTS))
    desk.clock.advance(10)
    said = why(desk, desk.job())
    assert (said.earliest, said.verdict.reason) == (None, "switches:vendor/openai")


def test_why_follows_it_through_claim_batch_and_dead_run() -> None:
    """Claimed; in a provider's batch, and who looks next; and never that a message brings it back."""
    desk = RewriteDesk()
    desk.enqueue()
    desk.provider.submits.append(SubmitSays.LOSE_AFTER)
    desk.submit(run_id="run-7")
    assert "by run-7" in why(desk, desk.job()).sentence
    desk.clock.advance(desk.lane.claim_timeout_s)
    assert "a run that died; the sweeper brings it back" in why(desk, desk.job()).sentence
    desk.submit()
    said = why(desk, desk.job())
    assert (said.standing, said.earliest) == ("in_batch", None)
    assert "rewrite_batch_collector looks next about 2026-01-01T00:30:00.000Z" in said.sentence


@pytest.mark.parametrize(
    ("after_s", "last_s", "then_s"), [(0, None, 0), (1, None, 900), (5, 0, 900), (5, 5, 5), (5, 9, 9)]
)
def test_the_next_run_is_never_before_the_moment(after_s: int, last_s: int | None, then_s: int) -> None:
    """By slots, or in step with the last start."""
    last = None if last_s is None else NOW + timedelta(seconds=last_s)
    assert next_run(NOW + timedelta(seconds=after_s), 900, last) == NOW + timedelta(seconds=then_s)


# -------------------------------------------------------------------------------------------------- the forecast
def test_a_forecast_counts_runs_line_by_line() -> None:
    """Five in twos by quarter hours are taken by the third run; the async one by its hour, which is later."""
    desk = RewriteDesk(run=RunConfig(max_jobs_per_run=2))
    for number in range(1, 6):
        desk.enqueue(number)
    desk.clock.advance(60)
    desk_of = Forecaster(
        jobs=desk.jobs,
        queues=NoQueues(),  # type: ignore[arg-type]
        signals=MemorySignalLedger(),
        ledger=desk.ledger,
        control=desk.control,
        viewer=viewer(desk),
        clock=desk.clock,
    )
    found = desk_of.foresee(desk.lane)
    assert (found.outlook, found.backlog, found.limited_by) == (Outlook.CLEARS, 5, "max_jobs_per_run")
    assert found.by == NOW + 45 * MINUTE
    desk.enqueue(6, surface="direct_message")
    assert desk_of.foresee(desk.lane).by == NOW + 60 * MINUTE
    with pytest.raises(BadInput, match="is not what limits lane rewrite"):
        desk_of.foresee(desk.lane, cap=4)
    desk.control.set_switch(a_switch(scope="lane/rewrite", level=Level.HALT))
    desk.clock.advance(10)
    assert desk_of.foresee(desk.lane).outlook is Outlook.STALLED


# --------------------------------------------------------------------------------------------------- the redrive
class Replays:
    """Failed rewrites, a plan for them, and the executor."""

    def __init__(self, count: int, **run: Any) -> None:
        self.desk = desk = RewriteDesk(run=RunConfig(retry_backoff_seconds=(), **run), max_attempts=1)
        self.plans, self.history = MemoryPlanStore(), MemoryHistory()
        self.reader = desk.jobs.stream.reader()
        for number in range(1, count + 1):
            desk.enqueue(number)
        desk.provider.submits.extend([SubmitSays.REFUSE_PERMANENT] * count)
        while desk.states().get(Status.QUEUED):
            desk.submit()
        assert desk.states() == {Status.FAILED: count}
        desk.dead_letters.send([dead_letter_of(job) for job in desk.rows()])
        desk.provider.submits.clear()
        self.reader.commit(self.reader.read(10_000))

    def started(self) -> Plan:
        desk = self.desk
        parts: dict[str, Any] = {"plans": self.plans, "history": self.history, "clock": desk.clock}
        rows: dict[str, Any] = {"jobs": desk.jobs, "effects": desk.effects}
        plan = plan_redrive(Chosen(lane="rewrite"), cause=CAUSE, by="ada", **rows, **parts).plan
        approve_redrive(plan.plan_id, by="bob", people=FREELY_NAMED, lane=desk.lane, **parts)
        switches = desk.control.switches()
        return start_redrive(plan.plan_id, by="ada", lane=desk.lane, switches=switches, **rows, **parts)

    def tick(self) -> dict[str, int]:
        """A minute of the executor, and the stream behind it."""
        desk = self.desk
        executor = Redriver(
            jobs=desk.jobs,
            plans=self.plans,
            history=self.history,
            queues=NoQueues(),  # type: ignore[arg-type]
            dead_letters=desk.dead_letters,
            viewer=viewer(desk),
            clock=desk.clock,
            telemetry=desk.telemetry,
        )
        began = desk.clock.now()
        done = executor.run(desk.lane, stop_at=began + timedelta(seconds=50))
        assert desk.clock.now() - began <= timedelta(seconds=5), "it does not sit and wait for a run"
        desk.clock.advance(60)
        self.admit()
        return done

    def admit(self) -> None:
        """The stream consumer has every change."""
        desk = self.desk
        records = self.reader.read(10_000)
        images = [job for job in desk.rows() if job.status is Status.QUEUED]
        admit(
            images,
            jobs=desk.jobs,
            queues=NoQueues(),  # type: ignore[arg-type]
            dead_letters=desk.dead_letters,
            viewer=viewer(desk),
            clock=desk.clock,
            telemetry=desk.telemetry,
        )
        self.reader.commit(records)


@pytest.mark.req("X9")
def test_a_replay_waits_for_the_runs_of_its_lane() -> None:
    """One, its end; ten, their end; the rest: each wave is taken by a run, and no queue is asked or sent to."""
    replays = Replays(15, max_jobs_per_run=100)
    desk, plan = replays.desk, replays.started()
    released = []
    for _ in range(4):
        for _ in range(3):
            replays.tick()
        released.append(desk.states().get(Status.QUEUED, 0))
        desk.submit()
        desk.collect()
    assert released == [1, 10, 4, 0]
    assert desk.states() == {Status.COMPLETED: 15}
    ended = Progress(steps=replays.plans.steps(plan.plan_id)).ended
    assert ended is not None
    assert ended.ending == "finished"


@pytest.mark.req("X9")
def test_no_more_than_a_run_takes_are_under_way() -> None:
    """Their part of what one run takes: the rest of its places are for others."""
    replays = Replays(30, max_jobs_per_run=12)
    desk = replays.desk
    replays.started()
    for _ in range(2):
        replays.tick()
        desk.submit()
        desk.collect()
    for _ in range(5):
        replays.tick()
    assert 0 < desk.states()[Status.QUEUED] <= redrive.replay_slots(desk.lane) < 12


def test_an_estimate_counts_the_runs_that_must_end() -> None:
    """One job may end with the next run; two waves and the rest are a period apart each."""
    lane = a_run_lane(run=RunConfig(max_jobs_per_run=100))
    assert redrive.replay_slots(lane) == 25
    assert [redrive.rounds(count, lane) for count in (1, 2, 11, 12, 36, 37)] == [1, 2, 2, 3, 3, 4]
    assert [redrive.drain_s(count, lane, ()) for count in (1, 11, 37)] == [0, 1800, 5400]
