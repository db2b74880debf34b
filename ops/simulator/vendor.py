"""A vendor with a limit that changes and an outage, which counts refused calls against the limit."""

from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from ops.vendors.limits import MinuteLimit
from shared.adapters.memory.clock import VirtualClock
from shared.core.account import Limit
from shared.core.effects import Absent, Accepted, Answer, Call, Effect, Lookup, LookupAnswer, Refused, Unknown
from shared.core.feedback import Report
from shared.core.ports import Clock

BURST = 0.1
"""The part of a minute's limit that the vendor takes at one moment."""


class Counting(StrEnum):
    """How a vendor keeps its limit."""

    BUCKET = "bucket"
    """Refilled evenly."""
    SLIDING = "sliding minute"
    """Every call of the last minute counts, to the last one; and no more than a burst at one moment."""


class Bucket:
    """Refilled evenly at the limit, holds a burst; refused calls take from it, too, down to a burst below empty."""

    def __init__(self, *, limit: int, burst: int, before: Bucket | None = None, now: datetime) -> None:
        self.limit, self.burst = limit, burst
        self._full_at = now if before is None else now + timedelta(seconds=(burst - before.level(now)) * 60 / limit)

    def level(self, now: datetime) -> float:
        """How many calls it holds; below zero where refused calls drew on it."""
        return self.burst - max(0.0, (self._full_at - now).total_seconds()) * self.limit / 60

    def wait_s(self, units: int, now: datetime) -> float:
        """0 when so many fit now, else how long until they would."""
        return max(0.0, (units - self.level(now)) * 60 / self.limit)

    def charge(self, units: int, now: datetime) -> None:
        """Take them, whether they fitted or not."""
        level = max(-float(self.burst), self.level(now) - units)
        self._full_at = now + timedelta(seconds=(self.burst - level) * 60 / self.limit)

    def remaining(self, now: datetime) -> int:
        """How many calls would be served at this moment."""
        return max(0, int(self.level(now)))

    def reset_s(self, now: datetime) -> float:
        """How long until it is full."""
        return max(0.0, (self._full_at - now).total_seconds())


REFUSAL_S = 0.05
OUTAGE_S = 0.5
"""How long a caller waits for a 503."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weather:
    """What happens to the vendor, in seconds from the start."""

    limits: tuple[tuple[float, int], ...]
    """From when on which limit of requests per minute holds."""
    outage: tuple[float, float] = (math.inf, math.inf)
    """From when to when every call is answered with a 503."""
    takes_s: tuple[float, float] = (0.2, 0.8)
    """A call takes between these."""

    def limit_at(self, seconds: float) -> int:
        """Requests per minute at a time."""
        return [limit for at, limit in self.limits if at <= seconds][-1]

    def down_at(self, seconds: float) -> bool:
        """True during the outage."""
        return self.outage[0] <= seconds < self.outage[1]


@dataclass(slots=True)
class Seen:
    """What the vendor counted."""

    accepted_at: list[float] = field(default_factory=list)
    refused_at: list[float] = field(default_factory=list)
    failed_at: list[float] = field(default_factory=list)
    keys: Counter[str] = field(default_factory=Counter)
    """How often an effect was accepted under each key: more than once is what a customer sees twice."""

    @property
    def calls(self) -> int:
        """Every call, whatever became of it."""
        return len(self.accepted_at) + len(self.refused_at) + len(self.failed_at)


class LimitedVendor:
    """The `Vendor` port. Its minute slides, to the last call; `tells` says whether its answers carry headers."""

    name = "model"
    dedupes_by_key: timedelta | None = None
    lookup = Lookup.NONE

    def __init__(
        self,
        *,
        clock: Clock,
        weather: Weather,
        tells: bool,
        counting: Counting = Counting.BUCKET,
        name: str = name,
        began: datetime | None = None,
        seed: int = 1,
    ) -> None:
        self.name = name
        self._clock, self._weather, self._tells, self._counting = clock, weather, tells, counting
        self._rng = random.Random(seed)
        self.began = began or clock.now()
        self._limit: Bucket | MinuteLimit = self._limit_of(weather.limits[0][1], None)
        self.seen = Seen()

    def perform(self, request: Effect | Call, *, key: str | None, timeout_s: float) -> Answer:
        """One call: judged on arrival, answered when it is done."""
        answer, takes_s = self.judge()
        if key is not None and isinstance(answer, Accepted):
            self.seen.keys[key] += 1
        self._clock.sleep(takes_s)
        return answer

    def look_up(self, key: str, *, timeout_s: float) -> LookupAnswer:
        """Nothing is kept."""
        return Absent()

    def judge(self) -> tuple[Answer, float]:
        """The answer to a call that arrives now, and how long it takes."""
        now, seconds = self._clock.now(), self.seconds
        if self._weather.down_at(seconds):
            self.seen.failed_at.append(seconds)
            return Unknown("503"), OUTAGE_S
        wait_s = self.wait_s()
        self._limit.charge(1, now)
        if wait_s > 0:
            self.seen.refused_at.append(seconds)
            return Refused("429", retry_after_s=wait_s, report=self._report(now, retry_after_s=wait_s)), REFUSAL_S
        self.seen.accepted_at.append(seconds)
        return Accepted(f"m-{len(self.seen.accepted_at)}", report=self._report(now)), self._takes_s()

    def wait_s(self) -> float:
        """How long until a call would be accepted."""
        self._follow(self.seconds)
        return self._limit.wait_s(1, self._clock.now())

    @property
    def seconds(self) -> float:
        """Since the start."""
        return (self._clock.now() - self.began).total_seconds()

    def _takes_s(self) -> float:
        return round(self._rng.uniform(*self._weather.takes_s), 3)

    def _follow(self, seconds: float) -> None:
        limit = self._weather.limit_at(seconds)
        if limit != self._limit.limit:
            self._limit = self._limit_of(limit, self._limit)

    def _limit_of(self, limit: int, before: Bucket | MinuteLimit | None) -> Bucket | MinuteLimit:
        burst = max(1, int(limit * BURST))
        if self._counting is Counting.BUCKET:
            assert not isinstance(before, MinuteLimit)
            return Bucket(limit=limit, burst=burst, before=before, now=self._clock.now())
        assert not isinstance(before, Bucket)
        return MinuteLimit(limit=limit, burst=burst, before=before)

    def _report(self, now: datetime, retry_after_s: float | None = None) -> Report:
        if not self._tells:
            return Report(retry_after_s=retry_after_s)
        return Report(
            limits={Limit.REQUESTS: self._limit.limit},
            remaining={Limit.REQUESTS: self._limit.remaining(now)},
            reset_s={Limit.REQUESTS: self._limit.reset_s(now)},
            retry_after_s=retry_after_s,
        )


def ideal_s(weather: Weather, jobs: int, counting: Counting = Counting.BUCKET) -> float:
    """When a caller that knows the moment of every acceptance would be done: each call is sent just then, none is
    refused, and nothing is lost but what the vendor itself does not give."""
    clock = VirtualClock()
    vendor = LimitedVendor(clock=clock, weather=weather, tells=False, counting=counting)
    changes = sorted({at for at, _ in weather.limits} | set(weather.outage))
    while len(vendor.seen.accepted_at) < jobs:
        seconds = vendor.seconds
        wait_s = weather.outage[1] - seconds if weather.down_at(seconds) else vendor.wait_s()
        if wait_s > 0:
            # Not past a change: a raised limit may let the call through sooner.
            clock.advance(max(0.001, min([wait_s, *(at - seconds for at in changes if at > seconds)])))
        else:
            vendor.judge()
    return vendor.seen.accepted_at[-1] + sum(weather.takes_s) / 2
