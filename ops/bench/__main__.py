"""`make bench`: ours beside the standard way, measured in the same run.

    make bench                       the table, and build/reports/bench.json
    make bench ARGS=--quick          fewer runs: the counts are the same, the times rougher
    make bench ARGS=--json           the report on standard output

The counts are promises, and tests hold them; times and ratios depend on the machine and are only shown.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console

from ops.bench import table
from ops.bench.cold import cold
from ops.bench.cpu import cpu
from ops.bench.environment import OURS, SEQUENTIAL, THREADED, Environment
from ops.bench.package import package
from ops.bench.runs import BACKLOGS, runs
from ops.bench.table import Measured
from ops.bench.throughput import throughput
from ops.bench.units import units

ROOT = Path(__file__).resolve().parents[2]
REPORT = ROOT / "build" / "reports" / "bench.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How often each is run; the best counts."""

    cpu_runs: int
    throughput_runs: int
    cold_runs: int
    jobs: int
    backlogs: tuple[int, ...] = BACKLOGS


FULL = Effort(cpu_runs=8, throughput_runs=6, cold_runs=10, jobs=30)
QUICK = Effort(cpu_runs=3, throughput_runs=2, cold_runs=3, jobs=20, backlogs=BACKLOGS[:2])


def main(argv: Sequence[str] | None = None) -> int:
    """Measures, shows, keeps the report. A missed promise is shown, not an error: that is what tests are for."""
    options = _parser().parse_args(argv)
    began = time.perf_counter()
    console = Console(stderr=options.json, width=None if sys.stdout.isatty() else table.WIDTH)
    measured = measure(QUICK if options.quick else FULL, console)
    machine = _machine(time.perf_counter() - began)
    document = {"at": datetime.now(UTC).isoformat(timespec="seconds"), "machine": machine, **table.report(measured)}
    REPORT.parent.mkdir(parents=True, exist_ok=True)
    REPORT.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    if options.json:
        print(json.dumps(document, indent=1, ensure_ascii=False))
        return 0
    table.show(measured, console)
    console.print(
        f"\n{machine['seconds']} s on {machine['cores']} cores, Python {machine['python']}, load "
        f"{machine['load']} at the end: on a busy machine times are worse and ratios smaller. "
        f"Kept in {REPORT.relative_to(ROOT)}.",
        width=min(table.WIDTH, console.width),
        highlight=False,
    )
    return 0


def measure(effort: Effort, console: Console) -> list[Measured]:
    """Everything, in the order of the table."""
    with contextlib.ExitStack() as open_ones:
        environments: dict[str, Environment] = {}

        def warmed() -> dict[str, Environment]:
            for way in (OURS, SEQUENTIAL, THREADED):
                if way not in environments:
                    environments[way] = open_ones.enter_context(Environment(way))
            return environments

        steps: list[tuple[str, Callable[[], Measured]]] = [
            ("calls and write units", units),
            ("what runs take", lambda: runs(effort.backlogs)),
            ("processor time", lambda: cpu(warmed(), runs=effort.cpu_runs, jobs=effort.jobs)),
            ("jobs a second", lambda: throughput(warmed(), runs=effort.throughput_runs, jobs=effort.jobs)),
            ("cold import", lambda: cold(runs=effort.cold_runs)),
            ("package size", package),
        ]
        measured = []
        with console.status("") as status:
            for number, (what, step) in enumerate(steps, start=1):
                status.update(f"measuring {what} ({number} of {len(steps)})")
                measured.append(step())
    return measured


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m ops.bench", description="Ours beside the standard way.")
    parser.add_argument("--quick", action="store_true", help="fewer runs")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    return parser


def _machine(seconds: float) -> dict[str, Any]:
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    return {
        "cores": os.cpu_count() or 1,
        "python": platform.python_version(),
        "load": round(load, 1),
        "seconds": round(seconds, 1),
    }


if __name__ == "__main__":
    sys.exit(main())
