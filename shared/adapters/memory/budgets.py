"""Vendor accounts in memory: the law itself, one step at a time."""

from __future__ import annotations

import threading
from dataclasses import replace

from shared.core import rate
from shared.core.account import PACED, AccountSpec
from shared.core.rate import Arrivals, Budget, Refusal, Taken, Terms, Want


class MemoryBudgetLedger:
    """`BudgetLedger` in memory. Counts its writes, as they would be on the table."""

    def __init__(self) -> None:
        self._budgets: dict[str, Budget] = {}
        self._lock = threading.RLock()
        self.writes = 0
        self.refusals = 0

    def read(self, spec: AccountSpec) -> Budget:
        """The account as it stands now."""
        return self._budgets.get(spec.name, Budget())

    def spent(self, spec: AccountSpec, until_us: int) -> None:
        """For tests: as if others had spent the account up to a moment."""
        budget = self.read(spec)
        self._budgets[spec.name] = replace(budget, arrival_us=dict.fromkeys(PACED, until_us))

    def take(
        self,
        spec: AccountSpec,
        want: Want,
        *,
        least: Want,
        now_us: int,
        hold: str = "",
        hold_s: float = 0,
        told_us: Arrivals | None = None,
        ahead_us: int = 0,
        used_tokens: int = 0,
    ) -> Taken | Refusal:
        """Take `want`, or the most that fits down to `least`, or say why not."""
        with self._lock:
            self.writes += 1
            taken = rate.take_most(
                spec,
                self.read(spec),
                want,
                least,
                now_us,
                hold=hold,
                hold_s=hold_s,
                told_us=told_us,
                ahead_us=ahead_us,
            )
            if isinstance(taken, Refusal):
                self.refusals += 1
                return taken
            if used_tokens:
                usual = rate.usual_after(taken.budget, used_tokens)
                taken = replace(taken, budget=replace(taken.budget, usual_tokens=usual))
            self._budgets[spec.name] = taken.budget
            return taken

    def give_back(self, spec: AccountSpec, want: Want, *, now_us: int, hold: str = "") -> None:
        """Return what was not used."""
        with self._lock:
            self.writes += 1
            self._budgets[spec.name] = rate.give_back(spec, self.read(spec), want, now_us, hold=hold)

    def reserve(self, spec: AccountSpec, span_us: int, *, not_before_us: int, backlog_us: int = 0) -> int:
        """Promise a start behind every earlier promise."""
        with self._lock:
            self.writes += 1
            start, self._budgets[spec.name] = rate.reserve(self.read(spec), span_us, not_before_us, backlog_us)
            return start

    def change(self, spec: AccountSpec, seen: Terms, after: Terms) -> Budget:
        """Write the terms if nobody has changed them since."""
        with self._lock:
            self.writes += 1
            budget = self.read(spec)
            if budget.terms.version == seen.version:
                budget = self._budgets[spec.name] = replace(budget, terms=after)
            return budget

    def reset(self, spec: AccountSpec, terms: Terms) -> Budget:
        """Begin the account anew."""
        with self._lock:
            self.writes += 1
            budget = self._budgets[spec.name] = Budget(terms=terms)
            return budget
