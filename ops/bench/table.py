"""One table: ours beside the standard way, with what was promised and whether it holds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

WIDTH = 110


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One measurement. A bound is on our value, or on how many times the standard way's it is."""

    group: str
    what: str
    ours: float
    standard: float | None = None
    """None: the standard way has no such thing."""
    unit: str = ""
    digits: int = 0
    at_most: float | None = None
    times_at_least: float | None = None

    @property
    def ratio(self) -> float | None:
        """Ours over the standard way's."""
        return self.ours / self.standard if self.standard else None

    @property
    def bound(self) -> str:
        """The promise, in words."""
        if self.at_most is not None:
            return f"≤ {self.at_most:g}"
        return f"≥ {self.times_at_least:g} ×" if self.times_at_least is not None else ""

    @property
    def ok(self) -> bool | None:
        """Whether the promise holds; None where none was made."""
        if self.at_most is not None:
            return self.ours <= self.at_most
        if self.times_at_least is not None:
            return self.ratio is not None and self.ratio >= self.times_at_least
        return None

    def as_json(self) -> dict[str, Any]:
        """For the report."""
        return {
            "group": self.group,
            "what": self.what,
            "ours": round(self.ours, 4),
            "standard": None if self.standard is None else round(self.standard, 4),
            "unit": self.unit,
            "ratio": None if self.ratio is None else round(self.ratio, 3),
            "bound": self.bound or None,
            "ok": self.ok,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What one measurement gives: its rows, and the sentences that say exactly what was done."""

    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()


def report(measured: Sequence[Measured]) -> dict[str, Any]:
    """Everything, as JSON."""
    rows = [row for part in measured for row in part.rows]
    return {
        "rows": [row.as_json() for row in rows],
        "notes": [note for part in measured for note in part.notes],
        "missed": [f"{row.group}: {row.what}" for row in rows if row.ok is False],
    }


def show(measured: Iterable[Measured], console: Console) -> None:
    """The table, then the footnotes."""
    table = Table(box=SIMPLE_HEAD, width=min(WIDTH, console.width), padding=(0, 1), pad_edge=False)
    table.add_column("", ratio=1, no_wrap=True)
    for name in ("Penstock", "standard", "ratio", "bound", ""):
        table.add_column(name, justify="right", no_wrap=True)
    notes: list[str] = []
    for part in measured:
        group = None
        for row in part.rows:
            if row.group != group:
                group = row.group
                mark = f" [dim]{len(notes) + 1}[/]" if part.notes else ""
                table.add_row(f"[bold]{group}[/]{mark}")
            table.add_row(f"  {row.what}", *_cells(row))
        if part.notes:
            notes.append(" ".join(part.notes))
    console.print(table)
    for number, note in enumerate(notes, start=1):
        console.print(f"[dim]{number}[/] {note}", width=min(WIDTH, console.width), highlight=False)


def _cells(row: Row) -> tuple[str, ...]:
    def value(number: float | None) -> str:
        return "–" if number is None else f"{number:,.{row.digits}f} {row.unit}".rstrip()

    verdict = {True: "[green]ok[/]", False: "[bold red]miss[/]", None: ""}[row.ok]
    ratio = "" if row.ratio is None else f"{row.ratio:.2f} ×"
    return value(row.ours), value(row.standard), ratio, row.bound, verdict
