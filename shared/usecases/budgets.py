"""Budgets: the vendor accounts that one environment spends, by vendor."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from random import random

from shared.core import rate
from shared.core.account import AccountSpec
from shared.core.effects import Answer
from shared.core.ports import BudgetLedger, Clock, Telemetry
from shared.usecases.permit import Checked, Denied, Permit
from shared.usecases.purse import Purse


class Budgets:
    """The accounts of one environment, by vendor. Safe for the threads of a batch."""

    def __init__(self, purses: Mapping[str, Purse] | None = None) -> None:
        self._purses = dict(purses or {})

    @classmethod
    def of(
        cls,
        accounts: Iterable[AccountSpec],
        *,
        ledger: BudgetLedger,
        clock: Clock,
        telemetry: Telemetry,
        owner: str,
        skew_s: Callable[[], float | None] = lambda: None,
        chance: Callable[[], float] = random,
    ) -> Budgets:
        """The budgets of these accounts. `owner` names this environment; `skew_s` is how far its clock is ahead."""
        return cls(
            {
                spec.vendor: Purse(
                    spec, ledger=ledger, clock=clock, telemetry=telemetry, owner=owner, skew_s=skew_s, chance=chance
                )
                for spec in accounts
            }
        )

    def expect(self, calls: int, deadline_s: float) -> None:
        """About so many calls to each account come soon, within `deadline_s` of work."""
        for purse in self._purses.values():
            purse.expect(calls, deadline_s)

    def try_consume(
        self, vendor: str, estimated_tokens: int = 0, *, requests: int = 1, ahead_s: float = 0.0
    ) -> Checked | None:
        """Never blocks. None: nobody keeps a budget for this vendor. Raises OverLimit, and BadInput for an estimate
        that is none. More than one request is taken as one: the permit is for all of them. A permit may be for a moment
        that comes within `ahead_s`: whoever has it waits, and then asks whether it still holds (`come`)."""
        purse = self._purses.get(vendor)
        return None if purse is None else purse.check(rate.check_estimate(estimated_tokens), requests, ahead_s)

    def come(self, vendor: str, permit: Permit) -> Permit | Denied:
        """The moment of a permit that was waited for is here: it holds, or the job has another turn."""
        return self._purses[vendor].come(permit)

    def part(self, vendor: str, bundle: Permit) -> Permit:
        """Another request of a permit for several goes out now."""
        return self._purses[vendor].part(bundle)

    def restore(self, vendor: str, rest: Permit) -> None:
        """What is left of a permit for several: no call was begun with it."""
        self._purses[vendor].restore(rest)

    def heard(self, vendor: str, permit: Permit, answer: Answer, *, again: bool = False) -> Denied | None:
        """What the vendor answered. A `Denied` is the job's next turn, where the answer is the account's trouble and
        not the job's: a 429, an outage, refused credentials (but not those of one job, `again`, while others pass)."""
        return self._purses[vendor].heard(permit, answer, again=again)

    def over(self, vendor: str, permit: Permit) -> None:
        """A call was sent, and nobody will tell its answer."""
        self._purses[vendor].over(permit)

    def unsent(self, vendor: str, permit: Permit) -> None:
        """The permit was not used: no call was made."""
        self._purses[vendor].unsent(permit)

    def give_back(self) -> None:
        """The end of a batch: what will not be used within its time goes back."""
        for purse in self._purses.values():
            purse.give_back()
