"""How long to wait when only an estimate is known: the account could not be asked.

Five steps, each a function: deficit, its part of a minute, more when the account is nearly spent, jitter, a cap.
"""

from __future__ import annotations

from shared.core.account import AccountSpec, Limit
from shared.core.budget import Budget, Want
from shared.core.rate import available, limit_of

PERIOD_S = 60.0
CAP_S = 300.0
JITTER = 0.2
BACKOFF_FROM = 0.9
BACKOFF_MOST = 3.0


def deficit(needed: int, available: int) -> int:
    """Step 1: what is missing."""
    return max(0, needed - available)


def base_delay_s(token_deficit: int, tokens_per_minute: int, request_deficit: int, requests_per_minute: int) -> float:
    """Step 2: the part of a minute in which the larger deficit refills."""
    return PERIOD_S * max(token_deficit / max(1, tokens_per_minute), request_deficit / max(1, requests_per_minute))


def backoff(used: float) -> float:
    """Step 3: 1 up to nine tenths of the capacity in use, then evenly up to 3 when all of it is."""
    over = (min(max(used, 0.0), 1.0) - BACKOFF_FROM) / (1 - BACKOFF_FROM)
    return 1.0 + (BACKOFF_MOST - 1.0) * max(0.0, over)


def jittered(delay_s: float, chance: float) -> float:
    """Step 4: a fifth more or less, by a number from 0 to 1 that the caller draws."""
    return delay_s * (1 - JITTER + 2 * JITTER * min(max(chance, 0.0), 1.0))


def capped(delay_s: float) -> float:
    """Step 5: five minutes at most."""
    return min(CAP_S, delay_s)


def estimated_delay_s(
    *,
    estimated_tokens: int,
    available_tokens: int,
    available_requests: int,
    tokens_per_minute: int,
    requests_per_minute: int,
    chance: float,
) -> float:
    """All five steps for one request."""
    base = base_delay_s(
        deficit(estimated_tokens, available_tokens),
        tokens_per_minute,
        deficit(1, available_requests),
        requests_per_minute,
    )
    used = 1 - min(available_tokens / max(1, tokens_per_minute), available_requests / max(1, requests_per_minute))
    return capped(jittered(base * backoff(used), chance))


def estimated_wait_s(spec: AccountSpec, budget: Budget, want: Want, now_us: int, chance: float) -> float:
    """The delay by what was last seen of an account. Where it looked free there is no deficit to go by: soon, and not
    all at once."""
    tokens, requests = (limit_of(spec, budget.terms, limit, now_us) for limit in (Limit.TOKENS, Limit.REQUESTS))
    delay_s = estimated_delay_s(
        estimated_tokens=want.tokens,
        available_tokens=available(spec, budget, Limit.TOKENS, now_us) or 0,
        available_requests=available(spec, budget, Limit.REQUESTS, now_us) or 0,
        tokens_per_minute=int(tokens or 1),
        requests_per_minute=int(requests or 1),
        chance=chance,
    )
    return delay_s if delay_s >= 1.0 else 1.0 + chance
