"""What a function writes: its log lines and its EMF documents, read back from standard output."""

from __future__ import annotations

import io
import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest


class Output:
    """Everything written to standard output while it was watched."""

    def __init__(self) -> None:
        self.stream = io.StringIO()

    @property
    def text(self) -> str:
        return self.stream.getvalue()

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    @property
    def logs(self) -> list[dict[str, Any]]:
        """The log lines; every line must be JSON."""
        return [line for line in map(json.loads, self.lines) if "_aws" not in line]

    @property
    def metrics(self) -> list[dict[str, Any]]:
        """The EMF documents."""
        return [line for line in map(json.loads, self.lines) if "_aws" in line]


@contextmanager
def watched(level: int = logging.INFO) -> Iterator[Output]:
    """Standard output and every logger, from here on: older loggers are forgotten, so none keeps an old stream."""
    output = Output()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", output.stream)
        kept = dict(logging.root.manager.loggerDict)
        engine = ("stream", "feed", "dispatcher", "sweeper", "triage", "auditor", "redriver", "governor")
        for name in (*engine, "support-worker", "support-intake", "worker", "a-test"):
            logging.root.manager.loggerDict.pop(name, None)
        before = logging.root.level
        logging.root.setLevel(level)
        try:
            yield output
        finally:
            logging.root.setLevel(before)
            logging.root.manager.loggerDict.clear()
            logging.root.manager.loggerDict.update(kept)
