"""What can go wrong with the local stack, one class per thing a person does next.

LocalStackError
├── BadName          choose another name for the stack
├── ToolMissing      run `make setup`
├── StartFailed      read the log of the process that did not come up
├── DeployFailed     read the CDK command line's output
└── NotAsWritten     the emulator holds something else than the template says
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ops.local.compare import Difference


class LocalStackError(Exception):
    """Root of every error of the local stack; its text is meant for a person."""


class BadName(LocalStackError):
    """A stack's name cannot be used as a folder's."""


class ToolMissing(LocalStackError):
    """A program this needs is not there."""

    def __init__(self, what: str, place: Path, variable: str) -> None:
        self.place = place
        super().__init__(f"{what} is not at {place}. Run `make setup`, or name another with {variable}.")


class StartFailed(LocalStackError):
    """A process did not come up in time, or ended at once."""

    def __init__(self, what: str, reason: str, log: Path) -> None:
        self.log = log
        super().__init__(f"{what} {reason}.\n{tail(log)}\nThe whole log: {log}")


class DeployFailed(LocalStackError):
    """The CDK command line ended with an error, or took too long."""

    def __init__(self, reason: str, log: Path) -> None:
        self.log = log
        super().__init__(f"{reason}.\n{tail(log)}\nThe whole output: {log}")


class NotAsWritten(LocalStackError):
    """What is deployed differs from the template in a way nobody explained."""

    def __init__(self, differences: Sequence[Difference]) -> None:
        self.differences = tuple(differences)
        lines = "\n".join(f"  {one}" for one in differences)
        super().__init__(f"deployed differs from the template in {len(differences)} place(s):\n{lines}")


def tail(log: Path, lines: int = 25) -> str:
    """The end of a log, indented; says so when there is none."""
    try:
        text = log.read_text(errors="replace").strip()
    except OSError:
        return "  (no log was written)"
    return "\n".join(f"  {line}" for line in text.splitlines()[-lines:]) or "  (the log is empty)"
