"""A vendor account as one environment knows it: what it last read or wrote, by the table's time."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from shared.contract import metrics
from shared.core import rate
from shared.core.account import PACED, AccountSpec, Limit
from shared.core.errors import Unavailable, UnreadableRow
from shared.core.limits import stricter
from shared.core.ports import BudgetLedger, Clock, Telemetry
from shared.core.rate import SECOND, Budget, Refusal, Terms, Want
from shared.usecases.permit import Denied


class KnownAccount:
    """One account's last seen state. Not locked by itself."""

    def __init__(
        self,
        spec: AccountSpec,
        *,
        ledger: BudgetLedger,
        clock: Clock,
        telemetry: Telemetry,
        skew_s: Callable[[], float | None],
        on_trouble: Callable[[], None],
    ) -> None:
        """`on_trouble` is called when its terms turned out stricter: what was taken before is void."""
        self.spec, self._ledger, self._clock, self._telemetry = spec, ledger, clock, telemetry
        self._skew_s, self._on_trouble = skew_s, on_trouble
        self.budget = Budget()
        self._seen_us = 0
        self.strict_version = 0
        """The version of its terms since which they have been no stricter."""

    @property
    def terms(self) -> Terms:
        """What holds for it."""
        return self.budget.terms

    @property
    def skew_s(self) -> float:
        """Seconds by which this machine's clock is ahead of the table's; 0 while nothing is known."""
        return self._skew_s() or 0.0

    def now_us(self) -> int:
        """The table's time: what this machine's clock says, less what it is ahead."""
        return rate.us_of(self._clock.now()) - int(self.skew_s * SECOND)

    def limit(self, limit: Limit, now_us: int) -> float | None:
        """The limit that holds now."""
        return rate.limit_of(self.spec, self.terms, limit, now_us)

    def span_us(self, want: Want, now_us: int) -> int:
        """How long a request keeps the account busy."""
        return rate.span_of(self.spec, self.budget, want, now_us)

    def left(self, now_us: int) -> dict[Limit, int | None]:
        """What its paced limits have left in this minute."""
        return {limit: rate.available(self.spec, self.budget, limit, now_us) for limit in PACED}

    @property
    def enforced(self) -> bool:
        """False when nobody keeps it."""
        return rate.enforced(self.spec, self.terms)

    def look(self) -> bool:
        """Read it again. False where it cannot be read."""
        try:
            self.adopt(self._ledger.read(self.spec))
        except (Unavailable, UnreadableRow) as exc:
            self.unreadable(exc)
            return False
        return True

    def looked(self, since_us: int) -> bool:
        """True when it was seen since then."""
        return self._seen_us >= since_us

    def spent(self, least: Want, now_us: int, ahead_us: int) -> Refusal | None:
        """Why the pace refuses this request even `ahead_us` from now, as it was last seen: since then somebody may have
        spent more."""
        refusal = rate.refused(self.spec, self.budget, least, now_us)
        if refusal is None or refusal.limit not in PACED or refusal.retry_us <= now_us + ahead_us:
            return None
        return refusal

    def adopt(self, budget: Budget) -> None:
        """Go on from what stands."""
        terms, before, now_us = budget.terms, self.terms, self.now_us()
        self.budget, self._seen_us = budget, now_us
        if terms.version != before.version and stricter(self.spec, before, terms, now_us):
            self.strict_version = terms.version
            self._on_trouble()

    def change(self, rule: Callable[[Terms], Terms | None]) -> bool:
        """Change the terms by a rule; where somebody changed them meanwhile, by the same rule once more. True when the
        rule's terms stand."""
        before = self.terms
        done = False
        try:
            for _ in range(2):
                seen = self.terms
                after = rule(seen)
                if after is None:
                    break
                stands = self._ledger.change(self.spec, seen, after)
                self.adopt(stands)
                if stands.terms == after:
                    done = True
                    break
        except (Unavailable, UnreadableRow) as exc:
            self.unreadable(exc)
            return False
        if done and self.terms.shut is not None and before.shut is None:
            self._telemetry.event("account_shut", account=self.spec.name, reason=self.terms.shut.reason)
            self._telemetry.count(metrics.ACCOUNT_SHUT)
        elif done and self.terms.shut is None and before.shut is not None:
            self._telemetry.event("account_opened", account=self.spec.name)
        return done

    def no(self, limit: str, deficit: int, until: datetime, least: Want, now_us: int) -> Denied:
        """Not now, and what it has left as it was seen."""
        left = self.left(now_us)
        return Denied(
            account=self.spec.name,
            limit=limit,
            deficit=deficit,
            until=until,
            tokens=least.tokens,
            requests=least.requests,
            available_tokens=left[Limit.TOKENS],
            available_requests=left[Limit.REQUESTS],
        )

    def unreadable(self, exc: Exception) -> None:
        """It could not be asked or told."""
        self._telemetry.error("budget_unreadable", exc, account=self.spec.name)
