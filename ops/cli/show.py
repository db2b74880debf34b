"""How answers look: aligned tables for people, JSON for programs. Everything shown is cleaned of control characters."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ops.cli.trouble import Problem
from shared.core.job import Status
from shared.core.moment import iso
from shared.core.switches import Level

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.status import Status as Spinner
    from rich.table import Table
    from rich.text import Text

PATIENCE_S = 2.0
PIPED_WIDTH = 120
"""Columns when nobody says how wide the terminal is."""
NOTHING = "–"

STATUS_STYLE = {
    Status.QUEUED: "cyan",
    Status.PROCESSING: "blue",
    Status.BATCH_SUBMITTED: "blue",
    Status.COMPLETED: "green",
    Status.FAILED: "red",
    Status.CANCELED: "dim",
}
LEVEL_STYLE = {Level.NORMAL: "green", Level.ROUTE_ONLY: "yellow"}


class Output:
    """Where a command's answer goes: one JSON document or JSON lines, or tables and sentences."""

    def __init__(self, *, json: bool) -> None:
        self.json = json
        self._patience: threading.Timer | None = None
        self._spinner: Spinner | None = None
        self._turn = threading.Lock()

    @property
    def console(self) -> Console:
        """Answers."""
        self.quiet()
        return self._answers

    @property
    def aside(self) -> Console:
        """Progress, warnings and errors: not part of the answer."""
        self.quiet()
        return self._beside

    @cached_property
    def _answers(self) -> Console:
        return _console(sys.stdout)

    @cached_property
    def _beside(self) -> Console:
        return _console(sys.stderr)

    def begin(self) -> None:
        """From here on, a person who waits for two seconds sees that something goes on."""
        if not self.json and sys.stderr.isatty():
            self._patience = threading.Timer(PATIENCE_S, self._still_working)
            self._patience.daemon = True
            self._patience.start()

    def quiet(self) -> None:
        """Nothing turns any more; called before anything is shown."""
        with self._turn:
            if self._patience is not None:
                self._patience.cancel()
                self._patience = None
            if self._spinner is not None:
                self._spinner.stop()
                self._spinner = None

    def _still_working(self) -> None:
        with self._turn:
            if self._patience is not None:
                self._spinner = self._beside.status(styled("still working …", "dim"))
                self._spinner.start()

    def document(self, value: object) -> None:
        """The whole answer, for a program."""
        print(json.dumps(plain(value), indent=2))

    def line(self, value: object) -> None:
        """One of many answers, for a program."""
        print(json.dumps(plain(value), separators=(",", ":")), flush=True)

    def say(self, *parts: RenderableType) -> None:
        """For people: tables fitted to the terminal; sentences left whole, so that a command in one can be copied."""
        from rich.text import Text

        for part in parts:
            shown = styled(part) if isinstance(part, str) else part
            self.console.print(shown, soft_wrap=isinstance(shown, Text))

    def warn(self, sentence: str) -> None:
        """Something a person must know that is not the answer."""
        self.aside.print(styled(sentence, "yellow"), soft_wrap=True)

    def fail(self, problem: Problem) -> None:
        """The end of a command that could not do what was asked."""
        if self.json:
            self.line(problem.document())
        else:
            self.aside.print(styled(problem.sentence, "red"), soft_wrap=True)

    @contextlib.contextmanager
    def working(self, what: str) -> Iterator[Callable[[str], None]]:
        """Show that something goes on; the function given tells how far it is. Silent when nobody looks."""
        if self.json or not self.aside.is_terminal:
            yield lambda text: None
            return
        with self.aside.status(styled(f"{what} …", "dim")) as spinner:
            yield lambda text: spinner.update(styled(f"{what}: {text}", "dim"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column that is not plain text aligned left."""

    header: str
    right: bool = False
    whole: bool = False
    """Never cut or folded: ids are for copying."""


def table(columns: Sequence[str | Column], rows: Iterable[Sequence[str | Text]], title: str = "") -> Table:
    """Aligned rows under a quiet head."""
    from rich import box
    from rich.table import Table

    drawn = Table(
        box=box.SIMPLE_HEAD,
        title=title or None,
        title_justify="left",
        title_style="bold",
        header_style="bold",
        padding=(0, 1, 0, 0),
        pad_edge=False,
        show_edge=False,
    )
    for column in columns:
        named = Column(header=column) if isinstance(column, str) else column
        drawn.add_column(
            named.header,
            justify="right" if named.right else "left",
            no_wrap=named.whole,
            overflow="fold",
        )
    for row in rows:
        drawn.add_row(*(styled(cell) if isinstance(cell, str) else cell for cell in row))
    return drawn


def pairs(values: Mapping[str, str | Text]) -> Table:
    """Names and values, one below the other."""
    from rich.table import Table

    drawn = Table.grid(padding=(0, 2))
    drawn.add_column(style="dim", no_wrap=True)
    drawn.add_column(overflow="fold")
    for name, value in values.items():
        drawn.add_row(styled(name), styled(value) if isinstance(value, str) else value)
    return drawn


def styled(text: str, style: str = "") -> Text:
    """Text as it is: no markup is read from it, control characters are gone."""
    from rich.text import Text

    return Text(clean(text), style=style)


def status(word: Status) -> Text:
    """A status in its colour."""
    return styled(word.value, STATUS_STYLE[word])


def level(rung: Level) -> Text:
    """A switch's rung in its colour."""
    return styled(rung.word, LEVEL_STYLE.get(rung, "red"))


def clean(text: str) -> str:
    """Without anything that could move the cursor or colour the terminal; new lines and tabs stay."""
    return "".join(ch if ch.isprintable() or ch in "\n\t" else "�" for ch in text)


def ago(moment: datetime | None, now: datetime) -> str:
    """How long ago, or how soon: `12 s ago`, `in 5 min`."""
    if moment is None:
        return NOTHING
    seconds = (now - moment).total_seconds()
    if abs(seconds) < 1:
        return "now"
    return f"{span(round(seconds))} ago" if seconds > 0 else f"in {span(round(-seconds))}"


def soon(moment: datetime, now: datetime) -> str:
    """How soon something is expected: what was expected just now is still to come, at any moment."""
    seconds = (moment - now).total_seconds()
    return "at any moment" if seconds < 1 else f"in {span(seconds)}"


def span(seconds: float) -> str:
    """A length of time in the one unit that says most: `40 ms`, `1.4 s`, `12 s`, `5 min`, `3 h`, `9 d`."""
    if 0 < seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 10:
        return f"{seconds:.1f} s".replace(".0 s", " s")
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def count(number: int) -> str:
    """`1,204`; nothing is a dash, so that what is there stands out."""
    return f"{number:,}" if number else NOTHING


def plain(value: Any) -> Any:
    """A value as JSON can carry it: times in ISO 8601, levels and statuses by their words."""
    if isinstance(value, Level):
        return value.word
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, datetime):
        return iso(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(inner) for inner in value]
    return value


def _console(stream: Any) -> Console:
    from rich.console import Console

    width = None if stream.isatty() or os.environ.get("COLUMNS") else PIPED_WIDTH
    return Console(file=stream, highlight=False, emoji=False, markup=False, width=width)
