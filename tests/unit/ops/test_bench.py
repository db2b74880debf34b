"""The bench measures what it says: both ways do the whole job, and the table tells the truth about a bound."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import pytest
from rich.console import Console

from ops.bench import cold, package, table
from ops.bench.account import account
from ops.bench.environment import OURS, SEQUENTIAL, THREADED, Environment, handler_of, measure
from ops.bench.table import Measured, Row
from ops.bench.units import standard_costs
from ops.bench.workload import REPLIED, ROUTED, workload

CALLS = {
    (OURS, ROUTED): {"UpdateItem": 2, "GetObject": 1},
    (OURS, REPLIED): {"UpdateItem": 4, "GetObject": 1, "Vendor": 1},
    (SEQUENTIAL, ROUTED): {"PutItem": 1, "UpdateItem": 1, "GetObject": 1},
    (SEQUENTIAL, REPLIED): {"PutItem": 1, "UpdateItem": 1, "GetObject": 1, "Vendor": 1},
    (THREADED, ROUTED): {"PutItem": 1, "UpdateItem": 1, "GetObject": 1},
    (THREADED, REPLIED): {"PutItem": 1, "UpdateItem": 1, "GetObject": 1, "Vendor": 1},
}

BATCHES = 2


@pytest.mark.parametrize(("way", "kind"), CALLS)
def test_every_call_of_a_job_is_made(way: str, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    """No way is fast because it leaves something out: each message costs exactly its calls, the switches apart.

    Our worker also writes its signals, once a batch: two batches of ten here.
    """
    work = workload(20)
    with handler_of(way, work) as handler:
        events = work.ours(kind) if way == OURS else work.standard(kind)
        run = measure(handler, events, work.stub, delay_s=0)
    capsys.readouterr()
    assert run.jobs == 20
    seen = dict(work.stub.calls)
    # An environment's first messages may all look at the switches before one of them has kept what it saw.
    assert seen.pop("GetItem", 0) <= 10
    expected = {operation: count * 20 for operation, count in CALLS[way, kind].items()}
    if way == OURS:
        expected["UpdateItem"] += BATCHES
    assert seen == expected


def test_an_environment_answers_run_after_run() -> None:
    """A warm process gives the numbers of each run it is asked for, and ends when it is left."""
    with Environment(OURS) as ours:
        runs = [ours.run(kind, delay_s=0, jobs=10) for kind in (ROUTED, REPLIED, ROUTED)]
    assert [run.jobs for run in runs] == [10, 10, 10]
    assert all(run.cpu_ms_per_job > 0 and run.jobs_per_s > 0 for run in runs)
    assert ours._child.returncode == 0


def test_a_measurement_of_a_failed_job_is_refused() -> None:
    """A returned message is no measurement."""
    work = workload(10)
    with pytest.raises(RuntimeError, match="returned"):
        measure(
            lambda event, context: {"batchItemFailures": [{"itemIdentifier": "1"}]},
            work.ours(ROUTED),
            work.stub,
            delay_s=0,
        )


def test_the_standard_way_is_counted_by_the_same_rules() -> None:
    """Its record is put and updated; a failure removes it, and the message's return writes it again."""
    with account() as client:
        standard = standard_costs(client)
    used = {life: cost.usage.all_write_units for life, cost in standard.items()}
    assert used == {"once": 2, "replied": 2, "twice": 4}
    assert {cost.duplicate.all_write_units for cost in standard.values()} == {1}


def test_a_cold_start_is_measured_without_httpx(tmp_path: Path) -> None:
    """The handler is imported and wired in a fresh interpreter, and the HTTP client stays out of it."""
    program = cold.OURS + "assert 'httpx' not in sys.modules and 'botocore' in sys.modules"
    assert cold.seconds(program, [str(cold.ROOT)]) > 0
    measured = cold.cold(runs=1, staged=tmp_path / "absent")
    assert [row.unit for row in measured.rows] == ["×", "ms"]
    assert "source tree" in measured.notes[0]


def test_a_cold_start_that_fails_says_why() -> None:
    """Not a number, but the error."""
    with pytest.raises(RuntimeError, match="No module named 'nowhere'"):
        cold.seconds("import nowhere", [])


def test_the_size_without_our_code_is_the_size_of_an_archive_without_it(tmp_path: Path) -> None:
    """What is subtracted for a file is what it takes in the archive, headers included."""
    ours, theirs = tmp_path / "ours.zip", tmp_path / "theirs.zip"
    for archive, folders in ((ours, ("shared", "library")), (theirs, ("library",))):
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as opened:
            for folder in folders:
                opened.writestr(f"{folder}/module.py", folder * 500)
    assert package._without_ours_mb(ours) == theirs.stat().st_size / 1e6


@pytest.mark.parametrize(
    ("row", "ok", "bound"),
    [
        (Row(group="g", what="w", ours=3, at_most=3), True, "≤ 3"),
        (Row(group="g", what="w", ours=4, at_most=3), False, "≤ 3"),
        (Row(group="g", what="w", ours=40, standard=10, times_at_least=4), True, "≥ 4 ×"),
        (Row(group="g", what="w", ours=39, standard=10, times_at_least=4), False, "≥ 4 ×"),
        (Row(group="g", what="w", ours=39, times_at_least=4), False, "≥ 4 ×"),
        (Row(group="g", what="w", ours=39, standard=10), None, ""),
    ],
)
def test_a_bound_holds_or_it_does_not(row: Row, ok: bool | None, bound: str) -> None:
    """On our value, or on how many times the standard way's it is; nothing to compare with is a miss."""
    assert (row.ok, row.bound) == (ok, bound)


def test_the_table_fits_and_shows_every_miss() -> None:
    """110 columns; a missed promise is marked there, and named in the report."""
    part = Measured(
        rows=(
            Row(group="a group", what="kept", ours=1, standard=2, at_most=1),
            Row(group="a group", what="missed", ours=2, at_most=1, unit="ms", digits=2),
        ),
        notes=("What was measured.",),
    )
    out = io.StringIO()
    table.show([part], Console(file=out, width=200))
    lines = out.getvalue().splitlines()
    assert max(len(line) for line in lines) <= table.WIDTH
    assert [line.split()[-1] for line in lines if "kept" in line or "missed" in line] == ["ok", "miss"]
    assert lines[-1].split() == ["1", "What", "was", "measured."]
    report = table.report([part])
    assert report["missed"] == ["a group: missed"]
    assert json.loads(json.dumps(report))["rows"][0]["ratio"] == 0.5
