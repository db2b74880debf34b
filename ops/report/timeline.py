"""What happened when: the moments of an incident in one order, and their picture."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from shared.core.history import HistoryEvent
from shared.core.incident import CLOSED
from shared.core.severity import Severity
from shared.core.switches import Level
from shared.core.validation_facts import Facts

BANDS = {"normal": "#eef7ee", "mild": "#fff3c4", "moderate": "#ffd8a8", "severe": "#f8b4b4"}
BARS = {"route_only": "#e6a700", "no_new_starts": "#e07b00", "drain": "#d35400", "halt": "#b03030"}
QUIET_BAR, PLAN_BAR, INCIDENT_BAR = "#8e7cc3", "#3b6ea5", "#5f6b6d"
LEAST_BAR, LABELLED = 0.004, 0.08
"""Parts of the width: what is short is seen all the same, and a label stands where it has room."""
_WORDS = [one.word for one in Severity]


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """One thing that happened."""

    at: datetime
    kind: str
    what: str
    by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """Something that stood for a while."""

    row: str
    start: datetime
    end: datetime
    colour: str
    label: str


def moments(facts: Facts) -> list[Moment]:
    """Every change of severity and cap, every switch, note and step of a redrive; oldest first."""
    found = [*_decided(facts.decisions)]
    found += [Moment(at=event.at, kind="switch", what=_switched(event), by=event.by) for event in facts.switches]
    for incident in facts.incidents:
        for event in incident.events:
            said = str(event.detail.get("cause" if event.kind == CLOSED else "why", ""))
            found.append(Moment(at=event.at, kind="incident", what=f"{event.kind}: {said}", by=event.by))
    for event in facts.redrives:
        found.append(
            Moment(at=event.at, kind="redrive", what=f"{event.detail.get('plan', '?')} {event.kind}", by=event.by)
        )
    found += [
        Moment(at=change.at, kind="by hand", what=change.what, by=change.by)
        for change in facts.changes
        if not change.subject.startswith(("switch/", "redrive/"))
    ]
    return sorted(found, key=lambda one: (one.at, one.kind, one.what))


def bars(facts: Facts) -> list[Bar]:
    """What stood for a while: incidents, switches that were not at normal, redrives."""
    found = [
        Bar(
            row="incident",
            start=max(one.opened_at, facts.since),
            end=min(one.closed_at or facts.until, facts.until),
            colour=INCIDENT_BAR,
            label="open" if one.open else "",
        )
        for one in facts.incidents
    ]
    return [*found, *_closed(facts), *_redriven(facts)]


def draw(facts: Facts, to: Path) -> None:
    """Severity and queue age, the cap, and below them what was closed, replayed and noted."""
    import matplotlib

    matplotlib.use("agg")
    matplotlib.rcParams |= {"svg.hashsalt": "penstock", "svg.fonttype": "none", "font.size": 9}
    import matplotlib.pyplot as plt
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    standing = bars(facts)
    rows = list(dict.fromkeys(bar.row for bar in standing)) or ["nothing was closed or replayed"]
    heights = [2.2, 1.6, 0.4 + 0.32 * len(rows)]
    figure, (age, cap, lower) = plt.subplots(
        3, 1, sharex=True, figsize=(11, sum(heights) + 1.1), height_ratios=heights, layout="constrained"
    )
    _draw_severity(age, facts)
    _draw_cap(cap, facts)
    _draw_bars(lower, standing, rows, facts)
    figure.suptitle(
        f"Lane {facts.lane.name}, {facts.since:%Y-%m-%d %H:%M} to {facts.until:%Y-%m-%d %H:%M} UTC", x=0.02, ha="left"
    )
    locator = AutoDateLocator()  # type: ignore[no-untyped-call]
    lower.xaxis.set_major_locator(locator)
    lower.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
    lower.set_xlim(_number(facts.since), _number(facts.until))
    for axes in (age, cap, lower):
        axes.spines[["top", "right"]].set_visible(False)
    # Without a date the same facts draw the same file.
    figure.savefig(to, metadata={"Date": None})
    plt.close(figure)


def _decided(decisions: Sequence[HistoryEvent]) -> Iterable[Moment]:
    """Only where something changed: a decision is made every minute."""
    last_severity, last_cap = "", None
    for event in decisions:
        detail = event.detail
        severity, cap = str(detail.get("severity", "?")), detail.get("toCapacity")
        if severity != last_severity:
            what = f"{severity}, oldest job {detail.get('queueAgeSeconds', '?')} s"
            yield Moment(at=event.at, kind="severity", what=what, by=event.by)
        if cap != last_cap:
            what = f"{cap} ({detail.get('reasonCode', '?')})"
            yield Moment(at=event.at, kind="cap", what=what, by=event.by)
        last_severity, last_cap = severity, cap


def _switched(event: HistoryEvent) -> str:
    paid = "" if event.detail.get("automation_enabled", True) else ", paid calls forbidden"
    return f"{event.subject.partition('/')[2]} {event.detail.get('level', '?')}{paid}: {event.detail.get('why', '')}"


def _closed(facts: Facts) -> Iterable[Bar]:
    since: dict[str, tuple[datetime, str]] = {}
    for event in [*facts.switches, None]:
        # After the last event every scope that is closed stays so to the end.
        for scope in [event.subject.partition("/")[2]] if event is not None else list(since):
            if scope in since:
                start, level = since.pop(scope)
                end = facts.until if event is None else event.at
                yield Bar(row=scope, start=start, end=end, colour=BARS.get(level, QUIET_BAR), label=level)
            if event is not None:
                level = str(event.detail.get("level", ""))
                if level == Level.NORMAL.word and not event.detail.get("automation_enabled", True):
                    level = "no paid calls"
                if level != Level.NORMAL.word:
                    since[scope] = (event.at, level)


def _redriven(facts: Facts) -> Iterable[Bar]:
    for plan_id, replay in facts.replays.items():
        if replay.plan.started_at is None:
            continue
        ended = replay.progress.ended
        label = (
            "running"
            if ended is None or ended.ending is None
            else f"{ended.ending.value}, {replay.progress.tried:,} jobs"
        )
        yield Bar(
            row=f"redrive {plan_id}",
            start=max(replay.plan.started_at, facts.since),
            end=facts.until if ended is None else min(ended.at, facts.until),
            colour=PLAN_BAR,
            label=label,
        )


def _draw_severity(axes: Any, facts: Facts) -> None:
    decisions = facts.decisions
    for event, after in zip(decisions, [*decisions[1:], None], strict=False):
        word = str(event.detail.get("severity", ""))
        end = facts.until if after is None else after.at
        axes.axvspan(_number(event.at), _number(end), color=BANDS.get(word, "#ffffff"), linewidth=0)
    ages = [float(event.detail.get("queueAgeSeconds", 0)) for event in decisions]
    axes.step([_number(event.at) for event in decisions], ages, where="post", color="#333333", linewidth=1.2)
    axes.set(ylabel="oldest job, s", ylim=(0, None))
    for word in _WORDS:
        axes.plot([], [], linewidth=8, color=BANDS[word], label=word)
    axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=len(_WORDS), frameon=False, fontsize=8)
    if not decisions:
        axes.text(0.5, 0.5, "no decision was kept in this time", transform=axes.transAxes, ha="center")


def _draw_cap(axes: Any, facts: Facts) -> None:
    decisions = facts.decisions
    caps = [float(event.detail.get("toCapacity", 0)) for event in decisions]
    at = [_number(event.at) for event in decisions]
    if at:
        axes.step([*at, _number(facts.until)], [*caps, caps[-1]], where="post", color="#0b6e4f", linewidth=1.8)
    axes.axhline(facts.lane.ceiling, color="#b03030", linestyle=":", linewidth=1)
    axes.text(
        1.0,
        facts.lane.ceiling,
        " ceiling",
        transform=axes.get_yaxis_transform(),
        color="#b03030",
        va="center",
        fontsize=8,
    )
    for change in facts.changes:
        if change.subject.startswith("capacity/"):
            axes.axvline(_number(change.at), color=QUIET_BAR, linewidth=1)
    axes.set(ylabel="cap", ylim=(0, facts.lane.ceiling * 1.15))


def _draw_bars(axes: Any, standing: Sequence[Bar], rows: Sequence[str], facts: Facts) -> None:
    whole = _number(facts.until) - _number(facts.since)
    for bar in standing:
        place, start = rows.index(bar.row), _number(bar.start)
        width = max(_number(bar.end) - start, LEAST_BAR * whole)
        axes.barh(place, width, left=start, height=0.62, color=bar.colour)
        if width > LABELLED * whole:
            axes.text(start, place, f" {bar.label}", va="center", fontsize=8, color="white")
        elif bar.colour == PLAN_BAR:
            axes.text(start + width, place, f" {bar.label}", va="center", fontsize=8, color=PLAN_BAR)
    for incident in facts.incidents:
        for event in incident.events[1:]:
            axes.plot(_number(event.at), rows.index("incident"), marker="|", color="black", markersize=11)
    axes.set_yticks(range(len(rows)), rows)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_xlabel("UTC")


def _number(at: datetime) -> float:
    from matplotlib.dates import date2num

    return float(date2num(at))  # type: ignore[no-untyped-call]
