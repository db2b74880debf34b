"""A deployed stage with a lane whose jobs are taken by runs: it has dead letters, and no queue."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from ops.cli.stage import Stage
from shared.adapters.aws.clients import client
from shared.adapters.memory.telemetry import MemoryTelemetry
from shared.contract import names
from shared.core.job import Job
from shared.core.lane import LaneSpec
from shared.core.rewrite import RoutingPolicy
from shared.usecases.enqueue import Enqueue, enqueue
from shared.usecases.run_slot import run_slot
from tests.builders import a_run_lane
from tests.unit.ops.cli.conftest import LANES, STAGE, deploy_lanes
from tests.unit.usecases.rewriting import POLICY, TEXT, facts

REWRITE: LaneSpec = a_run_lane(router=RoutingPolicy.from_mapping(POLICY))
FULL = {
    "claimed": 3,
    "failed": 0,
    "max_jobs_per_run": 25,
    "rate_limited": 2,
    "requeued": 1,
    "submitted": 2,
    "succeeded": 0,
    "openai/gpt-4.1-mini.claimed": 2,
    "openai/gpt-4.1-mini.submitted": 2,
    "other/model-b.claimed": 1,
    "other/model-b.requeued": 1,
}
"""What a run counted; a model's name has points of its own."""


def deploy_runs(deployed: Stage) -> Stage:
    """The same stage with lane `rewrite`."""
    client("sqs").create_queue(QueueName=names.dead_letter_queue(STAGE, "rewrite"))
    deploy_lanes((*LANES, REWRITE))
    return Stage(deployed.name)


def put(stage: Stage, number: int = 1, **overrides: Any) -> Job:
    """The n-th rewrite, as a producer enqueues it."""
    given = facts(number, **overrides)
    request = Enqueue(
        lane="rewrite",
        task="complaint_rewrite",
        tenant="home-1",
        key=(given["rewrite_request_id"], given["recipient_user_id"]),
        payload={"text": TEXT},
        facts=given,
    )
    ref = enqueue(request, jobs=stage.jobs, content=stage.content, lanes=stage.lanes, clock=stage.clock)
    job = stage.jobs.get(ref.job_id)
    assert job is not None
    return job


class Functions:
    """AWS Lambda with the lane's scheduled functions: each runs once per slot, as deployed, and counts `counts`."""

    def __init__(self, stage: Stage, counts: Mapping[str, int] = FULL) -> None:
        self.stage, self.counts = stage, counts
        self.error: Exception | None = None
        self.answer: bytes | None = None
        self.failed = False
        self.meanwhile: Callable[[], None] = lambda: None
        self.invoked: list[str] = []

    def invoke(self, *, FunctionName: str, InvocationType: str, Payload: bytes) -> dict[str, Any]:
        assert InvocationType == "RequestResponse"
        self.invoked.append(FunctionName)
        if self.error is not None:
            raise self.error
        self.meanwhile()
        data = self.answer
        if data is None:
            data = json.dumps(self.run(FunctionName.removeprefix(f"penstock-{STAGE}-"), json.loads(Payload))).encode()
        told: dict[str, Any] = {"Payload": io.BytesIO(data)}
        return {**told, "FunctionError": "Unhandled"} if self.failed else told

    def run(self, schedule: str, event: Mapping[str, Any], *, run_id: str = "") -> dict[str, Any]:
        """As `run_door` does it."""
        run_id = run_id or f"{len(self.invoked):08d}-0000-4000-8000-000000000000"
        run = run_slot(
            schedule,
            period_s=900,
            time_limit_s=255,
            run_id=run_id,
            manual=event.get("manual"),
            work=lambda: self.counts,
            ledger=self.stage.ledger,
            clock=self.stage.clock,
            telemetry=MemoryTelemetry(),
        )
        return {"ran": run is not None, "run_id": run_id, "counts": {} if run is None else dict(run.counts)}


def with_functions(stage: Stage, patch: pytest.MonkeyPatch) -> Functions:
    """The stage's commands meet these functions; everything else is as it was."""
    functions, real = Functions(stage), Stage.client

    def one(self: Stage, service: str, *, wait_s: int = 0) -> Any:
        if service != "lambda":
            return real(self, service)
        assert wait_s > 240, "a run may take its whole time"
        return functions

    patch.setattr(Stage, "client", one)
    return functions
