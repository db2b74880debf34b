"""The sweep: everything a stage writes, by channel, searched for a word no customer's text may leave behind."""

from __future__ import annotations

import base64
import io
import json
import logging
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

WORD = "ZephyrQuokka"
CANARY = f"My {WORD} said,\nplease refund the card"
"""What a customer wrote. The word alone is searched for, so a cut, folded or escaped copy is found, too."""
SERVICES = (
    *("stream", "feed", "dispatcher", "sweeper", "triage", "auditor", "redriver", "governor"),
    *("support-worker", "support-intake", "extraction-worker"),
)


def forms() -> list[str]:
    """How the word may look after it went through something: folded, quoted, encoded."""
    encoded = [base64.b64encode(b"x" * shift + WORD.encode())[4 if shift else 0 : -4].decode() for shift in range(3)]
    return [WORD.casefold(), WORD.encode().hex(), *(part.casefold() for part in encoded)]


def holds(text: str) -> bool:
    """True when the word is in the text, in any form."""
    folded = text.casefold()
    return any(form in folded for form in forms())


class Everything(logging.Handler):
    """Keeps all of every log record: its message, its attributes and its trace, whatever a formatter would show."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        parts = [record.getMessage(), repr(vars(record))]
        if record.exc_info:
            parts.append("".join(traceback.format_exception(*record.exc_info)))
        self.lines.append("\n".join(parts))


class Sweep:
    """What was written where. `hits` names every channel with the word in it."""

    def __init__(self, exports: Path) -> None:
        self.exports = exports
        self.stdout, self.stderr, self.records = io.StringIO(), io.StringIO(), Everything()
        self.raised: list[str] = []
        self.tables: dict[str, list[Any]] = {}
        self.queues: dict[str, list[str]] = {}

    def channels(self) -> Mapping[str, str]:
        """Each channel's text."""
        found = {
            "stdout": self.stdout.getvalue(),
            "stderr": self.stderr.getvalue(),
            "log record": "\n".join(self.records.lines),
            "raised": "\n".join(self.raised),
        }
        found |= {f"table {name}": repr(rows) for name, rows in self.tables.items()}
        found |= {f"queue {name}": "\n".join(bodies) for name, bodies in self.queues.items()}
        for path in sorted(self.exports.rglob("*")):
            if path.is_file():
                found[f"export {path.name}"] = path.read_text()
        return found

    def hits(self) -> list[str]:
        """Channels that hold the word."""
        return [name for name, text in self.channels().items() if holds(text)]

    def forged(self) -> list[str]:
        """Lines on standard output that are not one JSON object of ours: what an injected line break makes."""
        return [line for line in self.stdout.getvalue().splitlines() if not _ours(line)]

    def lambda_prints(self, error: BaseException) -> None:
        """What Lambda writes for an uncaught error: type, message and trace."""
        self.raised.append(repr(error.args))
        self.raised.append("".join(traceback.format_exception(error)))

    def export(self, name: str, text: str) -> None:
        """A file somebody takes away."""
        (self.exports / name).write_text(text)

    def look_at(self, *, tables: Mapping[str, Iterable[Any]], queues: Mapping[str, Iterable[str]]) -> None:
        """Rows and messages as they stand now."""
        self.tables = {name: list(rows) for name, rows in tables.items()}
        self.queues = {name: list(bodies) for name, bodies in queues.items()}


def _ours(line: str) -> bool:
    try:
        value = json.loads(line)
    except ValueError:
        return False
    return isinstance(value, dict) and ("_aws" in value or {"level", "message", "service", "timestamp"} <= set(value))


@contextmanager
def sweeping(exports: Path) -> Iterator[Sweep]:
    """Watch standard output, standard error and every log record at DEBUG, from here on."""
    sweep = Sweep(exports)
    kept = dict(logging.root.manager.loggerDict)
    level = logging.root.level
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOG_LEVEL", "DEBUG")
        patch.setenv("POWERTOOLS_LOG_LEVEL", "DEBUG")
        patch.setattr(sys, "stdout", sweep.stdout)
        patch.setattr(sys, "stderr", sweep.stderr)
        for name in SERVICES:
            logging.root.manager.loggerDict.pop(name, None)  # A logger made before would keep an older stream.
        logging.root.addHandler(sweep.records)
        logging.root.setLevel(logging.DEBUG)
        try:
            yield sweep
        finally:
            logging.root.removeHandler(sweep.records)
            logging.root.setLevel(level)
            for name in SERVICES:
                logging.root.manager.loggerDict.pop(name, None)
                if name in kept:
                    logging.root.manager.loggerDict[name] = kept[name]


def quoted(text: str) -> str:
    """As an address would carry it."""
    return quote(text)
