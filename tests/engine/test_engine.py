"""AWS's own DynamoDB engine: used where it can be, out of everybody's reach, and told where it cannot."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.engine import dynamodb, report


class Terminal:
    """What a run said at its end."""

    def __init__(self, *nodeids: str) -> None:
        self.stats = {"passed": [SimpleNamespace(nodeid=nodeid, when="call") for nodeid in nodeids]}
        self.lines: list[str] = []

    def section(self, *_: Any, **__: Any) -> None:
        """Its title says nothing."""

    def write_line(self, line: str) -> None:
        """One line."""
        self.lines.append(line)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine where the engine is installed, with the programs that a test puts there."""
    (tmp_path / "lib" / "one").mkdir(parents=True)
    (tmp_path / "lib" / "one" / dynamodb.JAR).touch()
    monkeypatch.setattr(dynamodb, "HOME", tmp_path / "lib")
    monkeypatch.setenv("PATH", str(tmp_path))
    dynamodb.why_not.cache_clear()
    program(tmp_path, "java", "echo 'openjdk version \"17.0.1\" 2026-01-01' >&2")
    program(tmp_path, "unshare", "exit 0")
    return tmp_path


@pytest.fixture(autouse=True)
def _told_anew() -> Any:
    yield
    dynamodb.why_not.cache_clear()


def program(folder: Path, name: str, says: str) -> None:
    """A stand-in for a program of the machine."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{says}\n", encoding="utf-8")
    path.chmod(0o755)


def test_nothing_is_missing(machine: Path) -> None:
    """Java, a network of its own, and the package."""
    assert dynamodb.why_not() == ""


def test_what_is_missing_is_named_with_what_to_do(machine: Path) -> None:
    """One after the other, and nothing raises."""
    program(machine, "unshare", "exit 1")
    assert "network of its own" in dynamodb.why_not()
    for said, wanted in (("echo 'openjdk version \"11.0.2\"' >&2", "Java is 11"), ("exit 1", "Java is 0")):
        program(machine, "java", said)
        dynamodb.why_not.cache_clear()
        assert wanted in dynamodb.why_not()
    (machine / "java").unlink()
    dynamodb.why_not.cache_clear()
    assert "no Java" in dynamodb.why_not()
    (machine / "lib" / "one" / dynamodb.JAR).unlink()
    dynamodb.why_not.cache_clear()
    assert "make setup" in dynamodb.why_not()


def test_the_end_of_a_run_says_whether_it_was_used(machine: Path) -> None:
    """By how many tests, or why not; a run without contract suites says nothing of it."""
    ran = Terminal("tests/contract/test_a.py::test_a[moto]", "tests/contract/test_a.py::test_a[x-engine-0]")
    report.pytest_terminal_summary(ran)
    assert ran.lines == ["used by 1 tests"]
    (machine / "java").unlink()
    dynamodb.why_not.cache_clear()
    left_out = Terminal("tests/contract/test_a.py::test_a[moto]")
    report.pytest_terminal_summary(left_out)
    assert [line.split(":")[0] for line in left_out.lines] == ["not used"]
    elsewhere = Terminal("tests/unit/test_a.py::test_a[engine]")
    report.pytest_terminal_summary(elsewhere)
    assert elsewhere.lines == []


if not dynamodb.why_not():

    @pytest.mark.xdist_group(dynamodb.KIND)
    def test_nobody_else_reaches_it_and_it_leaves_nothing_behind() -> None:
        """It and its keeper are in another network than everybody else; the door to it is on loopback. With
        whoever asked for it they are gone."""
        with dynamodb.running() as engine:
            _, host, port = engine.address.replace("//", "").split(":")
            socket.create_connection((host, int(port))).close()
            theirs = [engine.keeper, *children(engine.keeper)]
            assert (len(theirs), host) == (2, "127.0.0.1")
            assert os.readlink("/proc/self/ns/net") not in [os.readlink(f"/proc/{pid}/ns/net") for pid in theirs]
        with pytest.raises(ConnectionError):
            socket.create_connection((host, int(port)))
        assert not [pid for pid in theirs if Path(f"/proc/{pid}").exists()]


def children(pid: int) -> list[int]:
    """Of a process of this machine."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8").split()]
