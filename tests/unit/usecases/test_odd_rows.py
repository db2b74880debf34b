"""Rows that cannot be acted on: no run sends one twice, none hides its neighbours, none ends the work on others."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import pytest

from shared.contract import table
from shared.core.effects import EffectRow
from shared.core.errors import RowMoved, UnreadableRow
from shared.core.job import Job, Status
from shared.core.run import LOOK_AHEAD, Mode, RunConfig
from shared.usecases import restore_letters
from shared.usecases import sweep as sweeping
from shared.usecases.dispatch import Run
from shared.usecases.run_dispatch import run_dispatch
from shared.usecases.take_run import take
from tests.builders import NOW, a_job, a_lane, an_account
from tests.unit.usecases.desk import Desk, Flaky

MINUTE = timedelta(minutes=1)


@pytest.fixture
def desk() -> Desk:
    return Desk()


def waiting(desk: Desk, key: str, **more: object) -> Job:
    """A job that waits for nothing but the dispatcher."""
    return desk.put(a_job(key=key, **{"due": NOW, "not_before_at": NOW, "blocked_by": "backoff", **more}))


def unreadable(desk: Desk, job: Job) -> Job:
    """Its row as another version may have written it."""
    desk.jobs.plant({**(desk.jobs.item(job.job_id) or {}), "status": {"S": "hibernating"}})
    return job


def run(desk: Desk, run_s: float = 48) -> dict[str, int]:
    return run_dispatch(
        desk.lanes,
        period_s=60,
        stop_at=desk.clock.now() + timedelta(seconds=run_s),
        jobs=desk.jobs,
        queues=desk.queues,
        viewer=desk.viewer,
        clock=desk.clock,
        telemetry=desk.telemetry,
    )


class Stuck(Flaky):
    """A store in which some rows stand as they are read and cannot be written all the same."""

    def __init__(self, desk: Desk, *stuck: Job) -> None:
        super().__init__(desk.jobs)
        self._stuck = {job.job_id for job in stuck}

    def move(self, before: Job, after: Job) -> None:
        if before.job_id in self._stuck:
            raise RowMoved(before.job_id, self._target.get(before.job_id))
        self._target.move(before, after)


def told(desk: Desk) -> Counter[object]:
    """Job → how often its row was told as one that cannot be read."""
    return Counter(event.ids.get("job_id") for event in desk.telemetry.named("row_unreadable"))


@pytest.mark.fault("C10")
def test_no_id_is_sent_twice_in_a_run() -> None:
    """A run of many looks, and a row that does not leave the index: one message, told, and the others are sent."""
    desk = Desk(account=an_account(requests_per_minute=60, tokens_per_minute=None), queue_window_s=100_000)
    stuck = waiting(desk, "stuck", created_at=NOW - MINUTE)
    others = [waiting(desk, f"event-{n:02}") for n in range(40)]
    desk.jobs = Stuck(desk, stuck)  # type: ignore[assignment]
    run(desk)
    sent = Counter(desk.queued_messages())
    assert sent == Counter([stuck.job_id, *(job.job_id for job in others)])
    assert told(desk) == {stuck.job_id: 1}


@pytest.mark.fault("C10")
def test_a_job_that_came_back_is_sent_again_in_the_same_run(desk: Desk) -> None:
    """Only a row that stands as it was sent is passed over: one that was given another time has moved."""
    job, memory = waiting(desk, "event-1"), Run()
    assert desk.dispatch(run=memory).sent == 1
    after = desk.job(job.job_id)
    desk.jobs.move(after, after.placed(due=NOW, updated_at=NOW + MINUTE))
    assert desk.dispatch(run=memory).sent == 1


@pytest.mark.fault("C10", "K1")
@pytest.mark.parametrize("rows", [3, 4, 9, 30])
def test_rows_that_nobody_can_read_hide_nobody(desk: Desk, rows: int) -> None:
    """More of them than one look holds, and older than everybody: the jobs behind them go out in the same run."""
    strange = [unreadable(desk, waiting(desk, f"strange-{n}", created_at=NOW - MINUTE)) for n in range(rows)]
    good = [waiting(desk, f"good-{n}") for n in range(4)]
    desk.dispatch(limit=4)
    assert Counter(desk.queued_messages()) == Counter(job.job_id for job in good)
    assert set(told(desk)) == {job.job_id for job in strange}


@pytest.mark.fault("C10", "K1")
def test_in_one_run_a_row_that_nobody_can_read_is_read_once() -> None:
    """However often the run looks."""
    desk = Desk(account=an_account(requests_per_minute=60, tokens_per_minute=None), queue_window_s=100_000)
    strange = [unreadable(desk, waiting(desk, f"strange-{n}", created_at=NOW - MINUTE)) for n in range(70)]
    for n in range(10):
        waiting(desk, f"good-{n}")
    run(desk)
    assert told(desk) == {job.job_id: 1 for job in strange}
    assert len(desk.queued_messages()) == 10


@pytest.mark.fault("C10", "K1")
def test_a_row_that_becomes_unreadable_on_the_way_ends_no_run(desk: Desk) -> None:
    """Another version writes it between the look and the hand-off: told, and its neighbours leave the index."""
    odd, good = waiting(desk, "odd", created_at=NOW - MINUTE), waiting(desk, "good")

    class Racing(Flaky):
        def move(self, before: Job, after: Job) -> None:
            if before.job_id == odd.job_id:
                raise UnreadableRow(odd.job_id, "status is not one this version knows")
            self._target.move(before, after)

    jobs = desk.jobs
    desk.jobs = Racing(jobs)  # type: ignore[assignment]
    desk.dispatch()
    assert (told(desk), desk.job(good.job_id).waits) == ({odd.job_id: 1}, False)


@pytest.mark.fault("C10")
def test_a_job_in_the_line_of_another_lane_is_put_in_its_own(desk: Desk) -> None:
    """The partition is no witness of the lane: the row is. A lane's admission says nothing of another lane's job."""
    desk.add_lane(a_lane(name="extraction"))
    job = a_job(lane="extraction", due=NOW, not_before_at=NOW)
    desk.put(job)
    desk.jobs.plant({**(desk.jobs.item(job.job_id) or {}), table.WAITING_PK: {"S": table.ordered_wpk("support", 0, 2)}})
    assert desk.dispatch().sent == 0
    assert desk.jobs.waiting(desk.lane, due_before=NOW, limit=10) == []
    (entry,) = desk.jobs.waiting(desk.lanes["extraction"], due_before=NOW, limit=10)
    assert entry.job_id == job.job_id


@pytest.mark.fault("C10")
def test_a_job_of_no_lane_in_a_lanes_line_harms_nobody(desk: Desk) -> None:
    """Told, passed over, left: the audit names it, and those behind it go out."""
    stranger, good = waiting(desk, "stranger", created_at=NOW - MINUTE), waiting(desk, "good")
    item = {**(desk.jobs.item(stranger.job_id) or {}), "lane": {"S": "mail"}}
    desk.jobs.plant(item)
    desk.dispatch(limit=1)
    assert desk.queued_messages() == [good.job_id]
    assert desk.jobs.item(stranger.job_id) == item
    assert told(desk) == {stranger.job_id: 1}


@pytest.mark.fault("C10", "F4")
def test_a_sweep_sends_letters_and_recovers_claims_behind_rows_that_nobody_can_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """More such rows than are looked at, in each of the two lines."""
    monkeypatch.setattr(sweeping, "LIMIT", 2)
    monkeypatch.setattr(restore_letters, "LIMIT", 2)
    desk = Desk(admission="scheduled", run=RunConfig(retry_backoff_seconds=(5, 10, 20, 40)), runs={"worker": 3600})
    for n in range(5):
        times = {"created_at": NOW - MINUTE, "due": NOW}
        unreadable(desk, desk.put(a_job(key=f"claim-{n}", status=Status.PROCESSING, **times)))
        unreadable(desk, desk.put(a_job(key=f"letter-{n}", status=Status.FAILED, **times)))
    claim = desk.put(a_job(key="claim", status=Status.PROCESSING, due=NOW))
    letter = desk.put(a_job(key="letter", status=Status.FAILED, due=NOW))
    desk.clock.advance(desk.lane.claim_timeout_s)
    done = desk.sweep()
    assert (done.recovered, desk.restore_letters()) == (1, 1)
    assert (desk.job(claim.job_id).status, desk.job(letter.job_id).waits) == (Status.QUEUED, False)
    assert sorted(told(desk).values()) == [1] * 10


@pytest.mark.fault("C10", "K1")
@pytest.mark.parametrize("problem", ["stuck", "unreadable"])
def test_a_row_that_cannot_be_moved_ends_no_sweep_and_no_audit(desk: Desk, problem: str) -> None:
    """One claim that cannot be recovered, one that can: the second is, whatever the first is like."""
    first, second = (desk.put(a_job(key=key, status=Status.PROCESSING)) for key in ("a", "b"))

    class Odd(Stuck):
        def move(self, before: Job, after: Job) -> None:
            if problem == "unreadable" and before.job_id == first.job_id:
                raise UnreadableRow(before.job_id, "status is not one this version knows")
            super().move(before, after)

    jobs = desk.jobs
    desk.jobs = Odd(desk, first)  # type: ignore[assignment]
    desk.clock.advance(3600)
    report = desk.auditor().run(repair=True)
    assert {one.job_id: one.repaired for one in report.findings} == {first.job_id: False, second.job_id: True}
    assert set(told(desk)) == {first.job_id}
    assert jobs.get(second.job_id).status is Status.QUEUED  # type: ignore[union-attr]


@pytest.mark.fault("C10", "K1")
def test_a_run_takes_the_jobs_behind_rows_that_nobody_can_read() -> None:
    """More of them than a run looks at for the one job it may take."""
    config = RunConfig(max_jobs_per_run=1, retry_backoff_seconds=(5, 10, 20, 40))
    desk = Desk(admission="scheduled", run=config, runs={"worker": 3600})
    for n in range(3 * LOOK_AHEAD):
        unreadable(desk, waiting(desk, f"strange-{n:02}", created_at=NOW - MINUTE))
    good = waiting(desk, "good")
    taken = take(
        desk.lane,
        Mode.ASYNC,
        run_id="run-1",
        deadline=desk.deadline(60),
        jobs=desk.jobs,
        clock=desk.clock,
        telemetry=desk.telemetry,
    )
    assert [job.job_id for job in taken] == [good.job_id]
    assert sorted(told(desk).values()) == [1] * 3 * LOOK_AHEAD


@pytest.mark.fault("K1")
def test_a_claim_whose_effect_nobody_can_read_is_not_given_to_another(desk: Desk) -> None:
    """Perhaps the vendor has it: the claim is told and left, and the audit goes on to the next."""
    first, second = (desk.put(a_job(key=key, status=Status.PROCESSING)) for key in ("a", "b"))

    class Odd(Flaky):
        def of_job(self, job_id: str) -> list[EffectRow]:
            if job_id == first.job_id:
                raise UnreadableRow(job_id, "state is not one this version knows")
            return self._target.of_job(job_id)  # type: ignore[no-any-return]

    desk.effects = Odd(desk.effects)  # type: ignore[assignment]
    desk.clock.advance(3600)
    report = desk.auditor().run(repair=True)
    assert {one.job_id: one.repaired for one in report.findings} == {first.job_id: False, second.job_id: True}
    assert (desk.job(first.job_id), set(told(desk))) == (first, {first.job_id})
