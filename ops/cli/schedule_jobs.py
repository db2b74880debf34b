"""`penstock jobs schedule` for many jobs: ids from a file or by what they have in common; it can be given again."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import typer

from ops.cli.command import Asked
from ops.cli.show import Column, ago, count, styled, table
from ops.cli.trouble import problem_of
from shared.core.bulk import BulkRun, Fate, LineFate, Selection
from shared.core.errors import BadInput, UnreadableRow
from shared.core.moment import iso
from shared.usecases import schedule_jobs as bulk

if TYPE_CHECKING:
    from ops.cli.stage import Stage

ASK_ABOVE = 100
"""More jobs than this are changed only after a yes."""
SHOWN = 40
"""Lines not changed that a person is shown; a program gets all of them."""
STDIN = "-"

SAID = {
    "unchanged": "has this time already",
    "malformed": "is not the whole id of a job",
    "duplicate": "stands in an earlier line, too",
    "not_found": "does not exist in this stage",
    "not_queued": "is {status}; only a queued job can be given another time",
    "changed_meanwhile": "changed meanwhile; give it again",
    "unknown_lane": "is of a lane that is not configured",
    "unreadable": "is a row this version cannot read",
    "unavailable": "got no answer: it may or may not be changed; give it again",
    "not_reached": "was not reached; give it again",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Many:
    """Which jobs are meant, and how the run is to go."""

    file: str | None
    selection: Selection | None
    why: str
    resume: str | None
    yes: bool
    dry_run: bool

    def again(self, run: BulkRun, stage: str) -> str:
        """The command that goes on where this run ended: the same jobs, the same moment, the same run."""
        words = ["penstock", "jobs", "schedule"]
        if self.file is not None:
            words += ["--file", self.file]
        elif self.selection is not None:
            chosen = self.selection
            options = {"--lane": chosen.lane, "--tenant": chosen.tenant, "--blocked-by": chosen.blocked_by}
            words += [part for name, value in options.items() if value is not None for part in (name, value)]
        words += ["--at", iso(run.at), "--resume", run.run_id, "--why", self.why, "--yes", "--stage", stage]
        return shlex.join(words)


def schedule_many(asked: Asked, many: Many, stage: Stage, at: datetime) -> None:
    """Give them all the time `at`, and account for each. Ends with 1 when some could not be reached."""
    texts = _texts(asked, many, stage)
    meant = len({job_id for text in texts if (job_id := bulk.whole_id(text)) is not None})
    if not many.dry_run:
        _agreed(asked, many, meant, at, stage)
    with asked.out.working("looking" if many.dry_run else "scheduling") as tell:
        run = bulk.schedule_jobs(
            texts,
            at,
            by=stage.caller.arn,
            why=many.why,
            jobs=stage.jobs,
            history=stage.history,
            clock=stage.clock,
            run_id=many.resume,
            dry_run=many.dry_run,
            threads=bulk.THREADS,
            progress=lambda counts: tell(f"{sum(counts.values()):,} of {len(texts):,}: {_numbers(counts)}"),
        )
    _tell(asked, many, run, stage)
    if not run.finished:
        raise typer.Exit(1)


def _texts(asked: Asked, many: Many, stage: Stage) -> list[str]:
    if many.file is not None:
        if many.file == STDIN:
            return list(lines_of(sys.stdin.buffer))
        with Path(many.file).open("rb") as stream:
            return list(lines_of(stream))
    selection = many.selection
    if selection is None:
        raise BadInput("jobs", "are not given: an ID, --file, or --lane")
    stage.lane(selection.lane)
    seen, unreadable = 0, 0
    found: list[str] = []

    def note() -> None:
        nonlocal seen
        seen += 1
        if seen % 200 == 0:
            tell(f"{seen:,} rows read, {len(found):,} found")

    with asked.out.working("reading jobs") as tell:
        for row in stage.watched_jobs(note).scan():
            if isinstance(row, UnreadableRow):
                unreadable += 1
            elif selection.holds(row):
                found.append(row.job_id)
    if unreadable:
        asked.out.warn(f"{unreadable:,} rows cannot be read, so nobody can tell whether they are meant; see `audit`.")
    return found


def lines_of(stream: BinaryIO) -> Iterator[str]:
    """A file's lines as text, each cut at what could be an id; the mark some editors put first is left out."""
    first = True
    # A cut line is longer than any id, so it is refused as a whole.
    limit = 4 * bulk.MAX_LINE
    while line := stream.readline(limit):
        ends = line.endswith(b"\n")
        while not ends and (rest := stream.readline(limit)):
            ends = rest.endswith(b"\n")
            line += rest[: max(0, 2 * limit - len(line))]
        text = line.decode("utf-8", errors="replace")
        yield text.removeprefix("\ufeff") if first else text
        first = False


def _agreed(asked: Asked, many: Many, meant: int, at: datetime, stage: Stage) -> None:
    """Ask, when it is about many; where nobody can be asked, `--yes` must have been said."""
    if meant <= ASK_ABOVE or many.yes:
        return
    if not _can_be_asked(asked, many):
        raise BadInput("yes", f"is missing: this changes {meant:,} jobs; look with --dry-run, then say --yes")
    when = ago(at, stage.clock.now())
    asked.out.quiet()
    if not typer.confirm(f"Give {meant:,} jobs of stage {stage.name} the time {iso(at)} ({when})?", err=True):
        raise typer.Abort


def _can_be_asked(asked: Asked, many: Many) -> bool:
    return not asked.out.json and many.file != STDIN and sys.stdin.isatty()


def _tell(asked: Asked, many: Many, run: BulkRun, stage: Stage) -> None:
    again = None if run.finished or many.dry_run else many.again(run, stage.name)
    if asked.out.json:
        for line in run.left:
            known: dict[str, Any] = {"line": line.line, "job_id": line.job_id or None, "reason": line.reason}
            asked.out.line({"left": known})
        asked.out.line({"summary": _summary(run, again)})
        return
    left = list(run.left)
    if left:
        rows = [(str(line.line), line.job_id or "–", _sentence(line)) for line in left[:SHOWN]]
        columns: list[str | Column] = [
            Column(header="line", right=True),
            Column(header="job", whole=True),
            "not changed: it",
        ]
        asked.out.say(table(columns, rows))
        if len(left) > SHOWN:
            asked.out.say(f"… and {len(left) - SHOWN:,} more; --json lists them all")
    word = "would be changed" if run.dry_run else "changed"
    changed = run.counts.get(Fate.CHANGED, 0)
    numbers = _numbers({reason: number for reason, number in run.counts.items() if reason != Fate.CHANGED})
    said = f"{len(run.lines):,} lines: {changed:,} {word} to {iso(run.at)}" + (f", {numbers}" if numbers else "")
    asked.out.say(styled(said, "green" if run.finished else "yellow"))
    asked.out.say(styled(f"run {run.run_id}: {count(run.reads)} reads, {count(run.writes)} writes", "dim"))
    if run.stopped is not None:
        asked.out.warn(_stopped(run.stopped))
    if again is not None:
        asked.out.warn("Go on with (nothing is changed twice):")
        asked.out.warn(f"  {again}")


def _sentence(line: LineFate) -> str:
    return SAID[line.fate].format(status=line.status)


def _stopped(exc: BaseException) -> str:
    if isinstance(exc, KeyboardInterrupt):
        return "Interrupted."
    return problem_of(exc).sentence


def _summary(run: BulkRun, again: str | None) -> dict[str, Any]:
    return {
        "run_id": run.run_id,
        "at": run.at,
        "dry_run": run.dry_run,
        "finished": run.finished,
        "lines": len(run.lines),
        "counts": run.counts,
        "reads": run.reads,
        "writes": run.writes,
        "stopped": None if run.stopped is None else _stopped(run.stopped),
        "again": again,
    }


def _numbers(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{number:,} {reason.replace('_', ' ')}" for reason, number in sorted(counts.items()))
