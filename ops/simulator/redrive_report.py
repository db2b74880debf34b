"""The redrive's figures, what is promised of them, and its table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.table import Table

from ops.simulator.redrive import ABORTED, BASELINE, DEAD, KILLED, NOBODY, WAYS, Redriven, run
from ops.simulator.study import Study, a_table, missed_bounds
from shared.core.plan import Ending

COLUMNS = (
    "took",
    "live jobs\np99 wait",
    "× without\na redrive",
    "replayed",
    "twice",
    "sent\ntwice",
    "lost",
    "kills",
    "starts a tick\nafter abort",
)
EACH = {"released_twice": 0, "duplicates": 0, "lost": 0}
BOUNDS: dict[str, dict[str, float]] = {
    BASELINE: {"times_quiet": 1.1, "not_replayed": 0},
    KILLED: {"not_replayed": 0},
    ABORTED: {"started_after_a_tick": 0},
}


def report(one: Redriven) -> dict[str, Any]:
    """The figures of one way."""
    return {
        "way": one.way,
        "seconds": round(one.seconds),
        "ending": None if one.ending is None else one.ending.value,
        "live": len(one.waits),
        "p99_s": round(one.p99_s(), 3),
        "replayed": one.replayed,
        "not_replayed": one.dead - one.completed,
        "released_twice": one.twice,
        "duplicates": one.duplicates,
        "lost": one.lost,
        "kills": one.kills,
        "started_after_a_tick": one.released_after_abort,
        "last_start_after_abort_s": round(one.stops_after_s, 1),
    }


def times_quiet(one: Redriven, done: Sequence[Redriven]) -> float | None:
    """The p99 wait beside that of the same live jobs without a redrive."""
    quiet = next((other for other in done if other.way == NOBODY), None)
    if quiet is None or one is quiet:
        return None
    return one.p99_s() / max(0.001, quiet.p99_s(one.seconds))


def missed(done: Sequence[Redriven]) -> list[str]:
    """Promises that do not hold, in words; whatever the way, nobody is replayed or answered twice."""
    found = []
    for one in done:
        figures = report(one) | {"times_quiet": times_quiet(one, done)}
        found += missed_bounds(figures, EACH | BOUNDS.get(one.way, {}))
        if one.way == ABORTED and one.ending is not Ending.ABORTED:
            found.append(f"{one.way}: it ended as {one.ending}")
    return found


def table(done: Sequence[Redriven], width: int) -> Table:
    """One row a way."""
    rows = a_table(COLUMNS, width)
    for one in done:
        times = times_quiet(one, done)
        rows.add_row(
            one.way,
            f"{one.seconds / 3600:.1f} h",
            f"{one.p99_s():.2f} s",
            "–" if times is None else f"{times:.2f}",
            f"{one.replayed:,}",
            f"{one.twice:,}",
            f"{one.duplicates:,}",
            f"{one.lost:,}",
            f"{one.kills:,}" if one.kills else "–",
            f"{one.released_after_abort:,}" if one.way == ABORTED else "–",
        )
    return rows


STUDY = Study(
    name="redrive",
    about="{jobs} dead letters are replayed beside live traffic",
    jobs=DEAD,
    ways=WAYS,
    run=run,
    report=report,
    missed=missed,
    table=table,
)
