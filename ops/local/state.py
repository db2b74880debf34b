"""What is remembered of a running local stack: one folder a stack, `.penstock/<name>/`, in the project.

state.json       what runs where (written before the first process starts, so nothing is ever forgotten)
emulator.log  vendor.log  deploy.log
cdk.out/         the templates as deployed
calls.jsonl      which function called which AWS action
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from ops.local.errors import BadName
from ops.local.processes import Process

ROOT = Path(__file__).resolve().parents[2]
"""The project."""
HOME = "PENSTOCK_HOME"
"""Variable that moves `.penstock` elsewhere."""
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,47}")


@dataclass(frozen=True, slots=True, kw_only=True)
class StackState:
    """A running local stack: where it listens and what was deployed to it."""

    name: str
    endpoint: str
    vendor_url: str
    emulator_pid: int
    vendor_pid: int
    region: str
    account: str
    stage: str
    access_key: str
    stacks: tuple[str, ...]
    started_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """The state file: processes from the first moment, the rest once everything is up."""

    processes: tuple[Process, ...]
    state: StackState | None = None
    fingerprint: str = ""
    """The app as it was deployed."""


def home() -> Path:
    """The folder of all stacks of this clone."""
    return Path(os.environ[HOME]) if os.environ.get(HOME) else ROOT / ".penstock"


def folder(name: str) -> Path:
    """The folder of one stack."""
    if not _NAME.fullmatch(name):
        raise BadName(f"a stack's name is lower-case letters, digits and dashes, at most 48: not {name!r}")
    return home() / name


def names() -> list[str]:
    """Every stack that has a folder, running or not."""
    if not home().is_dir():
        return []
    return sorted(place.name for place in home().iterdir() if place.is_dir() and _NAME.fullmatch(place.name))


def read(name: str) -> Record | None:
    """The record of a stack; None when there is none or it cannot be read."""
    try:
        raw = json.loads((folder(name) / "state.json").read_text())
        state = raw["state"]
        return Record(
            processes=tuple(Process(**one) for one in raw["processes"]),
            state=StackState(**{**state, "stacks": tuple(state["stacks"])}) if state else None,
            fingerprint=raw["fingerprint"],
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write(name: str, record: Record) -> None:
    """Replace the record in one step: a reader sees the old one or the new one."""
    place = folder(name) / "state.json"
    place.parent.mkdir(parents=True, exist_ok=True)
    draft = place.with_suffix(".draft")
    draft.write_text(json.dumps(asdict(record), indent=2) + "\n")
    draft.replace(place)


def forget(name: str) -> None:
    """Remove the record; logs, templates and calls stay to be read."""
    (folder(name) / "state.json").unlink(missing_ok=True)


@contextlib.contextmanager
def locked(name: str, *, wait: bool = True) -> Iterator[bool]:
    """Hold the stack's lock; yields False when another process holds it and `wait` is off."""
    place = folder(name)
    place.mkdir(parents=True, exist_ok=True)
    with (place / "lock").open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True
