"""The house rules: who may import whom, what may be written to a log, and what an import may do. By syntax tree."""

from __future__ import annotations

import ast
import logging
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from shared.core import errors
from tests.waiting import PATIENCE_S

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("shared", "functions", "infra", "ops")
MAX_LINES = 400
SDKS = (
    *("boto3", "botocore", "httpx", "httpx2", "openai", "mypy_boto3_dynamodb", "mypy_boto3_lambda"),
    *("mypy_boto3_s3", "mypy_boto3_sqs", "mypy_boto3_sts"),
)
CONFIGURATION = tuple(f"shared.core.{noun}" for noun in ("lane", "account", "vendor", "stage", "errors"))


@dataclass(frozen=True)
class Room:
    """One room: where it is, what of ours and of others' it may import, and what never."""

    path: str
    ours: tuple[str, ...]
    others: tuple[str, ...] = ()
    never: tuple[str, ...] = ()


# The first room whose path a file begins with decides.
HOUSE = (
    Room("shared/core/", ours=("shared.core",), never=("os", "time", "logging", "random", "socket", "threading")),
    Room("shared/contract/", ours=("shared.contract",), never=("os", "time", "logging")),
    Room(
        "shared/usecases/", ours=("shared.core", "shared.contract", "shared.usecases"), never=("os", "time", "logging")
    ),
    Room("shared/adapters/memory/", ours=("shared.core", "shared.contract", "shared.adapters"), never=("os", "time")),
    Room("shared/adapters/", ours=("shared.core", "shared.contract", "shared.adapters"), others=SDKS),
    Room("shared/runtime/", ours=("shared",), others=("aws_lambda_powertools",)),
    Room(
        "shared/client.py",
        ours=(
            *("shared.adapters.aws", "shared.contract", "shared.core"),
            *("shared.usecases.enqueue", "shared.usecases.persist", "shared.usecases.steer"),
        ),
        others=SDKS,
    ),
    Room("functions/", ours=("shared",), others=("aws_lambda_powertools",), never=("logging",)),
    Room("infra/", ours=("infra", "shared.contract", *CONFIGURATION), others=("*",), never=SDKS),
    Room("ops/local/", ours=("ops", "shared", "infra"), others=("*",)),
    Room("ops/bench/", ours=("ops", "shared", "functions"), others=("*",)),
    Room("ops/", ours=("ops", "shared"), others=("*",)),
)


def files(*rooms: str) -> list[Path]:
    return sorted(path for room in rooms for path in (ROOT / room).rglob("*.py"))


@cache
def parsed(source: str) -> ast.Module:
    return ast.parse(source)


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def imported(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Every module a file imports, wherever in it: (line, dotted name)."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.lineno, f"{'.' * node.level}{node.module or ''}"


def faults_of(check: Callable[[str, str], list[str]], *rooms: str) -> list[str]:
    """Every fault a check finds in these rooms."""
    return [fault for path in files(*rooms) for fault in check(name_of(path), path.read_text())]


def within(module: str, packages: tuple[str, ...]) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def import_faults(path: str, source: str) -> list[str]:
    """What a file imports against the rules."""
    room = next((room for room in HOUSE if path.startswith(room.path)), None)
    if room is None:
        return []
    ours = room.ours
    if path.startswith("functions/"):
        ours = (*ours, ".".join(path.split("/")[:2]))  # Its own folder; never another lane's.
    found = []
    for line, module in imported(parsed(source)):
        top = module.split(".")[0]
        if module.startswith("."):
            found.append(f"{path}:{line} imports {module}: full paths only")
        elif top in (*ROOMS, "tests"):
            if not within(module, ours):
                found.append(f"{path}:{line} imports {module}")
        elif within(module, room.never) or (
            top not in sys.stdlib_module_names and room.others != ("*",) and not within(module, room.others)
        ):
            found.append(f"{path}:{line} imports {module}")
    return found


def test_imports_follow_the_house() -> None:
    """The core knows nobody, use cases know the core, adapters know no use case, lanes know no other lane."""
    assert faults_of(import_faults, *ROOMS) == []


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("shared/core/x.py", "import boto3"),
        ("shared/core/x.py", "from shared.contract import names"),
        ("shared/core/x.py", "import os"),
        ("shared/core/x.py", "from time import time"),
        ("shared/core/x.py", "def f():\n    from shared.usecases import admit"),
        ("shared/contract/x.py", "from shared.core import job"),
        ("shared/usecases/x.py", "from shared.adapters.aws import jobs"),
        ("shared/usecases/x.py", "import boto3"),
        ("shared/usecases/x.py", "from shared.runtime import wiring"),
        ("shared/usecases/x.py", "import aws_lambda_powertools"),
        ("shared/adapters/aws/x.py", "from shared.usecases.admit import admit"),
        ("shared/adapters/memory/x.py", "import boto3"),
        ("shared/runtime/x.py", "from functions.support import tasks"),
        ("shared/client.py", "from aws_lambda_powertools import Logger"),
        ("functions/support/x.py", "import boto3"),
        ("functions/support/x.py", "from functions.outreach import tasks"),
        ("functions/support/x.py", "from . import tasks"),
        ("functions/support/x.py", "import logging"),
        ("infra/x.py", "from shared.adapters.aws import jobs"),
        ("infra/x.py", "from functions.support import handler"),
        ("infra/x.py", "import boto3"),
        ("infra/x.py", "from shared.core.lifecycle import MOVES"),
        ("ops/x.py", "from infra import main"),
        ("ops/x.py", "from functions.support import tasks"),
        ("ops/x.py", "from tests import builders"),
    ],
)
def test_a_planted_import_is_found(path: str, line: str) -> None:
    """The check itself is checked: one mistake for each rule."""
    assert import_faults(path, line)


def test_a_lane_may_import_itself() -> None:
    """And what every function may."""
    assert (
        import_faults("functions/support/x.py", "from functions.support import tasks\nfrom shared.core import job")
        == []
    )


# ------------------------------------------------------------------------------------------- the clock
def clock_faults(path: str, source: str) -> list[str]:
    """Reads of the time or of chance where both must come in from outside."""
    found = []
    for node in ast.walk(parsed(source)):
        if isinstance(node, ast.Attribute) and node.attr in ("now", "utcnow", "today"):
            owner = node.value
            named = owner.id if isinstance(owner, ast.Name) else getattr(owner, "attr", "")
            if named in ("datetime", "date"):
                found.append(f"{path}:{node.lineno} reads the clock")
        if isinstance(node, ast.Attribute) and node.attr == "environ":
            found.append(f"{path}:{node.lineno} reads the environment")
    return found


def test_time_comes_in_from_outside() -> None:
    """The law and the verbs are given the time and never ask for it; they never read the environment."""
    assert faults_of(clock_faults, "shared/core", "shared/contract", "shared/usecases") == []


@pytest.mark.parametrize("line", ["datetime.now(UTC)", "datetime.datetime.utcnow()", "date.today()", "os.environ['X']"])
def test_a_planted_look_at_the_clock_is_found(line: str) -> None:
    """The check itself is checked."""
    assert clock_faults("shared/core/x.py", line)


# ----------------------------------------------------------------------------------------------- rooms
def test_every_init_in_shared_is_empty() -> None:
    """A cold start pays for what it uses, and nothing is imported by the way."""
    assert [
        name_of(path) for path in files("shared", "functions") if path.name == "__init__.py" and path.read_text()
    ] == []


def test_no_room_for_odds_and_ends() -> None:
    """A module is named after what it is."""
    vague = {"utils", "util", "common", "helpers", "helper", "misc", "constants", "base"}
    assert [name_of(path) for path in files(*ROOMS, "tests") if {path.stem, path.parent.name} & vague] == []


def test_files_are_short() -> None:
    """About three hundred lines; a file that grows beyond four hundred is two files."""
    lengths = {name_of(path): len(path.read_text().splitlines()) for path in files(*ROOMS)}
    assert {path: length for path, length in lengths.items() if length > MAX_LINES} == {}


def shape_faults(path: str, source: str) -> list[str]:
    """A module with code but without its sentence, or without postponed annotations."""
    if not source.strip():
        return []
    found = [] if ast.get_docstring(parsed(source)) else [f"{path} does not say what it is"]
    if len(source.splitlines()) > 1 and "from __future__ import annotations" not in source:
        found.append(f"{path} has eager annotations")
    return found


def test_modules_say_what_they_are() -> None:
    """A docstring and postponed annotations in every module that has code."""
    assert faults_of(shape_faults, *ROOMS) == []


# ------------------------------------------------------------------------------------------------ logs
OWN_ERRORS = {
    *(name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, Exception)),
    *("NotStrict", "BadEnvelope", "EndAttempt", "RequestRefused"),
}
"""Errors whose text is ours: fields, ids and sentences."""
MAY_LOG = ("shared/runtime/telemetry.py",)
MAY_REVEAL = (
    "shared/adapters/vendors/http.py",
    "shared/adapters/vendors/helpdesk.py",
    "shared/adapters/vendors/openai_chat.py",
    "shared/adapters/vendors/openai_batch_lines.py",
    "shared/adapters/vendors/plain_batch.py",
    "functions/rewrite/prompts.py",
)
"""Where sensitive text may be unwrapped to be sent; a lane's own tasks may, too."""
FORBIDDEN_CALLS = {"exception", "print_exc", "format_exc", "print_exception", "format_exception", "format_tb"}
FORBIDDEN_KEYWORDS = {"log_event", "extra", "exc_info", "stack_info", "capture_response", "capture_error"}


def log_faults(path: str, source: str) -> list[str]:
    """Every way text could reach a log, a trace or standard output."""
    tree, found = parsed(source), []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            if isinstance(node.func, ast.Name) and called in ("print", "breakpoint"):
                found.append(f"{path}:{node.lineno} calls {called}")
            if called in FORBIDDEN_CALLS:
                found.append(f"{path}:{node.lineno} calls {called}")
            if called == "reveal" and path not in MAY_REVEAL and not re.fullmatch(r"functions/\w+/tasks\.py", path):
                found.append(f"{path}:{node.lineno} reveals")
            found += [
                f"{path}:{node.lineno} passes {keyword.arg}"
                for keyword in node.keywords
                if keyword.arg in FORBIDDEN_KEYWORDS
            ]
        if isinstance(node, ast.Attribute) and node.attr == "_value" and path != "shared/core/sensitive.py":
            found.append(f"{path}:{node.lineno} looks inside a sensitive value")
        if isinstance(node, ast.ExceptHandler) and node.name and not _only_own(node.type):
            found += [f"{path}:{line} uses the text of a stranger's error" for line in _texts_of(node)]
    loggers = [line for line, module in imported(tree) if within(module, ("logging", "aws_lambda_powertools"))]
    if path not in MAY_LOG:
        found += [f"{path}:{line} has a logger of its own" for line in loggers]
    return found


def _only_own(kind: ast.expr | None) -> bool:
    kinds = kind.elts if isinstance(kind, ast.Tuple) else [kind]
    named = {one.id if isinstance(one, ast.Name) else getattr(one, "attr", "") for one in kinds}
    return named <= OWN_ERRORS


def _texts_of(handler: ast.ExceptHandler) -> Iterator[int]:
    """Lines where the caught error becomes text: str, repr, format, f-string, args, %."""

    def is_it(node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and node.id == handler.name

    for node in ast.walk(handler):
        if (isinstance(node, ast.FormattedValue) and is_it(node.value)) or (
            isinstance(node, ast.Attribute) and is_it(node.value) and node.attr in ("args", "doc", "response", "object")
        ):
            yield node.lineno
        elif isinstance(node, ast.Call):
            called = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            if called in ("str", "repr", "format", "join") and any(is_it(argument) for argument in node.args):
                yield node.lineno
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and is_it(node.right):
            yield node.lineno


READS_RESPONSES = ("shared/adapters/aws/errors.py:", "shared/adapters/aws/lanes.py:")
"""The places that read an SDK's response: for its code, and to take a row out of it."""


@pytest.mark.req("R14")
@pytest.mark.fault("I2", "I9")
def test_nothing_can_write_text_to_a_log() -> None:
    """No print, no event dump, no exception text, no logger but the one; text is revealed in listed places only."""
    found = faults_of(log_faults, "shared", "functions")
    assert [fault for fault in found if not fault.startswith(READS_RESPONSES)] == []


PLANTED_LEAKS = {
    "print": "print(event)",
    "logger.exception": "log.exception('failed')",
    "log_event": "@logger.inject_lambda_context(log_event=True)\ndef handler(event, context): ...",
    "extra": "log.info('x', extra={'payload': payload})",
    "exc_info": "log.error('x', exc_info=True)",
    "traceback": "import traceback\nx = traceback.format_exc()",
    "str of an error": "try: ...\nexcept Exception as exc: raise Failed(str(exc))",
    "repr of an error": "try: ...\nexcept ValueError as exc: x = repr(exc)",
    "an error in an f-string": "try: ...\nexcept (KeyError, ValueError) as exc: x = f'bad {exc}'",
    "an error in a % format": "try: ...\nexcept KeyError as exc: x = 'bad %s' % exc",
    "an error's arguments": "try: ...\nexcept OSError as exc: x = exc.args[0]",
    "a parser's document": "try: ...\nexcept json.JSONDecodeError as exc: x = exc.doc",
    "an SDK's response": "try: ...\nexcept ClientError as exc: x = exc.response",
    "reveal": "x = ctx.payload.reveal()",
    "inside a sensitive value": "x = ctx.payload._value",
    "a logger": "import logging\nlogging.getLogger().info(event)",
    "another voice": "from aws_lambda_powertools import Logger",
}


@pytest.mark.fault("I2")
@pytest.mark.parametrize("source", PLANTED_LEAKS.values(), ids=PLANTED_LEAKS)
def test_a_planted_leak_is_found(source: str) -> None:
    """One violation of each kind, all caught."""
    assert log_faults("shared/usecases/x.py", source)


def test_an_error_of_ours_may_be_said() -> None:
    """Its text names fields and ids."""
    assert log_faults("shared/x.py", "try: ...\nexcept BadInput as exc: raise Failed(str(exc))") == []


def telemetry_names(source: str) -> Iterator[tuple[int, str]]:
    """The ids given to `telemetry.event` and `telemetry.error`."""
    for node in ast.walk(parsed(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("event", "error"):
            yield from ((node.lineno, keyword.arg) for keyword in node.keywords if keyword.arg)


def test_ids_in_events_have_names_a_logger_can_take() -> None:
    """A name that a log record has already would raise in the middle of an error; text has no name at all."""
    taken = {*vars(logging.makeLogRecord({})), "message", "asctime", "level", "location", "timestamp", "service"}
    texts = {"payload", "body", "text", "reply", "event", "detail", "why", "response"}
    used = [
        (name_of(path), line, name)
        for path in files("shared/usecases", "shared/runtime", "functions")
        for line, name in telemetry_names(path.read_text())
    ]
    assert len(used) > 20
    assert [place for place in used if place[2] in taken | texts] == []


# --------------------------------------------------------------------------------------------- threads
@pytest.mark.fault("A9")
def test_no_thread_is_left_behind() -> None:
    """Pools are joined by `with`; nothing is started and forgotten, so nothing is sent after a thaw."""
    assert faults_of(thread_faults, "shared", "functions") == []


def thread_faults(path: str, source: str) -> list[str]:
    tree = parsed(source)
    joined = {id(item.context_expr) for node in ast.walk(tree) if isinstance(node, ast.With) for item in node.items}
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            if called in ("ThreadPoolExecutor", "ProcessPoolExecutor") and id(node) not in joined:
                found.append(f"{path}:{node.lineno} leaves a pool open")
            if called in ("Thread", "Timer", "Popen") and path != "shared/adapters/memory/strand.py":
                found.append(f"{path}:{node.lineno} starts a {called}")
    found += [f"{path}:{line} uses {m}" for line, m in imported(tree) if within(m, ("asyncio", "multiprocessing"))]
    return found


@pytest.mark.fault("A9")
@pytest.mark.parametrize(
    "source",
    [
        "pool = ThreadPoolExecutor(4)",
        "threading.Thread(target=send).start()",
        "threading.Timer(1, f)",
        "import asyncio",
    ],
)
def test_a_planted_thread_is_found(source: str) -> None:
    """The check itself is checked."""
    assert thread_faults("shared/adapters/x.py", source)


# --------------------------------------------------------------------------------------------- imports
PROBE = """
import importlib, os, socket, sys

root, *modules = sys.argv[1:]
read = []
ours = (root + "/shared/", root + "/functions/")
original = type(os.environ).__getitem__

def watched(self, name):
    frame = sys._getframe(1)
    while frame.f_code.co_filename.endswith(("os.py", "_collections_abc.py", "<frozen os>")):
        frame = frame.f_back
    if frame.f_code.co_filename.startswith(ours):
        read.append(f"{frame.f_code.co_filename}:{frame.f_lineno} reads {name}")
    return original(self, name)

def refused(*args, **kwargs):
    read.append("a connection is opened")
    raise OSError

type(os.environ).__getitem__ = watched
socket.socket.connect = refused
for module in modules:
    importlib.import_module(module)
read += [f"{name} is loaded" for name in ("boto3", "httpx", "aws_cdk") if name in sys.modules]
print("\\n".join(read))
"""


def test_importing_every_handler_has_no_side_effect() -> None:
    """In a fresh interpreter with an empty environment: nothing is read, nothing is built, nothing is opened."""
    handlers = [name_of(path)[:-3].replace("/", ".") for path in files("functions") if path.name == "handler.py"]
    assert len(handlers) >= 6
    ran = subprocess.run(
        [sys.executable, "-c", PROBE, str(ROOT), *handlers],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (ran.returncode, ran.stdout.strip(), ran.stderr) == (0, "", "")
