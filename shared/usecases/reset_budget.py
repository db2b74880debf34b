"""Reset a budget: begin an account's row anew, when it cannot be read or holds what is not so."""

from __future__ import annotations

from shared.core import rate
from shared.core.account import AccountSpec
from shared.core.ports import BudgetLedger, Clock, History
from shared.core.rate import Budget, Terms
from shared.usecases.steer import note, reason_of


def reset_budget(
    spec: AccountSpec, *, by: str, why: str, ledger: BudgetLedger, history: History, clock: Clock
) -> Budget:
    """The account as configured, open, with nothing spent today and nothing promised. What an operator had set and
    what the vendor had told is gone: the first is to be set again, the second the next answer tells."""
    text = reason_of(why)
    now_us = rate.us_of(clock.now())
    # Above every version the row can have had: nobody goes on under terms that were seen before.
    budget = ledger.reset(spec, Terms(version=now_us, changed_us=now_us))
    note(f"budget/{spec.name}", "budget", by, {"reset": True, "why": text}, history, clock)
    return budget
