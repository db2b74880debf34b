"""Vendor budgets: what an account has left, who may take from it, and when the next one may.

Each paced limit is one moment, its *theoretical arrival time* (GCRA): what was spent so far is paid off at that
moment. A request moves it on by its cost; it fits while that stays within the burst. So a limit needs one number,
one conditional write and no read, and a refusal knows its exact time.

    now ──────────► arrival ─────► now + burst
        paid off later   room left
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from shared.core.account import DAILY, HELD, MOST, PACED, AccountSpec, Limit
from shared.core.budget import (
    DAY,
    MINUTE,
    SECOND,
    Budget,
    Hold,
    Refusal,
    Search,
    Shut,
    Taken,
    Terms,
    Want,
    at_us,
    day_of,
    us_of,
)
from shared.core.errors import BadInput
from shared.core.job import Job
from shared.core.limits import limit_of
from shared.core.pace import amount_in, back_us, burst_at, burst_us, configured_us, cost_us, fits_us
from shared.core.search import Spending

# Who asks the law speaks of its values too.
__all__ = (
    "DAY",
    "MINUTE",
    "SECOND",
    "Budget",
    "Hold",
    "Refusal",
    "Search",
    "Shut",
    "Taken",
    "Terms",
    "Want",
    "amount_in",
    "at_us",
    "back_us",
    "burst_at",
    "burst_us",
    "configured_us",
    "cost_us",
    "day_of",
    "limit_of",
    "us_of",
)

TOO_LARGE = "too_large"
USUAL_STEPS = 16
"""By such a part of itself one call changes what is usual."""
_BY_PACE = tuple(limit.value for limit in PACED)


def want_of(job: Job, budget: Budget | None = None) -> Want:
    """What a job's next attempt needs, as far as that is known; of tokens that nobody has estimated, what is usual at
    the account."""
    usual = 0 if budget is None else budget.usual_tokens
    return Want(requests=job.estimated_requests or 1, tokens=job.estimated_tokens or usual)


def usual_after(budget: Budget, used_tokens: int) -> int:
    """The tokens of a usual call, after one more, whoever made it: half of all use more, half use less. The mean of
    calls that differ much would be more than most of them need."""
    usual = budget.usual_tokens or min(used_tokens, MOST)
    step = max(1, usual // USUAL_STEPS)
    return min(MOST, usual + max(-step, min(step, used_tokens - usual)))


def enforced(spec: AccountSpec, terms: Terms) -> bool:
    """False when the configuration or an operator has turned the account's budget off."""
    return spec.enforced if terms.enforced is None else terms.enforced


def check_estimate(tokens: object) -> int:
    """An estimate that can be charged; anything else is named. Nothing is known is 0: the answer tells the use."""
    if isinstance(tokens, bool) or not isinstance(tokens, int):
        raise BadInput("estimated_tokens", "must be a whole number")
    if tokens < 0:
        raise BadInput("estimated_tokens", "is negative")
    if tokens > MOST:
        raise BadInput("estimated_tokens", f"is above {MOST:,}, which no limit allows")
    return tokens


def too_large(spec: AccountSpec, budget: Budget, want: Want, now_us: int) -> str | None:
    """A sentence for a request that no waiting can make fit, else None.

    A pace that an operator or a search lowered is no size: a large request then waits longer. Nor is a told limit
    below the configured one: vendors lower theirs for a while, and nothing is failed for good because of that.
    """
    terms = budget.terms
    for limit in Limit:
        if not want.of(limit):
            continue
        known: list[float | None] = [limit_of(spec, terms, limit, now_us)]
        if limit in PACED:
            known = [spec.configured(limit), terms.told.get(limit)]
        most = max((one for one in known if one is not None), default=None)
        if most is not None and want.of(limit) > most:
            return f"needs {want.of(limit):,} {limit.value}, the whole limit of account {spec.name} is {int(most):,}"
    return None


Arrivals = Mapping[Limit, int]
"""Moments up to which paced limits are spent, as the vendor's own count tells: never earlier than these."""


def take(
    spec: AccountSpec,
    budget: Budget,
    want: Want,
    now_us: int,
    *,
    hold: str = "",
    hold_s: float = 0,
    told_us: Arrivals | None = None,
    ahead_us: int = 0,
) -> Taken | Refusal:
    """The account after `want` was taken, or why it does not fit. What nothing but the pace holds back is taken for its
    moment, if that comes within `ahead_us`. Holders whose time is over make room. A holder that asks again holds what
    it asks for now: its earlier try was applied, and its reply was lost."""
    budget = heeding(budget, told_us)
    holding = any(want.of(limit) for limit in HELD)
    if holding and not hold:
        raise BadInput("hold", "is missing: slots and batch tokens need the name of their holder")
    found = without(budget, hold) if holding else budget
    refusal = _too_large(spec, found, want, now_us) or refused(spec, found, want, now_us)
    if refusal is not None and not _comes(spec, found, want, now_us, ahead_us):
        return replace(refusal, budget=budget)
    arrival = dict(budget.arrival_us)
    for limit in PACED:
        if (cost := _cost(spec, budget, want, limit, now_us)) is not None:
            arrival[limit] = max(arrival.get(limit, 0), now_us) + cost
    daily = counted(spec, budget.terms, now_us)
    day, used = counts_of(budget, now_us) if daily else (budget.day, budget.used)
    used = {**used, **{limit: used.get(limit, 0) + want.of(limit) for limit in daily}}
    gone = found.expired(now_us)
    holds = {name: held for name, held in found.holds.items() if name not in gone}
    if holding:
        until_us = now_us + int(hold_s * SECOND)
        holds[hold] = Hold(slots=want.slots, batch_tokens=want.batch_tokens, until_us=until_us)
    spent_us = budget.spent_us + configured_us(spec, want)
    after = replace(budget, arrival_us=arrival, day=day, used=used, holds=holds, spent_us=spent_us)
    return Taken(want=want, budget=after, at_us=moment_of(spec, after, want, now_us))


def take_most(
    spec: AccountSpec,
    budget: Budget,
    want: Want,
    least: Want,
    now_us: int,
    *,
    hold: str = "",
    hold_s: float = 0,
    told_us: Arrivals | None = None,
    ahead_us: int = 0,
) -> Taken | Refusal:
    """`want` now or for its moment within `ahead_us`; if that does not fit, the most that does, down to `least`; else
    the refusal of `least`."""
    budget = heeding(budget, told_us)
    taken = take(spec, budget, want, now_us, hold=hold, hold_s=hold_s, ahead_us=ahead_us)
    if isinstance(taken, Taken) or want == least:
        return taken
    found = without(budget, hold) if any(want.of(limit) for limit in HELD) else budget
    some = largest(spec, found, want, least, now_us, ahead_us)
    return take(spec, budget, some, now_us, hold=hold, hold_s=hold_s, ahead_us=ahead_us)


def moment_of(spec: AccountSpec, after: Budget, want: Want, now_us: int) -> int:
    """The moment by which all of `want` may be spent that was taken at `now_us`, by the account after it."""
    moments = [now_us]
    for limit in PACED:
        cost = _cost(spec, after, want, limit, now_us)
        if cost is not None:
            moments.append(fits_us(spec, after.terms, after.arrival_us.get(limit, 0) - cost, cost))
    return max(moments)


def heeding(budget: Budget, told_us: Arrivals | None) -> Budget:
    """The account spent at least as far as the vendor's count tells."""
    if not told_us:
        return budget
    later = {limit: max(us, budget.arrival_us.get(limit, 0)) for limit, us in told_us.items()}
    return replace(budget, arrival_us={**budget.arrival_us, **later})


def told_arrivals(spec: AccountSpec, terms: Terms, remaining: Mapping[Limit, int], now_us: int) -> Arrivals:
    """The arrivals that leave no more room than the vendor says is left: `remaining` of each limit, at `now_us`."""
    found: dict[Limit, int] = {}
    for limit in PACED:
        most, left = limit_of(spec, terms, limit, now_us), remaining.get(limit)
        if most is not None and left is not None and left >= 0:
            spent_us = now_us + burst_at(spec, terms, now_us) - back_us(left, most)
            if spent_us > now_us:
                found[limit] = spent_us
    return found


def without(budget: Budget, hold: str) -> Budget:
    """The account as if one holder held nothing."""
    return replace(budget, holds={name: held for name, held in budget.holds.items() if name != hold})


def counted(spec: AccountSpec, terms: Terms, now_us: int) -> tuple[Limit, ...]:
    """The daily limits that the account has."""
    return tuple(limit for limit in DAILY if limit_of(spec, terms, limit, now_us) is not None)


def counts_of(budget: Budget, now_us: int) -> tuple[int, Mapping[Limit, int]]:
    """The day that is being counted and its counts. A clock that is late counts on the later day: a day that was
    begun never begins again."""
    today = day_of(now_us)
    return (budget.day, budget.used) if budget.day >= today else (today, {})


def refused(spec: AccountSpec, budget: Budget, want: Want, now_us: int) -> Refusal | None:
    """Why `want` does not fit now, by the limit that will be free last; None when it fits."""
    return max(_refusals(spec, budget, want, now_us), key=lambda refusal: refusal.retry_us, default=None)


def _comes(spec: AccountSpec, budget: Budget, want: Want, now_us: int, ahead_us: int) -> bool:
    """True when nothing but the pace holds `want` back, and its moment comes within `ahead_us`."""
    found = _refusals(spec, budget, want, now_us) if ahead_us else []
    return bool(found) and all(refusal.limit in _BY_PACE and refusal.retry_us <= now_us + ahead_us for refusal in found)


def _refusals(spec: AccountSpec, budget: Budget, want: Want, now_us: int) -> list[Refusal]:
    terms = budget.terms
    if terms.shut is not None:
        turn_us = terms.shut.turn_us
        shut = Refusal(
            budget=budget,
            limit=f"shut:{terms.shut.reason}",
            deficit=0,
            retry_us=max(turn_us, now_us),
            probe=turn_us <= now_us,
        )
        return [shut]
    found: list[Refusal] = []
    if terms.quiet_until_us > now_us:
        found.append(Refusal(budget=budget, limit="quiet", deficit=0, retry_us=terms.quiet_until_us))
    for limit in PACED:
        cost = _cost(spec, budget, want, limit, now_us)
        if cost is None:
            continue
        free_us = fits_us(spec, terms, budget.arrival_us.get(limit, 0), cost)
        if free_us > now_us:
            most = limit_of(spec, terms, limit, now_us) or 1.0
            missing = -amount_in(now_us - free_us, most)
            found.append(Refusal(budget=budget, limit=limit.value, deficit=missing, retry_us=free_us))
    for limit in DAILY:
        cap = limit_of(spec, terms, limit, now_us)
        day, counts = counts_of(budget, now_us)
        if cap is not None and counts.get(limit, 0) + want.of(limit) > int(cap):
            missing = counts.get(limit, 0) + want.of(limit) - int(cap)
            found.append(Refusal(budget=budget, limit=limit.value, deficit=missing, retry_us=(day + 1) * DAY))
    for limit in HELD:
        cap = limit_of(spec, terms, limit, now_us)
        if cap is None or not want.of(limit):
            continue
        live = [held for held in budget.holds.values() if held.until_us > now_us]
        over = sum(held.of(limit) for held in live) + want.of(limit) - int(cap)
        if over > 0:
            # At the latest then: whoever holds it may give it back sooner.
            ends = min((held.until_us for held in live if held.of(limit)), default=now_us + SECOND)
            found.append(Refusal(budget=budget, limit=limit.value, deficit=over, retry_us=min(ends, now_us + SECOND)))
    return found


def _too_large(spec: AccountSpec, budget: Budget, want: Want, now_us: int) -> Refusal | None:
    """Nothing is taken for a request that never fits; its caller looks at the terms again and says so."""
    if budget.terms.shut is not None or too_large(spec, budget, want, now_us) is None:
        return None
    return Refusal(budget=budget, limit=TOO_LARGE, deficit=0, retry_us=now_us + SECOND)


def largest(spec: AccountSpec, budget: Budget, want: Want, least: Want, now_us: int, ahead_us: int = 0) -> Want:
    """The most between `least` and `want` that fits now or within `ahead_us`; `least` where not even that does. Tokens
    grow with whole requests, so that none is taken that no call will use."""
    part, whole = 1, 1
    rooms = {limit: room_of(spec, budget, limit, now_us, ahead_us) for limit in Limit}
    for limit in (*PACED, *DAILY):
        extra, room = want.of(limit) - least.of(limit), rooms[limit]
        if room is not None and extra > 0 and (room - least.of(limit)) * whole < part * extra:
            part, whole = max(0, room - least.of(limit)), extra

    extra_requests = want.requests - least.requests
    more = extra_requests * part // whole
    tokens = (want.tokens - least.tokens) * more // extra_requests if extra_requests else 0

    def held(limit: Limit) -> int:
        room = rooms[limit]
        return want.of(limit) if room is None else max(least.of(limit), min(want.of(limit), room))

    return Want(
        requests=least.requests + more,
        tokens=least.tokens + tokens,
        slots=held(Limit.CONCURRENCY),
        batch_tokens=held(Limit.BATCH_TOKENS),
    )


def room_of(spec: AccountSpec, budget: Budget, limit: Limit, now_us: int, ahead_us: int = 0) -> int | None:
    """How much of one limit can be had now, or of a pace within `ahead_us`; None when the account has no such limit."""
    most = limit_of(spec, budget.terms, limit, now_us)
    if most is None:
        return None
    if limit in PACED:
        latest_us = now_us + ahead_us + burst_at(spec, budget.terms, now_us + ahead_us)
        return amount_in(latest_us - max(budget.arrival_us.get(limit, 0), now_us), most)
    if limit in DAILY:
        return int(most) - counts_of(budget, now_us)[1].get(limit, 0)
    return int(most) - sum(held.of(limit) for held in budget.holds.values() if held.until_us > now_us)


def give_back(spec: AccountSpec, budget: Budget, want: Want, now_us: int, *, hold: str = "") -> Budget:
    """The account after what was not used came back; what was used beyond the estimate is a negative amount, and is
    charged as if it were taken now. What comes back after midnight was yesterday's."""
    arrival, moved = dict(budget.arrival_us), False
    for limit in PACED:
        amount, most = want.of(limit), limit_of(spec, budget.terms, limit, now_us)
        if most is None or not amount:
            continue
        if amount < 0:
            arrival[limit] = max(arrival.get(limit, 0), now_us) + cost_us(-amount, most)
        elif limit in arrival:
            arrival[limit] -= back_us(amount, most)
        moved = moved or limit in arrival
    day, used = budget.day, budget.used
    changes = {limit: want.of(limit) for limit in counted(spec, budget.terms, now_us) if want.of(limit)}
    if changes:
        begun, counts = counts_of(budget, now_us)
        if begun == day or min(changes.values()) < 0:
            day = begun
            used = {**counts, **{limit: max(0, counts.get(limit, 0) - amount) for limit, amount in changes.items()}}
    spent_us = budget.spent_us - (configured_us(spec, want) if moved else 0)
    return replace(without(budget, hold), arrival_us=arrival, day=day, used=used, spent_us=spent_us)


def reserve(budget: Budget, span_us: int, not_before_us: int, backlog_us: int = 0) -> tuple[int, Budget]:
    """A promised start at or after `not_before_us` behind everybody who was promised one, and the line after it."""
    start = max(budget.line_us, not_before_us)
    return start, replace(budget, line_us=start + span_us, backlog_us=backlog_us or budget.backlog_us)


def span_of(spec: AccountSpec, budget: Budget, want: Want, now_us: int) -> int:
    """How long `want` keeps the account busy: the cost on its tightest paced limit."""
    return max((_cost(spec, budget, want, limit, now_us) or 0 for limit in PACED), default=0)


def spending(spec: AccountSpec, budget: Budget, call: Want, now_us: int) -> Spending:
    """What the account was seen to spend when this call was sent."""
    to_come = 0.0
    for limit in PACED:
        most, configured = limit_of(spec, budget.terms, limit, now_us), spec.configured(limit)
        if most is not None and configured:
            mine_us = max(burst_at(spec, budget.terms, now_us), cost_us(call.of(limit), most))
            ahead_us = budget.arrival_us.get(limit, 0) - mine_us - now_us
            to_come = max(to_come, ahead_us * most / configured)
    spent_us = budget.spent_us
    return Spending(call_us=configured_us(spec, call), spent_us=spent_us, sent_us=spent_us - int(to_come))


def available(spec: AccountSpec, budget: Budget, limit: Limit, now_us: int) -> int | None:
    """How much of a minute's limit is not spoken for; None when the account has no such limit."""
    most = limit_of(spec, budget.terms, limit, now_us)
    if most is None:
        return None
    ahead_us = max(0, budget.arrival_us.get(limit, 0) - now_us)
    return max(0, int(most * (MINUTE - ahead_us) / MINUTE))


def _cost(spec: AccountSpec, budget: Budget, want: Want, limit: Limit, now_us: int) -> int | None:
    most = limit_of(spec, budget.terms, limit, now_us)
    return None if most is None else cost_us(want.of(limit), most)
