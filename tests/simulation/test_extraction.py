"""Lane `extraction` in a whole world: limits, dead workers and slow models, and no chunk paid for twice."""

from __future__ import annotations

import json
from typing import Any

import pytest

from functions.extraction.question import OVERHEAD_TOKENS
from functions.extraction.tasks import extract
from shared.adapters.memory.faults import Boundary, Fault, Injection, Scripted
from shared.core.account import AccountSpec
from shared.core.document import document_ref
from shared.core.job import Job, Status
from shared.core.outcome import Outcome
from shared.usecases.context import Context
from tests.builders import a_lane
from tests.model import SimulatedModel
from tests.world import World

TENANT = "tenant-1"
CHUNK, PARTS = 20, 10
TEXT = "\n\n".join(f"In part {n} the engineer Name{n} met Ada at the Station." for n in range(PARTS))
NAMED = ["In", "Name0", "Ada", "Station", *(f"Name{n}" for n in range(1, PARTS))]
DAY_S = 86_400
LANE = a_lane(
    name="extraction",
    tasks=("extract_document",),
    vendors=("openai",),
    max_attempts=3,
    retry_backoff_s=(5, 10),
    function_timeout_s=60,
    visibility_s=400,
    job_timeout_s=45,
    max_wait_s=7 * DAY_S,
)


def extract_document(job: Job, ctx: Context) -> Outcome:
    """The lane's own task with chunks of one paragraph."""
    return extract(ctx, CHUNK)


def a_world(*, account: AccountSpec | None = None, plan: Any = None, lane: Any = LANE, **model: Any) -> World:
    """The lane with a model of these settings."""
    return World(
        lane=lane,
        tasks={"extract_document": extract_document},
        vendor=lambda clock: SimulatedModel(clock, **model),
        account=account,
        plan=plan,
    )


def a_document(world: World, number: int = 1, text: str = TEXT) -> str:
    """A job for a document of its own."""
    ref = document_ref(TENANT, f"d-{number}")
    world.content.put(ref, text.encode())
    return world.enqueue("extract_document", tenant=TENANT, key=f"doc-{number}", payload={"document": ref})


def model_of(world: World) -> SimulatedModel:
    assert isinstance(world.vendor, SimulatedModel)
    return world.vendor


def named(world: World, job_id: str) -> list[str]:
    """The entities stored for a job."""
    stored = world.content.get(world.job(job_id).result_ref or "")
    assert stored is not None
    return [entity["value"] for entity in json.loads(stored)["entities"]]


@pytest.mark.req("X4")
def test_ten_chunks_deferred_after_each_are_ten_calls() -> None:
    """The limit lets one call a minute pass: the job waits after every chunk and pays for none twice."""
    world = a_world(requests_per_minute=1)
    job_id = a_document(world)
    assert world.run_until_quiet(max_virtual=DAY_S)
    job = world.job(job_id)
    assert (job.status, job.attempt_count, job.result) == (Status.COMPLETED, 0, "extracted")
    assert model_of(world).answered == PARTS
    assert model_of(world).turned_away >= PARTS - 1
    assert named(world, job_id) == NAMED


@pytest.mark.req("X4")
def test_with_a_budget_no_call_is_even_refused() -> None:
    """The account holds the vendor's limit: ten calls, no 429, no attempt used."""
    account = AccountSpec(name="models", vendor="openai", requests_per_minute=2, tokens_per_minute=30_000)
    world = a_world(account=account, requests_per_minute=4)
    job_id = a_document(world)
    assert world.run_until_quiet(max_virtual=DAY_S)
    assert (world.job(job_id).status, world.job(job_id).attempt_count) == (Status.COMPLETED, 0)
    assert (model_of(world).answered, model_of(world).turned_away) == (PARTS, 0)
    assert named(world, job_id) == NAMED


@pytest.mark.req("X7")
def test_sixty_documents_far_over_the_limit_all_complete() -> None:
    """Six hundred calls at ten a minute, refusals counted against the limit: none fails, none is paid for twice, and
    not one in a hundred is refused."""
    account = AccountSpec(
        name="models", vendor="openai", requests_per_minute=10, tokens_per_minute=12 * (OVERHEAD_TOKENS + CHUNK)
    )
    world = a_world(account=account, requests_per_minute=12, rejected_calls_count=True)
    jobs = [a_document(world, number) for number in range(60)]
    assert world.run_until_quiet(max_virtual=DAY_S)
    assert {(world.job(job).status, world.job(job).attempt_count) for job in jobs} == {(Status.COMPLETED, 0)}
    assert model_of(world).answered == 60 * PARTS
    assert model_of(world).turned_away <= 0.01 * 60 * PARTS
    assert all(named(world, job) == NAMED for job in jobs)


@pytest.mark.parametrize("nth", range(1, PARTS + 1))
@pytest.mark.parametrize(("port", "method"), [("vendor", "perform"), ("content", "put")])
@pytest.mark.parametrize("fault", [Fault.CRASH_BEFORE, Fault.CRASH_AFTER])
def test_a_worker_that_dies_costs_one_chunk_at_most(port: str, method: str, nth: int, fault: Fault) -> None:
    """Wherever it dies, the next one goes on: the result is whole, and only the chunk in hand is asked about again."""
    world = a_world(plan=Scripted({Boundary("w1", port, method, nth): Injection(fault)}))
    job_id = a_document(world)
    assert world.run_until_quiet(max_virtual=DAY_S)
    assert world.crashes == 1
    assert world.job(job_id).status is Status.COMPLETED
    assert PARTS <= model_of(world).answered <= PARTS + 1
    assert named(world, job_id) == NAMED


def test_a_slow_model_is_asked_over_several_attempts() -> None:
    """Twelve seconds a call: each attempt begins only what it can finish, and none fails."""
    world = a_world(takes_s=12)
    job_id = a_document(world)
    assert world.run_until_quiet(max_virtual=DAY_S)
    assert (world.job(job_id).status, world.job(job_id).attempt_count) == (Status.COMPLETED, 0)
    assert model_of(world).answered == PARTS
