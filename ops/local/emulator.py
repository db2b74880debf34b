"""Starts the emulator and the vendor simulator, each a process group of its own, on loopback only."""

from __future__ import annotations

import os
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from ops.local import processes
from ops.local.clients import ACCOUNT, REGION, SECRET_KEY
from ops.local.errors import StartFailed, ToolMissing
from ops.local.processes import Process
from ops.local.state import ROOT

PYTHON = "PENSTOCK_EMULATOR_PYTHON"
"""Variable that names the interpreter the emulator is installed for."""
PATIENCE_S = 30.0
_T = TypeVar("_T")
_KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TERM", "XDG_CACHE_HOME", "SYSTEMROOT")
"""What of the caller's environment a child may see: no AWS settings, no proxies, no Python paths."""


def plain_environment() -> dict[str, str]:
    """The environment every child starts from."""
    return {name: os.environ[name] for name in _KEPT if name in os.environ}


def start_emulator(folder: Path, *, port: int | None) -> Process:
    """Start the emulator; `await_emulator` says when it answers."""
    python = Path(os.environ.get(PYTHON) or ROOT / ".venv-emulator" / "bin" / "python")
    if not python.exists():
        raise ToolMissing("the emulator's Python", python, PYTHON)
    scratch = folder / "tmp"
    scratch.mkdir(parents=True, exist_ok=True)
    port_file = folder / "emulator.port"
    port_file.unlink(missing_ok=True)
    environment = plain_environment() | {
        "BIND_HOST": "127.0.0.1",
        "IOT_MTLS_ENABLED": "0",  # otherwise it opens port 8883 on every interface
        "SFTP_ENABLED": "0",
        "MINISTACK_ACCOUNT_ID": ACCOUNT,
        "MINISTACK_REGION": REGION,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "LAMBDA_EXECUTOR": "local",
        "LOG_LEVEL": "WARNING",
        "DOCKER_HOST": f"unix://{scratch / 'no-docker'}",  # it looks for containers to clean up at every start
        "TMPDIR": str(scratch),  # the functions' unpacked code
    }
    command = [
        str(python), "-I", str(ROOT / "ops" / "local" / "launcher.py"),
        "--port", str(port or 0), "--port-file", str(port_file), "--calls", str(folder / "calls.jsonl"),
    ]  # fmt: skip
    return processes.start(command, cwd=folder, env=environment, log=folder / "emulator.log")


def await_emulator(process: Process, folder: Path) -> str:
    """The emulator's address, once it answers."""
    log = folder / "emulator.log"
    port = _await(process, "the emulator", log, lambda: _number(folder / "emulator.port"))
    endpoint = f"http://127.0.0.1:{port}"
    _await(process, "the emulator", log, lambda: answers(endpoint) or None)
    return endpoint


def answers(endpoint: str) -> bool:
    """Whether an emulator answers at this address."""
    try:
        with _direct.open(f"{endpoint}/_ministack/health", timeout=5) as reply:
            return bool(reply.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def start_vendors(folder: Path, *, port: int | None) -> Process:
    """Start the vendor simulator; `await_vendors` says when it listens."""
    port_file = folder / "vendor.port"
    port_file.unlink(missing_ok=True)
    command = [
        sys.executable, "-m", "ops.vendors",
        "--port", str(port or 0), "--port-file", str(port_file),
        "--record-file", str(folder / "vendor-record.jsonl"),
    ]  # fmt: skip
    return processes.start(command, cwd=ROOT, env=plain_environment(), log=folder / "vendor.log")


def await_vendors(process: Process, folder: Path) -> str:
    """The simulator's address, once it listens."""
    port = _await(process, "the vendor simulator", folder / "vendor.log", lambda: _number(folder / "vendor.port"))
    return f"http://127.0.0.1:{port}"


_direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def _await(process: Process, what: str, log: Path, ask: Callable[[], _T | None]) -> _T:
    deadline = time.monotonic() + PATIENCE_S
    while (answer := ask()) is None:
        if not processes.alive(process):
            raise StartFailed(what, "ended before it was ready", log)
        if time.monotonic() > deadline:
            raise StartFailed(what, f"was not ready after {PATIENCE_S:.0f} s", log)
        time.sleep(0.02)
    return answer


def _number(place: Path) -> int | None:
    try:
        return int(place.read_text())
    except (OSError, ValueError):
        return None
