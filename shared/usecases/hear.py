"""Hear: what the terms of an account are after one answer of its vendor."""

from __future__ import annotations

from dataclasses import replace

from shared.core import feedback
from shared.core.account import AccountSpec
from shared.core.effects import Accepted, Answer, Refused, Unknown
from shared.core.feedback import Health
from shared.core.rate import Budget, Terms, Want, spending
from shared.usecases.permit import Permit


def learned(
    terms: Terms,
    permit: Permit,
    answer: Answer,
    *,
    spec: AccountSpec,
    health: Health,
    now_us: int,
    refused_key: bool,
    seen: Budget,
) -> Terms | None:
    """What the terms are after this answer, for an account as it was `seen` when it came; None where they stay."""
    report, sent_us = answer.report, permit.sent_us
    if refused_key:
        shut = feedback.shut_down(terms, feedback.AUTH, sent_us, now_us)
        return shut or (feedback.in_vain(terms, sent_us, now_us) if permit.probe else None)
    match answer:
        case Refused(unsent=True):
            return feedback.in_vain(terms, sent_us, now_us) if permit.probe else None
        case Unknown() | Refused(unreachable=True):
            if permit.probe:
                return feedback.in_vain(terms, sent_us, now_us)
            broken = health.broken(terms.changed_us)
            return feedback.shut_down(terms, feedback.OUTAGE, sent_us, now_us) if broken else None
    opened = feedback.opened(terms, sent_us, now_us) if permit.probe else None
    stands = opened or terms
    spent = spending(spec, seen, Want(requests=1, tokens=permit.tokens), sent_us)
    told = feedback.calibrated(stands, report, sent_us, now_us) or stands
    after: Terms | None = told
    if isinstance(answer, Refused) and answer.rate_limited:
        # The limits that it tells came with it: they are no later news than the refusal.
        heard = replace(told, changed_us=stands.changed_us)
        after = feedback.slowed(spec, heard, report, sent_us, now_us, spent) or told
    elif isinstance(answer, Accepted):
        after = feedback.searching(spec, told, report, now_us, spent) or told
    return None if after is terms else after
