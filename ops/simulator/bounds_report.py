"""The figures of slow and strict vendors, what is promised of them, and their table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from rich.table import Table

from ops.simulator.bounds import SEEDS, TOLD, UNTOLD, Bound, run, ways
from ops.simulator.families import CALLS
from ops.simulator.study import Study, a_table, missed_bounds

HEADERS = {"times_ideal": 1.06, "refused_share": 0.005}
LENIENT = {"times_ideal": 1.15, "refused_share": 0.01}
NO_HEADERS = {"times_ideal": 1.10, "refused_share": 0.02}
EACH: dict[str, float] = {"writes_per_accept": 1.5, "slept_share": 0.05, "failed": 0}
APART: dict[str, dict[str, float]] = {
    f"8,000 tokens a call, {TOLD}": LENIENT,
    f"headers say twice the limit, {TOLD}": LENIENT,
    # Obeyed: every 429 costs a quarter of an hour, and nobody calls in it.
    f"Retry-After 900 s, {UNTOLD}": {"called_in_quiet": 0},
}
COLUMNS = ("time / ideal\nmean · worst", "/ fluid", "429\nmean · worst", "writes\na call", "slots sleep\nall · taken")
MEANS = ("times_ideal", "times_fluid", "refused_share", "writes_per_accept", "slept_share", "slept_of_held")
DRAWN = (("times_ideal", "time / ideal", 1.0), ("refused_share", "429s, %", 100.0))


def report(one: Bound) -> dict[str, Any]:
    """The figures of one member."""
    return {
        "way": one.way,
        "seed": one.seed,
        "calls": one.calls,
        "accepted": one.accepted,
        "failed": one.failed,
        "seconds": round(one.seconds, 1),
        "ideal_s": round(one.ideal_s, 1),
        "times_ideal": round(one.times_ideal, 4),
        "times_fluid": round(one.times_fluid, 4),
        "refused_share": round(one.refused_share, 5),
        "writes_per_accept": round(one.writes_per_accept, 3),
        "slept_share": round(one.slept_share, 4),
        "slept_of_held": round(one.slept_of_held, 4),
        "called_in_quiet": one.called_in_quiet,
    }


def rows(done: Sequence[Bound]) -> list[dict[str, Any]]:
    """Each way's mean, and the worst of its members beside it."""
    found = []
    for way in dict.fromkeys(one.way for one in done):
        members = [report(one) for one in done if one.way == way]
        row: dict[str, Any] = {"way": way, "seeds": [one["seed"] for one in members]}
        for figure in MEANS:
            row[figure] = round(mean(one[figure] for one in members), 4)
        row["worst_times_ideal"] = max(one["times_ideal"] for one in members)
        row["worst_refused_share"] = max(one["refused_share"] for one in members)
        row["failed"] = sum(one["failed"] for one in members)
        row["called_in_quiet"] = sum(one["called_in_quiet"] for one in members)
        row["windowed"] = any(one.windowed for one in done if one.way == way)
        found.append(row)
    return found


def bounds_of(way: str) -> dict[str, float]:
    """What is promised of a row's mean."""
    if way in APART:
        return EACH | APART[way]
    return EACH | (HEADERS if way.endswith(f", {TOLD}") else NO_HEADERS)


def missed(done: Sequence[Bound]) -> list[str]:
    """Promises that do not hold, in words."""
    return [sentence for row in rows(done) for sentence in missed_bounds(row, bounds_of(row["way"]))]


def table(done: Sequence[Bound], width: int) -> Table:
    """One row a way."""
    shown = a_table(COLUMNS, width)
    for row in rows(done):
        over = {figure for figure, most in bounds_of(row["way"]).items() if row[figure] > most}

        def cell(figure: str, text: str, over: set[str] = over) -> str:
            return f"[bold red]{text}[/]" if figure in over else text

        obeyed = ", obeyed" if not row["called_in_quiet"] and "called_in_quiet" in bounds_of(row["way"]) else ""
        shown.add_row(
            row["way"] + obeyed,
            cell("times_ideal", f"{row['times_ideal']:.3f} · {row['worst_times_ideal']:.3f}"),
            f"{row['times_fluid']:.3f}" if row["windowed"] else "",
            cell("refused_share", f"{row['refused_share']:.2%} · {row['worst_refused_share']:.2%}"),
            cell("writes_per_accept", f"{row['writes_per_accept']:.2f}"),
            cell("slept_share", f"{row['slept_share']:.1%} · {row['slept_of_held']:.0%}"),
        )
    return shown


def draw(done: Sequence[Bound], to: Path) -> None:
    """Each member a dot, each row's mean a bar through its dots, what is promised a line."""
    import matplotlib

    matplotlib.use("agg")
    matplotlib.rcParams |= {"svg.hashsalt": "penstock", "svg.fonttype": "none"}
    import matplotlib.pyplot as plt

    shown = list(reversed(rows(done)))
    figure, panels = plt.subplots(1, 2, figsize=(9, 1.2 + 0.27 * len(shown)), sharey=True, layout="constrained")
    for axes, (figure_name, label, scale) in zip(panels, DRAWN, strict=True):
        for place, row in enumerate(shown):
            members = [scale * getattr(one, figure_name) for one in done if one.way == row["way"]]
            axes.plot(members, [place] * len(members), "o", color="#0b6e4f", alpha=0.35, markersize=4)
            axes.plot(scale * row[figure_name], place, "|", color="#0b6e4f", markersize=11, markeredgewidth=2)
            promised = bounds_of(row["way"]).get(figure_name)
            if promised is not None:
                axes.plot(scale * promised, place, "|", color="#c0392b", markersize=11, markeredgewidth=1)
        axes.set(xlabel=label, yticks=range(len(shown)), yticklabels=[row["way"] for row in shown])
        axes.tick_params(labelsize=8)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", color="#e5e8e8")
        axes.set_axisbelow(True)
    panels[0].set_xscale("log")
    panels[0].xaxis.set_major_formatter("{x:g}")
    panels[0].xaxis.set_minor_formatter("{x:g}")
    panels[1].set_xlim(0, None)
    to.parent.mkdir(parents=True, exist_ok=True)
    # Without a date the same run draws the same file.
    figure.savefig(to, metadata={"Date": None} if to.suffix == ".svg" else None)
    plt.close(figure)


STUDY = Study(
    name="bounds",
    about="{jobs} calls to each of ten drawn members of every family of slow and strict vendors",
    jobs=CALLS,
    ways=ways(),
    run=run,
    report=report,
    missed=missed,
    table=table,
    draw=draw,
    seeds=lambda way: SEEDS,
    rows=rows,
)
