"""`penstock budget`: what each vendor account allows, what is spent of it, and the limits an operator sets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ops.cli.command import Asked, command, group
from ops.cli.control import OnOff
from ops.cli.show import NOTHING, Column, ago, styled, table
from shared.core import rate
from shared.core.account import DAILY, PACED, AccountSpec, Limit, setting_of
from shared.core.errors import BadInput, UnreadableRow
from shared.core.moment import iso
from shared.core.nearest import unknown
from shared.core.rate import Budget

if TYPE_CHECKING:
    from ops.cli.stage import Stage

app = group("See what vendor accounts allow and have left, and set their limits.")

CLEAR = "clear"
Account = Annotated[str, typer.Argument(metavar="ACCOUNT", help="The account's name in the configuration.")]
Why = Annotated[str, typer.Option("--why", help="Why, in a few words; kept with your name.", show_default=False)]
Amount = Annotated[str | None, typer.Option(metavar="N|clear", show_default=False)]


@command(app, "show", examples=("penstock budget show", "penstock budget show openai --json"))
def show(
    asked: Asked,
    account: Annotated[
        str | None, typer.Argument(metavar="ACCOUNT", show_default=False, help="One account, with its history.")
    ] = None,
) -> None:
    """Show each account: its limits and who set them, what is spent, and when the next call may go."""
    stage = asked.stage()
    specs = list(stage.accounts.values()) if account is None else [account_of(stage, account)]
    now_us = rate.us_of(stage.clock.now())
    pages = [_read_page(stage, spec, now_us) for spec in specs]
    events = stage.history.of(f"budget/{account}", limit=20) if account is not None else []
    if asked.out.json:
        asked.out.document({"accounts": pages, **({"history": events} if account is not None else {})})
        return
    if not pages:
        asked.out.say("No account is configured: give a lane one in config/ (docs/budgets.md).")
        return
    now = stage.clock.now()
    for one in pages:
        style = "green" if one["state"] == "open" else "yellow"
        asked.out.say(styled(f"{one['account']} ({one['vendor']}): ") + styled(one["sentence"], style))
        numbers = [Column(header=name, right=True) for name in ("limit", "configured", "left")]
        rows = [
            (row["name"], _number(row["limit"]), _number(row["configured"]), _number(row["left"]), row["by"])
            for row in one["limits"]
        ]
        asked.out.say(table(["", *numbers, "set by"], rows), "")
    if events:
        history = [
            (
                ago(event.at, now),
                ", ".join(f"{k} {v}" for k, v in event.detail.items() if k != "why"),
                event.by,
                str(event.detail.get("why", "")),
            )
            for event in events
        ]
        asked.out.say(table(["set", "what", "by", "why"], history))


@command(
    app,
    "set",
    examples=(
        'penstock budget set openai --requests-per-minute 30 --why "the vendor asked us to slow down"',
        'penstock budget set openai --requests-per-minute clear --why "back to what the vendor tells"',
        'penstock budget set openai --open --why "new key is in the secret"',
        'penstock budget set openai --enforced off --why "limits are wrong, see the ticket"',
        'penstock budget set openai --reset --why "its row cannot be read"',
    ),
)
def set_limits(
    asked: Asked,
    account: Account,
    why: Why,
    requests_per_minute: Amount = None,
    tokens_per_minute: Amount = None,
    requests_per_day: Amount = None,
    tokens_per_day: Amount = None,
    concurrency: Amount = None,
    batch_tokens: Amount = None,
    enforced: Annotated[
        OnOff | None, typer.Option("--enforced", metavar="on|off", show_default=False, help="Keep the budget at all.")
    ] = None,
    open_again: Annotated[bool, typer.Option("--open", help="End a pause: calls go at the full pace again.")] = False,
    reset: Annotated[
        bool,
        typer.Option("--reset", help="Begin its row anew, as configured: for one that cannot be read. Stands alone."),
    ] = False,
) -> None:
    """Set an account's limits while it is spent. Felt at the next take, by every worker.

    A limit set here is never passed, whatever the vendor's answers tell; `clear` takes it away again.
    """
    from shared.usecases.reset_budget import reset_budget
    from shared.usecases.set_budget import set_budget

    stage = asked.stage()
    spec = account_of(stage, account)
    given = {
        Limit.REQUESTS: requests_per_minute,
        Limit.TOKENS: tokens_per_minute,
        Limit.REQUESTS_PER_DAY: requests_per_day,
        Limit.TOKENS_PER_DAY: tokens_per_day,
        Limit.CONCURRENCY: concurrency,
        Limit.BATCH_TOKENS: batch_tokens,
    }
    pins = {limit: _amount(limit, text) for limit, text in given.items() if text is not None}
    if reset and (pins or enforced is not None or open_again):
        raise BadInput("reset", "stands alone: begin the account anew, then set what it should hold")
    if reset:
        budget = reset_budget(
            spec, by=stage.caller.arn, why=why, ledger=stage.budgets, history=stage.history, clock=stage.clock
        )
    else:
        budget = set_budget(
            spec,
            pins=pins,
            enforced=None if enforced is None else enforced is OnOff.ON,
            open_again=open_again,
            by=stage.caller.arn,
            why=why,
            ledger=stage.budgets,
            history=stage.history,
            clock=stage.clock,
        )
    one = page(spec, budget, rate.us_of(stage.clock.now()))
    if asked.out.json:
        asked.out.document({"account": one})
        return
    limits = ", ".join(f"{row['name']} {_number(row['limit'])}" for row in one["limits"])
    asked.out.say(styled(f"{spec.name} holds now: {limits or 'no limits'}; {one['sentence']}"))
    asked.out.say(styled(f"By {stage.caller.arn}.", "dim"))


def account_of(stage: Stage, name: str) -> AccountSpec:
    """The account of that name, or a sentence that lists those there are."""
    if name not in stage.accounts:
        raise BadInput("account", unknown(name, stage.accounts, "accounts"))
    return stage.accounts[name]


def _read_page(stage: Stage, spec: AccountSpec, now_us: int) -> dict[str, Any]:
    """An account's page; one that cannot be read says so, and how to begin it anew."""
    try:
        return page(spec, stage.budgets.read(spec), now_us)
    except UnreadableRow as exc:
        return {
            **page(spec, Budget(), now_us),
            "state": "unreadable",
            "sentence": f"cannot be read: {exc.problem}; no job that needs it starts before it can, "
            f"or penstock budget set {spec.name} --reset --why …",
            "next_permit_at": None,
            "limits": [],
        }


def page(spec: AccountSpec, budget: Budget, now_us: int) -> dict[str, Any]:
    """An account as it stands, for people and programs."""
    terms = budget.terms
    refusal = rate.refused(spec, budget, rate.Want(requests=1), now_us)
    kept = rate.enforced(spec, terms)
    state = "off" if not kept else "shut" if terms.shut else "quiet" if terms.quiet_until_us > now_us else "open"
    next_us = max(now_us, refusal.retry_us if refusal is not None else 0)
    sentences = {
        "off": "its budget is not enforced; calls pass as if it had no limits",
        "shut": f"shut ({terms.shut.reason if terms.shut else ''}); the next probe at {iso(rate.at_us(next_us))}",
        "quiet": f"quiet after a 429 until {iso(rate.at_us(terms.quiet_until_us))}",
        "open": "a call may go now" if refusal is None else f"the next call may go at {iso(rate.at_us(next_us))}",
    }
    return {
        "account": spec.name,
        "vendor": spec.vendor,
        "state": state,
        "sentence": sentences[state],
        "next_permit_at": rate.at_us(next_us),
        "promised_until": rate.at_us(budget.line_us) if budget.line_us > now_us else None,
        "limits": [_row(spec, budget, limit, now_us) for limit in Limit if _limit(spec, budget, limit, now_us)],
    }


def _row(spec: AccountSpec, budget: Budget, limit: Limit, now_us: int) -> dict[str, Any]:
    terms, most = budget.terms, _limit(spec, budget, limit, now_us) or 0.0
    if limit in PACED:
        left = rate.available(spec, budget, limit, now_us)
    elif limit in DAILY:
        left = int(most) - (budget.used.get(limit, 0) if budget.day == rate.day_of(now_us) else 0)
    else:
        live = [hold for hold in budget.holds.values() if hold.until_us > now_us]
        left = int(most) - sum(hold.of(limit) for hold in live)
    by = "configuration"
    if terms.pinned.get(limit) == int(most):
        by = "operator"
    elif limit in terms.told:
        by = "vendor"
    elif terms.search is not None and limit in PACED:
        by = "search"
    return {
        "name": setting_of(limit),
        "limit": int(most),
        "configured": spec.configured(limit),
        "left": left,
        "by": by,
    }


def _limit(spec: AccountSpec, budget: Budget, limit: Limit, now_us: int) -> float | None:
    return rate.limit_of(spec, budget.terms, limit, now_us)


def _amount(limit: Limit, text: str) -> int | None:
    if text == CLEAR:
        return None
    if not text.isdecimal():
        raise BadInput(setting_of(limit), "must be a whole number above 0, or clear")
    return int(text)


def _number(amount: int | None) -> str:
    return NOTHING if amount is None else f"{amount:,}"
