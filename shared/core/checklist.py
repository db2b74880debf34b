"""The exit checklist: what must hold of a lane before a switch over it is loosened. It never opens anything by itself.

Each line has a name, what it asks for, what was seen, and whether that holds. A lane on which nothing has happened is
calm: its switch may be opened at once. What cannot be read does not hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from shared.core.capacity import SILENT, CapacityState, Policy
from shared.core.governing import Rules
from shared.core.lane import LaneSpec
from shared.core.severity import Reading, Thresholds, is_normal, read
from shared.core.signals import Signals
from shared.core.switches import Level, Switches, lane_scopes
from shared.core.vendor_cost import cost_of

UNREADABLE = "the signals cannot be read"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One line."""

    name: str
    asks: str
    seen: str
    holds: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneChecks:
    """One lane's lines."""

    lane: str
    checks: tuple[Check, ...]

    @property
    def failing(self) -> tuple[str, ...]:
        """What does not hold, by name."""
        return tuple(f"{self.lane}.{check.name}" for check in self.checks if not check.holds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What is known of a lane when somebody wants to open it."""

    signals: Signals | None
    """None: they cannot be read."""
    state: CapacityState | None
    """What the governor kept; None before its first look."""
    switches: Switches
    at: datetime


def failing(lanes: Iterable[LaneChecks]) -> tuple[str, ...]:
    """What does not hold, of all these lanes."""
    return tuple(name for one in lanes for name in one.failing)


def record(lanes: Iterable[LaneChecks]) -> dict[str, Any]:
    """A checklist as it is kept with the switch that it opened: `✓ 3 s now`, by lane and line."""
    return {
        one.lane: {check.name: f"{'✓' if check.holds else '✗'} {check.seen}" for check in one.checks} for one in lanes
    }


def lanes_under(scope: str, lanes: Mapping[str, LaneSpec]) -> list[LaneSpec]:
    """Every lane of which a scope holds jobs back; none where none is deployed."""
    kind, _, rest = scope.partition("/")
    if kind == "all":
        return list(lanes.values())
    if kind == "vendor":
        return [lane for lane in lanes.values() if rest in lane.vendors]
    return [lane for lane in lanes.values() if lane.name == rest.partition("/")[0]]


def checklist(lane: LaneSpec, seen: Seen, rules: Rules) -> LaneChecks:
    """Every line for one lane. Pure."""
    policy = rules.policies[lane.policy].of(lane)
    lines = [*_of_signals(lane, seen, rules, policy), _cap(lane, seen, policy)]
    if lane.admission != "scheduled":
        lines.append(_governor(seen))
    return LaneChecks(lane=lane.name, checks=tuple(lines))


def _of_signals(lane: LaneSpec, seen: Seen, rules: Rules, policy: Policy) -> Iterator[Check]:
    thresholds, calm = rules.thresholds, _span(policy.calm_s)
    normal = f"under {thresholds.normal_share:.0%} over {_span(thresholds.normal_window_s)}"
    asks = {
        "queue_age": f"every job starts within {_span(thresholds.mild_age_s)}, for {calm}",
        "vendor_429s": f"429s of every vendor {normal}",
        "vendor_errors": f"errors of every vendor {normal}",
        "worker_errors": f"attempts that went wrong {normal}",
        "dead_letters": f"no job failed within {_span(thresholds.growth_window_s)}",
        "vendors": "no vendor is unstable, no breaker is open",
        "cost": "no more than cost_spike_per_hour",
    }
    signals = seen.signals
    if signals is None:
        yield from (Check(name=name, asks=sentence, seen=UNREADABLE, holds=False) for name, sentence in asks.items())
        return
    reading = read(signals, thresholds)
    found = {
        "queue_age": _queue_age(lane, signals, reading, seen.switches, thresholds, policy),
        **_rates(signals, reading, thresholds),
        "dead_letters": _dead_letters(signals, reading, thresholds),
        "vendors": _vendors(reading, signals),
        "cost": _cost(lane, signals, rules),
    }
    yield from (Check(name=name, asks=asks[name], seen=said, holds=holds) for name, (holds, said) in found.items())


def _queue_age(
    lane: LaneSpec, signals: Signals, reading: Reading, switches: Switches, thresholds: Thresholds, policy: Policy
) -> tuple[bool, str]:
    """From what workers started in the whole window, and from what waits now, unless a switch makes it wait: jobs that
    are held on purpose grow old, and would keep the switch that holds them closed for ever."""
    oldest = signals.over(policy.calm_s).oldest_age_s
    was_young = oldest < thresholds.mild_age_s
    past = f"at most {oldest} s in {_span(policy.calm_s)}"
    wide, narrow = _holders(lane, switches)
    if wide:
        return was_young, f"{past}; what waits now is held by {wide[0]}"
    if narrow and reading.aged:
        return False, f"{reading.age_s} s now, {past}; {narrow[0]} holds some of it: cannot be told for the rest"
    return was_young and not reading.aged, f"{reading.age_s} s now, {past}"


def _holders(lane: LaneSpec, switches: Switches) -> tuple[list[str], list[str]]:
    """The switches that keep all jobs of the lane waiting, and those that keep some."""
    every = set(lane_scopes(lane.name, lane.shared_vendors))
    some = set(lane_scopes(lane.name, lane.vendors)) - every
    closed = [scope for scope, one in sorted(switches.entries.items()) if one.level >= Level.NO_NEW_STARTS]
    parts = (f"task/{lane.name}/", f"tenant/{lane.name}/")
    return [one for one in closed if one in every], [one for one in closed if one in some or one.startswith(parts)]


def _rates(signals: Signals, reading: Reading, thresholds: Thresholds) -> dict[str, tuple[bool, str]]:
    window = signals.over(thresholds.normal_window_s)
    limited = [(name, one.limited, one.calls) for name, one in window.vendors.items()]
    failed = [(name, one.errors, one.calls) for name, one in window.vendors.items()]
    worked = [("workers", window.errors, max(window.claims, window.errors))]
    rows = {
        "vendor_429s": (limited, bool(reading.limited)),
        "vendor_errors": (failed, bool(reading.failing)),
        "worker_errors": (worked, reading.worker_errors),
    }
    return {name: _share(counted, spikes, thresholds) for name, (counted, spikes) in rows.items()}


def _share(counted: list[tuple[str, int, int]], spikes: bool, thresholds: Thresholds) -> tuple[bool, str]:
    """Whether every share is normal and none spikes, and the worst of them."""
    normal = all(is_normal(bad, of, thresholds) for _, bad, of in counted)
    name, bad, of = max(counted, key=lambda one: (one[1] / one[2] if one[2] else 0.0, one[2]), default=("", 0, 0))
    said = f"{name}: {bad} of {of}" if of else "nothing was asked"
    return normal and not spikes, f"{said}, a spike in the last minute" if spikes else said


def _dead_letters(signals: Signals, reading: Reading, thresholds: Thresholds) -> tuple[bool, str]:
    failed = signals.over(thresholds.growth_window_s).failed
    return not reading.growing, f"{failed} failed, {signals.dead_letters} stand there"


def _vendors(reading: Reading, signals: Signals) -> tuple[bool, str]:
    if not reading.unstable:
        return True, "all stable"
    said = [f"{name}: {'breaker open' if name in signals.shut else 'spikes'}" for name in reading.unstable]
    return False, "; ".join(said)


def _cost(lane: LaneSpec, signals: Signals, rules: Rules) -> tuple[bool, str]:
    cost = cost_of(signals, rules.prices)
    hourly = cost.words if cost.unpriced else f"{cost.words} an hour"
    if lane.cost_spike_per_hour is None:
        return True, f"{hourly}; the lane has no threshold"
    said = f"{hourly}, the threshold is {lane.cost_spike_per_hour:,.2f}"
    return not cost.spikes(lane) and not cost.unpriced, said


def _cap(lane: LaneSpec, seen: Seen, policy: Policy) -> Check:
    """At its baseline, or on its way there: not lowered so lately that the governor still holds it down."""
    asks = f"at the baseline or on its way: not lowered within {_span(policy.hold_down_s)}"
    state = seen.state
    if lane.run is not None:
        most = f"none: each of its runs takes {lane.run.max_jobs_per_run:,} jobs at most"
        return Check(name="cap", asks=asks, seen=most, holds=True)
    if state is None:
        return Check(name="cap", asks=asks, seen=f"at the baseline of {lane.baseline}", holds=True)
    cap = f"{state.cap}, the baseline is {lane.baseline}"
    if (pin := state.pinned(seen.at)) is not None:
        return Check(name="cap", asks=asks, seen=f"{cap}; pinned by {pin.by}", holds=True)
    lowered = state.lowered_at
    held = lowered is not None and state.cap != lane.baseline
    if held and lowered is not None and seen.at < lowered + timedelta(seconds=policy.hold_down_s):
        ago = _span((seen.at - lowered).total_seconds())
        return Check(name="cap", asks=asks, seen=f"{cap}; lowered {ago} ago", holds=False)
    return Check(name="cap", asks=asks, seen=cap, holds=True)


def _governor(seen: Seen) -> Check:
    asks = f"it looked at the lane within {_span(SILENT.total_seconds())}"
    state, signals = seen.state, seen.signals
    looked = None if state is None else state.looked_at
    if looked is None:
        # A stage that was just made: there is nothing yet that it could have missed.
        idle = signals is not None and not signals.minutes and signals.visible == 0
        return Check(name="governor", asks=asks, seen="it has not looked yet", holds=idle)
    ago = max(0.0, (seen.at - looked).total_seconds())
    return Check(name="governor", asks=asks, seen=f"{_span(ago)} ago", holds=seen.at - looked <= SILENT)


def _span(seconds: float) -> str:
    whole = int(seconds)
    return f"{whole // 60} min" if whole >= 120 else f"{whole} s"
