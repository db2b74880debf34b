"""Schedule jobs: every line ends in exactly one place, nothing else is touched, and nothing is changed twice."""

from __future__ import annotations

import uuid
from collections import Counter
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.adapters import rows
from shared.adapters.memory.jobs import MemoryJobStore
from shared.core import lifecycle
from shared.core.bulk import BulkRun, Fate, Selection
from shared.core.errors import BadInput, Unavailable
from shared.core.job import Job, Status
from shared.usecases import schedule_jobs as bulk
from shared.usecases.schedule_jobs import ids_hash, schedule_jobs
from tests.builders import NOW, a_job
from tests.unit.usecases.desk import Desk, Flaky

LATER = NOW + timedelta(hours=2)
NOBODY = "00000000-0000-5000-8000-000000000000"


def run(desk: Desk, given: list[str], at: datetime = LATER, **more: Any) -> BulkRun:
    values: dict[str, Any] = {"by": "alice", "why": "vendor is down", "threads": 2, **more}
    return schedule_jobs(given, at, jobs=desk.jobs, history=desk.history, clock=desk.clock, **values)


def table_of(desk: Desk) -> dict[str, Any]:
    return {job.job_id: desk.jobs.item(job.job_id) for job in desk.jobs.scan() if isinstance(job, Job)}


# -------------------------------------------------------------------------------------------- accounting
lines = st.lists(
    st.one_of(
        st.tuples(st.just("job"), st.integers(0, 9)),
        st.sampled_from([("text", "3d0a"), ("text", NOBODY), ("text", "  "), ("text", "x" * 500), ("text", "ünïcode")]),
    ),
    max_size=25,
)
standing = st.lists(st.sampled_from([*Status, "at that time", "unreadable", "strange lane"]), min_size=10, max_size=10)


def planted(desk: Desk, kinds: list[Any]) -> list[str]:
    """Ten jobs, as `kinds` says; their ids."""
    made = []
    for number, kind in enumerate(kinds):
        values: dict[str, Any] = {"key": f"event-{number}"}
        if isinstance(kind, Status):
            values["status"] = kind
        elif kind == "at that time":
            values |= {"not_before_at": LATER, "due": LATER}
        elif kind == "strange lane":
            values["lane"] = "mail"
        job = a_job(**values)
        item = rows.job_item(job, "support#0#2")
        if kind == "unreadable":
            item["status"] = {"S": "sideways"}
        desk.jobs.plant(item)
        made.append(job.job_id)
    return made


@pytest.mark.req("X9")
@settings(deadline=None)
@given(kinds=standing, asked=lines, upper=st.booleans())
def test_every_line_ends_in_exactly_one_place_and_nothing_else_changes(
    kinds: list[Any], asked: list[tuple[str, Any]], upper: bool
) -> None:
    """The counts are all lines; changed jobs have the time; every other row is as it was, to the last byte."""
    desk = Desk()
    ids = planted(desk, kinds)
    texts = [ids[value] if kind == "job" else value for kind, value in asked]
    given_lines = [text.upper() if upper else text for text in texts]
    before = {job_id: desk.jobs.item(job_id) for job_id in ids}
    done = run(desk, given_lines)

    assert done.finished
    assert sum(done.counts.values()) == len(done.lines) == sum(bool(text.strip()) for text in texts)
    assert [line.line for line in done.lines] == [n for n, text in enumerate(texts, 1) if text.strip()]
    expected: dict[Any, str] = {status: f"not_queued:{status}" for status in Status}
    expected |= {Status.QUEUED: "changed", "at that time": "unchanged"}
    expected |= {"unreadable": "unreadable", "strange lane": "unknown_lane"}
    seen: set[str] = set()
    for line in done.lines:
        text = texts[line.line - 1]
        if text in seen:
            assert line.fate is Fate.DUPLICATE
        elif text in ids:
            assert line.reason == expected[kinds[ids.index(text)]]
        else:
            assert line.fate is (Fate.NOT_FOUND if text == NOBODY else Fate.MALFORMED)
        if text in ids or text == NOBODY:
            seen.add(text)

    changed = {line.job_id for line in done.lines if line.fate is Fate.CHANGED}
    for job_id in ids:
        if job_id in changed:
            job = desk.job(job_id)
            assert (job.status, job.not_before_at, job.due) == (Status.QUEUED, LATER, LATER)
            assert job.moves[-1].reason == f"schedule:bulk/{done.run_id}"
        else:
            assert desk.jobs.item(job_id) == before[job_id]


class Counting(MemoryJobStore):
    """Counts what is asked of it."""

    def __init__(self, **parts: Any) -> None:
        super().__init__(**parts)
        self.asked: Counter[str] = Counter()

    def get(self, job_id: str) -> Job | None:
        self.asked["get"] += 1
        return super().get(job_id)

    def move(self, before: Job, after: Job) -> None:
        self.asked["move"] += 1
        super().move(before, after)


@pytest.mark.req("X9")
@pytest.mark.slow
def test_twenty_five_thousand_jobs_take_one_write_each() -> None:
    """Exactly one conditional write a changed job and none for the others; a second run writes nothing at all."""
    desk = Desk()
    desk.jobs = jobs = Counting(lanes=desk.lanes, clock=desk.clock)
    ids = [str(uuid.UUID(int=number)) for number in range(25_000)]
    new, there = a_job(), a_job(not_before_at=LATER, due=LATER)
    for number, job_id in enumerate(ids):
        jobs.put(replace(there if number % 10 == 0 else new, job_id=job_id))
    told: list[int] = []
    # One thread: what counts is counted without a lock.
    done = run(desk, ids, threads=1, progress=lambda counts: told.append(sum(counts.values())))
    assert done.counts == {"changed": 22_500, "unchanged": 2_500}
    assert (done.reads, done.writes) == (25_000, 22_500)
    assert jobs.asked == {"get": 25_000, "move": 22_500}
    assert (told[-1], len(told)) == (25_000, 25_000 // bulk.CHUNK)

    again = run(desk, ids, threads=1, run_id=done.run_id)
    assert (again.counts, again.writes) == ({"unchanged": 25_000}, 0)
    assert jobs.asked == {"get": 50_000, "move": 22_500}
    assert len(desk.history.of(f"bulk/{done.run_id}", limit=10)) == 2


@pytest.mark.req("X9")
def test_many_threads_do_what_one_does() -> None:
    """Each job once, whoever takes it."""
    desk = Desk()
    ids = [desk.put(a_job(key=f"event-{n}")).job_id for n in range(500)]
    done = run(desk, ids, threads=bulk.THREADS)
    assert (done.counts, done.writes) == ({"changed": 500}, 500)
    assert all(desk.job(job_id).not_before_at == LATER for job_id in ids)


# ----------------------------------------------------------------------------------------------- history
@pytest.mark.req("X9")
def test_one_event_tells_of_the_whole_run() -> None:
    """Who, why, how many of each, and a hash of the ids; no job gets an event of its own."""
    desk = Desk()
    job = desk.put(a_job())
    done = run(desk, [job.job_id, "nonsense", NOBODY])
    (event,) = desk.history.of(f"bulk/{done.run_id}", limit=5)
    assert (event.kind, event.by) == ("schedule_jobs", "alice")
    assert event.detail == {
        "at": "2026-01-01T02:00:00.000Z",
        "why": "vendor is down",
        "lines": 3,
        "counts": {"changed": 1, "malformed": 1, "not_found": 1},
        "ids_hash": ids_hash([NOBODY, job.job_id]),
        "finished": True,
    }
    assert desk.history.of(f"job/{job.job_id}", limit=5) == []


def test_a_run_whose_history_cannot_be_written_is_not_finished() -> None:
    """The rows are changed and name the run; giving it again writes the event."""
    desk = Desk()
    job = desk.put(a_job())
    history = Flaky(desk.history, "append")
    desk.history, history.down = history, True  # type: ignore[assignment]
    done = run(desk, [job.job_id])
    assert (done.counts, done.finished) == ({"changed": 1}, False)
    assert isinstance(done.stopped, Unavailable)
    history.down = False
    again = run(desk, [job.job_id], run_id=done.run_id)
    assert (again.counts, again.finished) == ({"unchanged": 1}, True)


# ------------------------------------------------------------------------------------- resuming, stopping
class Stopping(Flaky):
    """A jobs table that goes wrong at its n-th move."""

    def __init__(self, target: Any, at: int, error: BaseException, *, for_good: bool) -> None:
        super().__init__(target)
        self._at, self._error, self._for_good, self.moves = at, error, for_good, 0

    def move(self, before: Job, after: Job) -> None:
        self.moves += 1
        if self.moves == self._at or (self._for_good and self.moves > self._at):
            raise self._error
        self._target.move(before, after)


@pytest.mark.req("X9")
@settings(deadline=None, max_examples=30)
@given(
    at=st.integers(1, 60),
    how=st.sampled_from(
        [
            (KeyboardInterrupt(), False),
            (RuntimeError("defect"), False),
            (Unavailable("jobs", "down"), True),
        ]
    ),
)
def test_an_interrupted_run_is_accounted_for_and_can_be_given_again(at: int, how: tuple[BaseException, bool]) -> None:
    """Whatever ends it: every line has its place, the second run changes exactly the rest, and none twice."""
    desk = Desk()
    ids = [desk.put(a_job(key=f"event-{n}")).job_id for n in range(60)]
    jobs = desk.jobs
    error, for_good = how
    desk.jobs = Stopping(jobs, at, error, for_good=for_good)  # type: ignore[assignment]
    monkey = pytest.MonkeyPatch()
    with monkey.context() as patched:
        patched.setattr(bulk, "CHUNK", 7)
        first = run(desk, ids, threads=1)
    assert sum(first.counts.values()) == 60
    assert not first.finished
    (event,) = desk.history.of(f"bulk/{first.run_id}", limit=5)
    assert event.detail["finished"] is False

    desk.jobs = jobs
    moved = {job_id for job_id in ids if desk.job(job_id).not_before_at == LATER}
    assert moved == {line.job_id for line in first.lines if line.fate is Fate.CHANGED}
    second = run(desk, ids, run_id=first.run_id)
    assert second.finished
    assert {line.job_id for line in second.lines if line.fate is Fate.CHANGED} == set(ids) - moved
    for job_id in ids:
        assert [move.reason for move in desk.job(job_id).moves].count(f"schedule:bulk/{first.run_id}") == 1


@pytest.mark.req("X9")
def test_a_resumed_run_leaves_what_went_on_since() -> None:
    """A job this run moved, that was then deferred by a vendor, is not pulled back; another run may do it."""
    desk = Desk()
    job = desk.put(a_job())
    done = run(desk, [job.job_id])
    present = desk.job(job.job_id)
    deferred = lifecycle.rescheduled(present, LATER + timedelta(hours=1), "vendor:helpdesk:429", NOW)
    desk.jobs.move(present, deferred)
    assert run(desk, [job.job_id], run_id=done.run_id).counts == {"unchanged": 1}
    assert desk.job(job.job_id) == deferred
    assert run(desk, [job.job_id]).counts == {"changed": 1}


@pytest.mark.req("X9")
def test_one_job_without_an_answer_stops_no_other() -> None:
    """It is counted as unknown, the run is not finished, and the rest is done."""
    desk = Desk()
    ids = [desk.put(a_job(key=f"event-{n}")).job_id for n in range(5)]

    class OneDown(Flaky):
        def get(self, job_id: str) -> Job | None:
            if job_id == ids[2]:
                raise Unavailable("jobs", "throttled")
            return jobs.get(job_id)

    jobs = desk.jobs
    desk.jobs = OneDown(jobs)  # type: ignore[assignment]
    done = run(desk, ids)
    assert (done.counts, done.finished, done.stopped) == ({"changed": 4, "unavailable": 1}, False, None)


def test_a_job_that_moved_meanwhile_is_left() -> None:
    """A worker took it between the read and the write: nothing is written over that."""
    desk = Desk()
    job = desk.put(a_job())

    class Racing(Flaky):
        def get(self, job_id: str) -> Job | None:
            seen = jobs.get(job_id)
            jobs.claim(job_id, by="w", now=NOW)
            return seen

    jobs = desk.jobs
    desk.jobs = Racing(jobs)  # type: ignore[assignment]
    done = run(desk, [job.job_id])
    assert (done.counts, done.finished) == ({"changed_meanwhile": 1}, True)
    assert jobs.get(job.job_id).status is Status.PROCESSING  # type: ignore[union-attr]


def test_a_dry_run_writes_nothing() -> None:
    """It counts what would be done, and keeps no event."""
    desk = Desk()
    job = desk.put(a_job())
    before = table_of(desk)
    done = run(desk, [job.job_id, "x"], dry_run=True)
    assert (done.counts, done.writes, done.dry_run) == ({"changed": 1, "malformed": 1}, 0, True)
    assert (table_of(desk), desk.history.of(f"bulk/{done.run_id}", limit=5)) == (before, [])


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("at", {"at": datetime(2026, 1, 1)}),
        ("at", {"at": None}),
        ("why", {"why": " "}),
        ("resume", {"run_id": "../etc"}),
    ],
)
def test_a_run_needs_a_time_and_a_reason(field: str, values: dict[str, Any]) -> None:
    """Refused by name before anything is read."""
    desk = Desk()
    job = desk.put(a_job())
    with pytest.raises(BadInput) as refused:
        run(desk, [job.job_id], **values)
    assert refused.value.field == field
    assert desk.job(job.job_id) == job


# --------------------------------------------------------------------------------------------- selection
@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (Selection(lane="support"), {"a", "b", "c", "d"}),
        (Selection(lane="support", tenant="acme"), {"b"}),
        (Selection(lane="support", blocked_by="budget"), {"c", "d"}),
        (Selection(lane="support", blocked_by="budget:openai"), {"c"}),
        (Selection(lane="support", blocked_by="bud"), set()),
        (Selection(lane="mail"), {"f"}),
    ],
)
def test_a_selection_holds_waiting_jobs_by_lane_tenant_and_reason(wanted: Selection, found: set[str]) -> None:
    """Only queued ones; a reason is meant from its beginning, word by word."""
    jobs = [
        a_job(key="a"),
        a_job(key="b", tenant="acme"),
        a_job(key="c", blocked_by="budget:openai"),
        a_job(key="d", blocked_by="budget:openai-batch"),
        a_job(key="e", status=Status.PROCESSING),
        a_job(key="f", lane="mail"),
    ]
    assert {job.key for job in jobs if wanted.holds(job)} == found
