"""Take: what a run costs grows with what it takes, never with who waits; the same queue gives the same run."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from shared.adapters import record_rows
from shared.core.job import Status
from shared.core.run import Order, RunConfig
from shared.core.schedule import ScheduleRule
from shared.usecases.deadline import Deadline
from shared.usecases.run_slot import run_slot
from tests.unit.usecases.rewriting import RewriteDesk

PROD = RunConfig(max_jobs_per_run=200, claim_timeout_seconds=3600, retry_backoff_seconds=(3600, 21600))


def a_backlog(queued: int, *, not_due: int = 0) -> RewriteDesk:
    """So many who wait, the older ones of them not yet due."""
    desk = RewriteDesk(run=PROD)
    for number in range(queued):
        later = desk.clock.now() + timedelta(days=1) if number < not_due else None
        desk.enqueue(number, not_before=later)
        desk.clock.advance(0.01)
    return desk


@pytest.mark.slow
@pytest.mark.req("R7", "R6")
def test_ten_thousand_wait_and_two_hundred_are_taken() -> None:
    """5,000 are older and not yet due: exactly 200 due ones a run, in order, and nobody else is written to."""
    desk = a_backlog(10_000, not_due=5_000)
    before = {job.job_id: job for job in desk.rows()}
    everything = desk.jobs.stream.reader()
    everything.commit(everything.read(10**6))
    for run in range(2):
        assert desk.submit()["submitted"] == 200
        taken = sorted(job.created_at for job in desk.rows() if job.status is Status.BATCH_SUBMITTED)
        due = sorted(job.created_at for job in before.values() if job.not_before_at is None)
        assert taken == due[: 200 * (run + 1)]
    written = {record.new.job.job_id for record in everything.read(10**6) if record.new is not None}
    assert len(written) == 400
    assert all(job == before[job.job_id] for job in desk.rows() if job.job_id not in written)


@pytest.mark.slow
@pytest.mark.req("R7")
def test_the_read_cost_of_a_run_does_not_grow_with_the_backlog(capsys: pytest.CaptureFixture[str]) -> None:
    """Read units of one run at 1,000, 10,000 and 20,000 queued, counted; `make bench` shows 100,000."""
    units = {}
    for queued in (1_000, 10_000, 20_000):
        desk = a_backlog(queued, not_due=queued // 2)
        before = desk.meter.total()
        desk.submit()
        units[queued] = (desk.meter.total() - before).read_units
    with capsys.disabled():
        print(f"\nread units of a run of 200 by queued jobs: {units}")
    # With fewer due than a run looks at, it reads those; from there on it is the same for any backlog.
    assert units[1_000] <= units[10_000] == units[20_000]


@pytest.mark.req("R13", "R6")
@pytest.mark.parametrize("order", Order)
def test_the_same_queue_clock_and_configuration_give_the_same_run(order: Order) -> None:
    """Byte for byte in the run's record, in the provider's files and in the rows."""

    def once() -> bytes:
        desk = RewriteDesk(run=RunConfig(max_jobs_per_run=7, order=order))
        for number in range(12):
            later = desk.clock.now() + timedelta(seconds=30) if number % 3 == 0 else None
            desk.enqueue(number, not_before=later, rewrite_strength=("light_touch", "full_reframe")[number % 2])
            desk.clock.advance(1)
        desk.clock.advance(60)
        run = run_slot(
            "rewrite_batch_submitter",
            period_s=900,
            time_limit_s=255,
            run_id="invocation-1",
            work=lambda: desk.submitter().run(
                "invocation-1", Deadline(at=desk.clock.now() + timedelta(seconds=240), clock=desk.clock)
            ),
            ledger=desk.ledger,
            clock=desk.clock,
            telemetry=desk.telemetry,
            rule=ScheduleRule(),
        )
        assert run is not None
        files = [[one.custom_id for one in batch.requests] for batch in desk.provider.batches.values()]
        return json.dumps(
            [record_rows.run_item(run), files, [desk.jobs.item(job.job_id) for job in desk.rows()]]
        ).encode()

    assert once() == once()


def test_the_life_of_a_batched_job_is_four_writes() -> None:
    """Put, claim, submitted, end; batch rows apart."""
    desk = RewriteDesk(run=PROD)
    for number in range(200):
        desk.enqueue(number)
    desk.submit()
    desk.collect()
    assert desk.states() == {Status.COMPLETED: 200}
    used = desk.meter.snapshot()
    writes = {operation: use.calls for (port, operation), use in used.items() if port == "jobs" and use.write_units}
    assert writes == {"put": 200, "claim": 200, "move": 400}


@pytest.mark.req("R7")
def test_two_submitters_at_once_share_what_waits() -> None:
    """Interleaved claim by claim: nobody is in two batches, and together they take what they may."""
    from shared.core.run import Mode
    from shared.usecases.take_run import take

    desk = RewriteDesk(run=RunConfig(max_jobs_per_run=5))
    for number in range(8):
        desk.enqueue(number)
        desk.clock.advance(1)

    def a_run(name: str):  # type: ignore[no-untyped-def]
        deadline = Deadline(at=desk.clock.now() + timedelta(seconds=60), clock=desk.clock)
        return take(
            desk.lane,
            Mode.BATCH,
            run_id=name,
            deadline=deadline,
            jobs=desk.jobs,
            clock=desk.clock,
            telemetry=desk.telemetry,
        )

    first, second = a_run("a"), a_run("b")
    taken = []
    for one in (first, second, second, first, second, first, second):
        taken += [job.job_id for job in [next(one, None)] if job is not None]
    taken += [job.job_id for job in (*first, *second)]
    assert len(taken) == len(set(taken))
    assert len(taken) <= 8
