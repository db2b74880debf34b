"""One paced limit as time: what an amount costs, what a span lets through, and how far ahead of its pace it may be."""

from __future__ import annotations

from shared.core.account import PACED, AccountSpec
from shared.core.budget import MINUTE, SECOND, Terms, Want

CAUTIOUS_US, CAUTION_US = 10 * SECOND, SECOND // 20
"""So long after a quiet no more may be spent ahead than this: of most accounts less than a call, of fast ones a few."""
LONG_US = SECOND // 2
"""What takes so long is counted in whole milliseconds."""
PARTS = 1000
"""A limit counts to the thousandth: of seven and a half calls a minute the half is a fifteenth."""


def cost_us(amount: int, limit: float) -> int:
    """How far `amount` moves the arrival of a limit per minute; rounded up, so rounding never overspends. What takes
    long is a whole number of milliseconds, as clocks count them: of two calls that follow each other none is early."""
    us = -(-amount * MINUTE * PARTS // _parts(limit))
    return us if us < LONG_US else -(-us // 1000) * 1000


def back_us(amount: int, limit: float) -> int:
    """How far a returned amount moves the arrival back: rounded so that a return never gives more than was taken."""
    return amount * MINUTE * PARTS // _parts(limit)


def amount_in(span_us: int, limit: float) -> int:
    """What a limit per minute lets through in a span, rounded down: what costs no more than it."""
    counted_us = span_us if span_us < LONG_US else span_us // 1000 * 1000
    return counted_us * _parts(limit) // (MINUTE * PARTS)


def _parts(limit: float) -> int:
    return max(PARTS, int(limit * PARTS))


def burst_us(spec: AccountSpec) -> int:
    """How far the arrival may lie ahead."""
    return int(spec.burst_s * SECOND)


def burst_at(spec: AccountSpec, terms: Terms, now_us: int) -> int:
    """The same at a moment. For a while after a quiet hardly at all: one call asks whether the vendor is well again,
    and the next follow at their pace."""
    whole_us = burst_us(spec)
    return whole_us if now_us >= terms.quiet_until_us + CAUTIOUS_US else min(whole_us, CAUTION_US)


def fits_us(spec: AccountSpec, terms: Terms, arrival_us: int, cost: int) -> int:
    """The first moment at which a cost fits: ahead of the pace as far as the burst lets it then."""
    bursts = (burst_us(spec), min(burst_us(spec), CAUTION_US))
    whole_us, little_us = (arrival_us + cost - max(burst, cost) for burst in bursts)
    return max(whole_us, min(little_us, terms.quiet_until_us + CAUTIOUS_US))


def configured_us(spec: AccountSpec, want: Want) -> int:
    """How long `want` would keep the account busy at its configured limits; what is returned is negative there."""
    limits = ((want.of(limit), spec.configured(limit)) for limit in PACED)
    times = [amount * MINUTE // most for amount, most in limits if most]
    return int(max(times, key=abs, default=0) * spec.minute_s / 60)
