"""Limits of a vendor as rules: how it counts and what it allows when. A rule is kept by a vendor, and has a soonest
time at which so much can have passed: what nobody who knows every change beforehand could beat.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

MINUTE_S = 60.0
EXACT = 1e-9
"""What floats lose on the way: a call that comes at the moment it was told is served."""


class Window(StrEnum):
    """What a limit a minute is counted over."""

    BUCKET = "bucket"
    """None: refilled evenly."""
    SLIDING = "sliding minute"
    """The last sixty seconds, to the last call."""
    CALENDAR = "calendar minute"
    """Whole again as a minute of the vendor's clock begins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One limit a minute, over time."""

    window: Window
    steps: tuple[tuple[float, float], ...]
    """From which second on it allows how much a minute; the first begins at 0."""
    holds_s: float = MINUTE_S
    """A bucket holds so many seconds of the limit."""
    least: float = 1.0
    """And never less than this: its largest call."""
    phase_s: float = 0.0
    """Where in a calendar minute the first second lies."""

    def at(self, now_s: float) -> float:
        """What it allows a minute, at a time."""
        return [most for at_s, most in self.steps if at_s <= now_s][-1]

    def holds(self, now_s: float) -> float:
        """What a full bucket holds."""
        return max(self.least, self.at(now_s) * self.holds_s / MINUTE_S)

    def window_began(self, now_s: float) -> float:
        """Up to when what has passed counts no more: a call at just this moment is of the time before a sliding minute,
        and of the calendar minute that begins with it."""
        if self.window is Window.SLIDING:
            return now_s - MINUTE_S
        return math.floor((now_s + self.phase_s) / MINUTE_S + EXACT) * MINUTE_S - self.phase_s

    def flow(self, from_s: float, to_s: float) -> float:
        """What is refilled between two moments."""
        ends = [*(at_s for at_s, _ in self.steps[1:]), math.inf]
        return sum(
            most / MINUTE_S * max(0.0, min(to_s, end_s) - max(from_s, at_s))
            for (at_s, most), end_s in zip(self.steps, ends, strict=True)
        )

    def fluid_s(self, amount: float) -> float:
        """When so much has passed if it flows evenly at what is allowed, with nothing saved beforehand."""
        left = amount
        for (at_s, most), (end_s, _) in pairwise((*self.steps, (math.inf, 0.0))):
            there = most / MINUTE_S * (end_s - at_s)
            if left <= there:
                return at_s + left * MINUTE_S / most
            left -= there
        return math.inf

    def soonest_s(self, amount: float) -> float:
        """The earliest moment by which so much can have passed, whatever is sent when.

        Greedy is the best: under each way of counting, what may have passed by a moment only grows with what had passed
        by an earlier one, so to let something through that fits never costs later.
        """
        if self.window is Window.BUCKET:
            return self.fluid_s(max(0.0, amount - self.holds(0)))
        return self._soonest_in_windows(amount)

    def _soonest_in_windows(self, amount: float) -> float:
        # What has passed grows at a change, as a calendar minute begins, or when what passed a minute ago is forgotten.
        times = [at_s for at_s, _ in self.steps]
        heapq.heapify(times)
        passed: list[tuple[float, float]] = []
        while True:
            now_s = heapq.heappop(times)
            before = passed[-1][1] if passed else 0.0
            forgotten = _passed_by(passed, self.window_began(now_s), through=self.window is Window.SLIDING)
            after = max(before, forgotten + self.at(now_s))
            if after > before or not passed:
                passed.append((now_s, after))
                next_s = now_s if self.window is Window.SLIDING else self.window_began(now_s)
                heapq.heappush(times, next_s + MINUTE_S)
            if after >= amount - EXACT:
                return now_s


def _passed_by(passed: list[tuple[float, float]], moment_s: float, *, through: bool) -> float:
    """How much had passed before a moment, or through it."""
    for at_s, amount in reversed(passed):
        if at_s < moment_s - EXACT or (through and at_s <= moment_s + EXACT):
            return amount
    return 0.0


class Kept:
    """A rule as a vendor keeps it."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self._now_s = 0.0
        self._level = rule.holds(0.0)
        self._log: deque[tuple[float, float]] = deque()
        self._used = 0.0

    def left(self, now_s: float) -> float:
        """What would be served at this moment."""
        self._follow(now_s)
        return max(0.0, self._room(now_s))

    def wait_s(self, amount: float, now_s: float) -> float:
        """0 where so much fits now, else how long until it would, if nothing changes."""
        self._follow(now_s)
        short = amount - self._room(now_s)
        if short <= EXACT:
            return 0.0
        if self.rule.window is Window.BUCKET:
            return short * MINUTE_S / self.rule.at(now_s)
        if self.rule.window is Window.CALENDAR:
            return self.rule.window_began(now_s) + MINUTE_S - now_s
        for at_s, units in self._log:
            short -= units
            if short <= EXACT:
                return at_s + MINUTE_S - now_s
        return MINUTE_S

    def charge(self, amount: float, now_s: float) -> None:
        """Count it, whether it fitted or not. A bucket is drawn on to as far below empty as it holds."""
        self._follow(now_s)
        if self.rule.window is Window.BUCKET:
            self._level = max(-self.rule.holds(now_s), self._level - amount)
            return
        self._log.append((now_s, amount))
        self._used += amount
        # The newest of a limit's worth decide: a storm is no reason to remember more.
        while self._used - self._log[0][1] >= self.rule.at(now_s):
            self._used -= self._log.popleft()[1]

    def reset_s(self, now_s: float) -> float:
        """How long until it is whole again."""
        self._follow(now_s)
        if self.rule.window is Window.BUCKET:
            return max(0.0, self.rule.holds(now_s) - self._level) * MINUTE_S / self.rule.at(now_s)
        if self.rule.window is Window.CALENDAR:
            return self.rule.window_began(now_s) + MINUTE_S - now_s
        return self._log[-1][0] + MINUTE_S - now_s if self._log else 0.0

    def _room(self, now_s: float) -> float:
        return self._level if self.rule.window is Window.BUCKET else self.rule.at(now_s) - self._used

    def _follow(self, now_s: float) -> None:
        if self.rule.window is Window.BUCKET:
            # What runs over at a change of the limit is lost there.
            for at_s in [*(at for at, _ in self.rule.steps if self._now_s < at < now_s), now_s]:
                flowed = self._level + self.rule.flow(self._now_s, at_s)
                self._level, self._now_s = min(self.rule.holds(at_s), flowed), at_s
            return
        began_s = self.rule.window_began(now_s)
        forgotten: Callable[[float], bool] = (
            (lambda at_s: at_s <= began_s + EXACT)
            if self.rule.window is Window.SLIDING
            else (lambda at_s: at_s < began_s - EXACT)
        )
        while self._log and forgotten(self._log[0][0]):
            self._used -= self._log.popleft()[1]
