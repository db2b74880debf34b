"""`penstock status`: what waits, runs and failed, lane by lane, and who closed what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ops.cli.command import Asked
from ops.cli.kept import kept_of
from ops.cli.run_pages import took
from ops.cli.show import NOTHING, Column, ago, count, level, plain, span, styled, table
from shared.contract import names
from shared.core.capacity import CapacityState
from shared.core.errors import Unavailable, UnreadableRow
from shared.core.job import Status
from shared.core.signals import Signals
from shared.core.switches import Level, Switch, Switches, lane_scopes
from shared.core.vendor_cost import HOUR_S, LaneCost, cost_of

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

    from ops.cli.stage import Stage
    from shared.core.lane import LaneSpec
    from shared.core.message import QueueDepth
    from shared.core.schedule import RunRecord

EXAMPLES = ("penstock status", "penstock status support --watch", "penstock status --count --json")
WATCH_S = 2.0
WAITING_LIMIT = 1000
"""Entries of the waiting index counted, for each priority; more are shown as so many and a plus."""
FAR = timedelta(days=3650)
SEVERITY_STYLES = {"normal": "green", "mild": "yellow", "moderate": "yellow", "severe": "red"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a lane's vendors cost an hour, by what was counted in the last hour."""

    per_hour: float | None
    """None where no vendor that was called has a price."""
    words: str
    currency: str
    vendors: dict[str, float | None]
    """None: it was called, and has no price."""
    spike_per_hour: float | None
    recommends: str | None
    """A command, above the threshold, unless paid calls are forbidden already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneStatus:
    """One lane, now."""

    lane: str
    due: int | None
    """Waiting in the table and due; None for a lane whose waiting jobs cannot be counted cheaply."""
    later: int | None
    """In the table with a time to come: scheduled or in backoff."""
    at_least: bool
    """True when there are more than could be counted."""
    oldest_due_at: datetime | None
    queue: QueueDepth | None
    """None for a lane with runs: it has no queue, and nothing is kept of its workers."""
    dead_letters: int
    cap: int | None
    baseline: int | None
    ceiling: int | None
    a_run: int | None
    """Jobs that each of its runs may take; None for a lane that is served as jobs come."""
    severity: str
    reason: str | None
    """Why the cap is what it is; None before the governor's first look."""
    pinned_until: datetime | None
    cost: Cost
    troubles: tuple[str, ...] = ()
    """What is wrong beside the jobs, a sentence each."""
    counts: dict[str, int] | None = None
    """Jobs by status; only when everything was counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A stage, now."""

    stage: str
    at: datetime
    lanes: list[LaneStatus]
    switches: list[Switch]
    runs: list[RunRecord]
    scheduled: tuple[str, ...] = names.SCHEDULED
    """What runs by the clock: the engine, and the lanes that are looked at."""
    unknown: dict[str, dict[str, int]] = field(default_factory=dict)
    """Counted jobs of lanes that are not deployed (any more), and rows nobody can read."""


def status(
    asked: Asked,
    lane: Annotated[str | None, typer.Argument(metavar="LANE", show_default=False, help="This lane only.")] = None,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Look again every two seconds, until Ctrl-C.")] = False,
    count_all: Annotated[
        bool, typer.Option("--count", help="Count every job by status; reads the whole table.")
    ] = False,
) -> None:
    """Show what waits, runs and failed, lane by lane.

    And what its vendors cost, and every switch that is not normal, with who closed it and why. Cheap by default:
    queue attributes, the waiting index (bounded), the last hour's counts and the last runs. In JSON with --watch: one
    line each time.
    """
    stage = asked.stage()
    lanes = [stage.lane(lane)] if lane is not None else list(stage.lanes.values())
    if watch:
        _watch(asked, stage, lanes, count_all)
        return
    with asked.out.working("looking") as tell:
        found = look(stage, lanes, count_all=count_all, tell=tell)
    if asked.out.json:
        asked.out.document(document(found))
    else:
        asked.out.say(*page(found))


def look(
    stage: Stage, lanes: list[LaneSpec], *, count_all: bool = False, tell: Callable[[str], None] = lambda _: None
) -> Snapshot:
    """Everything at once."""
    now = stage.clock.now()
    counts = counted(stage, tell) if count_all else None
    switches = stage.control.switches()
    scheduled = (*names.SCHEDULED, *(names.run(lane.name, role) for lane in lanes for role in lane.runs))
    return Snapshot(
        stage=stage.name,
        at=now,
        lanes=[_lane(stage, lane, now, counts, switches) for lane in lanes],
        switches=sorted(switches.entries.values(), key=lambda switch: (-switch.level, switch.scope)),
        runs=[run for name in scheduled for run in stage.ledger.runs(name, limit=1)],
        scheduled=scheduled,
        unknown={name: of for name, of in (counts or {}).items() if name not in stage.lanes},
    )


def counted(stage: Stage, tell: Callable[[str], None]) -> dict[str, dict[str, int]]:
    """Every job of the stage by lane and status: a scan of the whole table."""
    found: dict[str, Counter[str]] = {}
    for number, row in enumerate(stage.jobs.scan(), start=1):
        lane, word = ("?", "unreadable") if isinstance(row, UnreadableRow) else (row.lane, row.status.value)
        found.setdefault(lane, Counter())[word] += 1
        if number % 500 == 0:
            tell(f"{number:,} jobs counted")
    return {lane: dict(words) for lane, words in found.items()}


def document(found: Snapshot) -> dict[str, Any]:
    """A snapshot, for programs."""
    whole: dict[str, Any] = plain(found)
    del whole["scheduled"]
    if not found.unknown:
        del whole["unknown"]
    for lane in whole["lanes"]:
        if lane["counts"] is None:
            del lane["counts"]
    return whole


def page(found: Snapshot) -> list[RenderableType]:
    """A snapshot, for people."""
    numbers = ("due", "later", "oldest due", "in queue", "in flight", "delayed", "dead", "cap")
    words = ("because", "severity", "switches")
    columns: list[str | Column] = ["lane", *(Column(header=name, right=True) for name in numbers), *words]
    parts: list[RenderableType] = [table(columns, [_row(lane, found) for lane in found.lanes]), ""]
    parts += [styled(f"{one.lane}: {trouble}", "red") for one in found.lanes for trouble in one.troubles]
    parts += [*_costs(found), ""]
    if any(lane.counts is not None for lane in found.lanes):
        parts += [_counts(found), ""]
    if found.switches:
        rows = [
            (
                switch.scope,
                level(switch.level),
                "on" if switch.automation_enabled else styled("off", "red"),
                ago(switch.at, found.at),
                switch.by,
                switch.why,
            )
            for switch in found.switches
        ]
        parts += [table(["closed", "level", "automation", "since", "by", "why"], rows), ""]
    ran = {run.schedule: run for run in found.runs}
    parts.append(
        styled("last runs: ", "dim")
        + styled(
            " · ".join(
                f"{name} {ago(ran[name].started_at, found.at)} ({took(ran[name], found.at)})"
                if name in ran
                else f"{name} never"
                for name in found.scheduled
            ),
            "dim",
        )
    )
    return parts


def _lane(
    stage: Stage, lane: LaneSpec, now: datetime, counts: dict[str, dict[str, int]] | None, switches: Switches
) -> LaneStatus:
    due = later = oldest = None
    at_least = False
    if lane.admission != "fair":
        entries = stage.jobs.waiting(lane, due_before=now + FAR, limit=WAITING_LIMIT)
        ripe = [entry.due for entry in entries if entry.due <= now]
        due, later, oldest = len(ripe), len(entries) - len(ripe), min(ripe, default=None)
        at_least = max(Counter(entry.priority for entry in entries).values(), default=0) >= WAITING_LIMIT
    from ops.cli.feeding import trouble_of

    kept, unreadable = kept_of(stage, lane)
    state = kept or CapacityState(cap=lane.baseline)
    unfed = trouble_of(stage, lane, switches, kept)
    pin = state.pinned(now)
    return LaneStatus(
        lane=lane.name,
        due=due,
        later=later,
        at_least=at_least,
        oldest_due_at=oldest,
        queue=stage.queues.depth(lane.name) if lane.run is None else None,
        dead_letters=stage.dead_letters.depth(lane.name).total,
        cap=state.cap if lane.run is None else None,
        baseline=lane.baseline if lane.run is None else None,
        ceiling=lane.ceiling if lane.run is None else None,
        a_run=None if lane.run is None else lane.run.max_jobs_per_run,
        severity=state.severity.word,
        reason=state.reason or None,
        pinned_until=None if pin is None else pin.until,
        cost=_cost(stage, lane, now, switches),
        troubles=tuple(one for one in (unreadable, None if unfed is None else unfed.sentence) if one is not None),
        counts=None if counts is None else counts.get(lane.name, {}),
    )


def _cost(stage: Stage, lane: LaneSpec, now: datetime, switches: Switches) -> Cost:
    minutes = tuple(stage.signals.minutes(lane.name, since=now - timedelta(seconds=HOUR_S + lane.minute_s)))
    cost: LaneCost = cost_of(Signals(at=now, minutes=minutes, minute_s=lane.minute_s), stage.rules.prices)
    closed = switches.standing(lane_scopes(lane.name, lane.vendors)).paid_calls_closed_by is not None
    advice = f'penstock control automation off lane/{lane.name} --why "cost spike"'
    return Cost(
        per_hour=None if cost.unpriced and len(cost.unpriced) == len(cost.vendors) else cost.per_hour,
        words=cost.words,
        currency=cost.currency,
        vendors={one.vendor: one.per_hour for one in cost.vendors},
        spike_per_hour=lane.cost_spike_per_hour,
        recommends=advice if cost.spikes(lane) and not closed else None,
    )


def _costs(found: Snapshot) -> list[RenderableType]:
    """What each lane's vendors cost an hour, and what to do where that is too much."""
    rows: list[tuple[str | Text, ...]] = []
    advice: list[RenderableType] = []
    for one in found.lanes:
        cost, limit = one.cost, one.cost.spike_per_hour
        above = limit is not None and cost.per_hour is not None and cost.per_hour > limit
        by = ", ".join(f"{name} {_amount(value)}" for name, value in cost.vendors.items())
        rows.append((one.lane, styled(cost.words, "red" if above else ""), by or NOTHING, _amount(limit, NOTHING)))
        if cost.recommends is not None:
            advice.append(styled(f"{one.lane} costs more than its threshold: {cost.recommends}", "yellow"))
    return [table(["vendors' cost", "an hour", "by vendor", "threshold"], rows), *advice]


def _amount(value: float | None, unknown: str = "no price") -> str:
    return unknown if value is None else f"{value:,.2f}"


def _row(lane: LaneStatus, found: Snapshot) -> tuple[str | Text, ...]:
    plus, queue = "+" if lane.at_least else "", lane.queue
    oldest = NOTHING if lane.oldest_due_at is None else span((found.at - lane.oldest_due_at).total_seconds())
    return (
        lane.lane,
        "?" if lane.due is None else f"{count(lane.due)}{plus}",
        "?" if lane.later is None else f"{count(lane.later)}{plus}",
        oldest,
        *((NOTHING,) * 3 if queue is None else map(count, (queue.visible, queue.in_flight, queue.delayed))),
        styled(count(lane.dead_letters), "red" if lane.dead_letters else ""),
        f"{lane.cap} of {lane.ceiling}" if lane.a_run is None else f"{lane.a_run:,} a run",
        _because(lane, found.at),
        styled(lane.severity, SEVERITY_STYLES[lane.severity]),
        _closed(lane.lane, found.switches),
    )


def _because(lane: LaneStatus, now: datetime) -> str:
    """Why the cap is what it is, and how long a pin still holds."""
    if lane.reason is None:
        return NOTHING
    left = "" if lane.pinned_until is None else f" ({span((lane.pinned_until - now).total_seconds())} left)"
    return lane.reason.replace("_", " ") + left


def _closed(lane: str, switches: list[Switch]) -> Text:
    """The strictest rung on any scope that touches the lane; narrower scopes are listed below the table."""
    mine = [
        one
        for one in switches
        if one.scope in ("all", f"lane/{lane}") or one.scope.startswith(("vendor/", f"task/{lane}/", f"tenant/{lane}/"))
    ]
    strictest = max((one for one in mine), key=lambda one: one.level, default=None)
    if strictest is None:
        return styled("normal", "green")
    if strictest.level is Level.NORMAL:
        return styled("automation off", "yellow")
    wide = strictest.scope in ("all", f"lane/{lane}")
    return level(strictest.level) + styled("" if wide else f" ({strictest.scope})", "dim")


def _counts(found: Snapshot) -> Any:
    words = [word.value for word in Status]
    rows: list[tuple[str, ...]] = [
        (one.lane, *(count((one.counts or {}).get(word, 0)) for word in words)) for one in found.lanes
    ]
    for lane, of in found.unknown.items():
        others = sum(number for word, number in of.items() if word not in words)
        label = f"{lane} (unreadable: {others})" if others else f"{lane} (not deployed)"
        rows.append((label, *(count(of.get(word, 0)) for word in words)))
    return table(["jobs", *(Column(header=word, right=True) for word in words)], rows)


def _watch(asked: Asked, stage: Stage, lanes: list[LaneSpec], count_all: bool) -> None:
    try:
        if asked.out.json:
            while True:
                asked.out.line(document(look(stage, lanes, count_all=count_all)))
                stage.clock.sleep(WATCH_S)
        from rich.console import Group
        from rich.live import Live

        with Live(console=asked.out.console, auto_refresh=False) as live:
            while True:
                live.update(Group(*_seen(stage, lanes, count_all)), refresh=True)
                stage.clock.sleep(WATCH_S)
    except KeyboardInterrupt:
        return


def _seen(stage: Stage, lanes: list[LaneSpec], count_all: bool) -> list[RenderableType]:
    try:
        found = look(stage, lanes, count_all=count_all)
    except Unavailable as exc:
        return [styled(f"{exc}; looking again", "red")]
    head = styled(f"{found.stage} at {found.at:%H:%M:%S} UTC, every {WATCH_S:.0f} s; Ctrl-C ends", "dim")
    return [head, "", *page(found)]
