"""A purse: what one environment holds of one vendor account. Permits come in small leases, so that one write serves
many jobs; what is not used goes back; what the vendor answers is heard by everybody who spends the account."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

from shared.core import feedback, rate
from shared.core.account import PACED, AccountSpec, Limit
from shared.core.effects import Answer, Refused, Unknown
from shared.core.errors import Unavailable, UnreadableRow
from shared.core.estimate import estimated_wait_s
from shared.core.lease import lease_of
from shared.core.ports import BudgetLedger, Clock, Telemetry
from shared.core.rate import SECOND, Refusal, Taken, Want
from shared.usecases.demand import Demand
from shared.usecases.hear import learned
from shared.usecases.known_account import KnownAccount
from shared.usecases.lease import Lease
from shared.usecases.permit import Checked, Denied, OverLimit, Permit
from shared.usecases.slots import Slots
from shared.usecases.turns import Turns
from shared.usecases.use import Use

AHEAD_MOST_S = 2.0
"""No permit is taken for a moment further ahead: a slot that sleeps is paid for, and does not hear of trouble."""
FRESH_US = SECOND // 4
"""What was seen of an account so lately is as good as another look."""
HOLD_MARGIN_S = 2.0
"""Slots are held so much longer than the work of a batch may take."""
MAX_SKEW_S = 2.0
SKEW_PAUSE_S = 15.0
LOOK_EVERY_US = 10 * SECOND
BELIEVED_US = 2 * SECOND
"""So long an environment believes what it last heard: that it was refused, or that nobody can be asked."""
WORKS_US = 60 * SECOND
"""A key that was accepted so recently is a good key: what one job is refused for is the job's own affair then."""
_PACED = tuple(limit.value for limit in PACED)


class Purse:
    """What one environment holds of one account."""

    def __init__(
        self,
        spec: AccountSpec,
        *,
        ledger: BudgetLedger,
        clock: Clock,
        telemetry: Telemetry,
        owner: str,
        skew_s: Callable[[], float | None],
        chance: Callable[[], float],
    ) -> None:
        self._spec, self._ledger, self._telemetry = spec, ledger, telemetry
        self._owner, self._chance = owner, chance
        self._account = KnownAccount(
            spec, ledger=ledger, clock=clock, telemetry=telemetry, skew_s=skew_s, on_trouble=self._void
        )
        self._lock = threading.RLock()
        self._health = feedback.Health()
        self._lease = Lease(rate.burst_us(spec))
        self._slots = Slots()
        self._looked_us = 0
        self._refusal: tuple[Refusal, Want] | None = None
        self._believed_until_us = self._blind_until_us = 0
        self._told_us: dict[Limit, int] = {}
        """Arrivals that the vendor's own count tells."""
        self._turns = Turns(spec, ledger=ledger, chance=chance)
        self._expected, self._work_s = 1, 60.0
        self._demand, self._use = Demand(), Use()

    # ---------------------------------------------------------------------------------------------- taking
    def expect(self, calls: int, deadline_s: float) -> None:
        """About so many calls come soon."""
        with self._lock:
            self._expected, self._work_s = max(1, calls), deadline_s

    def check(self, tokens: int, requests: int = 1, ahead_s: float = 0.0) -> Checked:
        """A permit for now or for a moment within `ahead_s`, or the job's own turn."""
        least = Want(requests=requests, tokens=tokens)
        with self._lock:
            now_us, skew_s = self._account.now_us(), self._account.skew_s
            if abs(skew_s) > MAX_SKEW_S:
                # A clock this wrong would spend other people's minutes: no permits until it is right.
                self._telemetry.event("clock_skewed", account=self._spec.name, skew_seconds=round(skew_s, 1))
                later_us = now_us + int(SKEW_PAUSE_S * SECOND)
                return self._checked(self._later("clock_skew", 0, later_us, least, now_us), now_us)
            if not tokens:
                least = replace(least, tokens=self._usual_tokens(requests, now_us))
            answer = self._take(least, now_us, int(min(max(0.0, ahead_s), AHEAD_MOST_S) * SECOND))
            self._expected = max(1, self._expected - 1)
            return self._checked(answer, now_us)

    def _usual_tokens(self, requests: int, now_us: int) -> int:
        """What calls without an estimate are charged with: the account's usual use, where it counts tokens and as far
        as its limits let it."""
        limits = (self._account.limit(limit, now_us) for limit in (Limit.TOKENS, Limit.TOKENS_PER_DAY))
        most = min((limit for limit in limits if limit is not None), default=0)
        return min(requests * self._account.budget.usual_tokens, int(most))

    def _take(self, least: Want, now_us: int, ahead_us: int) -> Permit | Denied:
        if not self._account.enforced and not self._enforced_again(now_us):
            return self._unmetered(least, now_us)
        sentence = rate.too_large(self._spec, self._account.budget, least, now_us)
        if sentence is not None:
            raise OverLimit(sentence)
        self._demand.note(now_us)
        self._use.expect(least.tokens)
        if self._in_lease(least, now_us):
            wait_us = self._wait_us(least, now_us)
            if wait_us <= ahead_us:
                return self._spend(least, now_us, wait_us)
            return self._later(Limit.REQUESTS.value, 0, now_us + wait_us, least, now_us)
        known = self._known_refusal(least, now_us, ahead_us)
        if known is not None:
            return self._denied(known, least, now_us)
        if now_us < self._blind_until_us:
            return self._by_estimate(least, now_us)
        try:
            lacking = self._lease.short_of(least, now_us)
            settled = self._use.settling(lacking.tokens, self._account.limit(Limit.TOKENS, now_us))
            taken = self._ask(replace(lacking, tokens=lacking.tokens + settled), now_us, ahead_us)
        except (Unavailable, UnreadableRow) as exc:
            self._account.unreadable(exc)
            self._blind_until_us = now_us + BELIEVED_US
            return self._by_estimate(least, now_us)
        if not self._account.enforced:
            return self._unmetered(least, now_us)
        if isinstance(taken, Refusal):
            if taken.probe and self._won_probe(now_us):
                return replace(self._unmetered(least, now_us), probe=True, metered=True)
            self._refusal, self._believed_until_us = (taken, least), now_us + BELIEVED_US
            return self._denied(taken, least, now_us)
        self._refusal = None
        self._lease.add(taken.want.requests, taken.want.tokens - settled, now_us, taken.at_us)
        self._use.settled(settled)
        if taken.want.slots:
            self._slots.hold(taken.want.slots, now_us + int((self._work_s + HOLD_MARGIN_S) * SECOND))
        return self._spend(least, now_us, self._wait_us(least, now_us))

    def _ask(self, least: Want, now_us: int, ahead_us: int) -> Taken | Refusal:
        """One step on the account: a lease for what is expected, or less."""
        self._return_void(now_us)
        pace = self._account.limit(Limit.REQUESTS, now_us)
        soon = max(self._expected, self._demand.soon(now_us, pace, rate.burst_us(self._spec), self._expected))
        least = replace(least, slots=self._missing_slots(now_us))
        want = lease_of(self._spec, self._account.budget, least, soon, self._use.tokens, now_us)
        if least.slots:
            most = int(self._account.limit(Limit.CONCURRENCY, now_us) or 1)
            want = replace(want, slots=self._slots.wanted(self._expected, most))
        taken = self._ledger.take(
            self._spec,
            want,
            least=least,
            now_us=now_us,
            hold=self._owner,
            hold_s=self._work_s + HOLD_MARGIN_S,
            told_us={limit: us for limit, us in self._told_us.items() if us > now_us},
            ahead_us=ahead_us,
            used_tokens=self._use.newest,
        )
        self._account.adopt(taken.budget)
        return taken

    def _known_refusal(self, least: Want, now_us: int, ahead_us: int) -> Refusal | None:
        """What the last look said, where it says the same of this request: no write to be told it again."""
        if self._refusal is None or now_us >= self._believed_until_us:
            return self._account.spent(least, now_us, ahead_us) if self._account.looked(now_us - BELIEVED_US) else None
        refusal, asked = self._refusal
        smaller = least.requests < asked.requests or least.tokens < asked.tokens
        other = refusal.budget.terms.version != self._account.terms.version
        return None if smaller or other or refusal.probe or now_us + ahead_us >= refusal.retry_us else refusal

    def _return_void(self, now_us: int) -> None:
        """Permits of a lease that is over still stand in the day's counts: they go back there before more are taken."""
        if not self._lease.alive(now_us) and rate.counted(self._spec, self._account.terms, now_us):
            back = self._lease.emptied()
            if back.requests or back.tokens:
                self._ledger.give_back(self._spec, back, now_us=now_us)

    def _in_lease(self, least: Want, now_us: int) -> bool:
        tokens = any(self._account.limit(limit, now_us) is not None for limit in (Limit.TOKENS, Limit.TOKENS_PER_DAY))
        return self._lease.has(least, now_us, tokens=tokens) and not self._missing_slots(now_us)

    def _wait_us(self, least: Want, now_us: int) -> int:
        """How long until the next request's moment: those that are left in the lease come after it."""
        return max(0, self._lease.at_us - self._account.span_us(self._lease.rest(least), now_us) - now_us)

    def _spend(self, least: Want, now_us: int, wait_us: int) -> Permit:
        self._lease.spend(least.requests, least.tokens)
        self._slots.begin()
        version = self._account.terms.version
        return replace(self._unmetered(least, now_us), metered=True, wait_us=wait_us, version=version)

    def _unmetered(self, least: Want, now_us: int) -> Permit:
        return Permit(
            account=self._spec.name, tokens=least.tokens, requests=least.requests, sent_us=now_us, metered=False
        )

    def part(self, bundle: Permit) -> Permit:
        """Another request of a permit for several goes out now."""
        with self._lock:
            if bundle.metered and not bundle.probe:
                self._slots.begin()
            return replace(bundle, sent_us=self._account.now_us())

    def come(self, permit: Permit) -> Permit | Denied:
        """The moment of a permit that was waited for is here: it is good if the account still allows that much. If it
        does not, or cannot be asked, the permit goes back and the job takes its own turn."""
        with self._lock:
            now_us = self._account.now_us()
            if not self._account.looked(now_us - FRESH_US) and not self._account.look():
                self._slots.end()
                return self._by_estimate(Want(requests=permit.requests, tokens=permit.tokens), now_us)
            if self._holds(permit):
                return replace(permit, sent_us=now_us)
            self.unsent(permit)
            least = Want(requests=permit.requests, tokens=permit.tokens)
            refusal = rate.refused(self._spec, self._account.budget, least, now_us)
            if refusal is None:
                return self._later(Limit.REQUESTS.value, 0, now_us, least, now_us)
            return self._denied(refusal, least, now_us)

    def _holds(self, permit: Permit) -> bool:
        """False when the terms became stricter after it was taken."""
        return permit.version >= self._account.strict_version

    def restore(self, rest: Permit) -> None:
        """Permits that were taken and not used go back to the lease; those that were waited for, to the account: their
        moment is another's then."""
        with self._lock:
            if rest.probe:
                now_us = self._account.now_us()
                self._account.change(lambda terms: feedback.unasked(terms, now_us, by=self._owner))
                return
            if not rest.metered:
                return
            if not rest.wait_us:
                self._lease.restore(rest.requests, rest.tokens)
                return
            if not self._holds(rest):
                # At a lower pace it would give back more time than it took.
                return
            try:
                back = Want(requests=rest.requests, tokens=rest.tokens)
                self._ledger.give_back(self._spec, back, now_us=self._account.now_us())
            except (Unavailable, UnreadableRow) as exc:
                self._account.unreadable(exc)

    def over(self, permit: Permit) -> None:
        """A call was sent and its answer will not be told: it runs no more."""
        with self._lock:
            if permit.metered and not permit.probe:
                self._slots.end()

    def _enforced_again(self, now_us: int) -> bool:
        """An account that is not kept is looked at now and then: the flag may have been turned on again."""
        if now_us - self._looked_us >= LOOK_EVERY_US:
            self._looked_us = now_us
            self._account.look()
        return self._account.enforced

    def _missing_slots(self, now_us: int) -> int:
        return 0 if self._account.limit(Limit.CONCURRENCY, now_us) is None else self._slots.missing(now_us)

    def _won_probe(self, now_us: int) -> bool:
        """One caller may look whether the vendor is back."""
        return self._account.change(lambda terms: feedback.probing(terms, now_us, by=self._owner))

    # ------------------------------------------------------------------------------------------- refusing
    def _denied(self, refusal: Refusal, least: Want, now_us: int) -> Denied:
        return self._later(refusal.limit, refusal.deficit, max(refusal.retry_us, now_us), least, now_us)

    def _later(self, limit: str, deficit: int, not_before_us: int, least: Want, now_us: int) -> Denied:
        """The next turn that nobody else has.

        A pace's own time is near, and the line goes on from there. Any other time may be far off (midnight, an hour's
        quiet): the job takes its place in line today and keeps it then, and nobody else waits for that time.
        """
        span_us = self._span_us(limit, least, now_us)
        if limit in _PACED:
            turn_us = self._turns.next(span_us, not_before_us, self._usual_us(not_before_us), self._expected)
        else:
            turn_us = not_before_us - now_us + self._turns.next(span_us, now_us, self._usual_us(now_us), self._expected)
        return self._account.no(limit, deficit, rate.at_us(turn_us), least, now_us)

    def _usual_us(self, now_us: int) -> int:
        """How long a usual request keeps the account busy."""
        usual = Want(requests=1, tokens=int(self._use.tokens))
        return max(1000, self._account.span_us(usual, now_us))

    def _span_us(self, limit: str, least: Want, now_us: int) -> int:
        """How long a request keeps the account busy; where slots are short, a call's time over all slots."""
        span_us = max(1000, self._account.span_us(least, now_us))
        if limit == Limit.CONCURRENCY.value:
            span_us = max(span_us, int(self._use.call_us / (self._account.limit(Limit.CONCURRENCY, now_us) or 1)))
        return span_us

    def _by_estimate(self, least: Want, now_us: int) -> Denied:
        """The account cannot be asked: wait as long as what was last seen of it suggests."""
        wait_s = estimated_wait_s(self._spec, self._account.budget, least, now_us, self._chance())
        return self._account.no("unreadable", 0, rate.at_us(now_us + int(wait_s * SECOND)), least, now_us)

    # -------------------------------------------------------------------------------------------- hearing
    def heard(self, permit: Permit, answer: Answer, *, again: bool = False) -> Denied | None:
        """Settle the estimate, learn what the answer tells, and say whether the job should come again later.

        `again`: the job's credentials were refused before. If the key is good for others now, that is no trouble of
        the account's.
        """
        with self._lock:
            now_us = self._account.now_us()
            self.over(permit)
            if permit.metered:
                self._use.heard(permit, answer, now_us)
            limited = isinstance(answer, Refused) and answer.rate_limited
            refused_key = isinstance(answer, Refused) and answer.auth
            failed = isinstance(answer, Unknown) or (isinstance(answer, Refused) and answer.unreachable)
            if refused_key and again and self._health.worked(now_us - WORKS_US):
                refused_key = False
            if not (isinstance(answer, Refused) and (answer.unsent or answer.auth)):
                self._health.note(permit.sent_us, failed=failed, refused=limited)
            self._heed(answer, now_us)
            self._account.change(
                lambda terms: learned(
                    terms,
                    permit,
                    answer,
                    spec=self._spec,
                    health=self._health,
                    now_us=now_us,
                    refused_key=refused_key,
                    seen=self._account.budget,
                )
            )
            if limited:
                return self._after_trouble("vendor_429", permit, now_us)
            if refused_key:
                # Later than the next probes: whether the key is good again is for others to find out.
                return self._after_trouble("shut", permit, now_us, least_us=now_us + WORKS_US)
            if failed and self._account.terms.shut is not None:
                return self._after_trouble("shut", permit, now_us)
            return None

    def _heed(self, answer: Answer, now_us: int) -> None:
        """The vendor's own count: no more room than it says is left."""
        if answer.report.remaining:
            self._told_us |= rate.told_arrivals(self._spec, self._account.terms, answer.report.remaining, now_us)

    def _void(self) -> None:
        """Permits and turns taken before trouble was known are worth nothing."""
        self._lease.void()
        self._turns.forget()

    def _after_trouble(self, limit: str, permit: Permit, now_us: int, least_us: int = 0) -> Denied:
        terms = self._account.terms
        not_before_us = max(now_us, least_us, terms.quiet_until_us, terms.shut.probe_us if terms.shut else 0)
        return self._later(limit, 0, not_before_us, Want(requests=permit.requests, tokens=permit.tokens), now_us)

    def unsent(self, permit: Permit) -> None:
        """The permit was not used."""
        with self._lock:
            self.over(permit)
            self.restore(permit)

    # ------------------------------------------------------------------------------------------ returning
    def give_back(self) -> None:
        """Return what the demand of the last second will not use before it is void, and every slot. What calls used
        beyond their charge, or left of it, is told with the next take; once it is more than a few calls', now."""
        with self._lock:
            now_us = self._account.now_us()
            unused = self._lease.unused(self._use.tokens)
            keeps = self._lease.outlived_by(self._demand.at(now_us), now_us)
            holds = self._slots.holds(now_us)
            if (keeps or not unused) and not holds and not self._use.owes:
                return
            rest = self._lease.emptied() if unused and not keeps else Want(requests=0)
            owed = self._use.told()
            back = replace(rest, tokens=rest.tokens - owed)
            self._slots.let_go()
            try:
                self._ledger.give_back(self._spec, back, now_us=now_us, hold=self._owner if holds else "")
            except (Unavailable, UnreadableRow) as exc:
                # Permits are void when the burst's time is over, slots with theirs; what is owed stays owed.
                self._use.settled(-max(0, owed))
                self._account.unreadable(exc)

    # --------------------------------------------------------------------------------------------- knowing
    def _checked(self, answer: Permit | Denied, now_us: int) -> Checked:
        left = self._account.left(now_us)
        return Checked(answer=answer, available_tokens=left[Limit.TOKENS], available_requests=left[Limit.REQUESTS])
