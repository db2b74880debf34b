"""Which limit of an account holds now: the operator's, the vendor's, the configured one, or what a search has found."""

from __future__ import annotations

from shared.core.account import PACED, AccountSpec, Limit
from shared.core.budget import Terms
from shared.core.search import searched


def limit_of(spec: AccountSpec, terms: Terms, limit: Limit, now_us: int) -> float | None:
    """The limit that holds now: the operator's if it is lower, else our share of what the vendor tells, else the
    configured one times what the search has found. What the vendor tells and does not keep to holds only where it is
    lower. A part of a limit is never less than one."""
    most = _told_limit(spec, terms, limit, now_us)
    # Kept by the minute of a clock, whatever the vendor calls one.
    return most * 60 / spec.minute_s if most is not None and limit in PACED else most


def _told_limit(spec: AccountSpec, terms: Terms, limit: Limit, now_us: int) -> float | None:
    told, pinned, configured = terms.told.get(limit), terms.pinned.get(limit), spec.configured(limit)
    if told is None and pinned is None and configured is None:
        return None
    ours = None if told is None else max(1.0, told * spec.share)
    doubted = limit in PACED and now_us < terms.doubted_until_us and configured is not None
    if ours is not None and not doubted:
        base: float | None = ours
    elif configured is not None and limit in PACED and terms.search is not None:
        base = max(1.0, configured * searched(terms.search, now_us, spec.explore))
    elif configured is not None and limit in PACED:
        base = float(configured)
    else:
        base = configured
    if doubted and ours is not None and base is not None:
        base = min(base, ours)
    if pinned is not None:
        return min(base, float(pinned)) if base is not None else float(pinned)
    return base


def stricter(spec: AccountSpec, before: Terms, after: Terms, now_us: int) -> bool:
    """True when the account was shut, made quiet or given a lower limit."""
    if after.shut is not None or after.quiet_until_us > before.quiet_until_us:
        return True
    limits = ((limit_of(spec, before, limit, now_us), limit_of(spec, after, limit, now_us)) for limit in Limit)
    return any(then is not None and (was is None or then < was) for was, then in limits)
