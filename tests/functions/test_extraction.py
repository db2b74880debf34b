"""Lane `extraction` through its real handler: documents in, what they name by the job's id out."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from functions.extraction import question as question_module
from functions.extraction import tasks
from functions.extraction.question import CHUNK_TOKENS, OVERHEAD_TOKENS
from functions.extraction.tasks import MAX_CUTS
from shared.core.account import AccountSpec
from shared.core.document import MAX_DOCUMENT_BYTES, document_ref
from shared.core.job import Category, Job, Status
from shared.core.outcome import Outcome
from shared.core.ports import Clock
from shared.core.switches import Level
from shared.usecases.context import Context
from tests.functions.stage import Stage, a_stage, sqs_record
from tests.model import SimulatedModel

TENANT = "tenant-1"
TEXT = "\n\n".join(f"In part {n} the engineer Name{n} met Ada at the Station." for n in range(10))
NAMED = ["In", "Name0", "Ada", "Station", *(f"Name{n}" for n in range(1, 10))]
SMALL = 20
"""Chunk size at which each paragraph of TEXT is a chunk."""


@contextmanager
def extracting(
    *,
    chunk_tokens: int = SMALL,
    model: Callable[[Clock], SimulatedModel] = SimulatedModel,
    account: AccountSpec | None = None,
) -> Iterator[Stage]:
    """A stage whose chunks are small."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tasks, "CHUNK_TOKENS", chunk_tokens)
        with a_stage(lane="extraction", vendor=model, account=account) as stage:
            yield stage


def put(stage: Stage, data: bytes | str, document_id: str = "d-1", tenant: str = TENANT) -> str:
    """A document in the content store."""
    ref = document_ref(tenant, document_id)
    stage.desk.content.put(ref, data.encode() if isinstance(data, str) else data)
    return ref


def asked(stage: Stage, payload: Any, key: str = "doc-1") -> Job:
    """A job for this payload, not yet run."""
    return stage.desk.job(stage.desk.enqueue("extract_document", key=key, payload=payload).job_id)


def ran(stage: Stage, job: Job, *, left_s: float = 55.0) -> Job:
    """The job after one invocation, due again if it waits."""
    answer = stage.invoke("extraction", {"Records": [sqs_record(job)]}, left_s=left_s)
    assert answer == {"batchItemFailures": []}
    after = stage.desk.job(job.job_id)
    if after.not_before_at is not None:
        stage.desk.clock.advance_to(max(stage.desk.clock.now(), after.not_before_at))
    return after


def result(stage: Stage, job: Job) -> dict[str, Any]:
    """What was stored for the job."""
    found = stage.desk.content.get(stage.desk.job(job.job_id).result_ref or "")
    assert found is not None
    value: dict[str, Any] = json.loads(found)
    return value


def model_of(stage: Stage) -> SimulatedModel:
    assert isinstance(stage.desk.vendor, SimulatedModel)
    return stage.desk.vendor


def test_a_document_is_extracted_and_stored_by_id() -> None:
    """Completed; every entity once, in the order of the text; one call a chunk."""
    with extracting() as stage:
        job = asked(stage, {"document": put(stage, TEXT)})
        after = ran(stage, job)
        assert (after.status, after.result) == (Status.COMPLETED, "extracted")
        assert after.result_ref == f"result/{job.job_id}/extraction"
        kept = result(stage, job)
        values = [entity["value"] for entity in kept["entities"]]
        assert kept["chunks"] == model_of(stage).answered == 10
        assert values == NAMED


def test_a_short_text_needs_no_document() -> None:
    """It comes in the payload; blanks alone are no call."""
    with extracting(chunk_tokens=CHUNK_TOKENS) as stage:
        for key, text, calls in (("a", "Ada met Bob.", 1), ("b", " \n\n ", 1)):
            job = asked(stage, {"text": text}, key)
            assert ran(stage, job).result == "extracted"
            assert model_of(stage).answered == calls
        assert result(stage, job) == {"chunks": 0, "entities": []}


@pytest.mark.req("X4")
def test_an_attempt_that_must_wait_goes_on_where_it_stopped() -> None:
    """A limit of one call a minute: ten attempts, each deferred without a failure, and ten calls in all."""
    with extracting(model=lambda clock: SimulatedModel(clock, requests_per_minute=1)) as stage:
        job = asked(stage, {"document": put(stage, TEXT)})
        runs = 1
        while (after := ran(stage, job)).status is not Status.COMPLETED:
            assert (after.status, after.attempt_count, after.blocked_by) == (Status.QUEUED, 0, "vendor:openai:429")
            runs += 1
            assert runs <= 10
        assert (runs, model_of(stage).answered) == (10, 10)


def test_time_that_is_short_is_no_failure() -> None:
    """Each invocation has the time for three of ten calls: the job comes back at once and uses no attempt."""
    with extracting(model=lambda clock: SimulatedModel(clock, takes_s=4)) as stage:
        job = asked(stage, {"document": put(stage, TEXT)})
        seen = []
        while (after := ran(stage, job, left_s=26)).status is not Status.COMPLETED:
            assert (after.status, after.attempt_count, after.blocked_by) == (Status.QUEUED, 0, "time_budget")
            assert after.not_before_at == stage.desk.clock.now()
            seen.append(model_of(stage).answered)
        assert seen == [3, 6, 9]
        assert model_of(stage).answered == 10


@pytest.mark.parametrize(
    "answer", ["Sure! Here it is.", '{"entities": [{"type": "cat", "value": "Tom"}]}', '{"entities": []', "{}"]
)
def test_an_answer_of_another_form_uses_an_attempt(answer: str) -> None:
    """One code, no text; what was answered before it stays paid."""
    with extracting() as stage:
        model_of(stage).accounts.configure("openai", canned_answers=[{"contains": "Name4", "content": answer}])
        job = asked(stage, {"document": put(stage, TEXT)})
        after = ran(stage, job)
        assert (after.status, after.attempt_count, after.last_error) == (Status.QUEUED, 1, "answer_invalid")
        model_of(stage).accounts.configure("openai", canned_answers=[])
        assert ran(stage, job).status is Status.COMPLETED
        assert model_of(stage).answered == 11


def test_answers_that_stay_wrong_end_the_job() -> None:
    """After the last attempt an operator decides."""
    with extracting() as stage:
        model_of(stage).accounts.configure("openai", canned_answers=[{"contains": "", "content": "no"}])
        job = asked(stage, {"text": TEXT})
        for _ in range(5):
            after = ran(stage, job)
        assert (after.status, after.category) == (Status.FAILED, Category.RETRIES_EXHAUSTED)


def test_another_size_of_chunks_shares_no_answer() -> None:
    """Three chunks were kept under one configuration; another begins anew and mixes none of them in."""

    def task(job: Job, ctx: Context) -> Outcome:
        return tasks.extract(ctx, SMALL if job.fence == 1 else 2 * SMALL)

    def model(clock: Clock) -> SimulatedModel:
        return SimulatedModel(clock, requests_per_minute=3)

    with a_stage(lane="extraction", vendor=model, tasks={"extract_document": task}) as stage:
        job = asked(stage, {"document": put(stage, TEXT)})
        after = [ran(stage, job) for _ in range(4)][-1]
        chunks = result(stage, job)["chunks"]
        kept = Counter(ref.split("-")[-2] for ref in stage.desk.content.refs() if "/chunk-" in ref)
        assert after.status is Status.COMPLETED
        assert sorted(kept.values()) == sorted([3, chunks])
        assert [entity["value"] for entity in result(stage, job)["entities"]] == NAMED


def test_another_text_under_the_same_id_shares_no_answer() -> None:
    """The document was replaced half-way: the result is of the new one alone."""
    with extracting(model=lambda clock: SimulatedModel(clock, requests_per_minute=3)) as stage:
        job = asked(stage, {"document": put(stage, TEXT)})
        ran(stage, job)
        put(stage, TEXT.replace("Ada", "Eve"))
        for _ in range(8):
            ran(stage, job)
        assert [e["value"] for e in result(stage, job)["entities"]] == ["Eve" if n == "Ada" else n for n in NAMED]


@pytest.mark.parametrize(
    ("payload", "error"),
    [
        ({}, "bad_input:payload"),
        ({"text": "a", "document": "document/tenant-1/d-1"}, "bad_input:payload"),
        ({"text": ""}, "bad_input:text"),
        ({"text": 7}, "bad_input:text"),
        ({"document": 7}, "bad_input:document"),
        ({"document": "the customer's words"}, "bad_input:document"),
        ({"document": "document/tenant-2/d-1"}, "bad_input:document"),
        ({"document": "payload/tenant-1/d-1"}, "bad_input:document"),
        ({"document": "document/tenant-1/absent"}, "document_missing"),
        ({"document": "document/tenant-1/not-text"}, "bad_input:document"),
        ({"document": "document/tenant-1/huge"}, "bad_input:document"),
        ({"document": "document/tenant-1/dense"}, "document_too_long"),
    ],
)
def test_what_cannot_be_read_fails_at_once(payload: Any, error: str) -> None:
    """Malformed, by its field, and the model is never asked; another tenant's document least of all."""
    with extracting(chunk_tokens=CHUNK_TOKENS) as stage:
        put(stage, "Secret of another tenant", tenant="tenant-2")
        put(stage, b"\xff\xfe", "not-text")
        put(stage, b"x" * (MAX_DOCUMENT_BYTES + 1), "huge")
        put(stage, "1.2;" * 1_200_000, "dense")
        after = ran(stage, asked(stage, payload))
        assert (after.status, after.category, after.last_error) == (Status.FAILED, Category.MALFORMED, error)
        assert model_of(stage).answered == 0


@pytest.mark.req("C2")
def test_automation_off_asks_nobody() -> None:
    """Completed as withheld: nothing was paid for."""
    with extracting() as stage:
        job = asked(stage, {"document": put(stage, TEXT)})
        stage.desk.close("all", Level.NORMAL, automation_enabled=False)
        assert ran(stage, job).result == "withheld"
        assert model_of(stage).answered == 0


@pytest.mark.req("X3")
def test_every_call_is_charged_with_more_than_it_uses() -> None:
    """The estimate covers the true use, so a budget that holds it holds the vendor's limit."""
    with extracting(chunk_tokens=CHUNK_TOKENS) as stage:
        ran(stage, asked(stage, {"text": TEXT * 20}))
        used = [entry.tokens for entry in model_of(stage).accounts.record.requests()]
        assert len(used) > 1
        assert all(spent <= estimate for spent, estimate in zip(used, model_of(stage).estimates, strict=True))


@pytest.mark.req("X3")
def test_chunks_are_as_small_as_the_account_needs() -> None:
    """A limit below a full chunk's call (`EXTRACTION_RATE_LIMIT_TPM=2000`) makes chunks smaller; nothing is over it."""
    account = AccountSpec(name="openai", vendor="openai", requests_per_minute=60, tokens_per_minute=2_000)
    assert OVERHEAD_TOKENS + CHUNK_TOKENS > 2_000
    with extracting(chunk_tokens=CHUNK_TOKENS, account=account) as stage:
        job = asked(stage, {"text": TEXT * 10})
        while (after := ran(stage, job)).status is Status.QUEUED:
            assert (after.attempt_count, after.blocked_by) == (0, "budget:openai")
        assert (after.status, after.result) == (Status.COMPLETED, "extracted")
        assert max(model_of(stage).estimates) <= 2_000
        assert len(model_of(stage).estimates) > 1


# --------------------------------------------------------------------------------------- more than one answer holds
DENSE = " ".join(f"Name{n}." for n in range(64))
"""Names only: what they are answered with is several times as long as they are."""


@contextmanager
def narrow(answer_tokens: int, **model: Any) -> Iterator[Stage]:
    """A stage whose answers are cut after so few tokens; the whole of DENSE is one chunk."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(question_module, "ANSWER_TOKENS", answer_tokens)
        settings = {"entities_from_text": True, **model}
        with extracting(chunk_tokens=CHUNK_TOKENS, model=lambda clock: SimulatedModel(clock, **settings)) as stage:
            yield stage


@pytest.mark.req("X7")
def test_a_chunk_that_names_more_than_an_answer_holds_is_halved() -> None:
    """The document completes in its first attempt, every name is found in order, and each call has its own estimate."""
    with narrow(answer_tokens=250) as stage:
        job = asked(stage, {"text": DENSE})
        after = ran(stage, job)
        assert (after.status, after.attempt_count) == (Status.COMPLETED, 0)
        kept = result(stage, job)
        assert [entity["value"] for entity in kept["entities"]] == [f"Name{n}" for n in range(64)]
        assert kept["chunks"] == 1
        estimates = model_of(stage).estimates
        used = [entry.tokens for entry in model_of(stage).accounts.record.requests()]
        assert len(estimates) > 3
        assert estimates[0] == max(estimates)
        assert estimates[1] < estimates[0]
        assert all(spent <= estimate for spent, estimate in zip(used, estimates, strict=True))


@pytest.mark.req("X4")
def test_a_chunk_that_was_cut_short_is_not_paid_for_again() -> None:
    """One call a minute: each attempt makes one, and together they are as many as without a limit."""
    with narrow(answer_tokens=250) as stage:
        ran(stage, asked(stage, {"text": DENSE}))
        unlimited = model_of(stage).answered
    with narrow(answer_tokens=250, requests_per_minute=1) as stage:
        job = asked(stage, {"text": DENSE})
        runs = 1
        while (after := ran(stage, job)).status is not Status.COMPLETED:
            assert (after.status, after.attempt_count) == (Status.QUEUED, 0)
            runs += 1
            assert runs <= unlimited
        assert (runs, model_of(stage).answered) == (unlimited, unlimited)


def test_halving_ends() -> None:
    """Where not even a few words fit an answer, the job fails with its reason and after a bounded number of calls."""
    with narrow(answer_tokens=5) as stage:
        job = asked(stage, {"text": DENSE})
        for _ in range(5):
            after = ran(stage, job)
        assert (after.status, after.category) == (Status.FAILED, Category.RETRIES_EXHAUSTED)
        assert after.last_error == "answer_cut"
        assert model_of(stage).answered <= 2 * (MAX_CUTS + 1)
