"""`penstock cost`: what a number of jobs costs on AWS, from counted calls and a price table. Asks nobody."""

from __future__ import annotations

import math
from typing import Annotated

import typer

from ops.cli.command import Asked
from ops.cli.prices import AS_OF, MILLION, REGION, Load, assumptions, bill
from ops.cli.show import Column, styled, table
from shared.core.errors import BadInput

EXAMPLES = ("penstock cost --jobs 1e6", "penstock cost --jobs 5e7 --effects 2 --waits 0.3 --json")


def cost(
    asked: Asked,
    jobs: Annotated[float, typer.Option("--jobs", "-n", help="How many, such as 1e6.")] = 1e6,
    effects: Annotated[float, typer.Option("--effects", help="Outside actions of a job, on average.")] = 1.0,
    waits: Annotated[float, typer.Option("--waits", help="Share of jobs that wait once, 0 to 1.")] = 0.1,
    batch: Annotated[int, typer.Option("--batch", help="Messages an invocation gets.")] = 10,
    job_s: Annotated[float, typer.Option("--job-s", help="Seconds a job takes.")] = 0.5,
    memory_mb: Annotated[int, typer.Option("--memory-mb", help="Memory of the worker.")] = 512,
) -> None:
    """Estimate what a number of jobs costs.

    Service by service, from counted calls and list prices, with everything it rests on. Asks nobody.
    """
    _check("jobs", jobs, 1, 1e15)
    _check("effects", effects, 0, 1000)
    _check("waits", waits, 0, 1)
    _check("batch", batch, 1, 10)
    _check("job_s", job_s, 0.001, 120)
    _check("memory_mb", memory_mb, 128, 10_240)
    load = Load(jobs=jobs, effects=effects, waits=waits, batch=batch, job_s=job_s, memory_mb=memory_mb)
    items = bill(load)
    total = sum(item.usd for item in items)
    if asked.out.json:
        asked.out.document(
            {
                "region": REGION,
                "as_of": AS_OF,
                "load": load,
                "items": [{**_fields(item), "usd": round(item.usd, 6)} for item in items],
                "total_usd": round(total, 6),
                "per_million_usd": round(total / jobs * MILLION, 6),
                "assumptions": assumptions(load),
            }
        )
        return
    numbers = [Column(header=name, right=True) for name in ("quantity", "price", "USD")]
    rows = [(item.service, item.what, _amount(item.quantity), item.said, f"{item.usd:,.2f}") for item in items]
    asked.out.say(table(["service", "what", *numbers], rows), "")
    asked.out.say(
        styled(f"{_amount(jobs)} jobs: ${total:,.2f}", "bold")
        + styled(f"  (${total / jobs * MILLION:,.2f} a million)"),
        "",
    )
    for sentence in assumptions(load):
        asked.out.say(styled(f"· {sentence}", "dim"))


def _check(field: str, value: float, least: float, most: float) -> None:
    if not math.isfinite(value) or not least <= value <= most:
        raise BadInput(field, f"must be between {least:g} and {most:g}")


def _fields(item: object) -> dict[str, object]:
    return {name: getattr(item, name) for name in ("service", "what", "quantity", "price")}


def _amount(quantity: float) -> str:
    return f"{quantity:,.0f}" if quantity >= 100 else f"{quantity:,.2f}"
