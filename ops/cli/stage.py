"""A stage as tools use it: its lanes as deployed, its stores and queues found by their names, and who is asking."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from ops.cli.running import running
from shared.adapters.aws.batches import DynamoDbBatchStore
from shared.adapters.aws.budgets import DynamoDbBudgetLedger
from shared.adapters.aws.clients import client
from shared.adapters.aws.clock import SystemClock
from shared.adapters.aws.content import ContentByReference, DynamoDbContentStore, S3ContentStore
from shared.adapters.aws.control import DynamoDbControlStore
from shared.adapters.aws.dead_letters import SqsDeadLetterQueues
from shared.adapters.aws.effects import DynamoDbEffectStore
from shared.adapters.aws.history import DynamoDbHistory
from shared.adapters.aws.jobs import DynamoDbJobStore
from shared.adapters.aws.lanes import (
    deployed_accounts,
    deployed_lanes,
    deployed_people,
    deployed_routing,
    deployed_rules,
    deployed_vendors,
)
from shared.adapters.aws.ledger import DynamoDbLedger
from shared.adapters.aws.plans import DynamoDbPlanStore
from shared.adapters.aws.queues import SqsLaneQueues
from shared.adapters.aws.resolutions import DynamoDbResolutionStore
from shared.adapters.aws.signals import DynamoDbSignalLedger
from shared.contract import env, names
from shared.core.account import AccountSpec
from shared.core.errors import BadInput, UnknownLane, UnknownStage, UnreadableRow
from shared.core.governing import Rules
from shared.core.job import Job
from shared.core.lane import LaneSpec, content_kept_days
from shared.core.nearest import unknown
from shared.core.people import People
from shared.core.ports import BudgetLedger, Value
from shared.core.routing import Routing
from shared.core.stage import STAGES
from shared.core.vendor import VendorSpec
from shared.usecases.examine import Examiner
from shared.usecases.look import Lookout
from shared.usecases.switchboard import SwitchBoard
from shared.usecases.view import Viewer

if TYPE_CHECKING:
    from ops.local.state import StackState

LOCAL = "local"
ENDPOINT = "AWS_ENDPOINT_URL"
THREADS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who asks, as AWS knows them; nobody can say otherwise."""

    account: str
    arn: str
    region: str


def _caller(sts: Any) -> Caller:
    known = sts.get_caller_identity()
    return Caller(account=known["Account"], arn=known["Arn"], region=sts.meta.region_name)


class Stage:
    """One stage. Nothing is asked of AWS before it is needed."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.clock = SystemClock()

    @classmethod
    def open(cls, name: str | None) -> Stage:
        """The stage that is meant, with the environment its clients need. Raises BadInput, saying what to do."""
        return cls(chosen(name, os.environ))

    def client(self, service: str, *, wait_s: int = 0) -> Any:
        """An SDK client of this stage's account and region; with `wait_s` it waits so long, and asks once."""
        return client(service, tries=1, wait_s=wait_s) if wait_s else client(service)

    @property
    def every_schedule(self) -> tuple[str, ...]:
        """Every schedule: the engine's, then those of the lanes with runs."""
        return (*names.SCHEDULED, *(names.run(lane.name, role) for lane in self.lanes.values() for role in lane.runs))

    def table(self, name: str) -> str:
        """A table's name."""
        return names.table(self.name, name)

    def lane(self, name: str) -> LaneSpec:
        """The lane of that name, or UnknownLane listing those there are."""
        if name not in self.lanes:
            raise UnknownLane(name[:32], tuple(sorted(self.lanes)))
        return self.lanes[name]

    @cached_property
    def lanes(self) -> Mapping[str, LaneSpec]:
        """Every lane, as deployed."""
        return deployed_lanes(self.name)

    @property
    def lanes_at_once(self) -> Mapping[str, LaneSpec]:
        """The same for somebody in a hurry: asked for once, and known, or an error, within seconds."""
        if "lanes" not in self.__dict__:
            self.__dict__["lanes"] = deployed_lanes(self.name, tries=1)
        return self.lanes

    @cached_property
    def accounts(self) -> Mapping[str, AccountSpec]:
        """Every vendor account, as deployed."""
        return deployed_accounts(self.name)

    @cached_property
    def vendors(self) -> Mapping[str, VendorSpec] | None:
        """Every vendor, as deployed; None for a stage whose parameters do not tell of them yet."""
        return deployed_vendors(self.name)

    @cached_property
    def routing(self) -> Mapping[str, Routing] | None:
        """What the lanes' events may be about, as deployed; None as for vendors."""
        return deployed_routing(self.name)

    @cached_property
    def rules(self) -> Rules:
        """What the words mean, how caps move and what vendors charge, as deployed."""
        return deployed_rules(self.name)

    @cached_property
    def people(self) -> People:
        """Whom AWS names for certain here, as deployed."""
        return deployed_people(self.name)

    @cached_property
    def budgets(self) -> BudgetLedger:
        """What the accounts have left."""
        return DynamoDbBudgetLedger(client=client("dynamodb"), table_name=self.table("ledger"))

    @cached_property
    def caller(self) -> Caller:
        """Who is asking."""
        return _caller(client("sts"))

    @property
    def caller_at_once(self) -> Caller:
        """The same for somebody in a hurry: asked for once, and known, or an error, within seconds."""
        if "caller" not in self.__dict__:
            self.__dict__["caller"] = _caller(client("sts", tries=1))
        return self.caller

    @cached_property
    def jobs(self) -> DynamoDbJobStore:
        """The jobs."""
        return self.watched_jobs(lambda: None)

    def watched_jobs(self, seen: Callable[[], None]) -> DynamoDbJobStore:
        """The jobs; `seen` is called for every row a scan reads."""
        dynamodb = client("dynamodb", connections=THREADS)
        return _WatchedJobs(seen, client=dynamodb, table_name=self.table("jobs"), lanes=self.lanes)

    @cached_property
    def effects(self) -> DynamoDbEffectStore:
        """What was tried outside."""
        return DynamoDbEffectStore(client=client("dynamodb"), table_name=self.table("effects"))

    @cached_property
    def control(self) -> DynamoDbControlStore:
        """Switches and caps."""
        return DynamoDbControlStore(client=client("dynamodb"), table_name=self.table("control"))

    @cached_property
    def ledger(self) -> DynamoDbLedger:
        """Runs."""
        return DynamoDbLedger(client=client("dynamodb"), table_name=self.table("ledger"))

    @cached_property
    def batches(self) -> DynamoDbBatchStore:
        """What was handed to providers as batches."""
        return DynamoDbBatchStore(client=client("dynamodb"), table_name=self.table("ledger"))

    @cached_property
    def history(self) -> DynamoDbHistory:
        """What people and the engine decided."""
        return DynamoDbHistory(client=client("dynamodb"), table_name=self.table("history"))

    @cached_property
    def plans(self) -> DynamoDbPlanStore:
        """Redrive plans."""
        return DynamoDbPlanStore(client=client("dynamodb"), table_name=self.table("history"))

    @cached_property
    def resolutions(self) -> DynamoDbResolutionStore:
        """What was found out about unknown outcomes."""
        return DynamoDbResolutionStore(client=client("dynamodb"), table_name=self.table("history"))

    @cached_property
    def signals(self) -> DynamoDbSignalLedger:
        """What the lanes did, minute by minute."""
        return DynamoDbSignalLedger(client=client("dynamodb"), table_name=self.table("ledger"))

    @cached_property
    def content(self) -> ContentByReference:
        """Text a customer wrote."""
        return ContentByReference(
            rows=DynamoDbContentStore(
                client=client("dynamodb", connections=THREADS),
                table_name=self.table(names.CONTENT_TABLE),
                clock=self.clock,
                kept_days=content_kept_days(self.lanes.values()),
            ),
            objects=self.content_objects,
        )

    @cached_property
    def content_objects(self) -> S3ContentStore:
        """Those texts that are objects."""
        bucket = names.bucket(self.name, self.caller.account, self.caller.region)
        return S3ContentStore(client=client("s3", connections=THREADS), bucket=bucket)

    @cached_property
    def queues(self) -> SqsLaneQueues:
        """The lanes' queues."""
        return SqsLaneQueues(client=client("sqs"), urls=QueueUrls(self, names.queue))

    @cached_property
    def dead_letters(self) -> SqsDeadLetterQueues:
        """The lanes' dead-letter queues."""
        return SqsDeadLetterQueues(client=client("sqs"), urls=QueueUrls(self, names.dead_letter_queue))

    def examiner(self) -> Examiner:
        """Who evaluates the exit checklist: it sees what the governor sees, by the same rules."""
        lookout = Lookout(
            jobs=self.jobs,
            queues=self.queues,
            dead_letters=self.dead_letters,
            signals=self.signals,
            budgets=self.budgets,
            accounts=self.accounts,
            clock=self.clock,
            telemetry=SilentTelemetry(),
            window_s=self.rules.window_s,
        )
        return Examiner(lookout=lookout, rules=self.rules, control=self.control, lanes=self.lanes)

    def viewer(self) -> Viewer:
        """What admission looks at, read now."""
        return Viewer(
            lanes=self.lanes,
            board=SwitchBoard(control=self.control, clock=self.clock),
            control=self.control,
            queues=self.queues,
            clock=self.clock,
            accounts=self.accounts,
            budgets=self.budgets,
        )


class QueueUrls(Mapping[str, str]):
    """lane → URL, each asked for once, when it is needed."""

    def __init__(self, stage: Stage, name_of: Callable[[str, str], str]) -> None:
        self._stage, self._name_of = stage, name_of
        self._found: dict[str, str] = {}

    def __getitem__(self, lane: str) -> str:
        if lane not in self._stage.lanes:
            raise KeyError(lane)
        if lane not in self._found:
            self._found[lane] = self._ask(self._name_of(self._stage.name, lane))
        return self._found[lane]

    def __iter__(self) -> Iterator[str]:
        return iter(self._stage.lanes)

    def __len__(self) -> int:
        return len(self._stage.lanes)

    def _ask(self, name: str) -> str:
        try:
            return str(self._stage.client("sqs").get_queue_url(QueueName=name)["QueueUrl"])
        except ClientError as exc:
            code = str(exc.response.get("Error", {}).get("Code", ""))
            if "NonExistentQueue" not in code and "QueueDoesNotExist" not in code:
                raise
        raise BadInput("stage", f"{self._stage.name} has no queue {name}: is its lane deployed?")


class SilentTelemetry:
    """Tools write no logs and no metrics: what they find, they say."""

    def event(self, name: str, **ids: Value | Mapping[str, Value]) -> None:
        """Nothing."""

    def count(self, metric: str, value: float = 1, *, lane: str = "all", account: str = "") -> None:
        """Nothing."""

    def error(self, name: str, exc: BaseException, **ids: str | int | float | bool | None) -> None:
        """Nothing."""


class _WatchedJobs(DynamoDbJobStore):
    def __init__(self, seen: Callable[[], None], **parts: Any) -> None:
        super().__init__(**parts)
        self._seen = seen

    def scan(self, *, segment: int = 0, segments: int = 1) -> Iterator[Job | UnreadableRow]:
        for row in super().scan(segment=segment, segments=segments):
            self._seen()
            yield row


def chosen(name: str | None, environ: MutableMapping[str, str]) -> str:
    """The stage by `--stage`, by PENSTOCK_STAGE, or the local one if it runs.

    For the local stage without an endpoint of the caller's, `environ` is pointed at the running local stack:
    a command for `local` can never reach a real account by accident.
    """
    asked = name or environ.get(env.STAGE)
    if asked is not None and asked not in STAGES:
        raise UnknownStage(unknown(asked, STAGES, "stages"))
    if asked == LOCAL and environ.get(ENDPOINT):
        return LOCAL
    if asked is not None and asked != LOCAL:
        return asked
    found = running(environ)
    if found is None:
        start = "start the local stack with `penstock local up`"
        if asked is None:
            raise BadInput("stage", f"is not given: use --stage or PENSTOCK_STAGE, or {start}")
        raise BadInput("stage", f"local is not running: {start}, or set {ENDPOINT}")
    environ.pop("AWS_PROFILE", None)
    environ.update(_variables(found))
    return LOCAL


def _variables(found: StackState) -> dict[str, str]:
    from ops.local import stack

    return stack.environment(found)
