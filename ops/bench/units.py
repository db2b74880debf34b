"""DynamoDB calls and write units from enqueue to completed, counted by the Meter, for every way a job can go."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from unittest import mock

import httpx

from ops.bench.account import IDEMPOTENCY_TABLE, CountedClient, account, tables_on
from ops.bench.lives import LIVES, Cost, cost_of
from ops.bench.standard import StandardWorker
from ops.bench.table import Measured, Row
from ops.bench.workload import BUCKET, REPLIED, ROUTED, VENDOR_URL, Invocation, workload
from shared.adapters.meter import Meter, Usage, item_size

OPEN, WAITS, ROW = "open path, enqueue to completed", "a job that waits once: write units", "row in DynamoDB"
CALLS_AT_MOST, UNITS_AT_MOST, WAITING_UNITS_AT_MOST, EFFECT_UNITS_AT_MOST, DUPLICATE_AT_MOST = 3, 3, 8, 2, 1
BATCH, BATCH_UNITS_AT_MOST = "a batch, of up to ten jobs", 1
ROW_AT_MOST = 1024
WAITING = {
    "future_time": "enqueued with a future time",
    "held_by_capacity": "held at admission, queue full",
    "held_by_switch": "held at admission, switch closed",
    "deferred": "deferred by its worker (429): runs twice",
    "retried": "retried once: runs twice",
}
STANDARD_OF = {"open_path": "once", "one_effect": "replied", "deferred": "twice", "retried": "twice"}
"""Which life of the standard way stands beside ours; the others it does not have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Units:
    """Both ways, by life."""

    ours: Mapping[str, Cost]
    standard: Mapping[str, Cost]


def count() -> Units:
    """Walk every life on an account in this process."""
    with account() as client:
        tables = tables_on(client)
        ours = {life: cost_of(life, tables) for life in LIVES}
        return Units(ours=ours, standard=standard_costs(client))


def units() -> Measured:
    """The rows of the table."""
    counted = count()
    ours, standard = counted.ours, counted.standard
    plain, sent = ours["open_path"].usage, ours["one_effect"].usage
    their_plain, their_sent = standard["once"].usage, standard["replied"].usage
    rows = [
        Row(group=OPEN, what="calls", ours=plain.calls, standard=their_plain.calls, at_most=CALLS_AT_MOST),
        Row(
            group=OPEN,
            what="write units",
            ours=plain.all_write_units,
            standard=their_plain.all_write_units,
            at_most=UNITS_AT_MOST,
        ),
        Row(
            group=OPEN,
            what="write units an effect adds",
            ours=(sent - plain).all_write_units,
            standard=(their_sent - their_plain).all_write_units,
            at_most=EFFECT_UNITS_AT_MOST,
        ),
        Row(
            group=OPEN,
            what="write units of a duplicate delivery",
            ours=max(cost.duplicate.all_write_units for cost in ours.values()),
            standard=max(cost.duplicate.all_write_units for cost in standard.values()),
            at_most=DUPLICATE_AT_MOST,
        ),
    ]
    rows.append(
        Row(
            group=BATCH,
            what="write units for its signals, shared by its jobs",
            ours=ours["open_path"].batches.all_write_units,
            standard=0,
            at_most=BATCH_UNITS_AT_MOST,
        )
    )
    for life, what in WAITING.items():
        beside = standard.get(STANDARD_OF.get(life, ""))
        rows.append(
            Row(
                group=WAITS,
                what=what,
                ours=ours[life].usage.all_write_units,
                standard=None if beside is None else beside.usage.all_write_units,
                at_most=WAITING_UNITS_AT_MOST,
            )
        )
    longest = max(cost.row_bytes for cost in ours.values())
    rows += [
        Row(
            group=ROW,
            what="largest on the open path",
            ours=ours["open_path"].row_bytes,
            standard=standard["once"].row_bytes,
            unit="B",
            at_most=ROW_AT_MOST,
        ),
        Row(group=ROW, what="largest of all the lives above", ours=longest, unit="B", at_most=ROW_AT_MOST),
    ]
    return Measured(rows=tuple(rows), notes=(_note(ours),))


def _note(ours: Mapping[str, Cost]) -> str:
    def parts(life: str) -> str:
        usage = ours[life].usage
        return f"{usage.write_units} + {usage.index_units}"

    limited = ours["deferred_effect"].usage
    return (
        "Counted by the Meter from the rows themselves (per started KB, table and index) in the real adapters and use "
        "cases on an account in this process. Table + index units: "
        + ", ".join(f"{life.replace('_', ' ')} {parts(life)}" for life in WAITING)
        + f". A 429 met by an effect also keeps its two intents and results: {limited.all_write_units} in all. "
        "Of two runs the second is a claim and a settlement more. Switches are read every few seconds by an "
        "environment, not by a job. The standard way keeps an idempotency record only: no job, no state, no reason, "
        "nothing to list or to explain; it cannot hold or defer (a delay is at most 15 minutes of SQS), and its "
        "retry is the message's return."
    )


def standard_costs(client: Any) -> dict[str, Cost]:
    """The lives the standard way has: once, once with a reply, and twice because the vendor refused at first."""
    meter = Meter()
    counted = CountedClient(client, meter)
    work = workload(2)
    texts = _Objects(work.stub.content)
    quiet = io.StringIO()
    with warnings.catch_warnings(), contextlib.redirect_stdout(quiet):
        # Powertools warns of an invocation that counted nothing: one whose only record failed.
        warnings.simplefilter("ignore")
        worker = StandardWorker(
            dynamodb=counted,  # type: ignore[arg-type]
            s3=texts,  # type: ignore[arg-type]
            table_name=IDEMPOTENCY_TABLE,
            bucket=BUCKET,
            vendor_url=VENDOR_URL,
        )
        routed, replied = work.standard(ROUTED)[0]["Records"], work.standard(REPLIED)[0]["Records"]
        lives = {"once": (routed[0], [200]), "replied": (replied[0], [200]), "twice": (replied[1], [429, 200])}
        return {life: _walked(worker, counted, meter, *given) for life, given in lives.items()}


def _walked(
    worker: StandardWorker, counted: CountedClient, meter: Meter, record: dict[str, Any], answers: list[int]
) -> Cost:
    """Deliver a message as often as the vendor's answers need, and once more."""
    before = meter.total()
    event = {"Records": [record]}
    with _vendor(answers):
        for status in answers:
            returned = worker.sequential(event, Invocation())["batchItemFailures"]
            if bool(returned) != (status != 200):
                raise AssertionError("the standard way did not do what is counted")
        ended = meter.total()
        worker.sequential(event, Invocation())
    return Cost(
        usage=ended - before,
        row_bytes=item_size(counted.largest_row),
        duplicate=meter.total() - ended,
        batches=Usage(),
    )


@contextlib.contextmanager
def _vendor(statuses: list[int]) -> Iterator[None]:
    left = list(statuses)

    def answer(_: object, request: httpx.Request) -> httpx.Response:
        return httpx.Response(left.pop(0), json={"id": "reply-1"}, request=request)

    with mock.patch.object(httpx.HTTPTransport, "handle_request", answer):
        yield


class _Objects:
    """The texts, as S3 hands them out."""

    def __init__(self, texts: Mapping[str, bytes]) -> None:
        self._texts = texts

    def get_object(self, *, Bucket: str, Key: str) -> dict[str, Any]:
        """One text."""
        return {"Body": io.BytesIO(self._texts[Key.split("/")[1]])}
