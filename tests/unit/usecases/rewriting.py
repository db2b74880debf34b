"""A lane of rewrites on memory adapters and a virtual clock, with its three runs one call away."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from functions.rewrite.handler import model_of
from functions.rewrite.prompts import RESULT, accepted, prompt_of
from functions.rewrite.tasks import TASKS
from shared.adapters.memory.batch_provider import MemoryBatchProvider
from shared.adapters.memory.batches import MemoryBatchStore
from shared.adapters.memory.budgets import MemoryBudgetLedger
from shared.adapters.memory.clock import VirtualClock
from shared.adapters.memory.queues import MemoryDeadLetterQueues
from shared.adapters.memory.stores import (
    MemoryContentStore,
    MemoryControlStore,
    MemoryEffectStore,
    MemoryJobStore,
    MemoryLedger,
)
from shared.adapters.memory.telemetry import MemoryTelemetry
from shared.adapters.meter import Meter
from shared.core.account import AccountSpec
from shared.core.job import Job, Status
from shared.core.lane import LaneSpec
from shared.core.ports import Vendor
from shared.core.rewrite import RoutingPolicy, group_of
from shared.core.run import RunConfig
from shared.usecases.collect_batches import Collector
from shared.usecases.deadline import Deadline
from shared.usecases.enqueue import Enqueue, JobRef, enqueue
from shared.usecases.keep_batches import BatchKeeper
from shared.usecases.run_attempt import Worker
from shared.usecases.run_jobs import JobRunner
from shared.usecases.submit_batches import Submitter
from shared.usecases.sweep import Swept, sweep
from shared.usecases.switchboard import SwitchBoard
from tests.builders import a_run_lane

POLICY: Mapping[str, Any] = {
    "version": "p1",
    "default": {
        "provider": "openai",
        "adapter_kind": "openai_chat",
        "base_url": None,
        "model": "model-a",
        "prompt_version": "v1",
        "execution_mode": "batch",
        "cache_eligible": True,
        "max_retries": 2,
    },
    "rules": [
        {"when": {"surface": "direct_message"}, "use": {"execution_mode": "async"}},
        {"when": {"rewrite_strength": "full_reframe"}, "use": {"model": "model-b"}},
    ],
}
TEXT = "you never do the dishes"


def facts(number: int = 1, **overrides: Any) -> dict[str, Any]:
    """The facts of the n-th rewrite."""

    def an_id(kind: str) -> str:
        return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{kind}-{number}"))

    values: dict[str, Any] = {
        "rewrite_request_id": an_id("request"),
        "surface": "weekly_harmony",
        "rewrite_strength": "light_touch",
        "language_pair": {"from": "de-AT", "to": "en-GB"},
        "recipient_user_id": an_id("recipient"),
        "recipient_snapshot_id": an_id("snapshot"),
        "recipient_preference_snapshot_id": an_id("preferences"),
    }
    return {**values, **overrides}


class RewriteDesk:
    """Everything the lane `rewrite` needs."""

    def __init__(
        self,
        *,
        run: RunConfig | None = None,
        account: AccountSpec | None = None,
        vendors: Mapping[str, Vendor] | None = None,
        **lane: Any,
    ) -> None:
        self.clock, self.telemetry, self.meter = VirtualClock(), MemoryTelemetry(), Meter()
        self.accounts = {} if account is None else {account.name: account}
        self.lane: LaneSpec = a_run_lane(
            run=run or RunConfig(),
            router=RoutingPolicy.from_mapping(POLICY),
            accounts=tuple(self.accounts),
            **lane,
        )
        self.lanes = {self.lane.name: self.lane}
        self.jobs = MemoryJobStore(lanes=self.lanes, clock=self.clock, meter=self.meter)
        self.batches, self.budgets = MemoryBatchStore(meter=self.meter), MemoryBudgetLedger()
        self.content, self.effects, self.ledger = MemoryContentStore(), MemoryEffectStore(), MemoryLedger()
        self.control = MemoryControlStore()
        self.dead_letters = MemoryDeadLetterQueues(clock=self.clock)
        self.provider = MemoryBatchProvider(clock=self.clock)
        self.board = SwitchBoard(control=self.control, clock=self.clock)
        self.vendors = dict(vendors or {})
        self.runs = 0

    def enqueue(
        self, number: int = 1, *, text: str = TEXT, not_before: Any = None, tenant: str = "home-1", **overrides: Any
    ) -> JobRef:
        """The n-th rewrite."""
        given = facts(number, **overrides)
        request = Enqueue(
            lane=self.lane.name,
            task="complaint_rewrite",
            tenant=tenant,
            key=(given["rewrite_request_id"], given["recipient_user_id"]),
            payload={"text": text},
            facts=given,
            not_before=not_before,
        )
        return enqueue(request, jobs=self.jobs, content=self.content, lanes=self.lanes, clock=self.clock)

    def keeper(self, **replaced: Any) -> BatchKeeper:
        """What submitter and collector share; `replaced` ports instead of the desk's own."""
        ports: dict[str, Any] = {
            "providers": {"openai": self.provider},
            "jobs": self.jobs,
            "batches": self.batches,
            "clock": self.clock,
            "telemetry": self.telemetry,
            "accounts": {spec.vendor: spec for spec in self.accounts.values()},
            "budgets": self.budgets if self.accounts else None,
        }
        return BatchKeeper(lane=self.lane, **{**ports, **replaced})

    def submitter(self, *, content: Any = None, **replaced: Any) -> Submitter:
        """A submitter, as deployed."""
        return Submitter(
            stage="test",
            keeper=self.keeper(**replaced),
            content=content or self.content,
            board=self.board,
            group_of=group_of,
            prompt_of=prompt_of,
        )

    def collector(self, *, content: Any = None, **replaced: Any) -> Collector:
        """A collector, as deployed."""
        return Collector(
            keeper=self.keeper(**replaced), content=content or self.content, accept=accepted, result=RESULT
        )

    def submit(self, *, run_id: str = "", seconds: float = 240) -> dict[str, int]:
        """One run of the submitter; its counts."""
        return self.submitter().run(run_id or self._next(), self._deadline(seconds))

    def collect(self, *, seconds: float = 240) -> dict[str, int]:
        """One run of the collector; its counts."""
        return self.collector().run(self._next(), self._deadline(seconds))

    def work(self, *, seconds: float = 240) -> dict[str, int]:
        """One run of the worker; its counts."""
        machine = Worker(
            lane=self.lane,
            tasks=TASKS,
            jobs=self.jobs,
            effects=self.effects,
            content=self.content,
            vendors=self.vendors,
            board=self.board,
            clock=self.clock,
            telemetry=self.telemetry,
        )
        return JobRunner(worker=machine, model_of=model_of).run(self._next(), self._deadline(seconds))

    def sweep(self) -> Swept:
        """One sweep."""
        return sweep(
            self.lane,
            jobs=self.jobs,
            effects=self.effects,
            clock=self.clock,
            telemetry=self.telemetry,
            batches=self.batches,
        )

    def job(self, number: int = 1) -> Job:
        """The n-th rewrite's job."""
        request = facts(number)["rewrite_request_id"]
        return next(job for job in self.rows() if (job.facts or {})["rewrite_request_id"] == request)

    def rows(self) -> list[Job]:
        """Every job."""
        return [job for job in self.jobs.scan() if isinstance(job, Job)]

    def states(self) -> dict[Status, int]:
        """How many stand where."""
        found: dict[Status, int] = {}
        for job in self.rows():
            found[job.status] = found.get(job.status, 0) + 1
        return found

    def text_of(self, job: Job) -> str | None:
        """What was kept for a job."""
        data = None if job.result_ref is None else self.content.get(job.result_ref)
        return None if data is None else str(json.loads(data)["text"])

    def _next(self) -> str:
        self.runs += 1
        return f"run-{self.runs}"

    def _deadline(self, seconds: float) -> Deadline:
        return Deadline(at=self.clock.now() + timedelta(seconds=seconds), clock=self.clock)
