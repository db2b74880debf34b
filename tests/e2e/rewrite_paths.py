"""Every path of the scheduled functions of lane `rewrite`: what is recorded then is what their code really needs."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from infra.stage import load_stage
from shared.adapters.aws.budgets import DynamoDbBudgetLedger
from shared.contract import names
from shared.core.account import Limit
from shared.core.budget import Terms
from shared.core.feedback import changed
from shared.core.job import Status
from shared.core.moment import whole_ms
from shared.core.ports import Claimed
from shared.core.rate import SECOND, us_of
from shared.core.run import Mode
from tests.e2e.paths import STAGE, LocalStage
from tests.unit.usecases.rewriting import facts
from tests.waiting import until

REWRITE, PROVIDER = "rewrite", "openai"
SUBMITTER, COLLECTOR, WORKER = (names.run(REWRITE, role) for role in ("batch_submitter", "batch_collector", "worker"))

WIDE = 1_000_000_000


def walk_the_rewrites(stage: LocalStage) -> None:
    """In batches and one by one, under an account whose terms change meanwhile, and after a run that was killed."""
    spec = load_stage(STAGE).accounts[PROVIDER]
    ledger = DynamoDbBudgetLedger(client=stage.clients.of("dynamodb"), table_name=names.table(STAGE, "ledger"))
    _wide_limits(stage, lambda: ledger.read(spec).terms)
    ended = [_enqueue(stage, surface) for surface in ("weekly_harmony", "direct_message")]
    # Too long for a row: these payloads are objects.
    ended += [_enqueue(stage, surface, "you never listen, " * 300) for surface in ("weekly_harmony", "direct_message")]
    _run_until_ended(stage, ended)
    _killed_run(stage)
    _lost_answer(stage)
    unusable = _enqueue(stage, "direct_message", text=" ")
    stage.run(WORKER)
    until(lambda: stage.job(unusable).status is Status.FAILED, "an unusable text to fail its job")
    for enforced in (False, None):
        # Whoever takes under terms that no longer hold reads the account again.
        seen = ledger.read(spec).terms
        ledger.change(spec, seen, changed(seen, us_of(datetime.now(UTC)), enforced=enforced))
        _run_until_ended(stage, [_enqueue(stage, surface) for surface in ("weekly_harmony", "direct_message")])
    # The vendor asked for quiet: whoever knows that reads the account again before the next batch.
    seen, now_us = ledger.read(spec).terms, us_of(datetime.now(UTC))
    ledger.change(spec, seen, changed(seen, now_us, quiet_until_us=now_us + 4 * SECOND))
    waiting = []
    for _ in range(2):
        waiting.append(_enqueue(stage, "weekly_harmony"))
        stage.run(SUBMITTER)
    _run_until_ended(stage, waiting)


def _wide_limits(stage: LocalStage, terms: Callable[[], Terms]) -> None:
    """Whoever asked the provider before may have left it a limit that one long text is above: such a job fails."""
    stage.vendor.configure(PROVIDER, script=[], requests_per_minute=1_000_000, tokens_per_minute=WIDE)

    def heard() -> bool:
        # A limit rises with an answer, and not at once.
        _run_until_ended(stage, [_enqueue(stage, "direct_message")])
        return terms().told.get(Limit.TOKENS) == WIDE

    until(heard, "the account to hear of the wide limits")


def _enqueue(stage: LocalStage, surface: str, text: str = "you never do the dishes") -> str:
    given = facts(uuid.uuid4().int, surface=surface)
    key = (given["rewrite_request_id"], given["recipient_user_id"])
    return stage.penstock.enqueue(REWRITE, "complaint_rewrite", "home-1", key, {"text": text}, facts=given).job_id


def _run_until_ended(stage: LocalStage, job_ids: list[str]) -> None:
    def ended() -> bool:
        for name in (SUBMITTER, WORKER, COLLECTOR):
            stage.run(name)
        return all(stage.job(job_id).status.ended for job_id in job_ids)

    until(ended, "the rewrites to end")
    ends = {job_id: stage.job(job_id) for job_id in job_ids}
    others = {job_id: (job.status, job.category, job.last_error) for job_id, job in ends.items()}
    assert {job.status for job in ends.values()} == {Status.COMPLETED}, others


def _lost_answer(stage: LocalStage) -> None:
    """The provider has the batch and the connection broke: the next run looks for it by its tag, and at its jobs."""
    drop = {"match": {"method": "POST", "path_contains": "/batches"}, "do": "drop_after_accept"}
    stage.vendor.configure(PROVIDER, script=[drop])
    lost = _enqueue(stage, "weekly_harmony")
    for _ in range(2):
        stage.run(SUBMITTER)
    _run_until_ended(stage, [lost])


def _killed_run(stage: LocalStage) -> None:
    """It had claimed a job: the sweeper puts it back, and whoever runs it looks first at what it did."""
    lane, job_id = stage.lanes[REWRITE], _enqueue(stage, "direct_message")
    then = whole_ms(datetime.now(UTC) - timedelta(seconds=lane.claim_timeout_s + 5))
    waiting = stage.jobs.waiting(lane, due_before=datetime.now(UTC), limit=10, line=lane.line(Mode.ASYNC))
    for entry in (entry for entry in waiting if entry.job_id == job_id):
        # A schedule may have been here first; then there is nothing to bring back.
        if isinstance(stage.jobs.claim_in_run(lane, entry, by="killed", now=then, early=True), Claimed):
            stage.run("sweeper")
    _run_until_ended(stage, [job_id])
