"""The house itself: what its files say about each other stays true."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def cdk_imports() -> Iterator[str]:
    """Every module of the CDK that infra, the app and the operator's tools import."""
    for source in [*ROOT.glob("*.py"), *ROOT.glob("infra/**/*.py"), *ROOT.glob("ops/**/*.py")]:
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names if alias.name.startswith("aws_cdk."))
            elif isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("aws_cdk"):
                modules = [f"{node.module}.{alias.name}" for alias in node.names]
                yield from (name for name in modules if re.fullmatch(r"aws_cdk\.[a-z0-9_]+", name))
                yield from ([node.module] if node.module != "aws_cdk" else [])


def test_every_cdk_service_in_use_is_type_checked() -> None:
    """mypy skips the services nobody uses; one that is used must be on the list it reads."""
    overrides = PYPROJECT["tool"]["mypy"]["overrides"]
    read = {name for entry in overrides if entry.get("follow_imports") == "normal" for name in entry["module"]}
    assert sorted(set(cdk_imports()) - read) == []


def test_help_lists_every_command() -> None:
    """Every target a person may type has its line in `make help`; the rest are steps of others."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    phony = {name for line in re.findall(r"^\.PHONY: (.*)$", makefile, re.MULTILINE) for name in line.split()}
    told = set(re.findall(r"^([a-z0-9-]+):.*## ", makefile, re.MULTILINE))
    assert phony - told == {"build-local", "build-lambda"}


def test_make_alone_is_help() -> None:
    """A newcomer who types `make` sees the commands, and nothing is installed."""
    if shutil.which("make") is None:
        pytest.skip("make is not installed")
    done = subprocess.run(["make"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "make demo" in done.stdout
    assert "make test" in done.stdout


# ------------------------------------------------------------------------------------------------- set-up
@pytest.fixture
def fresh(tmp_path: Path) -> Path:
    """The files set-up reads, in a folder where nothing was set up."""
    for name in ("ops/setup/setup.sh", "requirements.txt", "ops/emulator/requirements.txt", "pyproject.toml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def program(folder: Path, name: str, says: str, *, code: int = 0) -> None:
    """A stand-in for a program of the machine."""
    path = folder / name
    path.write_text(f"#!/bin/sh\necho '{says}'\nexit {code}\n", encoding="utf-8")
    path.chmod(0o755)


@pytest.fixture
def machine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A PATH with the few tools a shell needs, and neither Python nor Node."""
    folder = tmp_path_factory.mktemp("bin")
    for name in ("sh", "cat", "cut", "dirname", "mktemp", "rm", "sha256sum", "shasum"):
        found = shutil.which(name)
        if found:
            (folder / name).symlink_to(found)
    return folder


def set_up(fresh: Path, machine: Path, **environment: str) -> str:
    """What set-up says when it refuses."""
    done = subprocess.run(
        [str(fresh / "ops/setup/setup.sh")],
        env={"PATH": str(machine), "HOME": str(fresh), "TMPDIR": str(fresh), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert not (fresh / ".venv").exists()
    return done.stderr


def test_no_python_is_said(fresh: Path, machine: Path) -> None:
    """Without Python 3.11 set-up stops before it makes anything, and says how to name another."""
    assert "PYTHON=" in set_up(fresh, machine)


def test_an_old_python_is_refused(fresh: Path, machine: Path) -> None:
    """A named interpreter that is too old is named in the answer, with its version."""
    program(machine, "python3.9", "3.9", code=1)
    answer = set_up(fresh, machine, PYTHON="python3.9")
    assert "python3.9" in answer
    assert "3.11 or later" in answer


def test_no_node_is_said(fresh: Path, machine: Path) -> None:
    """Without Node set-up stops before a minute is spent on Python packages."""
    program(machine, "python3", "3.12")
    assert "Node 20 or later" in set_up(fresh, machine)


def test_no_npm_is_said(fresh: Path, machine: Path) -> None:
    """Some systems package npm apart from Node."""
    program(machine, "python3", "3.12")
    program(machine, "node", "22.1.0")
    assert "npm is missing" in set_up(fresh, machine)


def test_an_old_node_is_refused(fresh: Path, machine: Path) -> None:
    """The CDK command line does not run on it; the answer names the version found."""
    program(machine, "python3", "3.12")
    program(machine, "node", "18.20.0")
    program(machine, "npm", "10")
    assert "18.20.0" in set_up(fresh, machine)


def test_set_up_is_instant_when_nothing_changed() -> None:
    """With stamps that match, set-up needs no program but the shell's own, and writes nothing."""
    if not (ROOT / ".venv/.stamp").exists():
        pytest.skip("these tests run in an environment of their own")
    before = [(path, path.stat().st_mtime) for path in ROOT.glob(".venv*/.stamp*")]
    done = subprocess.run(
        [str(ROOT / "ops/setup/setup.sh")],
        env={"PATH": os.environ["PATH"], "PYTHON": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == ""
    assert [(path, path.stat().st_mtime) for path in ROOT.glob(".venv*/.stamp*")] == before
