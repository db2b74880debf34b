"""The incident's figures, what is promised of them, its table and its picture."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from ops.simulator import lane_support
from ops.simulator.incident import JOBS, OURS, TROUBLE_S, WAYS, Handled, Incident
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


def run(name: str, jobs: int, seed: int = 1) -> Handled:
    """One way by its name; a smaller backlog has its trouble sooner, and for less long."""
    began, over = TROUBLE_S
    return WAYS[name](Incident(jobs=jobs, trouble_s=(began * jobs / JOBS, over * jobs / JOBS)))


def report(one: Handled) -> dict[str, Any]:
    """The figures of one way."""
    return {
        "way": one.way,
        "drained_s": None if one.drained_s is None else round(one.drained_s),
        "fastest_s": round(one.fastest_s),
        "times_fastest": None if one.times_fastest is None else round(one.times_fastest, 3),
        "calls": one.seen.calls,
        "accepted": len(one.seen.accepted_at),
        "calls_per_accept": round(one.calls_per_accept, 4),
        "refused_share": round(one.refused_share, 5),
        "direction_changes": one.changes,
        "highest_cap": one.peak,
        "most_at_once": one.most_at_once,
        "duplicates": one.duplicates,
        "lost": one.lost,
        "caps": [[round(at_s), cap] for at_s, cap in one.caps],
    }


def bounds() -> dict[str, float]:
    """What is promised of a vendor that tells its limits."""
    ceiling = lane_support.lane().ceiling
    return {
        "times_fastest": 1.1,
        "calls_per_accept": 1.05,
        "refused_share": 0.01,
        "direction_changes": 3,
        "highest_cap": ceiling,
        "most_at_once": ceiling,
        "duplicates": 0,
        "lost": 0,
    }


def missed(done: Sequence[Handled]) -> list[str]:
    """Promises that do not hold, in words; whatever the way, Penstock sends nothing twice and loses nothing."""
    found = []
    for one in done:
        if one.way == OURS:
            found += missed_bounds(report(one), bounds())
        else:
            found += missed_bounds(report(one), {"duplicates": 0})
    return found


def table(done: Sequence[Handled], width: int) -> Table:
    """One row a way."""
    rows = a_table(COLUMNS, width)
    for one in done:
        rows.add_row(
            one.way,
            "–" if one.drained_s is None else _clock(one.drained_s),
            "–" if one.times_fastest is None else f"{one.times_fastest:.3f}",
            f"{one.calls_per_accept:.3f}",
            f"{one.refused_share:.2%}",
            str(one.changes) if len(one.caps) > 1 else "–",
            str(one.peak),
            f"{one.duplicates:,}",
            f"{one.lost:,}",
        )
    rows.add_row("the fastest in hindsight", _clock(done[0].fastest_s), "1.000", *("",) * 6)
    return rows


def _clock(seconds: float) -> str:
    minutes = round(seconds / 60)
    return f"{minutes // 60}:{minutes % 60:02} h"


def draw(done: Sequence[Handled], to: Path) -> None:
    """What waits, the cap, and the 429s of each minute; the grey band is the vendor at a quarter."""
    import matplotlib

    matplotlib.use("agg")
    matplotlib.rcParams |= {"svg.hashsalt": "penstock", "svg.fonttype": "none"}
    import matplotlib.pyplot as plt

    shown = [one for one in done if one.way in SHOWN]
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
)
