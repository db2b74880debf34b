"""What a study is: several ways through the same trouble, their figures, and what is promised of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from rich.box import SIMPLE_HEAD
from rich.table import Table

Done = TypeVar("Done")
WIDTH = 110


@dataclass(frozen=True, slots=True, kw_only=True)
class Study(Generic[Done]):
    """One of the simulator's studies."""

    name: str
    about: str
    """One line over the table, with `{jobs}` in it."""
    jobs: int
    """The full size: what is promised is promised for it."""
    ways: Sequence[str]
    run: Callable[[str, int, int], Done]
    """One way by its name, with so many jobs and a seed; done in a process of its own."""
    report: Callable[[Done], dict[str, Any]]
    missed: Callable[[Sequence[Done]], list[str]]
    """Promises that do not hold, in words."""
    table: Callable[[Sequence[Done], int], Table]
    """One row a way; so many columns wide."""
    draw: Callable[[Sequence[Done], Path], None] | None = None
    seeds: Callable[[str], Sequence[int]] = lambda way: (1,)
    """What is run of a way, unless somebody asks for other seeds. What is shown and promised is the mean of them."""
    rows: Callable[[Sequence[Done]], list[dict[str, Any]]] | None = None
    """The figures of each way over all its seeds; None where there is one."""


def a_table(columns: Sequence[str], width: int) -> Table:
    """A table whose first column, the way, takes what the others leave."""
    table = Table(box=SIMPLE_HEAD, padding=(0, 1), pad_edge=False, width=min(WIDTH, width))
    table.add_column("", ratio=1)
    for name in columns:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def missed_bounds(figures: dict[str, Any], bounds: dict[str, float]) -> list[str]:
    """Figures above what is promised."""
    return [
        f"{figures['way']}: {figure} is {figures[figure]}, promised at most {most:g}"
        for figure, most in bounds.items()
        if figures[figure] is None or figures[figure] > most
    ]
