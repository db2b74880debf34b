"""`make simulate`: backlogs, a vendor in trouble and a redrive, ours beside the usual ways, on virtual time.

make simulate                             every study: its table, a report in build/reports/, a picture beside it
make simulate ARGS=bounds                 one of them: drain, bounds, incident or redrive
make simulate ARGS="drain --jobs 5000"    a smaller backlog: rougher figures, sooner
make simulate ARGS="drain --picture FILE" the picture somewhere else (.svg or .png)
make simulate ARGS="bounds --row 20 --seeds 1-10 --calls 1000"   some rows (those whose name has it in it), other seeds
make simulate ARGS="incident --row 'no headers'"  a vendor that tells nothing: ten seeds, each and their mean
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
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress

from ops.simulator import bounds_report, drain_report, incident_report, redrive_report
from ops.simulator.study import WIDTH, Study

ROOT = Path(__file__).resolve().parents[2]
REPORTS = ROOT / "build" / "reports"
STUDIES: dict[str, Study[Any]] = {
    one.name: one for one in (drain_report.STUDY, bounds_report.STUDY, incident_report.STUDY, redrive_report.STUDY)
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the studies, show their tables, keep reports and pictures. Ends with 1 where a promise is missed at full
    size."""
    options = _parser().parse_args(argv)
    if options.jobs is not None and options.jobs < 1:
        print("--jobs: must be a whole number above 0", file=sys.stderr)
        return 2
    if (options.row or options.seeds) and options.study is None:
        print("--row, --seeds: name the study that they are of", file=sys.stderr)
        return 2
    if options.picture is not None and (options.study is None or STUDIES[options.study].draw is None):
        print("--picture: name the study that it is of: drain, bounds or incident", file=sys.stderr)
        return 2
    studies = list(STUDIES.values()) if options.study is None else [_some(STUDIES[options.study], options)]
    if not studies[0].ways:
        print(f"--row: no row has {' or '.join(options.row)} in its name", file=sys.stderr)
        return 2
    console = Console(stderr=options.json, width=None if sys.stdout.isatty() else WIDTH)
    began, wrong, documents = time.perf_counter(), False, {}
    for study, jobs, done in simulate(studies, options.jobs, console, options.processes):
        documents[study.name] = document = _kept(study, jobs, done, options.picture)
        wrong = wrong or (bool(document["missed"]) and jobs >= study.jobs)
        if not options.json:
            _show(study, jobs, done, document, console)
    if options.json:
        print(json.dumps(documents if options.study is None else documents[options.study], indent=1))
    else:
        console.print(f"{time.perf_counter() - began:.0f} s; reports and pictures: {REPORTS}", highlight=False)
    return int(wrong)


def _some(study: Study[Any], options: argparse.Namespace) -> Study[Any]:
    """The study with the rows and seeds that are asked for."""
    rows, seeds = options.row, options.seeds
    if rows:
        study = replace(study, ways=tuple(way for way in study.ways if any(row in way for row in rows)))
    return study if seeds is None else replace(study, seeds=lambda way: seeds)


def simulate(
    studies: Sequence[Study[Any]], jobs: int | None, console: Console, processes: int | None = None
) -> list[tuple[Study[Any], int, list[Any]]]:
    """Every way of every study with each of its seeds, as many at once as there are cores, or as is asked for."""
    sizes = [study.jobs if jobs is None else jobs for study in studies]
    ways = sum(len(study.seeds(way)) for study in studies for way in study.ways)
    with Progress(console=console, transient=True) as progress, _pool(processes) as pool:
        bar = progress.add_task(", ".join(study.name for study in studies), total=ways)
        running: list[list[Future[Any]]] = [
            [pool.submit(_run, study.name, way, size, seed) for way in study.ways for seed in study.seeds(way)]
            for study, size in zip(studies, sizes, strict=True)
        ]
        for one in (one for of_study in running for one in of_study):
            one.add_done_callback(lambda _: progress.advance(bar))
        done = [[one.result() for one in of_study] for of_study in running]
    return list(zip(studies, sizes, done, strict=True))


def _pool(processes: int | None) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(max_workers=processes, initializer=_prepare)


def _prepare() -> None:
    # A world of a hundred thousand rows is looked through seldom.
    gc.set_threshold(100_000, 50, 100)


def _run(study: str, way: str, jobs: int, seed: int) -> Any:
    done = STUDIES[study].run(way, jobs, seed)
    # A world is full of circles, and the next one comes.
    gc.collect()
    return done


def _kept(study: Study[Any], jobs: int, done: list[Any], picture: Path | None) -> dict[str, Any]:
    document = {"jobs": jobs, "ways": [study.report(one) for one in done], "missed": study.missed(done)}
    if study.rows is not None:
        document["rows"] = study.rows(done)
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
    parser.add_argument("--jobs", "--calls", type=int, help=f"the backlog (default: {sizes})")
    parser.add_argument("--row", action="append", default=[], help="only rows with this in their name; may be repeated")
    parser.add_argument("--seeds", type=_seeds, help="other seeds than the study's own: 7, or 1-10")
    parser.add_argument("--processes", type=int, help="so many at once (default: as many as there are cores)")
    parser.add_argument("--picture", type=Path, help="where to draw it (.svg or .png)")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    return parser


def _seeds(text: str) -> range:
    first, _, last = text.partition("-")
    seeds = range(int(first), int(last or first) + 1)
    if not seeds:
        raise ValueError
    return seeds


if __name__ == "__main__":
    sys.exit(main())
