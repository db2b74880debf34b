"""Answers that nobody can take: a full disk, a pipe whose reader has gone, a standard output that is closed."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ops.cli import dlq
from ops.cli.main import app
from ops.cli.stage import Stage
from shared.core.job import Status
from shared.core.switches import Level
from tests.builders import a_job
from tests.waiting import PATIENCE_S

PENSTOCK = [sys.executable, "-m", "ops.cli"]
ASKED = [
    ("--help",),
    ("control", "set", "--help"),
    ("cost",),
    ("cost", "--json"),
    ("local", "env", "--json"),
    ("local", "status", "--json"),
    ("status", "--json", "--nonsense"),
]
FULL = Path("/dev/full")


def run(arguments: tuple[str, ...], **more: Any) -> subprocess.CompletedProcess[str]:
    """`penstock` as a shell starts it."""
    return subprocess.run(
        [*PENSTOCK, *arguments], stderr=subprocess.PIPE, text=True, timeout=PATIENCE_S, check=False, **more
    )


def told(answer: subprocess.CompletedProcess[str]) -> str:
    assert "Traceback" not in answer.stderr
    assert "Exception ignored" not in answer.stderr
    assert "unexpected" not in answer.stderr
    return answer.stderr


@pytest.mark.skipif(not FULL.exists(), reason="this system has no device that is always full")
@pytest.mark.parametrize("arguments", ASKED, ids=" ".join)
def test_a_full_disk_is_a_sentence(arguments: tuple[str, ...]) -> None:
    """It says that the answer is what could not be written, since what was asked for may have been done."""
    with FULL.open("w") as full:
        answer = run(arguments, stdout=full)
    assert "the answer could not be written (no space left on device)" in told(answer)
    assert "look before you ask again" in answer.stderr
    assert answer.returncode == 1


@pytest.mark.parametrize("arguments", ASKED, ids=" ".join)
def test_a_reader_that_has_gone_is_no_error_of_ours(arguments: tuple[str, ...]) -> None:
    """As `| head -1` does it: quietly over, and not with 0."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        answer = run(arguments, stdout=writer)
    finally:
        os.close(writer)
    assert told(answer) == ""
    assert answer.returncode == 1


@pytest.mark.parametrize(("arguments", "code"), [(("cost", "--json"), 0), (("cost",), 0), (("local", "status"), 1)])
def test_a_closed_standard_output_wants_no_answer(arguments: tuple[str, ...], code: int) -> None:
    """What was asked for is done all the same, and the exit code tells it."""
    shell = f'exec "$0" -m ops.cli {" ".join(arguments)} >&-'
    answer = subprocess.run(["sh", "-c", shell, sys.executable], stderr=subprocess.PIPE, text=True, check=False)
    told(answer)
    assert answer.returncode == code


def test_a_closed_standard_error_keeps_no_command_from_its_work() -> None:
    """What would have been said beside the answer is lost, the answer is not."""
    shell = 'exec "$0" -m ops.cli cost --json 2>&-'
    answer = subprocess.run(["sh", "-c", shell, sys.executable], stdout=subprocess.PIPE, text=True, check=False)
    assert answer.returncode == 0
    assert answer.stdout.startswith("{")


@pytest.mark.skipif(not FULL.exists(), reason="this system has no device that is always full")
def test_a_switch_is_set_although_the_answer_is_lost(deployed: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sentence does not say that it was not."""
    beside = io.StringIO()
    with FULL.open("w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        monkeypatch.setattr(sys, "stderr", beside)
        with pytest.raises(SystemExit) as ended:
            app(["control", "set", "all", "halt", "--why", "stop"])
    assert ended.value.code == 1
    assert "may have been done" in beside.getvalue()
    assert deployed.control.switches().entries["all"].level is Level.HALT


@pytest.mark.req("C10")
def test_an_export_that_could_not_be_written_leaves_no_part_of_it(tmp_path: Path) -> None:
    """A part would be taken for all of it, and keep the next try from its place."""

    class Full(type(tmp_path)):  # type: ignore[misc]
        def open(self, *_: Any, **__: Any) -> Any:
            super().open("x").close()
            return FULL.open("w")

    to = Full(tmp_path / "failed.jsonl")
    with pytest.raises(OSError, match="No space left") as refused:
        dlq._export([a_job(status=Status.FAILED)], to)
    assert refused.value.filename == str(to)
    assert not to.exists()
