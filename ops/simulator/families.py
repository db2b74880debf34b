"""Families of slow and strict vendors. Each member's numbers are drawn by its seed, from a generator that nobody tunes
by: the law is made with some seeds, and judged by others."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from ops.simulator import lane_support
from ops.simulator.rules import MINUTE_S, Rule, Window
from ops.simulator.strict import Headers, Offer
from shared.core.account import AccountSpec
from shared.core.lane import LaneSpec

CALLS = 3_000
ACCURATE: tuple[float, float] = (1.0, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One vendor, or several on one lane, with the lane that works off a backlog against them."""

    lane: LaneSpec
    accounts: tuple[AccountSpec, ...]
    vendors: tuple[Offer, ...]
    calls: tuple[int, ...]
    """Of each vendor."""
    estimate: int = 0
    """Tokens that a call is believed to use."""
    uses: tuple[float, float] = ACCURATE
    """What it truly uses, in parts of the estimate: between these, evenly on a logarithmic scale."""
    skew_s: float = 0.0
    """Every clock of ours is wrong by up to so much."""

    def tokens(self, seed: int) -> tuple[int, ...]:
        """What each call uses, in the order in which they are accepted."""
        if self.uses == ACCURATE:
            return (self.estimate,) * max(self.calls)
        rng, (least, most) = random.Random(f"tokens {seed}"), self.uses
        chances = (rng.uniform(math.log(least), math.log(most)) for _ in range(max(self.calls)))
        return tuple(max(1, round(self.estimate * math.exp(chance))) for chance in chances)


def _lane(*names: str) -> LaneSpec:
    return LaneSpec(
        name="model",
        tasks=tuple(f"ask_{name}" for name in names),
        task_vendors={f"ask_{name}": (name,) for name in names} if len(names) > 1 else {},
        vendors=names,
        accounts=names,
        baseline=20,
        ceiling=20,
        expected_job_s=1.0,
    )


def _weather(rng: random.Random, limit: float, lasts_s: float) -> tuple[tuple[float, float], ...]:
    """A limit that is cut in the middle and comes back, sometimes not all of it."""
    falls, rises = rng.uniform(0.15, 0.35), rng.uniform(0.5, 0.7)
    cut, back = rng.uniform(0.4, 0.7), rng.choice((1.0, rng.uniform(0.8, 1.0)))
    return (
        (0.0, limit),
        (round(falls * lasts_s), float(max(1, int(cut * limit)))),
        (round(rises * lasts_s), float(max(1, int(back * limit)))),
    )


def _member(
    rng: random.Random,
    calls: int,
    limit: int,
    *,
    window: Window = Window.BUCKET,
    holds_s: float | None = None,
    headers: Headers | None = None,
    **more: Any,
) -> Member:
    """One vendor with a limit of requests."""
    rule = Rule(
        window=window,
        steps=_weather(rng, limit, calls * MINUTE_S / limit),
        holds_s=rng.uniform(1, 6) if holds_s is None else holds_s,
        phase_s=round(rng.uniform(0, MINUTE_S), 3),
    )
    offer = Offer(
        name="model",
        requests=rule,
        headers=headers or Headers(),
        takes_s=_takes(rng),
        counts_refused=rng.random() < 0.5,
    )
    return Member(
        lane=_lane("model"),
        accounts=(AccountSpec(name="model", vendor="model", requests_per_minute=limit),),
        vendors=(offer,),
        calls=(calls,),
        **more,
    )


def _takes(rng: random.Random) -> tuple[float, float]:
    least = rng.uniform(0.2, 1.0)
    return least, least * rng.uniform(1.5, 3.0)


def _extraction(rng: random.Random, calls: int, tokens: int) -> Member:
    """Lane `extraction` and its account as they are shipped; every call is of one size."""
    stage = lane_support.stage()
    lane = replace(stage.lanes["extraction"], tasks=("ask_openai",))
    account = stage.accounts["openai"]
    minute, most = account.requests_per_minute or 1, account.tokens_per_minute or 1
    lasts_s = calls * max(1 / minute, tokens / most) * MINUTE_S
    holds_s = rng.uniform(6, 60)
    offer = Offer(
        name="openai",
        requests=Rule(window=Window.BUCKET, steps=((0.0, float(minute)),), holds_s=holds_s),
        tokens=Rule(window=Window.BUCKET, steps=_weather(rng, most, lasts_s), holds_s=holds_s, least=tokens),
        takes_s=(tokens / 1000, tokens / 400),
        counts_refused=rng.random() < 0.5,
    )
    return Member(lane=lane, accounts=(account,), vendors=(offer,), calls=(calls,), estimate=tokens)


def _misjudged(rng: random.Random, calls: int) -> Member:
    estimate, minute, most = rng.randint(400, 1200), 240, 90_000
    lasts_s = calls * 1.43 * estimate / most * MINUTE_S
    holds_s = rng.uniform(6, 60)
    offer = Offer(
        name="model",
        requests=Rule(window=Window.BUCKET, steps=((0.0, float(minute)),), holds_s=holds_s),
        tokens=Rule(
            window=Window.BUCKET, steps=_weather(rng, most, lasts_s), holds_s=holds_s, least=4.0 * estimate + 1
        ),
        takes_s=_takes(rng),
        counts_refused=rng.random() < 0.5,
    )
    account = AccountSpec(name="model", vendor="model", requests_per_minute=minute, tokens_per_minute=most)
    return Member(
        lane=_lane("model"), accounts=(account,), vendors=(offer,), calls=(calls,), estimate=estimate, uses=(0.3, 4.0)
    )


def _three(rng: random.Random, calls: int) -> Member:
    limits = {"fast": 600, "middle": 300, "slow": 60}
    share = 2 * calls / sum(limits.values())
    parts = {name: round(limit * share) for name, limit in limits.items()}
    members = [_member(rng, parts[name], limit) for name, limit in limits.items()]
    return Member(
        lane=_lane(*limits),
        accounts=tuple(
            AccountSpec(name=name, vendor=name, requests_per_minute=limit) for name, limit in limits.items()
        ),
        vendors=tuple(replace(one.vendors[0], name=name) for name, one in zip(limits, members, strict=True)),
        calls=tuple(parts.values()),
    )


def _some(rng: random.Random) -> int:
    return rng.randint(60, 300)


def _windowed(rng: random.Random, calls: int, window: Window) -> Member:
    return _member(rng, calls, rng.randint(30, 90), window=window)


FAMILIES: dict[str, Callable[[random.Random, int], Member]] = {
    "bucket of 1 s": lambda rng, calls: _member(rng, calls, rng.randint(60, 600), holds_s=1.0),
    "60 a minute": lambda rng, calls: _member(rng, calls, 60),
    "20 a minute": lambda rng, calls: _member(rng, calls, 20),
    "1,500 tokens a call": lambda rng, calls: _extraction(rng, calls, 1_500),
    "8,000 tokens a call": lambda rng, calls: _extraction(rng, calls, 8_000),
    "three accounts": _three,
    "calendar minute": lambda rng, calls: _windowed(rng, calls, Window.CALENDAR),
    "sliding minute": lambda rng, calls: _windowed(rng, calls, Window.SLIDING),
    "tokens 0.3-4 x the estimate": _misjudged,
    "headers 5 s old": lambda rng, calls: _member(rng, calls, _some(rng), headers=Headers(late_s=5.0)),
    "headers say twice the limit": lambda rng, calls: _member(rng, calls, _some(rng), headers=Headers(times=2.0)),
    "Retry-After 900 s": lambda rng, calls: _member(rng, calls, _some(rng), headers=Headers(retry_after_s=900.0)),
    "clocks +-0.5 s": lambda rng, calls: _member(rng, calls, _some(rng), skew_s=0.5),
}
ABOUT_HEADERS = ("headers 5 s old", "headers say twice the limit")
"""Families that are about what headers say: without headers there is nothing to look at."""


def member(family: str, seed: int, calls: int = CALLS, *, tells: bool = True) -> Member:
    """One member of a family. The same seed draws the same numbers, whether or not it tells its limits."""
    drawn = FAMILIES[family](random.Random(f"{family} {seed}"), calls)
    if tells:
        return drawn
    silent = tuple(replace(one, headers=replace(one.headers, told=False)) for one in drawn.vendors)
    return replace(drawn, vendors=silent)
