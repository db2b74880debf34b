"""What is remembered of a stack."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ops.local import state
from ops.local.errors import BadName
from ops.local.processes import Process
from ops.local.state import Record, StackState

RUNNING = StackState(
    name="demo",
    endpoint="http://127.0.0.1:1",
    vendor_url="http://127.0.0.1:2",
    emulator_pid=3,
    vendor_pid=4,
    region="us-east-1",
    account="000000000000",
    stage="local",
    access_key="PENSTOCKX",
    stacks=("State", "Lane-support"),
    started_at="2026-01-01T00:00:00+00:00",
)


@pytest.mark.parametrize("running", [RUNNING, None])
def test_a_record_comes_back_as_it_was_written(home: Path, running: StackState | None) -> None:
    """Nothing is lost between two commands."""
    record = Record(processes=(Process(pid=3, born="x"),), state=running, fingerprint="f")
    state.write("demo", record)
    assert state.read("demo") == record
    assert state.names() == ["demo"]


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"processes": 1, "state": null, "fingerprint": ""}'])
def test_a_broken_record_is_no_record(home: Path, text: str) -> None:
    """A file somebody damaged stops nobody from starting again."""
    state.write("demo", Record(processes=()))
    (home / "demo" / "state.json").write_text(text)
    assert state.read("demo") is None


@pytest.mark.parametrize("name", ["", "..", "a/b", "A", "-a", "a" * 49, "a\n"])
def test_a_name_that_is_no_folder_is_refused(home: Path, name: str) -> None:
    """A name cannot lead out of the folder of stacks."""
    with pytest.raises(BadName):
        state.folder(name)


def test_only_one_process_holds_the_lock(home: Path) -> None:
    """Two commands cannot bring the same stack up at once."""
    ask = (
        "from ops.local import state\n"
        "with state.locked('demo', wait=False) as free: print(free)\n"
        "with state.locked('other', wait=False) as free: print(free)\n"
    )
    with state.locked("demo") as mine:
        other = subprocess.run([sys.executable, "-c", ask], cwd=state.ROOT, capture_output=True, text=True, check=True)
    assert mine
    assert other.stdout.split() == ["False", "True"]


def test_two_clones_have_two_homes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stacks live inside the project they were started from."""
    monkeypatch.delenv("PENSTOCK_HOME", raising=False)
    assert state.home() == state.ROOT / ".penstock"
