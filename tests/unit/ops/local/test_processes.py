"""Process groups are stopped to the last child, and only our own."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ops.local import processes
from tests.waiting import until

WITH_CHILD = "import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']); "


@pytest.fixture
def run(tmp_path: Path) -> Callable[[str], processes.Process]:
    def start(code: str) -> processes.Process:
        command = [sys.executable, "-c", code]
        return processes.start(command, cwd=tmp_path, env={"PATH": os.defpath}, log=tmp_path / "log")

    return start


def test_children_do_not_survive(run: Callable[[str], processes.Process]) -> None:
    """Stopping a process stops what it started, though it was never told."""
    process = run(WITH_CHILD + "time.sleep(600)")
    until(lambda: len(processes.group(process.pid)) == 2, "the child")
    processes.stop(process)
    assert processes.group(process.pid) == []
    assert not processes.alive(process)


def test_children_of_a_dead_leader_do_not_survive(run: Callable[[str], processes.Process]) -> None:
    """A leader that died first leaves its group behind; stopping ends that too."""
    process = run(WITH_CHILD + "sys.exit(0)")
    until(lambda: not processes.alive(process), "the leader to end")
    until(lambda: len(processes.group(process.pid)) == 1, "the child alone")
    processes.stop(process)
    assert processes.group(process.pid) == []


def test_one_that_does_not_listen_is_killed(run: Callable[[str], processes.Process], tmp_path: Path) -> None:
    """SIGTERM is a question; after the grace period there is no more asking."""
    process = run(
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep(600)"
    )
    until(lambda: "deaf" in (tmp_path / "log").read_text(), "it to be deaf")
    processes.stop(process, grace_s=0.1)
    assert not processes.alive(process)


def test_a_stranger_with_the_same_number_is_left_alone(run: Callable[[str], processes.Process]) -> None:
    """A process number that was given away is not ours any more."""
    process = run("import time; time.sleep(600)")
    stale = replace(process, born="0")
    assert not processes.alive(stale)
    processes.stop(stale)
    assert processes.alive(process)
    processes.stop(process)


def test_it_has_a_session_of_its_own(run: Callable[[str], processes.Process]) -> None:
    """An interrupt at our terminal does not reach it."""
    process = run("import time; time.sleep(600)")
    assert os.getsid(process.pid) == process.pid != os.getsid(0)
    processes.stop(process)
