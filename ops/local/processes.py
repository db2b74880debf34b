"""Process groups: started apart from us, recognised later, and stopped to the last child."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_ours: dict[int, subprocess.Popen[bytes]] = {}
"""Children of this very process: kept so that their end is collected and no zombie stays behind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A process we started, recognisable after its number was given to somebody else."""

    pid: int
    born: str
    """When the kernel says it began; a reused number has another birth."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    pid: int
    group: int
    state: str
    born: str


def start(command: Sequence[str], *, cwd: Path, env: Mapping[str, str], log: Path) -> Process:
    """Run a command in a session of its own, its output in `log`; it outlives us and our terminal."""
    with log.open("ab") as out:
        child = subprocess.Popen(
            command,
            cwd=cwd,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    _ours[child.pid] = child
    row = _row(child.pid)
    return Process(pid=child.pid, born=row.born if row else "")


def alive(process: Process) -> bool:
    """Whether exactly this process still runs."""
    _collect(process.pid)
    row = _row(process.pid)
    return row is not None and row.state != "Z" and row.born == process.born


def stop(process: Process, *, grace_s: float = 3.0) -> None:
    """End the process and every process of its group: asked first, killed after `grace_s`.

    The leader may already be dead: its children keep the group's number, so that nobody else can have it.
    """
    leader = _row(process.pid)
    if leader is not None and leader.born != process.born:
        return  # the number belongs to a stranger now, and with it the group
    end_group(process.pid, grace_s=grace_s)


def end_group(leader: int, *, grace_s: float = 3.0) -> None:
    """End every process of a group: asked first, killed after `grace_s`."""
    if group(leader):
        _signal(leader, signal.SIGTERM)
        if not _gone(leader, grace_s):
            _signal(leader, signal.SIGKILL)
            _gone(leader, grace_s)
    _collect(leader)


def group(leader: int) -> list[int]:
    """Living members of a process group (zombies are dead)."""
    return [row.pid for row in _table() if row.group == leader and row.state != "Z"]


def _gone(leader: int, patience_s: float) -> bool:
    deadline = time.monotonic() + patience_s
    while group(leader):
        if time.monotonic() > deadline:
            return False
        _collect(leader)
        time.sleep(0.02)
    return True


def _signal(leader: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, number)


def _collect(pid: int) -> None:
    child = _ours.get(pid)
    if child is not None and child.poll() is not None:
        del _ours[pid]


def _row(pid: int) -> _Row | None:
    if _PROC.is_dir():
        return _from_proc(pid)
    return next((row for row in _table(pid)), None)


def _table(pid: int | None = None) -> list[_Row]:
    if _PROC.is_dir():
        numbers = [int(entry.name) for entry in _PROC.iterdir() if entry.name.isdigit()]
        return [row for row in map(_from_proc, numbers) if row is not None]
    which = ["-p", str(pid)] if pid is not None else ["-ax"]
    listing = subprocess.run(
        ["ps", *which, "-o", "pid=,pgid=,stat=,lstart="], capture_output=True, text=True, check=False
    )
    rows = []
    for line in listing.stdout.splitlines():
        number, leader, state, born = line.split(None, 3)
        rows.append(_Row(pid=int(number), group=int(leader), state=state[0], born=born.strip()))
    return rows


def _from_proc(pid: int) -> _Row | None:
    try:
        stat = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return None
    # The command stands in parentheses and may itself hold spaces and parentheses.
    fields = stat.rpartition(")")[2].split()
    return _Row(pid=pid, group=int(fields[2]), state=fields[0], born=fields[19])
