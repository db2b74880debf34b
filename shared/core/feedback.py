"""What an account learns from the vendor's answers: its limits, a limit that nobody tells, an outage, a refused key.

Every rule gives the new terms, or None where nothing changes. An answer speaks of the moment its call was sent: one
sent before the terms last changed has nothing to say about them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from shared.core import search
from shared.core.account import AccountSpec, Limit, is_amount
from shared.core.budget import SECOND, Search, Shut, Terms
from shared.core.search import Spending

RETRY_LEAST_S, RETRY_MOST_S, RETRY_UNTOLD_S = 1.0, 3600.0, 1.0
FAILURES, FAILURE_SHARE, WINDOW_S = 5, 0.5, 10.0
OUTAGE, AUTH = "outage", "auth"
PROBE_FIRST_S = 1.0
PROBE_MOST_S: Mapping[str, float] = {OUTAGE: 1.0, AUTH: 60.0}
"""An outage is asked about every second; refused credentials ever less often, up to once a minute."""
PROBE_LASTS_S = 10.0
"""A probe that was not answered by then does not keep others from probing: whoever made it may be dead."""
RAISE_EVERY_S = 10.0
"""A told limit falls at once and rises at most so often: answers that contradict each other do not thrash it."""
DOUBT_AFTER, DOUBT_WITHIN_S, DOUBT_S = 3, 60.0, 3600.0
"""So many refusals within a window under a told limit, and for an hour it counts as untold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What one answer tells of its account; nothing in it is customer text."""

    limits: Mapping[Limit, int] = field(default_factory=dict)
    remaining: Mapping[Limit, int] = field(default_factory=dict)
    reset_s: Mapping[Limit, float] = field(default_factory=dict)
    """Seconds until the limit is whole again."""
    retry_after_s: float | None = None
    tokens_used: int | None = None


NOTHING = Report()


def calibrated(terms: Terms, report: Report, sent_us: int, now_us: int) -> Terms | None:
    """The limits the vendor tells hold from now on. What cannot be true is not believed: no limit, or more left
    than there is. While they are doubted, what the search has found stays."""
    if sent_us < terms.changed_us:
        return None
    believed = {
        limit: amount
        for limit, amount in report.limits.items()
        if is_amount(amount) and report.remaining.get(limit, 0) <= amount
    }
    told = {**terms.told, **believed}
    if told == dict(terms.told):
        return None
    lowered = any(amount < terms.told.get(limit, amount + 1) for limit, amount in believed.items())
    if not lowered and now_us - terms.changed_us < int(RAISE_EVERY_S * SECOND):
        return None
    return changed(terms, now_us, told=told, search=terms.search if now_us < terms.doubted_until_us else None)


def searching(spec: AccountSpec, terms: Terms, report: Report, now_us: int, spending: Spending) -> Terms | None:
    """A call was accepted and told no limits: where the configuration lets it, look for what the vendor allows."""
    if spec.explore <= 1 or terms.search is not None or terms.told or report.limits:
        return None
    return changed(terms, now_us, search=search.begun(now_us, spending))


def slowed(
    spec: AccountSpec, terms: Terms, report: Report, sent_us: int, now_us: int, spending: Spending
) -> Terms | None:
    """After a 429: quiet for as long as the vendor asks. If it tells no limits, or does not keep to them, go on below
    what passed since it refused before: once for all calls that were sent under one pace."""
    if sent_us < terms.changed_us:
        return None
    tells = bool(terms.told or report.limits)
    if tells:
        terms = _noted(terms, now_us)
    believed = tells and now_us >= terms.doubted_until_us
    quiet_us = max(terms.quiet_until_us, now_us + int(_quiet_s(spec, report, believed=believed) * SECOND))
    found = terms.search if believed else _found(spec, terms, sent_us, quiet_us, spending)
    if found == terms.search and quiet_us == terms.quiet_until_us:
        return None
    return changed(terms, now_us, quiet_until_us=quiet_us, search=found)


def _found(spec: AccountSpec, terms: Terms, sent_us: int, quiet_us: int, spending: Spending) -> Search:
    before = terms.search
    if before is not None and sent_us < before.since_us:
        # It went out in the quiet, on a permit from before: the pace that begins after it is not tried yet.
        return replace(before, since_us=quiet_us)
    quiet_s = 0.0 if before is None else (before.since_us - terms.changed_us) / SECOND
    return search.met(before, sent_us, quiet_us, spec.explore, spending, quiet_s=quiet_s)


def _noted(terms: Terms, now_us: int) -> Terms:
    """A refusal under a told limit. The third within a window, and what is told is doubted."""
    recent = (*(us for us in terms.refused_us if us > now_us - int(DOUBT_WITHIN_S * SECOND)), now_us)
    if len(recent) < DOUBT_AFTER:
        return replace(terms, refused_us=recent)
    return replace(terms, refused_us=(), doubted_until_us=now_us + int(DOUBT_S * SECOND))


def _quiet_s(spec: AccountSpec, report: Report, *, believed: bool) -> float:
    """How long nobody calls. Who tells limits is asked again when they are whole: whatever it says it wants, nothing is
    spent then that it counts."""
    asked_s = RETRY_UNTOLD_S if report.retry_after_s is None else report.retry_after_s
    window_s = min([spec.minute_s, *([max(report.reset_s.values())] if report.reset_s else [])])
    return max(RETRY_LEAST_S, min(asked_s, window_s if believed else RETRY_MOST_S))


def shut_down(terms: Terms, reason: str, sent_us: int, now_us: int) -> Terms | None:
    """No calls but one probe at a time, until one is answered."""
    if terms.shut is not None or sent_us < terms.changed_us:
        return None
    probe_us = now_us + int(PROBE_FIRST_S * SECOND)
    return changed(
        terms, now_us, shut=Shut(reason=reason, since_us=now_us, probe_us=probe_us, probe_every_s=PROBE_FIRST_S)
    )


def probing(terms: Terms, now_us: int, *, by: str = "") -> Terms | None:
    """The probe's turn is taken by `by`: nobody else probes before it is answered, or is taken for dead."""
    shut = terms.shut
    if shut is None or shut.turn_us > now_us:
        return None
    next_us, dead_us = now_us + int(shut.probe_every_s * SECOND), now_us + int(PROBE_LASTS_S * SECOND)
    return changed(terms, terms.changed_us, shut=replace(shut, probe_us=next_us, held_until_us=dead_us, probe_by=by))


def unasked(terms: Terms, now_us: int, *, by: str) -> Terms | None:
    """The probe that `by` took was not sent: it is anybody's again, at once."""
    shut = terms.shut
    if shut is None or not shut.held_until_us or shut.probe_by != by:
        return None
    return changed(terms, terms.changed_us, shut=replace(shut, probe_us=now_us, held_until_us=0))


def in_vain(terms: Terms, sent_us: int, now_us: int) -> Terms | None:
    """A probe was not answered by the vendor: the next may follow, as long after this one as the trouble asks for."""
    shut = terms.shut
    if shut is None or not shut.held_until_us:
        return None
    every_s = min(PROBE_MOST_S.get(shut.reason, PROBE_FIRST_S), shut.probe_every_s * 2)
    probe_us = max(now_us, sent_us + int(every_s * SECOND))
    return changed(
        terms, terms.changed_us, shut=replace(shut, probe_us=probe_us, held_until_us=0, probe_every_s=every_s)
    )


def opened(terms: Terms, sent_us: int, now_us: int) -> Terms | None:
    """A probe was answered: the account is open at its full pace. An older call's answer proves nothing."""
    if terms.shut is None or sent_us < terms.shut.since_us:
        return None
    return changed(terms, now_us, shut=None, quiet_until_us=0)


def changed(terms: Terms, now_us: int, **changes: object) -> Terms:
    """The terms with `changes`, under a new version."""
    return replace(terms, version=terms.version + 1, changed_us=now_us, **changes)  # type: ignore[arg-type]


class Health:
    """The breaker's memory of one environment: calls by the time they were *sent*. Failures that were under way when
    the account opened again do not shut it a second time."""

    def __init__(self) -> None:
        self._calls: deque[tuple[int, bool, bool]] = deque()
        self._newest_us = 0

    def note(self, sent_us: int, *, failed: bool, refused: bool = False) -> None:
        """One answer: failed is an outage's sign, refused a 429."""
        self._calls.append((sent_us, failed, refused))
        self._newest_us = max(self._newest_us, sent_us)
        while self._calls and self._calls[0][0] < self._from_us():
            self._calls.popleft()

    def broken(self, since_us: int) -> bool:
        """Of the calls sent since then: the newest five failed, or at least five and half of all."""
        sent = sorted(
            (sent_us, failed) for sent_us, failed, _ in self._calls if sent_us >= max(since_us, self._from_us())
        )
        calls = [failed for _, failed in sent]
        failures = sum(calls)
        return failures >= FAILURES and (all(calls[-FAILURES:]) or failures >= FAILURE_SHARE * len(calls))

    def worked(self, since_us: int) -> bool:
        """True when a call sent since then was answered well."""
        return any(sent_us >= since_us and not failed and not refused for sent_us, failed, refused in self._calls)

    def _from_us(self) -> int:
        # A slow call answers after faster ones that were sent later: it may stand behind them.
        return self._newest_us - int(WINDOW_S * SECOND)
