"""The drain's figures, what is promised of them, and its table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from ops.simulator.drain import JOBS, WAYS, WEATHER, Drained
from ops.simulator.picture import draw
from ops.simulator.study import Study, a_table, missed_bounds

BOUNDS = {
    "Penstock, limits in headers": {"times_ideal": 1.05, "refused_share": 0.003, "recovery_s": 2.0, "wasted": 200},
    "Penstock, no headers": {"times_ideal": 1.06, "refused_share": 0.015},
}
"""What is promised; for both, mean deferrals ≤ 1.2, p99 ≤ 3 and writes ≤ 5.5 a job."""
COLUMNS = ("time / ideal", "429", "into the\noutage", "90 % again\nafter", "deferrals\nmean · p99", "writes\na job")


def run(name: str, jobs: int, seed: int = 1) -> Drained:
    """One way by its name."""
    return WAYS[name](jobs)


def report(one: Drained) -> dict[str, Any]:
    """The figures of one way."""
    return {
        "way": one.way,
        "completed": one.completed,
        "failed": one.failed,
        "seconds": round(one.seconds, 1),
        "ideal_s": round(one.ideal_s, 1),
        "times_ideal": round(one.times_ideal, 4) if one.drained else None,
        "calls": one.seen.calls,
        "refused_share": round(one.refused_share, 5),
        "wasted": one.wasted,
        "recovery_s": None if one.recovery_s is None else round(one.recovery_s, 2),
        "mean_deferrals": round(one.mean_deferrals, 3) if one.deferrals else None,
        "p99_deferrals": one.p99_deferrals if one.deferrals else None,
        "writes_per_job": None if one.writes is None else round(one.writes / one.jobs, 3),
    }


def missed(done: Sequence[Drained]) -> list[str]:
    """Promises that do not hold, in words."""
    found = []
    for one in done:
        bounds: dict[str, float] = dict(BOUNDS.get(one.way, {}))
        if bounds:
            bounds |= {"mean_deferrals": 1.2, "p99_deferrals": 3, "writes_per_job": 5.5, "failed": 0}
        found += missed_bounds(report(one), bounds)
    return found


def table(done: Sequence[Drained], width: int) -> Table:
    """One row a way."""
    rows = a_table(COLUMNS, width)
    for one in done:
        rows.add_row(one.way, *_cells(one))
    return rows


def _cells(one: Drained) -> tuple[str, ...]:
    took = f"{one.times_ideal:.3f} ×" if one.drained else f"{one.completed:,} done"
    recovery = "–" if one.recovery_s is None else f"{one.recovery_s:.1f} s"
    deferrals = f"{one.mean_deferrals:.2f} · {one.p99_deferrals}" if one.deferrals else "–"
    writes = "–" if one.writes is None else f"{one.writes / one.jobs:.2f}"
    return took, f"{one.refused_share:.2%}", f"{one.wasted:,}", recovery, deferrals, writes


def _draw(done: Sequence[Drained], to: Path) -> None:
    draw(done, WEATHER, to)


STUDY = Study(
    name="drain",
    about="{jobs} jobs against a vendor whose limit is halved, raised again and lost in an outage",
    jobs=JOBS,
    ways=tuple(WAYS),
    run=run,
    report=report,
    missed=missed,
    table=table,
    draw=_draw,
)
