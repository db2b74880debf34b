"""Draws what passed a vendor, second by second, under its limit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from ops.simulator.drain import Drained
from ops.simulator.vendor import Weather

BIN_S = 10
SHOWN = {
    "Penstock, limits in headers": ("#0b6e4f", 2.2),
    "Penstock, no headers": ("#6bbf59", 1.6),
    "static shared bucket": ("#d98e04", 1.2),
    "backoff, full jitter": ("#c0392b", 1.2),
    "+2 every 10 min": ("#7f8c8d", 1.2),
}


def draw(done: Sequence[Drained], weather: Weather, to: Path) -> None:
    """Accepted calls a second, in bins of ten seconds; the limit is the grey area."""
    import matplotlib

    matplotlib.use("agg")
    matplotlib.rcParams |= {"svg.hashsalt": "penstock", "svg.fonttype": "none"}
    import matplotlib.pyplot as plt

    shown = [one for one in done if one.way in SHOWN]
    ends_s = max((one.seconds for one in shown if one.way.startswith("Penstock")), default=weather.outage[1]) * 1.5
    figure, axes = plt.subplots(figsize=(9, 3.6), layout="constrained")
    edges = sorted({at for at, _ in weather.limits} | set(weather.outage) | {ends_s})
    limit = [0 if weather.down_at(at) else weather.limit_at(at) / 60 for at in edges[:-1]]
    axes.stairs(limit, edges, fill=True, color="#e5e8e8", label="the vendor's limit")
    for one in shown:
        passed = Counter(int(at // BIN_S) for at in one.seen.accepted_at if at < ends_s)
        bins = range(int(min(ends_s, one.seconds) // BIN_S) + 1)
        colour, width = SHOWN[one.way]
        axes.plot(
            [number * BIN_S + BIN_S / 2 for number in bins],
            [passed[number] / BIN_S for number in bins],
            color=colour,
            linewidth=width,
            label=one.way,
        )
    axes.set(xlabel="seconds", ylabel="calls accepted a second", xlim=(0, ends_s), ylim=(0, None))
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8, loc="upper right")
    to.parent.mkdir(parents=True, exist_ok=True)
    # Without a date the same run draws the same file.
    figure.savefig(to, metadata={"Date": None} if to.suffix == ".svg" else None)
    plt.close(figure)
