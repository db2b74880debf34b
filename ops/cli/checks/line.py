"""One finding of the doctor."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Mark(StrEnum):
    """How a check went."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"
    SKIP = "skip"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """What was looked at, what was found, and what to do about it."""

    about: str
    mark: Mark
    found: str
    todo: str = ""


def ok(about: str, found: str) -> Line:
    """As it should be."""
    return Line(about=about, mark=Mark.OK, found=found)


def warn(about: str, found: str, todo: str) -> Line:
    """It works, and somebody should look."""
    return Line(about=about, mark=Mark.WARN, found=found, todo=todo)


def fail(about: str, found: str, todo: str) -> Line:
    """It does not work."""
    return Line(about=about, mark=Mark.FAIL, found=found, todo=todo)


def skip(about: str, found: str) -> Line:
    """It cannot be looked at here."""
    return Line(about=about, mark=Mark.SKIP, found=found)
