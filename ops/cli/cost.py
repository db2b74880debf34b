"""`penstock cost`: what a number of jobs costs on AWS, or a deployed stage without any: counts and a price table."""

from __future__ import annotations

import math
from typing import Annotated

import typer

from ops.cli.command import Asked
from ops.cli.prices import AS_OF, IDLE_ASSUMPTIONS, MILLION, REGION, Item, Load, assumptions, bill, monthly
from ops.cli.show import Column, styled, table
from shared.core.errors import BadInput
from shared.core.job import MAX_PAYLOAD_BYTES

EXAMPLES = (
    "penstock cost --jobs 1e6",
    "penstock cost --jobs 5e7 --effects 2 --waits 0.3 --json",
    "penstock cost --idle --stage prod",
)


def cost(
    asked: Asked,
    jobs: Annotated[float, typer.Option("--jobs", "-n", help="How many, such as 1e6.")] = 1e6,
    effects: Annotated[float, typer.Option("--effects", help="Outside actions of a job, on average.")] = 1.0,
    waits: Annotated[float, typer.Option("--waits", help="Share of jobs that wait once, 0 to 1.")] = 0.1,
    batch: Annotated[int, typer.Option("--batch", help="Messages an invocation gets.")] = 10,
    job_s: Annotated[float, typer.Option("--job-s", help="Seconds a job takes.")] = 0.5,
    memory_mb: Annotated[int, typer.Option("--memory-mb", help="Memory of the worker.")] = 512,
    payload_bytes: Annotated[int, typer.Option("--payload-bytes", help="Of a job's payload; 0: none.")] = 1024,
    idle: Annotated[bool, typer.Option("--idle", help="The deployed stage, a month without any job.")] = False,
) -> None:
    """Estimate what a number of jobs costs, or a stage that has none.

    Service by service, from counted calls and list prices, with everything it rests on. Asks nobody; with `--idle` it
    asks the stage for its alarms, keys, secrets, queues and schedules.
    """
    if idle:
        _idle(asked)
        return
    _check("jobs", jobs, 1, 1e15)
    _check("effects", effects, 0, 1000)
    _check("waits", waits, 0, 1)
    _check("batch", batch, 1, 10)
    _check("job_s", job_s, 0.001, 120)
    _check("memory_mb", memory_mb, 128, 10_240)
    _check("payload_bytes", payload_bytes, 0, MAX_PAYLOAD_BYTES)
    load = Load(
        jobs=jobs,
        effects=effects,
        waits=waits,
        batch=batch,
        job_s=job_s,
        memory_mb=memory_mb,
        payload_bytes=payload_bytes,
    )
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
    _show(asked, items)
    asked.out.say(
        styled(f"{_amount(jobs)} jobs: ${total:,.2f}", "bold")
        + styled(f"  (${total / jobs * MILLION:,.2f} a million)"),
        "",
    )
    for sentence in assumptions(load):
        asked.out.say(styled(f"· {sentence}", "dim"))


def _idle(asked: Asked) -> None:
    from ops.cli.standing import deployed

    stage = asked.stage()
    with asked.out.working(f"reading the templates of {stage.name}"):
        has = deployed(stage)
    items = monthly(has)
    total = sum(item.usd for item in items)
    if asked.out.json:
        asked.out.document(
            {
                "stage": stage.name,
                "region": REGION,
                "as_of": AS_OF,
                "has": has,
                "items": [{**_fields(item), "usd": round(item.usd, 6)} for item in items],
                "monthly_usd": round(total, 6),
                "assumptions": list(IDLE_ASSUMPTIONS),
            }
        )
        return
    _show(asked, items)
    asked.out.say(styled(f"{stage.name}, a month without any job: ${total:,.2f}", "bold"), "")
    for sentence in IDLE_ASSUMPTIONS:
        asked.out.say(styled(f"· {sentence}", "dim"))


def _show(asked: Asked, items: list[Item]) -> None:
    numbers = [Column(header=name, right=True) for name in ("quantity", "price", "USD")]
    rows = [(item.service, item.what, _amount(item.quantity), item.said, f"{item.usd:,.2f}") for item in items]
    asked.out.say(table(["service", "what", *numbers], rows), "")


def _check(field: str, value: float, least: float, most: float) -> None:
    if not math.isfinite(value) or not least <= value <= most:
        raise BadInput(field, f"must be between {least:g} and {most:g}")


def _fields(item: object) -> dict[str, object]:
    return {name: getattr(item, name) for name in ("service", "what", "quantity", "price")}


def _amount(quantity: float) -> str:
    return f"{quantity:,.0f}" if quantity >= 100 else f"{quantity:,.2f}"
