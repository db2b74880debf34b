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
from shared.contract import env, names
from shared.core.errors import BadInput
from shared.core.plan_ports import MoveTasks, PlanStore
from shared.core.ports import (
    BudgetLedger,
    ChangeFeed,
    Clock,
    History,
    Ledger,
    SignalLedger,
    Telemetry,
    Vendor,
)
from shared.core.vendor import VendorSpec
from shared.runtime.content import content, content_objects
from shared.runtime.settings import Settings, WorkerSettings
from shared.usecases.budgets import Budgets
from shared.usecases.context import Task
from shared.usecases.deadline import Deadline
from shared.usecases.run_attempt import Worker
from shared.usecases.switchboard import SwitchBoard

if TYPE_CHECKING:
    from shared.adapters.aws.dead_letters import SqsDeadLetterQueues
    from shared.adapters.aws.queues import SqsLaneQueues
    from shared.core.batch_ports import BatchStore
    from shared.runtime.engine_settings import EngineSettings
    from shared.runtime.intake_settings import IntakeSettings
    from shared.usecases.receive_event import Intake
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
    threads = settings.lane.parallel
    return Worker(
        lane=settings.lane,
        tasks=tasks,
        jobs=jobs(settings, threads),
        effects=effects(settings, threads),
        content=content(settings, threads),
        vendors=vendors(settings.vendors, settings.secret_arn),
        board=board(settings, threads),
        clock=clock(),
        telemetry=telemetry,
        budgets=_spending(settings, telemetry),
        accounts=tuple(settings.accounts.values()),
        signals=signal_ledger(settings.text(env.LEDGER_TABLE), connections=threads),
    )


def _spending(settings: WorkerSettings, telemetry: Telemetry) -> Budgets:
    """The accounts of a worker's lane, as this environment spends them."""
    if not settings.accounts:
        return Budgets()
    return Budgets.of(
        settings.accounts.values(),
        ledger=budget_ledger(settings.text(env.LEDGER_TABLE), connections=settings.lane.parallel),
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


def signal_ledger(table_name: str, connections: int = 10) -> SignalLedger:
    """What lanes are seen to do."""
    from shared.adapters.aws.signals import DynamoDbSignalLedger

    # One try: a write whose reply was lost, sent again by the SDK, would count twice.
    return DynamoDbSignalLedger(client=client("dynamodb", connections=connections, tries=1), table_name=table_name)


def vendors(specs: Mapping[str, VendorSpec], secret: str | None) -> dict[str, Vendor]:
    """A lane's vendors, each with its token from the secret of this ARN or name; nothing is fetched or opened before
    the first call."""
    tokens = VendorTokens(secret_arn=secret)
    return {name: vendor(spec, tokens) for name, spec in specs.items()}


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

    return Viewer(
        lanes=settings.lanes,
        board=board(settings),
        control=control(settings),
        queues=lane_queues(settings),
        clock=clock(),
        accounts=settings.accounts,
        budgets=budget_ledger(settings.text(env.LEDGER_TABLE)) if settings.accounts else None,
        telemetry=telemetry,
    )


def lane_queues(settings: EngineSettings) -> SqsLaneQueues:
    """The lanes' queues."""
    from shared.adapters.aws.queues import SqsLaneQueues

    return SqsLaneQueues(client=client("sqs"), urls=_queue_urls(settings))


def change_feed(bus: str) -> ChangeFeed:
    """Where subscribers hear of jobs."""
    from shared.adapters.aws.feed import EventBridgeChangeFeed

    # One try each: publishing asks again itself.
    return EventBridgeChangeFeed(client=client("events", tries=1), bus=bus)


def dead_letter_queues(settings: EngineSettings) -> SqsDeadLetterQueues:
    """The lanes' dead-letter queues."""
    from shared.adapters.aws.dead_letters import SqsDeadLetterQueues

    return SqsDeadLetterQueues(client=client("sqs"), urls=_dead_letter_urls(settings))


def move_tasks(settings: EngineSettings) -> MoveTasks:
    """What SQS moves by itself."""
    from shared.adapters.aws.move_tasks import SqsMoveTasks

    urls, dead = _queue_urls(settings), _dead_letter_urls(settings)
    return SqsMoveTasks(client=client("sqs"), urls=urls, dead_letter_urls=dead)


def _queue_urls(settings: Settings) -> dict[str, str]:
    """lane → address of its queue, for the lanes whose jobs are sent."""
    sent = [name for name, lane in settings.lanes.items() if lane.run is None]
    return _addresses(settings, {lane: names.queue(settings.stage, lane) for lane in sent})


def _dead_letter_urls(settings: Settings) -> dict[str, str]:
    """lane → address of its dead-letter queue."""
    return _addresses(settings, {lane: names.dead_letter_queue(settings.stage, lane) for lane in settings.lanes})


def _addresses(settings: Settings, queues: Mapping[str, str]) -> dict[str, str]:
    home = f"{client('sqs').meta.endpoint_url}/{settings.text(env.ACCOUNT_ID)}"
    return {lane: f"{home}/{queue}" for lane, queue in queues.items()}


def jobs(settings: Settings, connections: int = 10) -> DynamoDbJobStore:
    """The jobs table."""
    dynamodb, name = client("dynamodb", connections=connections), settings.text(env.JOBS_TABLE)
    return DynamoDbJobStore(client=dynamodb, table_name=name, lanes=settings.lanes)


def effects(settings: Settings, connections: int = 10) -> DynamoDbEffectStore:
    """The effects table."""
    dynamodb = client("dynamodb", connections=connections)
    return DynamoDbEffectStore(client=dynamodb, table_name=settings.text(env.EFFECTS_TABLE))


def control(settings: Settings, connections: int = 10) -> DynamoDbControlStore:
    """Switches and caps."""
    dynamodb = client("dynamodb", connections=connections)
    return DynamoDbControlStore(client=dynamodb, table_name=settings.text(env.CONTROL_TABLE))


def board(settings: Settings, connections: int = 10) -> SwitchBoard:
    """The switches as this environment remembers them."""
    return SwitchBoard(control=control(settings, connections), clock=clock())


def dispatcher(settings: EngineSettings, telemetry: Telemetry) -> Work:
    """One run over every lane that is served as jobs come."""
    from shared.usecases.count_waiting import count_waiting
    from shared.usecases.run_dispatch import run_dispatch

    views, store, queues = viewer(settings, telemetry), jobs(settings), lane_queues(settings)

    def work(deadline: Deadline) -> Mapping[str, int]:
        waiting = count_waiting(settings.lanes.values(), jobs=store, clock=clock(), telemetry=telemetry)
        sent = run_dispatch(
            settings.lanes,
            period_s=settings.period_s,
            stop_at=deadline.at,
            jobs=store,
            queues=queues,
            viewer=views,
            clock=clock(),
            telemetry=telemetry,
        )
        return {**waiting, **sent}

    return work


def sweeper(settings: EngineSettings, telemetry: Telemetry) -> Work:
    """One sweep over every lane."""
    from shared.usecases.restore_letters import LetterKeeper
    from shared.usecases.send_canary import send_canary
    from shared.usecases.sweep import sweep

    store, rows, batches = jobs(settings), effects(settings), _batches(settings)
    keeper = LetterKeeper(jobs=store, dead_letters=dead_letter_queues(settings), clock=clock(), telemetry=telemetry)

    def work(deadline: Deadline) -> Mapping[str, int]:
        counts: dict[str, int] = {}
        for lane in settings.lanes.values():
            done = sweep(
                lane,
                jobs=store,
                effects=rows,
                clock=clock(),
                telemetry=telemetry,
                batches=batches if lane.run is not None else None,
            )
            counts |= done.counts(lane.name)
        # After all lanes are swept: a canary that cannot be sent keeps nobody from being rescued.
        for lane in (lane for lane in settings.lanes.values() if lane.has_canaries):
            send_canary(lane, period_s=settings.period_s, jobs=store, clock=clock(), telemetry=telemetry)
        # Last, since letters that somebody has in hand are waited for.
        return {**counts, **keeper.run(settings.lanes.values(), deadline)}

    return work


def triage(settings: EngineSettings, telemetry: Telemetry) -> Work:
    """One look at every dead-letter queue whose depth changed, and at all of them every ten minutes."""
    from shared.usecases.tally import Tally, write_tally
    from shared.usecases.triage import Triage

    desk = Triage(
        jobs=jobs(settings),
        effects=effects(settings),
        content=content_objects(settings),
        dead_letters=dead_letter_queues(settings),
        clock=clock(),
        telemetry=telemetry,
    )
    runs = ledger(settings.text(env.LEDGER_TABLE))
    signals, tally = signal_ledger(settings.text(env.LEDGER_TABLE)), Tally()

    def work(deadline: Deadline) -> Mapping[str, int]:
        counts: dict[str, int] = {}
        now = clock().now()
        anyway = int(now.timestamp()) % TRIAGE_ANYWAY_EVERY_S < settings.period_s
        known = [run for run in runs.runs("triage", limit=2) if run.finished_at is not None]
        for lane in settings.lanes.values():
            last = known[0].counts.get(f"{lane.name}.depth") if known and not anyway else None
            done = desk.run(lane, last_depth=last)
            # No worker saw these jobs die: who judges the lane must hear of them, too.
            tally.died(done.infrastructure + done.quarantined)
            write_tally(tally, lane=lane, signals=signals, clock=clock(), telemetry=telemetry)
            counts |= done.counts(lane.name)
        return counts

    return work


def plans(settings: EngineSettings) -> PlanStore:
    """Redrive plans."""
    from shared.adapters.aws.plans import DynamoDbPlanStore

    return DynamoDbPlanStore(client=client("dynamodb"), table_name=settings.text(env.HISTORY_TABLE))


def history(settings: EngineSettings) -> History:
    """What people and the engine decided."""
    from shared.adapters.aws.history import DynamoDbHistory

    return DynamoDbHistory(client=client("dynamodb"), table_name=settings.text(env.HISTORY_TABLE))


def redriver(settings: EngineSettings, telemetry: Telemetry) -> Work:
    """One run over the plans that have a lane; each lane has its part of the time."""
    from shared.usecases.run_redrive import Redriver

    desk = Redriver(
        jobs=jobs(settings),
        plans=plans(settings),
        history=history(settings),
        queues=lane_queues(settings),
        dead_letters=dead_letter_queues(settings),
        viewer=viewer(settings, telemetry),
        clock=clock(),
        telemetry=telemetry,
        moves=move_tasks(settings),
    )

    return lambda deadline: desk.run_all(settings.lanes, stop_at=deadline.at)


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
        batches=_batches(settings),
    )
    return lambda deadline: desk.run(repair=True).counts()


def intake(settings: IntakeSettings, telemetry: Telemetry) -> Intake:
    """A lane's door for events from outside."""
    from shared.adapters.aws.secrets import SenderKeySecret
    from shared.usecases.receive_event import Intake

    # One try each: enqueueing asks again itself, and a sender is waiting.
    return Intake(
        lane=settings.lane,
        task=settings.task,
        jobs=DynamoDbJobStore(
            client=client("dynamodb", tries=1), table_name=settings.text(env.JOBS_TABLE), lanes=settings.lanes
        ),
        content=content(settings, tries=1),
        keys=SenderKeySecret(secret_arn=settings.secret_arn),
        clock=clock(),
        telemetry=telemetry,
    )


def _batches(settings: EngineSettings) -> BatchStore | None:
    """What providers were given, where a lane does so."""
    if all(lane.run is None for lane in settings.lanes.values()):
        return None
    from shared.adapters.aws.batches import DynamoDbBatchStore

    return DynamoDbBatchStore(client=client("dynamodb"), table_name=settings.text(env.LEDGER_TABLE))
