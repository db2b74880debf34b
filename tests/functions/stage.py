"""The real handlers on memory adapters: only the builders of `wiring` are replaced."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from shared.adapters.memory.event_sources import MemoryActuator
from shared.adapters.memory.feed import MemoryChangeFeed
from shared.adapters.memory.vendor import MemoryVendor
from shared.contract import env, envelope
from shared.core.account import AccountSpec
from shared.core.errors import UnreadableRow
from shared.core.job import ENGINE_TENANT, Job
from shared.core.ports import Clock
from shared.runtime import governor, wiring
from shared.runtime.settings import WorkerSettings
from shared.usecases.context import Task
from shared.usecases.run_attempt import Worker
from tests.builders import ROUTING, a_job
from tests.settings import settings_file
from tests.unit.usecases.desk import Desk
from tests.vendors_and_tasks import VendorKind

LANE = {"tasks": ["answer_event"], "vendors": ["helpdesk"], "parallel": 4, "batch_size": 10, "routing": ROUTING}
ENVIRONMENT = {
    env.STAGE: "test",
    env.LANE: "support",
    env.SETTINGS: settings_file(lanes={"support": LANE}),
    env.ACCOUNT_ID: "111122223333",
    env.JOBS_TABLE: "jobs",
    env.EFFECTS_TABLE: "effects",
    env.CONTROL_TABLE: "control",
    env.LEDGER_TABLE: "ledger",
    env.HISTORY_TABLE: "history",
    env.CONTENT_BUCKET: "content",
    env.CONTENT_TABLE: "content",
    env.EVENT_BUS: "penstock-test",
    env.PERIOD_S: "60",
}
HANDLERS = (
    *("stream", "feed", "dispatcher", "sweeper", "triage", "auditor", "redriver", "governor"),
    *("support", "extraction"),
)


@dataclass
class LambdaContext:
    """What Lambda hands a function beside the event."""

    aws_request_id: str = "00000000-0000-4000-8000-000000000001"
    left_s: float = 55.0

    def get_remaining_time_in_millis(self) -> int:
        return int(self.left_s * 1000)


@dataclass
class Stage:
    """A deployed stage in memory."""

    desk: Desk
    actuator: MemoryActuator
    feed: Any = field(default_factory=MemoryChangeFeed)
    invocations: int = 0
    handlers: dict[str, Any] = field(default_factory=dict)

    def invoke(self, function: str, event: Any, *, left_s: float = 55.0) -> Any:
        """One invocation of the real handler; its wiring is kept between invocations, as Lambda keeps it."""
        if function not in self.handlers:
            self.handlers[function] = importlib.reload(importlib.import_module(f"functions.{function}.handler"))
        self.invocations += 1
        request_id = f"00000000-0000-4000-8000-{self.invocations:012d}"
        return self.handlers[function].handler(event, LambdaContext(request_id, left_s))

    def returned(self, *records: Any) -> list[str]:
        """The messages a worker gives back."""
        answer = self.invoke(self.desk.lane.name, {"Records": list(records)})
        return [failure["itemIdentifier"] for failure in answer["batchItemFailures"]]

    def jobs(self) -> list[Job]:
        """Those that somebody asked for: the sweeper's canaries are left out."""
        rows = self.desk.jobs.scan()
        return [row for row in rows if not isinstance(row, UnreadableRow) and row.tenant != ENGINE_TENANT]

    def enqueue(self, key: str = "event-1", **more: Any) -> Job:
        """A job of the real task; its payload is a conversation of that name."""
        payload = more.pop("payload", {"conversation_id": f"c-{key}", "topic": "billing"})
        ref = self.desk.enqueue("answer_event", key=key, payload=payload, **more)
        return self.desk.job(ref.job_id)


@contextmanager
def a_stage(
    kind: VendorKind = VendorKind.NEITHER,
    *,
    tasks: Mapping[str, Task] | None = None,
    lane: str = "support",
    vendor: Callable[[Clock], MemoryVendor] | None = None,
    model: Callable[[Clock], MemoryVendor] | None = None,
    account: AccountSpec | None = None,
) -> Iterator[Stage]:
    """The handlers, wired to memory; `tasks` instead of the lane's own, `vendor` instead of one of the kind, a `model`
    beside it, and an `account` that the lane spends."""
    used = importlib.import_module(f"functions.{lane}.tasks").TASKS if tasks is None else tasks
    desk = Desk(kind=kind, tasks=used, name=lane, parallel=4, batch_size=10, account=account)
    if vendor is not None:
        desk.vendor = vendor(desk.clock)
    models = [] if model is None else [model(desk.clock)]

    def worker(settings: WorkerSettings, given: Mapping[str, Task], telemetry: Any) -> Worker:
        return Worker(
            lane=settings.lane,
            tasks=given if tasks is None else tasks,
            jobs=desk.jobs,
            effects=desk.effects,
            content=desk.content,
            vendors={one.name: one for one in (desk.vendor, *models)},
            board=desk.board,
            clock=desk.clock,
            telemetry=telemetry,
            budgets=desk.budgets,
            accounts=tuple(desk.accounts.values()),
            signals=desk.signals,
        )

    built: dict[str, Any] = {
        "clock": lambda: desk.clock,
        "ledger": lambda table: desk.ledger,
        "signal_ledger": lambda table, connections=1: desk.signals,
        "jobs": lambda settings: desk.jobs,
        "effects": lambda settings: desk.effects,
        "plans": lambda settings: desk.plans,
        "history": lambda settings: desk.history,
        "lane_queues": lambda settings: desk.queues,
        "dead_letter_queues": lambda settings: desk.dead_letters,
        "change_feed": lambda bus: stage.feed,
        "viewer": lambda settings, telemetry: desk.viewer,
        "content_objects": lambda settings: desk.content,
        "control": lambda settings: desk.control,
        "worker": worker,
    }
    stage = Stage(desk, actuator=MemoryActuator([lane]))
    with pytest.MonkeyPatch.context() as patch:
        for name, builder in built.items():
            patch.setattr(wiring, name, builder)
        patch.setattr(governor, "actuator", lambda settings: stage.actuator)
        for name, value in ENVIRONMENT.items():
            patch.setenv(name, value)
        told = {**LANE, "tasks": list(used), "vendors": [one.name for one in (desk.vendor, *models)]}
        patch.setenv(env.LANE, lane)
        patch.setenv(env.SETTINGS, settings_file(lanes={lane: told}))
        yield stage


# ------------------------------------------------------------------------------------------------ events
def sqs_record(job: Job | None = None, **overrides: Any) -> dict[str, Any]:
    """One record of an SQS event, for a job's ticket."""
    job = job or a_job()
    record = {
        "messageId": f"{job.job_id[:8]}-message",
        "receiptHandle": "r",
        "body": envelope.encode_ticket(job.job_id, job.lane),
        "attributes": {"ApproximateReceiveCount": "1", "SentTimestamp": "1767225600000"},
        "messageAttributes": {},
        "eventSource": "aws:sqs",
    }
    return {**record, **overrides}


def stream_record(item: Any, event: str = "INSERT", old: Any = None) -> dict[str, Any]:
    """One record of the jobs table's stream."""
    images = {"NewImage": item} | ({} if old is None else {"OldImage": old})
    return {"eventID": "1", "eventName": event, "dynamodb": {**images, "SequenceNumber": "1"}}


def stream_event(*items: Any) -> dict[str, Any]:
    return {"Records": [stream_record(item) for item in items]}
