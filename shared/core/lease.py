"""How many permits an environment takes at once, so that one write serves many calls and none is taken in vain."""

from __future__ import annotations

import math
from dataclasses import replace

from shared.core.account import AccountSpec, Limit
from shared.core.budget import Budget, Want
from shared.core.rate import amount_in, burst_us, counted, limit_of


def lease_of(spec: AccountSpec, budget: Budget, least: Want, expected: int, mean_tokens: float, now_us: int) -> Want:
    """How much to take at once for `expected` requests soon, in whole calls: the burst at most, never less than what is
    needed now. It is void after the burst's time, so no second sees more than two bursts beyond the pace."""

    def most_of(limit: Limit) -> int | None:
        most = limit_of(spec, budget.terms, limit, now_us)
        return None if most is None else amount_in(burst_us(spec), most)

    more, tokens_each = max(0, expected - least.requests), math.ceil(mean_tokens)
    requests, tokens = most_of(Limit.REQUESTS), most_of(Limit.TOKENS)
    if requests is not None:
        more = min(more, max(0, requests - least.requests))
    if tokens is not None and tokens_each:
        more = min(more, max(0, tokens - least.tokens) // tokens_each)
    each = tokens_each if tokens is not None or counted(spec, budget.terms, now_us) else 0
    return replace(least, requests=least.requests + more, tokens=least.tokens + more * each)
