"""Worlds of a contract suite: memory, moto, AWS's engine, and a running stack. Each has every port, and a back door."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

from shared.adapters.attributes import Item
from shared.adapters.aws.batches import DynamoDbBatchStore
from shared.adapters.aws.budgets import DynamoDbBudgetLedger
from shared.adapters.aws.clock import SystemClock
from shared.adapters.aws.content import ContentByReference, DynamoDbContentStore, S3ContentStore
from shared.adapters.aws.control import DynamoDbControlStore
from shared.adapters.aws.dead_letters import SqsDeadLetterQueues
from shared.adapters.aws.effects import DynamoDbEffectStore
from shared.adapters.aws.event_sources import LambdaActuator
from shared.adapters.aws.history import DynamoDbHistory
from shared.adapters.aws.jobs import DynamoDbJobStore
from shared.adapters.aws.ledger import DynamoDbLedger
from shared.adapters.aws.plans import DynamoDbPlanStore
from shared.adapters.aws.queues import SqsLaneQueues
from shared.adapters.aws.resolutions import DynamoDbResolutionStore
from shared.adapters.aws.signals import DynamoDbSignalLedger
from shared.adapters.memory.batches import MemoryBatchStore
from shared.adapters.memory.budgets import MemoryBudgetLedger
from shared.adapters.memory.clock import VirtualClock
from shared.adapters.memory.event_sources import MemoryActuator
from shared.adapters.memory.plans import MemoryPlanStore, MemoryResolutionStore
from shared.adapters.memory.queues import MemoryDeadLetterQueues, MemoryLaneQueues
from shared.adapters.memory.stores import (
    MemoryContentStore,
    MemoryControlStore,
    MemoryEffectStore,
    MemoryHistory,
    MemoryJobStore,
    MemoryLedger,
    MemorySignalLedger,
)
from shared.adapters.meter import Meter
from shared.contract import names, table
from shared.core.batch_ports import BatchStore
from shared.core.content_ports import KeptObjects
from shared.core.lane import LaneSpec
from shared.core.plan_ports import PlanStore, ResolutionStore
from shared.core.ports import (
    Actuator,
    BudgetLedger,
    ContentStore,
    ControlStore,
    DeadLetterQueues,
    EffectStore,
    History,
    JobStore,
    LaneQueues,
    Ledger,
    SignalLedger,
)
from tests.builders import a_lane, a_run_lane
from tests.contract.tables import create_queues, create_source, create_tables

LANES: Mapping[str, LaneSpec] = {
    lane.name: lane
    for lane in (
        a_lane(),
        a_lane(name="sharded", shards=3),
        a_lane(name="outreach", admission="fair"),
        a_lane(
            name="apart",
            tasks=("reply", "tag"),
            vendors=("helpdesk", "openai"),
            task_vendors={"reply": ("helpdesk",)},
        ),
        a_run_lane(),
    )
}


@dataclass(frozen=True, slots=True)
class Sent:
    """What stands in a lane's queue."""

    body: str
    group: str


class World(Protocol):
    """Every port on one kind of store."""

    @property
    def meter(self) -> Meter:
        """What was used."""
        ...

    @property
    def threads(self) -> int:
        """How many callers at once this world can be trusted with."""
        ...

    @property
    def jobs(self) -> JobStore:
        """The jobs table."""
        ...

    @property
    def effects(self) -> EffectStore:
        """The effects table."""
        ...

    @property
    def control(self) -> ControlStore:
        """The control table."""
        ...

    @property
    def ledger(self) -> Ledger:
        """The ledger table."""
        ...

    @property
    def budgets(self) -> BudgetLedger:
        """The vendor accounts on the ledger table."""
        ...

    @property
    def batches(self) -> BatchStore:
        """Providers' batches on the ledger table."""
        ...

    @property
    def signals(self) -> SignalLedger:
        """What lanes were seen to do, on the ledger table."""
        ...

    def other_budgets(self) -> BudgetLedger:
        """The same accounts, as another environment sees them."""
        ...

    @property
    def history(self) -> History:
        """The history table."""
        ...

    @property
    def plans(self) -> PlanStore:
        """Redrive plans on the history table."""
        ...

    @property
    def resolutions(self) -> ResolutionStore:
        """Resolutions on the history table."""
        ...

    @property
    def queues(self) -> LaneQueues:
        """The lanes' queues."""
        ...

    @property
    def dead_letters(self) -> DeadLetterQueues:
        """The lanes' dead-letter queues."""
        ...

    @property
    def content(self) -> ContentStore:
        """The content store: both of its parts, by the reference."""
        ...

    @property
    def objects(self) -> ContentStore:
        """Its part for large texts, and all that are no payloads."""
        ...

    @property
    def kept_objects(self) -> KeptObjects:
        """The same part, as whoever erases finds what is in it."""
        ...

    @property
    def payload_rows(self) -> ContentStore:
        """Its part for small payloads."""
        ...

    @property
    def actuator(self) -> Actuator:
        """The event sources of the lanes' workers: that of `support` has a cap of 2."""
        ...

    def plant(self, name: str, item: Item) -> None:
        """Write a row as another program would: `name` is the table's."""
        ...

    def row(self, name: str, pk: str, sk: str | None = None) -> Item | None:
        """A row as it is stored."""
        ...

    def sent(self, lane: str) -> list[Sent]:
        """Messages visible in a lane's queue."""
        ...

    def plant_dead(self, lane: str, body: str) -> None:
        """Put any bytes in a lane's dead-letter queue."""
        ...


class MemoryWorld:
    """The memory adapters."""

    threads = 8

    def __init__(self) -> None:
        self.meter = Meter()
        clock = VirtualClock()
        self.jobs = MemoryJobStore(lanes=LANES, meter=self.meter, clock=clock)
        self.effects = MemoryEffectStore(meter=self.meter)
        self.control = MemoryControlStore(meter=self.meter)
        self.ledger = MemoryLedger(meter=self.meter)
        self.budgets = MemoryBudgetLedger()
        self.batches = MemoryBatchStore(meter=self.meter)
        self.signals = MemorySignalLedger(meter=self.meter)
        self.history = MemoryHistory(meter=self.meter)
        self.plans, self.resolutions = MemoryPlanStore(), MemoryResolutionStore()
        self.dead_letters = MemoryDeadLetterQueues(clock=clock)
        self.queues = MemoryLaneQueues(clock=clock, lanes=LANES, dead_letters=self.dead_letters)
        self.objects = MemoryContentStore(meter=self.meter)
        self.payload_rows = MemoryContentStore(meter=self.meter)
        self.kept_objects = self.objects
        self.content = ContentByReference(rows=self.payload_rows, objects=self.objects)
        self.actuator = MemoryActuator(["support"])

    def other_budgets(self) -> MemoryBudgetLedger:
        """Memory has no view of its own."""
        return self.budgets

    def plant(self, name: str, item: Item) -> None:
        """Jobs have a door for it; the others are opened by force."""
        pk = item[table.PK]["S"]
        match name:
            case "jobs":
                self.jobs.plant(item)
            case "effects":
                self.effects._rows.setdefault(pk, {})[item[table.SK]["S"]] = item
            case "ledger":
                self.signals._rows.setdefault(pk.removeprefix(table.signals_pk("")), {})[item[table.SK]["S"]] = item
            case "control" if pk == table.SWITCHES:
                self.control._item = item
            case "control":
                self.control._caps[pk.removeprefix(table.cap_pk(""))] = item

    def row(self, name: str, pk: str, sk: str | None = None) -> Item | None:
        """From the dictionaries."""
        if name == "jobs":
            return self.jobs.item(table.job_id_from(pk))
        if pk.startswith(table.signals_pk("")):
            return self.signals._rows[pk.removeprefix(table.signals_pk(""))].get(sk or "")
        rows: dict[str, dict[str, Item]] = {"effects": self.effects._rows, "ledger": self.ledger._rows}[name]
        return rows[pk.removeprefix(table.run_pk(""))].get(sk or "")

    def sent(self, lane: str) -> list[Sent]:
        """Every message that stands there."""
        return [Sent(message.body, message.group) for message in self.queues.queue(lane).messages()]

    def plant_dead(self, lane: str, body: str) -> None:
        """As a stranger would."""
        self.dead_letters.add(lane, body)


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsClients:
    """The clients of one account, or of what stands in for it."""

    dynamodb: Any
    sqs: Any
    s3: Any
    lambda_: Any
    iam: Any
    events: Any


class AwsWorld:
    """The AWS adapters, on tables of their own; each is created when a suite first asks for it."""

    def __init__(self, clients: AwsClients, *, threads: int, expires: bool = True) -> None:
        self._clients, self._expires = clients, expires
        self.threads = threads
        self.meter = Meter()
        self.stage = f"ct{uuid.uuid4().hex[:8]}"
        self._made: set[str] = set()

    @cached_property
    def jobs(self) -> DynamoDbJobStore:
        return DynamoDbJobStore(
            client=self._clients.dynamodb, table_name=self._table("jobs"), lanes=LANES, meter=self.meter
        )

    @cached_property
    def effects(self) -> DynamoDbEffectStore:
        return DynamoDbEffectStore(client=self._clients.dynamodb, table_name=self._table("effects"), meter=self.meter)

    @cached_property
    def control(self) -> DynamoDbControlStore:
        return DynamoDbControlStore(client=self._clients.dynamodb, table_name=self._table("control"), meter=self.meter)

    @cached_property
    def ledger(self) -> DynamoDbLedger:
        return DynamoDbLedger(client=self._clients.dynamodb, table_name=self._table("ledger"), meter=self.meter)

    @cached_property
    def budgets(self) -> DynamoDbBudgetLedger:
        return self.other_budgets()

    def other_budgets(self) -> DynamoDbBudgetLedger:
        """An adapter that has seen nothing yet."""
        return DynamoDbBudgetLedger(client=self._clients.dynamodb, table_name=self._table("ledger"), meter=self.meter)

    @cached_property
    def batches(self) -> DynamoDbBatchStore:
        return DynamoDbBatchStore(client=self._clients.dynamodb, table_name=self._table("ledger"), meter=self.meter)

    @cached_property
    def signals(self) -> DynamoDbSignalLedger:
        return DynamoDbSignalLedger(client=self._clients.dynamodb, table_name=self._table("ledger"), meter=self.meter)

    @cached_property
    def history(self) -> DynamoDbHistory:
        return DynamoDbHistory(client=self._clients.dynamodb, table_name=self._table("history"), meter=self.meter)

    @cached_property
    def plans(self) -> DynamoDbPlanStore:
        return DynamoDbPlanStore(client=self._clients.dynamodb, table_name=self._table("history"), meter=self.meter)

    @cached_property
    def resolutions(self) -> DynamoDbResolutionStore:
        return DynamoDbResolutionStore(
            client=self._clients.dynamodb, table_name=self._table("history"), meter=self.meter
        )

    @cached_property
    def _urls(self) -> tuple[Mapping[str, str], Mapping[str, str]]:
        return create_queues(self._clients.sqs, self.stage, ("support", "sharded"))

    @cached_property
    def queues(self) -> SqsLaneQueues:
        return SqsLaneQueues(client=self._clients.sqs, urls=self._urls[0], meter=self.meter)

    @cached_property
    def dead_letters(self) -> SqsDeadLetterQueues:
        return SqsDeadLetterQueues(client=self._clients.sqs, urls=self._urls[1], meter=self.meter, wait_s=0)

    @property
    def kept_objects(self) -> KeptObjects:
        return self.objects

    @cached_property
    def content(self) -> ContentByReference:
        return ContentByReference(rows=self.payload_rows, objects=self.objects)

    @cached_property
    def payload_rows(self) -> DynamoDbContentStore:
        return DynamoDbContentStore(
            client=self._clients.dynamodb,
            table_name=self._table(names.CONTENT_TABLE),
            clock=SystemClock(),
            kept_days=90,
            meter=self.meter,
        )

    @cached_property
    def objects(self) -> S3ContentStore:
        bucket = names.bucket(self.stage, "000000000000", self._clients.s3.meta.region_name)
        self._clients.s3.create_bucket(
            Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": self._clients.s3.meta.region_name}
        )
        return S3ContentStore(client=self._clients.s3, bucket=bucket, meter=self.meter)

    @cached_property
    def actuator(self) -> LambdaActuator:
        create_source(self._clients, self.stage, "support", self._urls[0]["support"])
        return LambdaActuator(client=self._clients.lambda_, stage=self.stage, meter=self.meter)

    def plant(self, name: str, item: Item) -> None:
        """A plain put."""
        self._clients.dynamodb.put_item(TableName=self._table(name), Item=item)

    def row(self, name: str, pk: str, sk: str | None = None) -> Item | None:
        """A plain get."""
        key = {table.PK: {"S": pk}} | ({} if sk is None else {table.SK: {"S": sk}})
        answer = self._clients.dynamodb.get_item(TableName=self._table(name), Key=key, ConsistentRead=True)
        item: Item | None = answer.get("Item")
        return item

    def sent(self, lane: str) -> list[Sent]:
        """Receives what is visible; a second look does not see it again."""
        found: list[Sent] = []
        while messages := self._clients.sqs.receive_message(
            QueueUrl=self._urls[0][lane], MaxNumberOfMessages=10, MessageSystemAttributeNames=["MessageGroupId"]
        ).get("Messages"):
            found += [Sent(m["Body"], m.get("Attributes", {}).get("MessageGroupId", "")) for m in messages]
        return found

    def plant_dead(self, lane: str, body: str) -> None:
        """A plain send."""
        self._clients.sqs.send_message(QueueUrl=self._urls[1][lane], MessageBody=body)

    def close(self) -> None:
        """Remove what was made."""
        for name in self._made:
            self._clients.dynamodb.delete_table(TableName=names.table(self.stage, name))
        if "_urls" in self.__dict__:
            for url in (*self._urls[0].values(), *self._urls[1].values()):
                self._clients.sqs.delete_queue(QueueUrl=url)

    def _table(self, name: str) -> str:
        if name not in self._made:
            create_tables(self._clients.dynamodb, self.stage, [name], expires=self._expires)
            self._made.add(name)
        return names.table(self.stage, name)
