"""The incident's figures, what is promised of them, its table and its picture."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from rich.table import Table

from ops.simulator import lane_support
from ops.simulator.incident import JOBS, OURS, TROUBLE_S, UNTOLD, WAYS, Handled, Incident
from ops.simulator.study import Study, a_table, missed_bounds

COLUMNS = (
    "drained\nin",
    "× the\nfastest",
    "calls per\naccept",
    "429",
    "turns of\nthe cap",
    "highest\ncap",
    "twice",
    "not\ndone",
)
SHOWN = {
    OURS: ("#0b6e4f", 2.4),
    "policy ramp": ("#6bbf59", 1.4),
    "budgets alone, cap at the ceiling": ("#2e86c1", 1.4),
    "fixed concurrency": ("#d98e04", 1.2),
    "naive retry": ("#c0392b", 1.2),
    "backoff, full jitter": ("#7f8c8d", 1.2),
}


SEEDS = range(1, 11)
"""Of a vendor that tells nothing: how often it happens to refuse within one minute decides about a whole step."""


def run(name: str, jobs: int, seed: int = 1) -> Handled:
    """One way by its name; a smaller backlog has its trouble sooner, and for less long."""
    began, over = TROUBLE_S
    return WAYS[name](Incident(jobs=jobs, trouble_s=(began * jobs / JOBS, over * jobs / JOBS)), seed)


def report(one: Handled) -> dict[str, Any]:
    """The figures of one way."""
    return {
        "way": one.way,
        "seed": one.seed,
        "drained_s": None if one.drained_s is None else round(one.drained_s),
        "fastest_s": round(one.fastest_s),
        "times_fastest": None if one.times_fastest is None else round(one.times_fastest, 3),
        "calls": one.seen.calls,
        "accepted": len(one.seen.accepted_at),
        "calls_per_accept": round(one.calls_per_accept, 4),
        "refused_share": round(one.refused_share, 5),
        "direction_changes": one.changes,
        "highest_cap": one.peak,
        "largest_rise": max((step for _, step in one.rises), default=0),
        "rises_too_soon": sum(apart_s < Incident().policy.interval_s for apart_s, _ in one.rises),
        "last_cap": one.caps[-1][1],
        "most_at_once": one.most_at_once,
        "duplicates": one.duplicates,
        "lost": one.lost,
        "caps": [[round(at_s), cap] for at_s, cap in one.caps],
    }


def rows(done: Sequence[Handled]) -> list[dict[str, Any]]:
    """Each way's figures: the mean time of its seeds with the worst beside it, and the most of everything else."""
    found = []
    for way in dict.fromkeys(one.way for one in done):
        each = [report(one) for one in done if one.way == way]
        times = [one["times_fastest"] for one in each]
        drained = None not in times
        most = {name: max(one[name] for one in each) for name in MOST}
        found.append(
            {
                "way": way,
                "seeds": [one["seed"] for one in each],
                "drained_s": round(mean(one["drained_s"] for one in each)) if drained else None,
                "times_fastest": round(mean(times), 3) if drained else None,
                "worst_times_fastest": max(times) if drained else None,
                **most,
            }
        )
    return found


MOST = (
    "calls_per_accept",
    "refused_share",
    "direction_changes",
    "highest_cap",
    "largest_rise",
    "rises_too_soon",
    "last_cap",
    "most_at_once",
    "duplicates",
    "lost",
)


def bounds() -> dict[str, float]:
    """What is promised of lane `support` as it is shipped, whether or not the vendor tells its limits: the mean time,
    and for every seed the rules by which a cap moves."""
    lane, policy = lane_support.lane(), Incident().policy
    return {
        "times_fastest": 1.1,
        "calls_per_accept": 1.05,
        "refused_share": 0.01,
        "direction_changes": 3,
        "highest_cap": lane.ceiling,
        "largest_rise": policy.step_up,
        "rises_too_soon": 0,
        "last_cap": lane.baseline,
        "most_at_once": lane.ceiling,
        "duplicates": 0,
        "lost": 0,
    }


def missed(done: Sequence[Handled]) -> list[str]:
    """Promises that do not hold, in words; whatever the way, Penstock sends nothing twice and loses nothing."""
    promised = {OURS: bounds(), UNTOLD: bounds()}
    return [one for row in rows(done) for one in missed_bounds(row, promised.get(row["way"], {"duplicates": 0}))]


def table(done: Sequence[Handled], width: int) -> Table:
    """One row a way; below it each seed of a way that has several."""
    shown = a_table(COLUMNS, width)
    for row in rows(done):
        times, seeds = row["times_fastest"], len(row["seeds"])
        members = [one for one in done if one.way == row["way"]]
        of = f" · {row['worst_times_fastest']:.3f}" if seeds > 1 and times is not None else ""
        shown.add_row(
            row["way"] + (f", mean · worst of {seeds}" if seeds > 1 else ""),
            "–" if row["drained_s"] is None else _clock(row["drained_s"]),
            "–" if times is None else f"{times:.3f}{of}",
            f"{row['calls_per_accept']:.3f}",
            f"{row['refused_share']:.2%}",
            str(row["direction_changes"]) if any(len(one.caps) > 1 for one in members) else "–",
            str(row["highest_cap"]),
            f"{row['duplicates']:,}",
            f"{row['lost']:,}",
        )
        if seeds > 1:
            each = ("–" if one.times_fastest is None else f"{one.times_fastest:.3f}" for one in members)
            shown.caption = f"{row['way']}, seed by seed: {', '.join(each)}"
    shown.add_row("the fastest in hindsight", _clock(done[0].fastest_s), "1.000", *("",) * 6)
    return shown


def _clock(seconds: float) -> str:
    minutes = round(seconds / 60)
    return f"{minutes // 60}:{minutes % 60:02} h"


def draw(done: Sequence[Handled], to: Path) -> None:
    """What waits, the cap, and the 429s of each minute; the grey band is the vendor at a quarter."""
    import matplotlib

    matplotlib.use("agg")
    matplotlib.rcParams |= {"svg.hashsalt": "penstock", "svg.fonttype": "none"}
    import matplotlib.pyplot as plt

    shown = [one for one in done if one.way in SHOWN and one.seed == done[0].seed]
    ends = max((one.drained_s or 0 for one in shown if one.way == OURS), default=0) * 1.2 / 60
    figure, (waits, cap, refused) = plt.subplots(
        3, 1, figsize=(9, 7), sharex=True, layout="constrained", height_ratios=(3, 2, 2)
    )
    share = done[0].jobs / JOBS
    for axes in (waits, cap, refused):
        axes.axvspan(TROUBLE_S[0] * share / 60, TROUBLE_S[1] * share / 60, color="#e5e8e8")
        axes.spines[["top", "right"]].set_visible(False)
    for one in shown:
        colour, width = SHOWN[one.way]
        style = {"color": colour, "linewidth": width, "label": one.way}
        minutes = range(int(min(ends, one.seconds / 60)) + 1)
        passed, came = _by_minute(one.seen.accepted_at), _by_minute(one.arrived)
        left, lefts = one.jobs, []
        for minute in minutes:
            left += came[minute] - passed[minute]
            lefts.append(left)
        waits.plot(minutes, lefts, **style)
        met = _by_minute(one.seen.refused_at)
        refused.plot(minutes, [met[minute] for minute in minutes], **style)
        if len(one.caps) > 1 or one.way.startswith("budgets"):
            times = [*(at_s / 60 for at_s, _ in one.caps), one.seconds / 60]
            caps = [*(value for _, value in one.caps), one.caps[-1][1]]
            cap.step(times, caps, where="post", **style)
    waits.set(ylabel="jobs that wait", ylim=(0, None), xlim=(0, ends))
    cap.set(ylabel="cap", ylim=(0, None))
    refused.set(ylabel="429s a minute", xlabel="minutes; the vendor is at 25 % in the grey band")
    refused.set_yscale("symlog", linthresh=10)
    refused.set_ylim(0, None)
    waits.legend(frameon=False, fontsize=8, loc="upper right")
    to.parent.mkdir(parents=True, exist_ok=True)
    # Without a date the same run draws the same file.
    figure.savefig(to, metadata={"Date": None} if to.suffix == ".svg" else None)
    plt.close(figure)


def _by_minute(times_s: Sequence[float]) -> Counter[int]:
    return Counter(int(at_s // 60) for at_s in times_s)


STUDY = Study(
    name="incident",
    about="{jobs} jobs wait; in the middle of the drain the vendor is at 25 % of its limit",
    jobs=JOBS,
    ways=tuple(WAYS),
    run=run,
    report=report,
    missed=missed,
    table=table,
    draw=draw,
    seeds=lambda way: SEEDS if way == UNTOLD else (1,),
    rows=rows,
)
