"""Which of a stack's processes are talking to a port of this machine right now."""

from __future__ import annotations

import subprocess
from pathlib import Path

_PROC = Path("/proc")
_ESTABLISHED = "01"


def talking_to(port: int, pids: set[int]) -> set[int]:
    """The processes among `pids` with an open connection to `port` on loopback."""
    return _by_proc(port, pids) if _PROC.is_dir() else _by_lsof(port, pids)


def _by_proc(port: int, pids: set[int]) -> set[int]:
    inodes = set()
    for table in ("net/tcp", "net/tcp6"):
        path = _PROC / table
        for line in path.read_text().splitlines()[1:] if path.exists() else ():
            columns = line.split()
            if columns[3] == _ESTABLISHED and int(columns[2].rpartition(":")[2], 16) == port:
                inodes.add(f"socket:[{columns[9]}]")
    return {pid for pid in pids if _holds(pid, inodes)}


def _holds(pid: int, inodes: set[str]) -> bool:
    try:
        return any(str(handle.readlink()) in inodes for handle in (_PROC / str(pid) / "fd").iterdir())
    except OSError:
        return False


def _by_lsof(port: int, pids: set[int]) -> set[int]:
    asked = ["lsof", "-nP", "-t", f"-iTCP@127.0.0.1:{port}", "-sTCP:ESTABLISHED"]
    found = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.split()
    return {int(word) for word in found} & pids
