"""The search for a limit that nobody tells: where it lies, by what passed between two refusals, and what is tried next.

A vendor that has just refused has nothing left. When it refuses again, just so much has passed since then as it allows
in that time, the quiet included: less than one call more, and that one is counted, since too low costs more than to be
refused once again. So two refusals tell the limit, whatever it was believed to be and however the vendor counts. From
just below it the pace grows: back to what was found, slowly there, and ever faster the longer nothing is refused.

    part of the configured limits                                       ╱
                                                                      ╱
    found ─────────────────────────────────────── · · ─────────── · ´
    base ──────────────────────────────── · ´
                        quiet
              refused ─────────► since              plateau
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from shared.core.budget import MINUTE, SECOND, Search

BELOW = 0.95
"""Where the pace goes on after a refusal, in parts of what was found."""
LEAST_UNIT_S, MOST_UNIT_S, UNIT_CALLS = 20.0, 3600.0, 120
"""So long, or so many calls, beyond its plateau a pace has doubled: what it costs to know is counted in calls."""
UNSERVED = 0.25
"""Where a pace came back to what was found before it was refused: so far the limit lies from what passed towards it."""
HALF = 0.5
"""One refusal lowers a pace by no more than this: a call that came at once is no measure."""
SLOWEST = 0.01
"""The search never goes below this part of the configured limits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """What an account was seen to spend as a call was sent, in time of the configured limits."""

    call_us: int
    """What this call takes."""
    spent_us: int
    """What was ever taken, this call included."""
    sent_us: int
    """The same without what was taken for moments to come."""


def begun(now_us: int, spending: Spending) -> Search:
    """From the configured limits on: nothing was refused yet."""
    unit_s = _unit_s(spending.call_us)
    return Search(base=1.0, top=1.0, since_us=now_us, unit_s=unit_s, spent_us=spending.spent_us)


def searched(search: Search, now_us: int, explore: float) -> float:
    """The part of the configured limits to try now. A function of time: growing costs no write."""
    grown = 1 + ((_seconds(search, now_us) - _plateau_s(search)) / search.unit_s) ** 3
    return min(explore, search.top * grown)


def met(
    search: Search | None,
    sent_us: int,
    quiet_us: int,
    explore: float,
    spending: Spending,
    *,
    quiet_s: float,
) -> Search:
    """The search once a call that was sent at `sent_us` was refused, for when the quiet is over at `quiet_us`.
    `quiet_s` is how long it was quiet before the pace began to grow."""
    found = pace = 1.0 if search is None else searched(search, sent_us, explore)
    if search is not None:
        # A longer quiet is about something else than a limit of minutes.
        whole_us = sent_us - search.since_us + min(int(quiet_s * SECOND), MINUTE)
        passed = (spending.sent_us - search.spent_us) / max(1, whole_us)
        if _seconds(search, sent_us) > _plateau_s(search):
            # It was below the limit for a while, and a vendor saves up little of what it did not serve.
            passed += max(0.0, pace - passed) * UNSERVED
        found = min(pace, max(HALF * pace, passed))
    found = max(SLOWEST, found)
    base, unit_s = max(SLOWEST, BELOW * found), _unit_s(int(spending.call_us / found))
    return Search(base=base, top=found, since_us=quiet_us, unit_s=unit_s, spent_us=spending.spent_us)


def _plateau_s(search: Search) -> float:
    """When the pace is back at what was found."""
    return search.unit_s * math.cbrt(max(0.0, 1 - search.base / search.top))


def _seconds(search: Search, now_us: int) -> float:
    return max(0, now_us - search.since_us) / SECOND


def _unit_s(span_us: int) -> float:
    return min(MOST_UNIT_S, max(LEAST_UNIT_S, UNIT_CALLS * span_us / SECOND))
