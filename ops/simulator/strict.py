"""A vendor that is slow or strict: limits of requests and of tokens, each by its own rule, and headers that may be
late, or lie."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from ops.simulator.rules import Kept, Rule
from ops.simulator.vendor import REFUSAL_S, Seen
from shared.core.account import Limit
from shared.core.effects import Absent, Accepted, Answer, Call, Effect, Lookup, LookupAnswer, Refused
from shared.core.feedback import Report
from shared.core.ports import Clock

HEARD_S = 5.0
"""After a 429, until every environment must have heard of it: what was on its way has arrived by then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Headers:
    """What answers tell of the limits."""

    told: bool = True
    late_s: float = 0.0
    """So old is what they tell."""
    times: float = 1.0
    """So many times the truth they claim."""
    retry_after_s: float | None = None
    """What every 429 asks for; None: as long as it takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """One vendor: what it allows and how it answers."""

    name: str
    requests: Rule
    tokens: Rule | None = None
    headers: Headers = Headers()
    takes_s: tuple[float, float] = (0.2, 0.8)
    counts_refused: bool = True
    """Refused calls count against the limits, too."""

    @property
    def rules(self) -> dict[Limit, Rule]:
        """By the limit that each keeps."""
        return {Limit.REQUESTS: self.requests, **({} if self.tokens is None else {Limit.TOKENS: self.tokens})}

    def soonest_s(self, calls: int, tokens: float) -> float:
        """The earliest moment by which so many calls with so many tokens in all can have been accepted."""
        asked = {Limit.REQUESTS: float(calls), Limit.TOKENS: tokens}
        return max(rule.soonest_s(asked[limit]) for limit, rule in self.rules.items())

    def fluid_s(self, calls: int, tokens: float) -> float:
        """When they have passed if they flow evenly at what is allowed."""
        asked = {Limit.REQUESTS: float(calls), Limit.TOKENS: tokens}
        return max(rule.fluid_s(asked[limit]) for limit, rule in self.rules.items())


class StrictVendor:
    """The `Vendor` port."""

    dedupes_by_key: timedelta | None = None
    lookup = Lookup.NONE

    def __init__(self, offer: Offer, *, clock: Clock, uses: Callable[[int], int], seed: int = 1) -> None:
        """`uses` tells the tokens of the first accepted call by 0, and so on."""
        self.name, self.offer = offer.name, offer
        self._clock, self._uses, self._rng = clock, uses, random.Random(seed)
        self.began: datetime = clock.now()
        self._kept = {limit: Kept(rule) for limit, rule in offer.rules.items()}
        self._reports: deque[tuple[float, Report]] = deque()
        self.seen = Seen()
        self.called_in_quiet = 0
        """Calls that came while everybody knew that the vendor had asked for quiet."""
        self._quiet_s: tuple[float, float] = (0.0, 0.0)

    @property
    def seconds(self) -> float:
        """Since the start."""
        return (self._clock.now() - self.began).total_seconds()

    def perform(self, request: Effect | Call, *, key: str | None, timeout_s: float) -> Answer:
        """One call: judged on arrival, answered when it is done."""
        answer = self._judged(self.seconds)
        takes_s = REFUSAL_S if isinstance(answer, Refused) else round(self._rng.uniform(*self.offer.takes_s), 3)
        self._clock.sleep(takes_s)
        return answer

    def look_up(self, key: str, *, timeout_s: float) -> LookupAnswer:
        """Nothing is kept."""
        return Absent()

    def _judged(self, now_s: float) -> Answer:
        self.called_in_quiet += self._quiet_s[0] <= now_s < self._quiet_s[1]
        used = self._uses(len(self.seen.accepted_at))
        asked = {Limit.REQUESTS: 1, Limit.TOKENS: used}
        wait_s = max(kept.wait_s(asked[limit], now_s) for limit, kept in self._kept.items())
        if wait_s <= 0 or self.offer.counts_refused:
            for limit, kept in self._kept.items():
                kept.charge(asked[limit], now_s)
        report = self._report(now_s)
        if wait_s > 0:
            self.seen.refused_at.append(now_s)
            # A refused call that counts has made it longer.
            fits_s = max(kept.wait_s(asked[limit], now_s) for limit, kept in self._kept.items())
            asks_s = self.offer.headers.retry_after_s or fits_s
            began_s = now_s + HEARD_S if now_s >= self._quiet_s[1] else self._quiet_s[0]
            self._quiet_s = (began_s, now_s + asks_s)
            refusal = Report(
                limits=report.limits, remaining=report.remaining, reset_s=report.reset_s, retry_after_s=asks_s
            )
            return Refused("429", retry_after_s=asks_s, report=refusal)
        self.seen.accepted_at.append(now_s)
        tokens = used if Limit.TOKENS in self._kept else None
        done = Report(limits=report.limits, remaining=report.remaining, reset_s=report.reset_s, tokens_used=tokens)
        return Accepted(f"m-{len(self.seen.accepted_at)}", report=done)

    def _report(self, now_s: float) -> Report:
        headers = self.offer.headers
        if not headers.told:
            return Report()
        times = headers.times
        self._reports.append(
            (
                now_s,
                Report(
                    limits={limit: int(kept.rule.at(now_s) * times) for limit, kept in self._kept.items()},
                    remaining={limit: int(kept.left(now_s) * times) for limit, kept in self._kept.items()},
                    reset_s={limit: kept.reset_s(now_s) for limit, kept in self._kept.items()},
                ),
            )
        )
        while len(self._reports) > 1 and self._reports[1][0] <= now_s - headers.late_s:
            self._reports.popleft()
        return self._reports[0][1]
