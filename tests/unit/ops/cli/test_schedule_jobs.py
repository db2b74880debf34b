"""`penstock jobs schedule` for many jobs: files and selections, what is told of each, and going on after a stop."""

from __future__ import annotations

import io
import shlex
from pathlib import Path
from typing import Any

import pytest

from ops.cli import schedule_jobs as cli
from ops.cli.schedule_jobs import lines_of
from ops.cli.stage import Stage
from shared.core.bulk import Fate
from shared.core.errors import Unavailable
from shared.core.job import Job, Status
from shared.core.moment import iso
from tests.unit.ops.cli.test_jobs import CALLER, stored

NOBODY = "00000000-0000-5000-8000-000000000000"


@pytest.fixture(autouse=True)
def _one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    # moto is no judge of races.
    monkeypatch.setattr("shared.usecases.schedule_jobs.THREADS", 1)


def written(tmp_path: Path, *lines: str) -> str:
    """A file of ids."""
    path = tmp_path / "ids of tonight.txt"
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def now_of(stage: Stage, job: Job) -> Job:
    found = stage.jobs.get(job.job_id)
    assert found is not None
    return found


@pytest.mark.req("X9")
def test_a_file_of_ids_gets_one_time_and_every_line_is_accounted_for(
    penstock: Any, deployed: Stage, tmp_path: Path
) -> None:
    """Changed ones have the very same moment; each of the others is named with its reason; it ends well."""
    queued = [stored(deployed, key=f"q{n}") for n in range(3)]
    ended = stored(deployed, key="c", status=Status.COMPLETED)
    file = written(tmp_path, *(job.job_id for job in queued), ended.job_id, "", "3d0a", NOBODY, queued[0].job_id)
    answer = penstock("jobs", "schedule", "--file", file, "--in", "2h", "--why", "vendor is down", "--json").lines
    summary = answer[-1]["summary"]
    counts = {"changed": 3, "not_queued:completed": 1, "malformed": 1, "not_found": 1, "duplicate": 1}
    assert (summary["counts"], summary["lines"], summary["finished"], summary["again"]) == (counts, 7, True, None)
    assert (summary["reads"], summary["writes"]) == (5, 3)
    assert [(one["left"]["line"], one["left"]["reason"]) for one in answer[:-1]] == [
        (4, "not_queued:completed"),
        (6, "malformed"),
        (7, "not_found"),
        (8, "duplicate"),
    ]
    assert {iso(now_of(deployed, job).runnable_at) for job in queued} == {summary["at"]}
    (event,) = deployed.history.of(f"bulk/{summary['run_id']}", limit=5)
    assert (event.by, event.detail["counts"], event.detail["why"]) == (CALLER, counts, "vendor is down")
    assert now_of(deployed, ended) == ended


@pytest.mark.req("X9")
def test_people_see_what_was_not_changed_and_why(penstock: Any, deployed: Stage, tmp_path: Path) -> None:
    """A line's text is not repeated when it is no id; the sentence says what it is."""
    ended = stored(deployed, status=Status.FAILED)
    text = penstock(
        *("jobs", "schedule", "--file", written(tmp_path, ended.job_id, "Dear Ms Miller"), "--now", "--why", "x")
    ).out
    assert "is failed; only a queued job can be given another time" in text
    assert "is not the whole id of a job" in text
    assert "Miller" not in text
    assert "2 lines: 0 changed to" in text


def test_ids_come_from_standard_input(penstock: Any, deployed: Stage) -> None:
    """`--file -`, for pipes."""
    job = stored(deployed)
    penstock(
        "jobs", "schedule", "--file", "-", "--at", "2099-01-01T00:00Z", "--why", "x", stdin=f"\ufeff{job.job_id}\r\n"
    )
    assert iso(now_of(deployed, job).runnable_at) == "2099-01-01T00:00:00.000Z"


@pytest.mark.req("X9")
def test_a_lanes_jobs_are_chosen_by_what_holds_them(penstock: Any, deployed: Stage) -> None:
    """Lane, tenant and reason narrow it down; others stay as they are."""
    held = stored(deployed, key="1", blocked_by="budget:openai:rpm")
    others = [
        stored(deployed, key="2"),
        stored(deployed, key="3", tenant="globex", blocked_by="budget:openai:rpm"),
        stored(deployed, key="4", lane="mail", task="sync", blocked_by="budget:openai:rpm"),
        stored(deployed, key="5", status=Status.PROCESSING),
    ]
    chosen = ("--lane", "support", "--status", "queued", "--tenant", "tenant-1", "--blocked-by", "budget:openai")
    summary = penstock("jobs", "schedule", *chosen, "--in", "2h", "--why", "x", "--json").lines[-1]["summary"]
    assert summary["counts"] == {"changed": 1}
    assert now_of(deployed, held).waits
    assert [now_of(deployed, job) for job in others] == others


@pytest.mark.req("X9")
def test_a_dry_run_counts_and_changes_nothing(penstock: Any, deployed: Stage) -> None:
    """Not a row, not an event."""
    job = stored(deployed)
    answer = penstock("jobs", "schedule", "--lane", "support", "--in", "2h", "--why", "x", "--dry-run")
    assert "1 lines: 1 would be changed" in answer.out
    assert now_of(deployed, job) == job


def test_many_jobs_need_a_yes(penstock: Any, deployed: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nobody can be asked, nothing is changed without it; a dry run needs none."""
    monkeypatch.setattr(cli, "ASK_ABOVE", 1)
    jobs = [stored(deployed, key=str(n)) for n in range(2)]
    asked = ("jobs", "schedule", "--file", written(tmp_path, *(job.job_id for job in jobs)), "--in", "2h", "--why", "x")
    assert "yes: is missing: this changes 2 jobs" in penstock(*asked, code=1).err
    assert [now_of(deployed, job) for job in jobs] == jobs
    penstock(*asked, "--dry-run")
    penstock(*asked, "--yes")
    assert all(now_of(deployed, job).waits for job in jobs)


@pytest.mark.parametrize("says", ["y", "n"])
def test_a_person_is_asked(
    penstock: Any, deployed: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str
) -> None:
    """With the number and the moment; a no changes nothing and ends with 1."""
    monkeypatch.setattr(cli, "ASK_ABOVE", 0)
    monkeypatch.setattr(cli, "_can_be_asked", lambda asked, many: True)
    job = stored(deployed)
    file = written(tmp_path, job.job_id)
    answer = penstock(
        "jobs", "schedule", "--file", file, "--in", "2h", "--why", "x", stdin=f"{says}\n", code=0 if says == "y" else 1
    )
    assert "Give 1 jobs of stage dev the time" in answer.err
    assert now_of(deployed, job).waits is (says == "y")


@pytest.mark.req("X9")
@pytest.mark.parametrize("error", [KeyboardInterrupt(), Unavailable("jobs", "down")], ids=["interrupt", "outage"])
def test_a_stopped_run_prints_the_command_that_goes_on(
    penstock: Any, deployed: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    """It ends with 1; the printed command is the same run and moment, changes the rest, and none twice."""
    jobs = [stored(deployed, key=str(n)) for n in range(6)]
    file = written(tmp_path, *(job.job_id for job in jobs))
    monkeypatch.setattr("shared.usecases.schedule_jobs.CHUNK", 2)
    monkeypatch.setattr("shared.usecases.persist.FIRST_WAIT_S", 0)
    from shared.adapters.aws.jobs import DynamoDbJobStore

    real, moves = DynamoDbJobStore.move, 0

    def failing(store: DynamoDbJobStore, before: Job, after: Job) -> None:
        nonlocal moves
        moves += 1
        if moves > 3:
            raise error
        real(store, before, after)

    with monkeypatch.context() as patched:
        patched.setattr(DynamoDbJobStore, "move", failing)
        first = penstock("jobs", "schedule", "-f", file, "--in", "2h", "--why", "it's down", "--json", code=1).lines[-1]
    summary = first["summary"]
    assert (summary["finished"], summary["counts"]["changed"]) == (False, 3)
    assert sum(summary["counts"].values()) == 6
    again = shlex.split(summary["again"])
    assert again[:3] == ["penstock", "jobs", "schedule"]
    second = penstock(*again[1:], "--json").lines[-1]["summary"]
    assert (second["run_id"], second["at"]) == (summary["run_id"], summary["at"])
    assert second["counts"] == {"changed": 3, "unchanged": 3}
    for job in jobs:
        moved = [move.reason for move in now_of(deployed, job).moves]
        assert moved.count(f"schedule:bulk/{summary['run_id']}") == 1


def test_a_stopped_run_tells_people_how_to_go_on(
    penstock: Any, deployed: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A selection's command names it again, on one line to be copied."""
    stored(deployed)
    from shared.adapters.aws.jobs import DynamoDbJobStore

    def failing(store: DynamoDbJobStore, before: Job, after: Job) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(DynamoDbJobStore, "move", failing)
    chosen = ("--lane", "support", "--tenant", "tenant-1")
    told = penstock("jobs", "schedule", *chosen, "--in", "2h", "--why", "x", code=1).err
    assert "Interrupted." in told
    assert "penstock jobs schedule --lane support --tenant tenant-1 --at 20" in told


@pytest.mark.parametrize(
    "options",
    [
        ("--in", "2h"),
        (NOBODY, "--lane", "support", "--in", "2h"),
        (NOBODY, "--file", "x", "--in", "2h"),
        (NOBODY, "--tenant", "acme", "--in", "2h"),
        ("--lane", "support", "--status", "failed", "--in", "2h"),
        ("--lane", "support", "--resume", "0123456789ab", "--in", "2h"),
        (NOBODY, "--dry-run", "--in", "2h"),
        ("--lane", "support"),
    ],
    ids=" ".join,
)
def test_jobs_and_time_are_named_in_one_way(penstock: Any, deployed: Stage, options: tuple[str, ...]) -> None:
    """Anything else is a usage error, before anything is read."""
    penstock("jobs", "schedule", *options, "--why", "x", code=2)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--file", "/nowhere/ids.txt"), "/nowhere/ids.txt"),
        (("--lane", "nope"), "known lanes: mail, support"),
        (("--lane", "support", "--resume", "x"), "resume: "),
    ],
)
def test_what_cannot_be_used_is_named(penstock: Any, deployed: Stage, options: tuple[str, ...], said: str) -> None:
    """A file that is not there, a lane that is not there, a run that is none."""
    assert said in penstock("jobs", "schedule", *options, "--at", "2099-01-01T00:00Z", "--why", "x", code=1).err


@pytest.mark.req("X9")
def test_a_jobs_page_tells_who_ran_the_bulk_that_moved_it(penstock: Any, deployed: Stage) -> None:
    """The run's one event is shown in the history of each of its jobs."""
    job = stored(deployed)
    penstock("jobs", "schedule", "--lane", "support", "--in", "2h", "--why", "vendor is down")
    history = penstock("jobs", "show", job.job_id, "--json").document["history"]
    assert (history[-1]["what"], history[-1]["by"]) == ("schedule_jobs", CALLER)
    assert "vendor is down" in history[-1]["reason"]


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"", []),
        (b"a\nb", ["a\n", "b"]),
        (b"\xef\xbb\xbfa\n\xef\xbb\xbfb\n", ["a\n", "\ufeffb\n"]),
        (b"\xff\xfe\n", ["\ufffd\ufffd\n"]),
    ],
)
def test_lines_of_a_file(data: bytes, lines: list[str]) -> None:
    """Bytes that are no text are shown as such, and only the first mark is an editor's."""
    assert list(lines_of(io.BytesIO(data))) == lines


def test_a_line_without_end_is_one_line() -> None:
    """However long it is, it takes little memory and is one malformed line."""
    found = list(lines_of(io.BytesIO(b"0" * 1_000_000 + b"\n" + NOBODY.encode())))
    assert (len(found), len(found[0]) < 2000, found[1]) == (2, True, NOBODY)


def test_every_reason_has_its_sentence() -> None:
    """Nothing is left without an explanation."""
    assert set(cli.SAID) == set(Fate) - {Fate.CHANGED}
