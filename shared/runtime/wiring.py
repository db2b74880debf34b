"""Who gets what: adapters built once per environment and handed to the use cases.

What only an engine function needs is imported where it is built: a worker's cold start does not pay for it.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING

from shared.adapters.aws.clients import client, server_clock
from shared.adapters.aws.clock import SystemClock
from shared.adapters.aws.control import DynamoDbControlStore
from shared.adapters.aws.effects import DynamoDbEffectStore
from shared.adapters.aws.jobs import DynamoDbJobStore
from shared.adapters.aws.secrets import VendorTokens
from shared.contract import env
from shared.core.errors import BadInput
from shared.core.lane import LaneSpec
from shared.core.ports import BudgetLedger, Clock, ContentStore, Ledger, Telemetry, Vendor
from shared.core.vendor import VendorSpec
from shared.runtime.settings import WorkerSettings
from shared.usecases.budgets import Budgets
from shared.usecases.context import Task
from shared.usecases.deadline import Deadline
from shared.usecases.run_attempt import Worker
from shared.usecases.switchboard import SwitchBoard

if TYPE_CHECKING:
    from shared.adapters.aws.dead_letters import SqsDeadLetterQueues
    from shared.adapters.aws.queues import SqsLaneQueues
    from shared.runtime.engine_settings import EngineSettings
    from shared.usecases.view import Viewer

Work = Callable[[Deadline], Mapping[str, int]]
"""What a scheduled function does in one run; the result is its counts."""
TRIAGE_ANYWAY_EVERY_S = 600


@cache
def clock() -> Clock:
    """The system's clock."""
    return SystemClock()


@cache
def ledger(table_name: str) -> Ledger:
    """The run ledger."""
    from shared.adapters.aws.ledger import DynamoDbLedger

    return DynamoDbLedger(client=client("dynamodb"), table_name=table_name)


def worker(settings: WorkerSettings, tasks: Mapping[str, Task], telemetry: Telemetry) -> Worker:
    """A lane's worker."""
    dynamodb = client("dynamodb", connections=settings.lane.parallel)
    control = DynamoDbControlStore(client=dynamodb, table_name=settings.control_table)
    return Worker(
        lane=settings.lane,
        tasks=tasks,
        jobs=_jobs(settings.jobs_table, {settings.lane.name: settings.lane}, settings.lane.parallel),
        effects=DynamoDbEffectStore(client=dynamodb, table_name=settings.effects_table),
        content=_content(settings.content_bucket, settings.lane.parallel),
        vendors=vendors(settings),
        board=SwitchBoard(control=control, clock=clock()),
        clock=clock(),
        telemetry=telemetry,
        budgets=_spending(settings, telemetry),
        accounts=tuple(settings.accounts.values()),
    )


def _spending(settings: WorkerSettings, telemetry: Telemetry) -> Budgets:
    """The accounts of a worker's lane, as this environment spends them."""
    if settings.ledger_table is None:
        return Budgets()
    return Budgets.of(
        settings.accounts.values(),
        ledger=budget_ledger(settings.ledger_table, connections=settings.lane.parallel),
        clock=clock(),
        telemetry=telemetry,
        owner=uuid.uuid4().hex,
        skew_s=server_clock().skew_s,
    )


def budget_ledger(table_name: str, connections: int = 10) -> BudgetLedger:
    """The vendor accounts."""
    from shared.adapters.aws.budgets import DynamoDbBudgetLedger

    # One try: a return whose reply was lost, sent again by the SDK, would give permits back twice.
    return DynamoDbBudgetLedger(client=client("dynamodb", connections=connections, tries=1), table_name=table_name)


def vendors(settings: WorkerSettings) -> dict[str, Vendor]:
    """The lane's vendors, each with its token; nothing is fetched or opened before the first call."""
    tokens = VendorTokens(secret_arn=settings.secret_arn)
    return {name: vendor(spec, tokens) for name, spec in settings.vendors.items()}


def vendor(spec: VendorSpec, tokens: VendorTokens) -> Vendor:
    """The adapter that speaks to a vendor of this kind."""
    from shared.adapters.vendors.helpdesk import HelpDesk
    from shared.adapters.vendors.openai_chat import OpenAiChat

    kinds = {"helpdesk": HelpDesk, "openai": OpenAiChat}
    if spec.kind not in kinds:
        raise BadInput(f"vendors.{spec.name}.kind", f"must be one of {', '.join(kinds)}")
    return kinds[spec.kind](spec, token=lambda fresh: tokens.of(spec.name, fresh=fresh))


def viewer(settings: EngineSettings, telemetry: Telemetry) -> Viewer:
    """What admission looks at."""
    from shared.usecases.view import Viewer

    control = DynamoDbControlStore(client=client("dynamodb"), table_name=settings.text(env.CONTROL_TABLE))
    return Viewer(
        lanes=settings.lanes,
        board=SwitchBoard(control=control, clock=clock()),
        control=control,
        queues=lane_queues(settings),
        clock=clock(),
        accounts=settings.accounts,
        budgets=budget_ledger(settings.text(env.LEDGER_TABLE)) if settings.accounts else None,
        telemetry=telemetry,
    )


def lane_queues(settings: EngineSettings) -> SqsLaneQueues:
    """The lanes' queues."""
    from shared.adapters.aws.queues import SqsLaneQueues

    return SqsLaneQueues(client=client("sqs"), urls=settings.urls(env.QUEUE_URLS))


def dead_letter_queues(settings: EngineSettings) -> SqsDeadLetterQueues:
    """The lanes' dead-letter queues."""
    from shared.adapters.aws.dead_letters import SqsDeadLetterQueues

    return SqsDeadLetterQueues(client=client("sqs"), urls=settings.urls(env.DLQ_URLS))


def jobs(settings: EngineSettings) -> DynamoDbJobStore:
    """The jobs table."""
    return _jobs(settings.text(env.JOBS_TABLE), settings.lanes)


def effects(settings: EngineSettings) -> DynamoDbEffectStore:
    """The effects table."""
    return DynamoDbEffectStore(client=client("dynamodb"), table_name=settings.text(env.EFFECTS_TABLE))


def dispatcher(settings: EngineSettings, telemetry: Telemetry) -> Work:
    """One run over every lane that is served as jobs come."""
    from shared.usecases.count_waiting import count_waiting
    from shared.usecases.run_dispatch import run_dispatch

    views, store, queues = viewer(settings, telemetry), jobs(settings), lane_queues(settings)

    def work(deadline: Deadline) -> Mapping[str, int]:
        count_waiting(settings.lanes.values(), jobs=store, clock=clock(), telemetry=telemetry)
        return run_dispatch(
            settings.lanes,
            period_s=settings.period_s,
            stop_at=deadline.at,
            jobs=store,
            queues=queues,
            viewer=views,
            clock=clock(),
            telemetry=telemetry,
        )

    return work


def sweeper(settings: EngineSettings, telemetry: Telemetry) -> Work:
    """One sweep over every lane."""
    from shared.usecases.sweep import sweep

    store, rows = jobs(settings), effects(settings)

    def work(deadline: Deadline) -> Mapping[str, int]:
        counts: dict[str, int] = {}
        for lane in settings.lanes.values():
            done = sweep(lane, jobs=store, effects=rows, clock=clock(), telemetry=telemetry)
            counts |= done.counts(lane.name)
        return counts

    return work


def triage(settings: EngineSettings, telemetry: Telemetry) -> Work:
    """One look at every dead-letter queue whose depth changed, and at all of them every ten minutes."""
    from shared.usecases.triage import Triage

    desk = Triage(
        jobs=jobs(settings),
        effects=effects(settings),
        content=_content(settings.text(env.CONTENT_BUCKET)),
        dead_letters=dead_letter_queues(settings),
        clock=clock(),
        telemetry=telemetry,
    )
    runs = ledger(settings.text(env.LEDGER_TABLE))

    def work(deadline: Deadline) -> Mapping[str, int]:
        counts: dict[str, int] = {}
        now = clock().now()
        anyway = int(now.timestamp()) % TRIAGE_ANYWAY_EVERY_S < settings.period_s
        known = [run for run in runs.runs("triage", limit=2) if run.finished_at is not None]
        for lane in settings.lanes.values():
            last = known[0].counts.get(f"{lane.name}.depth") if known and not anyway else None
            counts |= desk.run(lane, last_depth=last).counts(lane.name)
        return counts

    return work


def auditor(settings: EngineSettings, telemetry: Telemetry) -> Work:
    """One audit, with repair."""
    from shared.usecases.audit import Auditor

    desk = Auditor(
        lanes=settings.lanes,
        jobs=jobs(settings),
        effects=effects(settings),
        queues=lane_queues(settings),
        dead_letters=dead_letter_queues(settings),
        clock=clock(),
        telemetry=telemetry,
    )
    return lambda deadline: desk.run(repair=True).counts()


def _jobs(table_name: str, lanes: Mapping[str, LaneSpec], connections: int = 10) -> DynamoDbJobStore:
    return DynamoDbJobStore(client=client("dynamodb", connections=connections), table_name=table_name, lanes=lanes)


def _content(bucket: str, connections: int = 10) -> ContentStore:
    from shared.adapters.aws.content import S3ContentStore

    return S3ContentStore(client=client("s3", connections=connections), bucket=bucket)
