"""What the scheduled functions of a lane are made of; each is built once per environment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from shared.adapters.aws.batches import DynamoDbBatchStore
from shared.adapters.aws.clients import client
from shared.adapters.aws.secrets import VendorTokens
from shared.contract import env
from shared.core.account import AccountSpec
from shared.core.batch import BatchState, Group, Prompt
from shared.core.batch_ports import BatchProvider, BatchStore
from shared.core.errors import BadInput
from shared.core.job import Job
from shared.core.run import Mode
from shared.core.sensitive import Sensitive
from shared.core.vendor import VendorSpec
from shared.runtime import wiring
from shared.runtime.content import content, content_objects
from shared.runtime.run_door import Build, Role
from shared.runtime.settings import WorkerSettings
from shared.runtime.telemetry import PowertoolsTelemetry
from shared.usecases.collect_batches import Collector
from shared.usecases.context import Task
from shared.usecases.keep_batches import BatchKeeper
from shared.usecases.run_jobs import JobRunner
from shared.usecases.submit_batches import Submitter
from shared.usecases.take_run import has_work


def submitter(
    *, group_of: Callable[[Job], Group], prompt_of: Callable[[Job, Sensitive[Mapping[str, Any]]], Prompt]
) -> Build:
    """Takes what waits in the batch line; pending is that, and whatever an earlier run left half-way."""

    def build(settings: WorkerSettings, telemetry: PowertoolsTelemetry) -> Role:
        keeper = _keeper(settings, telemetry)
        desk = Submitter(
            stage=settings.stage,
            keeper=keeper,
            content=content(settings, settings.lane.parallel),
            board=wiring.board(settings),
            group_of=group_of,
            prompt_of=prompt_of,
        )

        def pending() -> bool:
            return has_work(settings.lane, Mode.BATCH, jobs=keeper.jobs, clock=keeper.clock) or any(
                batch.state is not BatchState.HANDED for batch in keeper.batches.under_way(settings.lane.name)
            )

        return Role(pending=pending, run=desk.run)

    return build


def collector(*, accept: Callable[[Sensitive[str]], bytes | None], result: str) -> Build:
    """Ends the jobs of batches; pending are batches that have not ended."""

    def build(settings: WorkerSettings, telemetry: PowertoolsTelemetry) -> Role:
        keeper = _keeper(settings, telemetry)
        desk = Collector(
            keeper=keeper,
            content=content_objects(settings, settings.lane.parallel),
            accept=accept,
            result=result,
            signals=wiring.signal_ledger(settings.text(env.LEDGER_TABLE)),
        )
        return Role(pending=lambda: bool(keeper.batches.under_way(settings.lane.name)), run=desk.run)

    return build


def worker(tasks: Mapping[str, Task], *, model_of: Callable[[Job], str]) -> Build:
    """Works off the async line itself, one call a job."""

    def build(settings: WorkerSettings, telemetry: PowertoolsTelemetry) -> Role:
        machine = wiring.worker(settings, tasks, telemetry)
        return Role(
            pending=lambda: has_work(settings.lane, Mode.ASYNC, jobs=machine.jobs, clock=machine.clock),
            run=JobRunner(worker=machine, model_of=model_of).run,
        )

    return build


def batch_store(table_name: str) -> BatchStore:
    """Our record of batches."""
    return DynamoDbBatchStore(client=client("dynamodb"), table_name=table_name)


def batch_providers(settings: WorkerSettings) -> dict[str, BatchProvider]:
    """The lane's vendors that take batches; nothing is fetched or opened before the first question."""
    tokens = VendorTokens(secret_arn=settings.secret_arn)
    return {name: _provider(spec, tokens) for name, spec in settings.vendors.items()}


def _provider(spec: VendorSpec, tokens: VendorTokens) -> BatchProvider:
    def token(fresh: bool) -> Any:
        return tokens.of(spec.name, fresh=fresh)

    match spec.kind:
        case "openai":
            from shared.adapters.vendors.openai_batch import OpenAiBatch

            return OpenAiBatch(spec, token=token)
        case "plain":
            from shared.adapters.vendors.plain_batch import PlainBatch

            return PlainBatch(spec, token=token)
    raise BadInput(f"vendors.{spec.name}.kind", "must be openai or plain: no other takes batches")


def _keeper(settings: WorkerSettings, telemetry: PowertoolsTelemetry) -> BatchKeeper:
    accounts: dict[str, AccountSpec] = {spec.vendor: spec for spec in settings.accounts.values()}
    return BatchKeeper(
        lane=settings.lane,
        providers=batch_providers(settings),
        jobs=wiring.jobs(settings, settings.lane.parallel),
        batches=batch_store(settings.text(env.LEDGER_TABLE)),
        clock=wiring.clock(),
        telemetry=telemetry,
        accounts=accounts,
        budgets=wiring.budget_ledger(settings.text(env.LEDGER_TABLE)) if accounts else None,
    )
