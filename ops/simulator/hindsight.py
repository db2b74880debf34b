"""The fastest schedule of caps in hindsight: what nobody who obeys the step rule could have beaten.

A schedule is a list of caps that starts at the baseline, rises by one step at most, at least one interval after any
change, may fall at any time, and stays below the ceiling. At each moment no more jobs can pass than the cap's slots
can work off, and no more than the vendor accepts; whoever asks for more only gets 429s. Both grow with the cap, so the
schedule that rises by a full step at each moment it may, and never falls, is at every moment at least as high and as
fast as any other: it is the fastest. Whether a lower cap would have spared 429s makes no difference here: the bound
counts none at all, since with the vendor's limit known nobody asks for more than it gives.

What the bound leaves out is in its favour: no waiting for a message, no cold start, no live traffic, and the first step
is made at once.
"""

from __future__ import annotations

from collections.abc import Callable

from ops.simulator.engine import CALLS_S
from ops.simulator.governing import Caps
from ops.simulator.vendor import BURST, Weather
from shared.core.capacity import Policy

STEP_S = 1.0


def fastest_caps(policy: Policy) -> Caps:
    """A step at each moment that it may be made, up to the ceiling."""
    caps = [(0.0, min(policy.ceiling, policy.baseline + policy.step_up))]
    while caps[-1][1] < policy.ceiling:
        at_s, cap = caps[-1]
        caps.append((at_s + policy.interval_s, min(policy.ceiling, cap + policy.step_up)))
    return tuple(caps)


def slot_s(weather: Weather) -> float:
    """How long a job keeps a slot, on average: the vendor's time and its own calls to tables."""
    return sum(weather.takes_s) / 2 + sum(CALLS_S)


def drain_s(jobs: int, caps: Caps, weather: Weather) -> float:
    """When `jobs` are done under a schedule of caps, if nothing is lost: a fluid through a slot and a bucket."""
    cap_at, left, now_s = _steps(caps), float(jobs), 0.0
    level = BURST * weather.limit_at(0)
    per_slot = 1 / slot_s(weather)
    while left > 0:
        limit = weather.limit_at(now_s)
        level = min(max(1.0, BURST * limit), level + limit / 60 * STEP_S)
        passed = 0.0 if weather.down_at(now_s) else min(left, level, cap_at(now_s) * per_slot * STEP_S)
        left, level = left - passed, level - passed
        now_s += STEP_S
    return now_s + sum(weather.takes_s) / 2


def _steps(caps: Caps) -> Callable[[float], int]:
    return lambda now_s: [cap for at_s, cap in caps if at_s <= now_s][-1]
