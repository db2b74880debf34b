"""One planted fault: a line changed, and the numbers whose tests must notice."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
COPIED = (
    *("shared", "functions", "infra", "ops", "config", "docs", "tests", "examples"),
    *("app.py", "cdk.json", "pyproject.toml", "requirements.in", "requirements.txt"),
)
QUICK = "not e2e"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """A one-line fault. Every number it names must have a test that carries the number and fails under it."""

    name: str
    file: str
    old: str
    new: str
    reqs: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    tests: tuple[str, ...] = ("tests/unit", "tests/contract", "tests/functions", "tests/leaks", "tests/simulation")

    @property
    def numbers(self) -> tuple[str, ...]:
        """`req:R8`, `fault:A3`: as `--proves` takes them."""
        return (*(f"req:{number}" for number in self.reqs), *(f"fault:{row}" for row in self.faults))

    def plant(self, tree: Path) -> None:
        """Change the line in a copy of the project; the line must be there exactly once."""
        path = tree / self.file
        text = path.read_text()
        if text.count(self.old) != 1:
            raise LookupError(f"{self.name}: {self.file} holds the line {text.count(self.old)} times, not once")
        path.write_text(text.replace(self.old, self.new))


@dataclass(frozen=True, slots=True, kw_only=True)
class Killed:
    """What became of one number of a mutant."""

    number: str
    killed: bool
    by: str


def copy_tree() -> Path:
    """A copy of what tests need, to be mutated."""
    tree = Path(tempfile.mkdtemp(prefix="penstock-mutant-"))
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, tree / name, ignore=shutil.ignore_patterns("__pycache__", "*.pyc"))
        elif source.exists():
            shutil.copy2(source, tree / name)
    return tree


def hunt(mutant: Mutant, tree: Path) -> list[Killed]:
    """Run, number by number, the tests that carry it; the tree must hold the mutant."""
    return [_hunt_one(mutant, number, tree) for number in mutant.numbers]


def _hunt_one(mutant: Mutant, number: str, tree: Path) -> Killed:
    command = [
        *(sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "-m", QUICK),
        *("--proves", number, *mutant.tests),
    ]
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False, timeout=600)
    # A module that cannot be collected proves nothing: only a test that ran, and failed, does.
    failed = [
        line for line in done.stdout.splitlines() if line.startswith(("FAILED tests", "ERROR tests")) and "::" in line
    ]
    first = failed[0].split(" - ")[0].removeprefix("FAILED ") if failed else "no test failed"
    # Code 1: tests ran and failed. An import error or an empty selection is no proof.
    return Killed(number=number, killed=done.returncode == 1 and bool(failed), by=first)
