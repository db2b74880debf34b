"""The Meter's units are the stack's own: every write of every life, table and index apart."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import boto3
import pytest

from ops.bench.account import create_tables, tables_on
from ops.bench.lives import LIVES, OF_A_BATCH, cost_of
from ops.local.state import StackState
from shared.adapters.meter import Meter, Usage
from shared.contract import names

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("e2e")]

WRITES = ("PutItem", "UpdateItem")
LONGEST = 128
"""A key of four such parts is the longest there may be: its row needs more than one unit a write."""


@dataclass(frozen=True, slots=True)
class Write:
    """Units of one write that was applied, on the table and on the index."""

    table: float
    index: float


REFUSED = None
"""A refused write is paid for, but no service says how much."""


class Listing(Meter):
    """Keeps every write it is told of, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[tuple[str, Write | None]] = []

    def write(self, port: str, operation: str, *, old: Any, new: Any) -> None:
        before = self.total()
        super().write(port, operation, old=old, new=new)
        used: Usage = self.total() - before
        self.writes.append((f"{port}.{operation}", Write(used.write_units, used.index_units)))

    def refused(self, port: str, operation: str, *, old: Any) -> None:
        super().refused(port, operation, old=old)
        self.writes.append((f"{port}.{operation}", REFUSED))


class Consumed:
    """Asks the stack what each write consumed, and keeps its answers."""

    def __init__(self, client: Any) -> None:
        self.writes: list[Write | None] = []
        for operation in WRITES:
            client.meta.events.register(f"provide-client-params.dynamodb.{operation}", self._ask)
            client.meta.events.register(f"after-call.dynamodb.{operation}", self._note)

    def _ask(self, params: dict[str, Any], **_: Any) -> dict[str, Any]:
        return {**params, "ReturnConsumedCapacity": "INDEXES"}

    def _note(self, parsed: dict[str, Any], **_: Any) -> None:
        capacity = parsed.get("ConsumedCapacity")
        if capacity is None:
            self.writes.append(REFUSED)
            return
        indexes = capacity.get("GlobalSecondaryIndexes", {}).values()
        index = sum(one["CapacityUnits"] for one in indexes)
        self.writes.append(Write(capacity["CapacityUnits"] - index, index))


@pytest.fixture(scope="module")
def stage(local_stack: StackState) -> Iterator[str]:
    """A stage with tables of its own, which no function of the stack reads."""
    stage = f"meter{uuid.uuid4().hex[:8]}"
    client = boto3.client(
        "dynamodb",
        endpoint_url=local_stack.endpoint,
        region_name=local_stack.region,
        aws_access_key_id=local_stack.access_key,
        aws_secret_access_key="local",
    )
    create_tables(client, stage)
    yield stage
    for name in ("jobs", "effects"):
        client.delete_table(TableName=names.table(stage, name))


@pytest.mark.parametrize("units", [1, 2])
@pytest.mark.parametrize("life", LIVES)
def test_the_meter_counts_what_the_stack_consumes(stage: str, life: str, units: int) -> None:
    """Write by write: the same units on the table and on the index, for rows below and above a kilobyte."""
    client = boto3.client("dynamodb")
    consumed, meter = Consumed(client), Listing()
    key = [life] if units == 1 else [life.ljust(LONGEST, "x") for _ in range(4)]
    cost_of(life, tables_on(client, stage, meter), key)
    # What a batch writes once, its signals, is kept in memory here: a life is one job's.
    mine = [(name, write) for name, write in meter.writes if name.partition(".")[0] not in OF_A_BATCH]
    assert [write for _, write in mine] == consumed.writes, [name for name, _ in mine]
    assert max(write.table for write in consumed.writes if write is not REFUSED) == units
