"""Set a budget: what an operator may change of a vendor account while it is spent, with who and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from shared.core import feedback, rate
from shared.core.account import AccountSpec, Limit, is_amount, setting_of
from shared.core.errors import BadInput, Unavailable
from shared.core.ports import BudgetLedger, Clock, History
from shared.core.rate import Budget, Terms
from shared.usecases.steer import note, reason_of

TRIES = 5


def set_budget(
    spec: AccountSpec,
    *,
    pins: Mapping[Limit, int | None] | None = None,
    enforced: bool | None = None,
    open_again: bool = False,
    by: str,
    why: str,
    ledger: BudgetLedger,
    history: History,
    clock: Clock,
) -> Budget:
    """The account after it. A pinned limit is never passed, whatever the vendor tells; None takes the pin away.
    `open_again` ends a pause, an outage's or a refused key's; the next call shows whether that was right."""
    text = reason_of(why)
    wanted = dict(pins or {})
    for limit, amount in wanted.items():
        if amount is not None and not is_amount(amount):
            raise BadInput(setting_of(limit), "must be a whole number above 0")
    if not wanted and enforced is None and not open_again:
        raise BadInput("budget", "nothing to set: give a limit, --enforced on|off or --open")

    def asked(terms: Terms, now_us: int) -> Terms:
        pinned = {limit: amount for limit, amount in {**terms.pinned, **wanted}.items() if amount is not None}
        after = feedback.changed(terms, now_us, pinned=pinned)
        after = after if enforced is None else replace(after, enforced=enforced)
        return replace(after, shut=None, quiet_until_us=0, search=None) if open_again else after

    budget = _changed(spec, asked, ledger, clock)
    detail: dict[str, object] = {setting_of(limit): amount for limit, amount in wanted.items()}
    detail |= {} if enforced is None else {"enforced": enforced}
    detail |= {"opened": True} if open_again else {}
    note(f"budget/{spec.name}", "budget", by, {**detail, "why": text}, history, clock)
    return budget


def _changed(spec: AccountSpec, asked: Callable[[Terms, int], Terms], ledger: BudgetLedger, clock: Clock) -> Budget:
    """The workers change terms, too: look again and ask again until ours stands."""
    for _ in range(TRIES):
        seen = ledger.read(spec).terms
        after = asked(seen, rate.us_of(clock.now()))
        stands = ledger.change(spec, seen, after)
        if stands.terms == after:
            return stands
    raise Unavailable("budget", "changed_meanwhile")
