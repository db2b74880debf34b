"""`make simulate`: backlogs, a vendor in trouble and a redrive, ours beside the usual ways, on virtual time.

make simulate                             every study: its table, a report in build/reports/, a picture beside it
make simulate ARGS=incident               one of them: drain, incident or redrive
make simulate ARGS="drain --jobs 5000"    a smaller backlog: rougher figures, sooner
make simulate ARGS="drain --picture FILE" the picture somewhere else (.svg or .png)
make simulate ARGS=--json                 the reports on standard output
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import time
from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress

from ops.simulator import drain_report, incident_report, redrive_report
from ops.simulator.study import WIDTH, Study

ROOT = Path(__file__).resolve().parents[2]
REPORTS = ROOT / "build" / "reports"
STUDIES: dict[str, Study[Any]] = {
    one.name: one for one in (drain_report.STUDY, incident_report.STUDY, redrive_report.STUDY)
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the studies, show their tables, keep reports and pictures. Ends with 1 where a promise is missed at full
    size."""
    options = _parser().parse_args(argv)
    if options.jobs is not None and options.jobs < 1:
        print("--jobs: must be a whole number above 0", file=sys.stderr)
        return 2
    if options.picture is not None and (options.study is None or STUDIES[options.study].draw is None):
        print("--picture: name the study that it is of: drain or incident", file=sys.stderr)
        return 2
    studies = list(STUDIES.values()) if options.study is None else [STUDIES[options.study]]
    console = Console(stderr=options.json, width=None if sys.stdout.isatty() else WIDTH)
    began, wrong, documents = time.perf_counter(), False, {}
    for study, jobs, done in simulate(studies, options.jobs, console):
        documents[study.name] = document = _kept(study, jobs, done, options.picture)
        wrong = wrong or (bool(document["missed"]) and jobs >= study.jobs)
        if not options.json:
            _show(study, jobs, done, document, console)
    if options.json:
        print(json.dumps(documents if options.study is None else documents[options.study], indent=1))
    else:
        console.print(f"{time.perf_counter() - began:.0f} s; reports and pictures: {REPORTS}", highlight=False)
    return int(wrong)


def simulate(
    studies: Sequence[Study[Any]], jobs: int | None, console: Console
) -> list[tuple[Study[Any], int, list[Any]]]:
    """Every way of every study, each in a process of its own."""
    sizes = [study.jobs if jobs is None else jobs for study in studies]
    ways = sum(len(study.ways) for study in studies)
    with Progress(console=console, transient=True) as progress, ProcessPoolExecutor(initializer=_prepare) as pool:
        bar = progress.add_task(", ".join(study.name for study in studies), total=ways)
        running: list[list[Future[Any]]] = [
            [pool.submit(_run, study.name, way, size) for way in study.ways]
            for study, size in zip(studies, sizes, strict=True)
        ]
        for one in (one for of_study in running for one in of_study):
            one.add_done_callback(lambda _: progress.advance(bar))
        done = [[one.result() for one in of_study] for of_study in running]
    return list(zip(studies, sizes, done, strict=True))


def _prepare() -> None:
    # A world of a hundred thousand rows is looked through seldom.
    gc.set_threshold(100_000, 50, 100)


def _run(study: str, way: str, jobs: int) -> Any:
    return STUDIES[study].run(way, jobs)


def _kept(study: Study[Any], jobs: int, done: list[Any], picture: Path | None) -> dict[str, Any]:
    document = {"jobs": jobs, "ways": [study.report(one) for one in done], "missed": study.missed(done)}
    REPORTS.mkdir(parents=True, exist_ok=True)
    (REPORTS / f"{study.name}.json").write_text(json.dumps(document, indent=1) + "\n")
    if study.draw is not None:
        study.draw(done, picture or REPORTS / f"{study.name}.svg")
    return document


def _show(study: Study[Any], jobs: int, done: list[Any], document: dict[str, Any], console: Console) -> None:
    console.print(f"[bold]{study.name}[/]: {study.about.format(jobs=f'{jobs:,}')}", highlight=False)
    console.print(study.table(done, console.width))
    for sentence in document["missed"]:
        console.print(f"[bold red]missed[/] {sentence}", highlight=False)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m ops.simulator", description="Trouble on virtual time.")
    parser.add_argument("study", nargs="?", choices=tuple(STUDIES), help="one study; all of them without it")
    sizes = ", ".join(f"{study.name} {study.jobs:,}" for study in STUDIES.values())
    parser.add_argument("--jobs", type=int, help=f"the backlog (default: {sizes})")
    parser.add_argument("--picture", type=Path, help="where to draw it (.svg or .png)")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    return parser


if __name__ == "__main__":
    sys.exit(main())
