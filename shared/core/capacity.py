"""How many workers a lane may have: one decision a minute, with its reason, also when nothing changes.

    pinned ─► out of bounds ─► vendor trouble ─► hold-down ─► other trouble ─► lane closed ─► calm ─► backlog

The first that applies decides. An operator's pin always wins, and nothing passes the ceiling.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from shared.core.errors import BadInput
from shared.core.lane import LaneSpec
from shared.core.moment import iso
from shared.core.severity import Reading, Severity
from shared.core.signals import Moved

LEAST = 2
"""An event source takes no lower cap; below it there is only 0, a disabled one."""
MAX_PIN = timedelta(days=7)
EARLY = 1 / 120
"""By so much of its interval may a look be early and wait: five seconds of ten minutes."""
SILENT = timedelta(minutes=3)
"""A look older than this says nothing about the time since: being calm begins anew."""


class Reason(StrEnum):
    """Why a decision is as it is: the whole list."""

    OPERATOR_PIN = "operator_pin"
    OUT_OF_BOUNDS = "out_of_bounds"
    SIGNALS_UNKNOWN = "signals_unknown"
    VENDOR_UNSTABLE = "vendor_unstable"
    VENDOR_429_SPIKE = "vendor_429_spike"
    VENDOR_ERROR_SPIKE = "vendor_error_spike"
    WORKER_ERROR_SPIKE = "worker_error_spike"
    DLQ_GROWTH = "dlq_growth"
    AT_FLOOR = "at_floor"
    HOLD_DOWN = "hold_down"
    LANE_CLOSED = "lane_closed"
    BACK_TO_BASELINE = "back_to_baseline"
    STEADY = "steady"
    BACKLOG = "backlog"
    WAITS_FOR_INTERVAL = "waits_for_interval"
    AT_CEILING = "at_ceiling"


VENDOR_TROUBLE = (Reason.VENDOR_UNSTABLE, Reason.VENDOR_429_SPIKE, Reason.VENDOR_ERROR_SPIKE)
TROUBLE = (*VENDOR_TROUBLE, Reason.WORKER_ERROR_SPIKE, Reason.DLQ_GROWTH)
"""Everything that keeps a cap from rising, worst first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How a lane's cap moves, as configured under `policies`; its bounds are the lane's own."""

    step_up: int = 2
    interval_s: int = 600
    """Between a change and the next rise."""
    step_down: float = 0.5
    """What is left of a cap when it is lowered."""
    hold_down_s: int = 600
    """After a decrease nothing changes for so long."""
    calm_s: int = 900
    """So long must the queue have been young before the cap goes back to the baseline."""
    lowers_on: tuple[str, ...] = VENDOR_TROUBLE
    """Which trouble lowers the cap; all other only keeps it from rising."""
    in_slots: bool = False
    """The step counts jobs at once; an invocation runs as many as the lane's `parallel`."""
    floor: int = LEAST
    baseline: int = LEAST
    ceiling: int = 1000

    def __post_init__(self) -> None:
        for setting in ("step_up", "interval_s", "hold_down_s", "calm_s"):
            value = getattr(self, setting)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise BadInput(f"policies.{setting}", "must be a whole number above 0")
        share: object = self.step_down
        if not isinstance(share, float) or not 0 < share < 1:
            raise BadInput("policies.step_down", "must be a share between 0 and 1")
        if not isinstance(self.in_slots, bool):
            raise BadInput("policies.in_slots", "must be true or false")
        for word in self.lowers_on:
            if word not in TROUBLE:
                raise BadInput("policies.lowers_on", f"must be among {', '.join(TROUBLE)}")

    def of(self, lane: LaneSpec) -> Policy:
        """The policy with a lane's bounds, its step in invocations."""
        step = max(1, self.step_up // lane.parallel) if self.in_slots else self.step_up
        return replace(
            self, step_up=step, in_slots=False, floor=lane.floor, baseline=lane.baseline, ceiling=lane.ceiling
        )

    def to_mapping(self) -> dict[str, Any]:
        """Every setting that can be configured, as plain values."""
        values = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in _BOUNDS}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}

    @classmethod
    def from_mapping(cls, name: str, values: Mapping[str, Any]) -> Policy:
        """The policy a configuration entry describes; an unknown setting is named."""
        for setting in values:
            if setting not in cls.__dataclass_fields__ or setting in _BOUNDS:
                raise BadInput(f"policies.{name}", f"has an unknown setting {setting!r}")
        given: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}
        return cls(**given)


_BOUNDS = ("floor", "baseline", "ceiling")
CONSERVATIVE, RAMP = "conservative", "ramp"
POLICIES: Mapping[str, Policy] = {
    CONSERVATIVE: Policy(),
    RAMP: Policy(step_up=64, interval_s=300, lowers_on=TROUBLE, in_slots=True),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """A cap that an operator set, until then."""

    cap: int
    until: datetime
    by: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityState:
    """What is kept of a lane's capacity between two decisions."""

    cap: int
    version: int = 0
    """Raised by every write; a write names the version it was computed from."""
    changed_at: datetime | None = None
    lowered_at: datetime | None = None
    calm_since: datetime | None = None
    looked_at: datetime | None = None
    moved: Moved | None = None
    pin: Pin | None = None
    stopped: bool = False
    """The event source was disabled on purpose; one found disabled without this is somebody else's doing."""
    reason: str = ""
    severity: Severity = Severity.NORMAL
    age_s: int = 0

    def pinned(self, now: datetime) -> Pin | None:
        """The pin that holds now."""
        return self.pin if self.pin is not None and now < self.pin.until else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """One look at a lane: the cap before and after, why, and what is kept for the next look."""

    at: datetime
    from_cap: int
    to_cap: int
    reason: Reason
    guardrails: tuple[Reason, ...]
    pinned: bool
    after: CapacityState = field(repr=False)

    def record(self, correlation_id: str) -> dict[str, Any]:
        """The decision in the words that everybody who reads decisions knows."""
        return {
            "timestamp": iso(self.at),
            "fromCapacity": self.from_cap,
            "toCapacity": self.to_cap,
            "reasonCode": self.reason.value,
            "guardrailState": ",".join(self.guardrails) or "clear",
            "operatorOverrideActive": self.pinned,
            "correlationId": correlation_id,
        }


def decide(
    state: CapacityState, signals: Reading | None, policy: Policy, now: datetime, *, closed: bool = False
) -> Decision:
    """The next cap of a lane. `signals` is None when they could not be read; `closed` when a switch holds its work.
    Pure: the same state, signals and time give the same decision."""
    guardrails = () if signals is None else breached(signals)
    calm_since = _calm_since(state, signals, now)
    cap, reason = _next(state, signals, policy, now, guardrails, calm_since, closed)
    changed = cap != state.cap
    lowered = cap < state.cap and reason in TROUBLE
    after = replace(
        state,
        cap=cap,
        version=state.version + 1,
        changed_at=now if changed else state.changed_at,
        lowered_at=now if lowered else state.lowered_at,
        calm_since=calm_since,
        looked_at=now,
        pin=state.pinned(now),
        reason=reason.value,
        severity=state.severity if signals is None else signals.severity,
        age_s=state.age_s if signals is None else signals.age_s,
    )
    return Decision(
        at=now,
        from_cap=state.cap,
        to_cap=cap,
        reason=reason,
        guardrails=guardrails,
        pinned=after.pin is not None,
        after=after,
    )


def soon_s(state: CapacityState, policy: Policy, now: datetime) -> float:
    """How long a look that comes a little early should wait for the interval or the hold to be over; else 0.

    A schedule does not fire equally late each time. A step that was made late would be due just after the tick ten
    minutes on, and be made a minute after that.
    """
    waits = ((state.changed_at, policy.interval_s), (state.lowered_at, policy.hold_down_s))
    left = [(at - now).total_seconds() + span_s for at, span_s in waits if at is not None]
    return max((one_s for one_s in left if 0 < one_s <= policy.interval_s * EARLY), default=0.0)


def breached(signals: Reading) -> tuple[Reason, ...]:
    """Every guardrail that is breached, worst first."""
    found = {
        Reason.VENDOR_UNSTABLE: bool(signals.unstable),
        Reason.VENDOR_429_SPIKE: bool(signals.limited),
        Reason.VENDOR_ERROR_SPIKE: bool(signals.failing),
        Reason.WORKER_ERROR_SPIKE: signals.worker_errors,
        Reason.DLQ_GROWTH: signals.growing,
    }
    return tuple(reason for reason, true in found.items() if true)


def _next(
    state: CapacityState,
    signals: Reading | None,
    policy: Policy,
    now: datetime,
    guardrails: tuple[Reason, ...],
    calm_since: datetime | None,
    closed: bool,
) -> tuple[int, Reason]:
    cap = state.cap
    pin = state.pinned(now)
    if pin is not None:
        return _pinnable(pin.cap, policy.ceiling), Reason.OPERATOR_PIN
    if not policy.floor <= cap <= policy.ceiling:
        return min(max(cap, policy.floor), policy.ceiling), Reason.OUT_OF_BOUNDS
    if signals is None:
        return cap, Reason.SIGNALS_UNKNOWN
    held = state.lowered_at is not None and now < state.lowered_at + timedelta(seconds=policy.hold_down_s)
    lowering = next((reason for reason in guardrails if reason in policy.lowers_on), None)
    if lowering is not None and not held:
        lower = max(policy.floor, int(cap * policy.step_down))
        return (lower, lowering) if lower < cap else (cap, Reason.AT_FLOOR)
    if held:
        return cap, Reason.HOLD_DOWN
    if guardrails:
        return cap, guardrails[0]
    if closed:
        return cap, Reason.LANE_CLOSED
    return _drained(cap, policy, now, calm_since, signals) or _raised(cap, state, signals, policy, now)


def _drained(
    cap: int, policy: Policy, now: datetime, calm_since: datetime | None, signals: Reading
) -> tuple[int, Reason] | None:
    """Down to the baseline at once after a long calm."""
    calm = calm_since is not None and now - calm_since >= timedelta(seconds=policy.calm_s) and signals.normal_rates
    return (policy.baseline, Reason.BACK_TO_BASELINE) if calm and cap > policy.baseline else None


def _raised(cap: int, state: CapacityState, signals: Reading, policy: Policy, now: datetime) -> tuple[int, Reason]:
    """Up by a step: towards the ceiling while jobs wait, towards the baseline once rates are normal."""
    if signals.aged:
        top, why = policy.ceiling, Reason.BACKLOG
    elif cap < policy.baseline and signals.normal_rates:
        top, why = policy.baseline, Reason.BACK_TO_BASELINE
    else:
        return cap, Reason.STEADY
    if cap >= top:
        return cap, Reason.AT_CEILING
    if state.changed_at is not None and now < state.changed_at + timedelta(seconds=policy.interval_s):
        return cap, Reason.WAITS_FOR_INTERVAL
    return min(top, cap + policy.step_up), why


def _calm_since(state: CapacityState, signals: Reading | None, now: datetime) -> datetime | None:
    """Since when the queue has been young at every look."""
    if signals is None or signals.aged:
        return None
    unbroken = state.looked_at is not None and now - state.looked_at <= SILENT
    return state.calm_since if unbroken and state.calm_since is not None else now


def _pinnable(cap: int, ceiling: int) -> int:
    return 0 if cap <= 0 else min(max(cap, LEAST), ceiling)


def cap_wanted(kept: CapacityState | None, lane: LaneSpec) -> int:
    """What the lane is to have while it runs: its baseline where nothing is kept, and where it is stopped for now."""
    return (0 if kept is None else kept.cap) or lane.baseline


def check_pin(cap: object, until: datetime, lane: LaneSpec, now: datetime) -> int:
    """A cap that can be pinned, or a sentence that says which can."""
    if isinstance(cap, bool) or not isinstance(cap, int) or not (cap == 0 or LEAST <= cap <= lane.ceiling):
        raise BadInput(
            "cap",
            f"must be 0 (stopped) or {LEAST} to {lane.ceiling}, the ceiling of lane {lane.name};"
            " a higher ceiling is set in config/ and deployed",
        )
    if not now < until <= now + MAX_PIN:
        raise BadInput("for", "must end within 7 days: a pin that nobody remembers is worse than none")
    return cap


def pinned(state: CapacityState, pin: Pin, now: datetime) -> CapacityState:
    """The state with a pin, which holds at once."""
    changed_at = state.changed_at if pin.cap == state.cap else now
    return replace(
        state,
        pin=pin,
        cap=pin.cap,
        version=state.version + 1,
        changed_at=changed_at,
        reason=Reason.OPERATOR_PIN.value,
    )


def unpinned(state: CapacityState) -> CapacityState:
    """The state without its pin; the next decision goes on from the cap as it stands."""
    return replace(state, pin=None, version=state.version + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventSource:
    """What feeds a lane's workers, as it stands: its state in the platform's words, and how many it may start."""

    state: str
    cap: int | None = None

    @property
    def settled(self) -> bool:
        """True when it can be changed: nobody is changing it."""
        return self.state in ("Enabled", "Disabled")

    @property
    def enabled(self) -> bool:
        """True while it feeds workers."""
        return self.state == "Enabled"

    def has(self, cap: int) -> bool:
        """True when nothing needs to be changed for this cap; 0 is a source that feeds nobody."""
        return not self.enabled if cap == 0 else self.enabled and self.cap == cap
