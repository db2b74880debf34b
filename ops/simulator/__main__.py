"""`make simulate`: a backlog against a vendor with a changing limit, ours beside the usual ways, on virtual time.

make simulate                        the table, build/reports/drain.json and a picture beside it
make simulate ARGS="--jobs 5000"     a smaller backlog: rougher figures, sooner
make simulate ARGS="--picture FILE"  the picture somewhere else (.svg or .png)
make simulate ARGS=--json            the report on standard output
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from ops.simulator.drain import JOBS, WAYS, WEATHER, Drained
from ops.simulator.picture import draw

ROOT = Path(__file__).resolve().parents[2]
REPORTS = ROOT / "build" / "reports"
WIDTH = 110
BOUNDS = {
    "Penstock, limits in headers": {"times_ideal": 1.05, "refused_share": 0.003, "recovery_s": 2.0, "wasted": 200},
    "Penstock, no headers": {"times_ideal": 1.06, "refused_share": 0.015},
}
"""What is promised; for both, mean deferrals ≤ 1.2, p99 ≤ 3 and writes ≤ 5.5 a job."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run every way, show the table, keep report and picture. Ends with 1 where a promise is missed at full size."""
    options = _parser().parse_args(argv)
    if options.jobs < 1:
        print("--jobs: must be a whole number above 0", file=sys.stderr)
        return 2
    console = Console(stderr=options.json, width=None if sys.stdout.isatty() else WIDTH)
    began = time.perf_counter()
    done = simulate(options.jobs, console)
    document = {"jobs": options.jobs, "ways": [report(one) for one in done], "missed": missed(done)}
    REPORTS.mkdir(parents=True, exist_ok=True)
    (REPORTS / "drain.json").write_text(json.dumps(document, indent=1) + "\n")
    picture = options.picture or REPORTS / "drain.svg"
    draw(done, WEATHER, picture)
    if options.json:
        print(json.dumps(document, indent=1))
    else:
        show(done, console)
        seconds = time.perf_counter() - began
        console.print(f"{options.jobs:,} jobs, {seconds:.0f} s; picture: {picture}", highlight=False)
    return int(bool(document["missed"]) and options.jobs >= JOBS)


def simulate(jobs: int, console: Console) -> list[Drained]:
    """Every way, each in a process of its own."""
    with Progress(console=console, transient=True) as progress, ProcessPoolExecutor() as pool:
        bar = progress.add_task(f"{jobs:,} jobs, {len(WAYS)} ways", total=len(WAYS))
        running = [pool.submit(run, name, jobs) for name in WAYS]
        for one in running:
            one.add_done_callback(lambda _: progress.advance(bar))
        return [one.result() for one in running]


def run(name: str, jobs: int) -> Drained:
    """One way by its name; what a process of the pool does."""
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
        figures = report(one)
        bounds: dict[str, float] = dict(BOUNDS.get(one.way, {}))
        if bounds:
            bounds |= {"mean_deferrals": 1.2, "p99_deferrals": 3, "writes_per_job": 5.5, "failed": 0}
        for figure, most in bounds.items():
            value = figures[figure]
            if value is None or value > most:
                found.append(f"{one.way}: {figure} is {value}, promised at most {most:g}")
    return found


def show(done: Sequence[Drained], console: Console) -> None:
    """One row a way."""
    table = Table(box=SIMPLE_HEAD, padding=(0, 1), pad_edge=False, width=min(WIDTH, console.width))
    table.add_column("", ratio=1)
    for name in (
        "time / ideal",
        "429",
        "into the\noutage",
        "90 % again\nafter",
        "deferrals\nmean · p99",
        "writes\na job",
    ):
        table.add_column(name, justify="right", no_wrap=True)
    for one in done:
        table.add_row(one.way, *_cells(one))
    console.print(table)
    for sentence in missed(done):
        console.print(f"[bold red]missed[/] {sentence}", highlight=False)


def _cells(one: Drained) -> tuple[str, ...]:
    took = f"{one.times_ideal:.3f} ×" if one.drained else f"{one.completed:,} done"
    recovery = "–" if one.recovery_s is None else f"{one.recovery_s:.1f} s"
    deferrals = f"{one.mean_deferrals:.2f} · {one.p99_deferrals}" if one.deferrals else "–"
    writes = "–" if one.writes is None else f"{one.writes / one.jobs:.2f}"
    return took, f"{one.refused_share:.2%}", f"{one.wasted:,}", recovery, deferrals, writes


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m ops.simulator", description="Drain a backlog, several ways.")
    parser.add_argument("--jobs", type=int, default=JOBS, help=f"the backlog (default {JOBS:,})")
    parser.add_argument("--picture", type=Path, help="where to draw it (.svg or .png)")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    return parser


if __name__ == "__main__":
    sys.exit(main())
