"""The worker's door: whatever a queue delivers, the good messages are done and the others come back."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.adapters.memory.vendor import Says
from shared.contract import envelope
from shared.core.job import Category, Job, Status
from shared.core.outcome import Done, Outcome
from shared.core.switches import Level
from shared.runtime.door import DoorFailed
from shared.usecases.context import Context
from tests.builders import a_job
from tests.functions.stage import a_stage, sqs_record
from tests.unit.core.strategies import json_values

JOB = a_job().job_id
bodies = st.one_of(
    st.text(max_size=40),
    json_values.map(json.dumps),
    st.sampled_from(
        [
            "",
            "null",
            "[" * 4000,
            '{"v":1,"job":NaN}',
            '{"v":1,"v":1}',
            json.dumps({"v": 2, "job": JOB, "lane": "support"}),
            json.dumps({"v": 1, "job": JOB, "lane": "mail"}),
            json.dumps({"v": 1, "job": "x", "lane": "support"}),
            json.dumps({"v": 1, "job": JOB, "lane": "support"}),
        ]
    ),
    st.none() | st.integers() | st.lists(st.text(max_size=3), max_size=2),
)
attributes = st.one_of(
    st.none(),
    st.text(max_size=5),
    st.just({}),
    st.fixed_dictionaries({"ApproximateReceiveCount": st.none() | st.text(max_size=5) | st.integers() | st.just("11")}),
)
records = st.fixed_dictionaries(
    {"messageId": st.uuids().map(str)}, optional={"body": bodies, "attributes": attributes, "eventSource": st.text()}
)


@pytest.mark.fault("B4", "B5", "A11")
@given(strange=st.lists(records, max_size=8), good=st.integers(0, 3))
def test_any_batch_returns_a_subset_and_the_good_ones_are_done(strange: list[dict[str, Any]], good: int) -> None:
    """No uncaught exception, returned ids are ids that came in, and no neighbour is harmed."""
    with a_stage() as stage:
        jobs = [stage.enqueue(f"event-{n}") for n in range(good)]
        batch = [*strange[: len(strange) // 2], *(sqs_record(job) for job in jobs), *strange[len(strange) // 2 :]]
        returned = stage.returned(*batch)
        assert set(returned) <= {record["messageId"] for record in batch}
        assert set(returned) >= {record["messageId"] for record in strange} - {JOB}
        assert not set(returned) & {sqs_record(job)["messageId"] for job in jobs}
        assert {stage.desk.job(job.job_id).status for job in jobs} <= {Status.COMPLETED}
        assert len(stage.desk.vendor.accepts) == good


@pytest.mark.fault("B5")
@pytest.mark.parametrize("size", [1, 10])
def test_a_batch_that_fails_as_a_whole_is_returned_not_raised(size: int) -> None:
    """An exception would make the event source back off from the whole queue."""
    with a_stage() as stage:
        batch = [sqs_record(messageId=f"{n}", body="not ours") for n in range(size)]
        assert stage.returned(*batch) == [f"{n}" for n in range(size)]


@pytest.mark.fault("B4")
def test_a_record_without_an_id_returns_the_whole_batch() -> None:
    """An empty identifier is what Lambda takes for "all of them": on doubt, everything comes again."""
    with a_stage() as stage:
        good = stage.enqueue()
        nameless = {"body": "x"}
        assert stage.returned(sqs_record(good), nameless) == [""]
        assert stage.returned(sqs_record(good)) == []
        assert len(stage.desk.vendor.accepts) == 1


@pytest.mark.parametrize("event", [{}, {"Records": []}, {"Records": ()}])
def test_an_empty_event_is_no_error(event: dict[str, Any]) -> None:
    """Nothing in, nothing back."""
    with a_stage() as stage:
        assert stage.invoke("support", event) == {"batchItemFailures": []}


@pytest.mark.fault("I1")
@pytest.mark.parametrize(
    "event", [None, [], "text", {"Records": None}, {"Records": [None]}, {"Records": ["the words"]}]
)
def test_what_is_no_event_fails_by_code(event: Any) -> None:
    """Lambda never sends these; whoever does is told a code and nothing of what they sent."""
    with a_stage() as stage, pytest.raises(DoorFailed) as failed:
        stage.invoke("support", event)
    assert str(failed.value) in ("worker:AttributeError", "worker:TypeError")
    assert failed.value.__cause__ is None
    assert failed.value.__suppress_context__


@pytest.mark.fault("A11")
@pytest.mark.parametrize(
    ("changes", "error"), [({"task": "zzz"}, "unknown_task"), ({"task_version": 9}, "unknown_task_version")]
)
def test_an_unknown_task_or_version_fails_at_once(changes: dict[str, Any], error: str) -> None:
    """One receive: failed as malformed, acknowledged, its neighbour done."""
    with a_stage() as stage:
        strange = stage.desk.put(a_job(**{"task": "answer_event", **changes}))
        good = stage.enqueue("good")
        assert stage.returned(sqs_record(strange), sqs_record(good)) == []
        after = stage.desk.job(strange.job_id)
        assert (after.status, after.category, after.last_error) == (Status.FAILED, Category.MALFORMED, error)
        assert stage.desk.job(good.job_id).status is Status.COMPLETED


@pytest.mark.fault("K1")
def test_a_row_of_another_version_comes_back_untouched() -> None:
    """Unknown status: returned as it is, until the version that wrote it takes it; its neighbour is done."""
    with a_stage() as stage:
        strange, good = stage.enqueue("strange"), stage.enqueue("good")
        item = {**(stage.desk.jobs.item(strange.job_id) or {}), "status": {"S": "hibernating"}}
        stage.desk.jobs.plant(item)
        assert stage.returned(sqs_record(strange), sqs_record(good)) == [sqs_record(strange)["messageId"]]
        assert stage.desk.jobs.item(strange.job_id) == item
        assert stage.desk.job(good.job_id).status is Status.COMPLETED


def test_another_lanes_ticket_is_returned() -> None:
    """It ends in the dead-letter queue, where triage keeps it."""
    with a_stage() as stage:
        job = stage.enqueue()
        record = sqs_record(job, body=envelope.encode_ticket(job.job_id, "mail"))
        assert stage.returned(record) == [record["messageId"]]
        assert stage.desk.job(job.job_id).status is Status.QUEUED


def test_a_short_invocation_starts_nothing() -> None:
    """What cannot be finished is returned unclaimed."""
    with a_stage() as stage:
        job = stage.enqueue()
        answer = stage.invoke("support", {"Records": [sqs_record(job)]}, left_s=5)
        assert answer == {"batchItemFailures": [{"itemIdentifier": sqs_record(job)["messageId"]}]}
        assert stage.desk.job(job.job_id).status is Status.QUEUED


def test_the_receive_count_is_read_from_the_record() -> None:
    """The eighth receive of a job that was claimed before is poison."""
    with a_stage() as stage:
        job = stage.desk.put(a_job(task="answer_event", fence=2))
        stage.returned(sqs_record(job, attributes={"ApproximateReceiveCount": "8"}))
        assert stage.desk.job(job.job_id).category is Category.POISON


@pytest.mark.fault("A10")
@pytest.mark.parametrize("error", [SystemExit(1), RecursionError(), MemoryError(), ValueError("the words")])
def test_a_task_that_breaks_harms_no_neighbour(error: BaseException) -> None:
    """Also one that calls exit: it uses an attempt of its own."""

    def task(job: Job, ctx: Context) -> Outcome:
        if job.key == "bad":
            raise error
        return Done()

    with a_stage(tasks={"answer_event": task}) as stage:
        bad, good = stage.enqueue("bad"), stage.enqueue("good")
        assert stage.returned(sqs_record(bad), sqs_record(good)) == []
        assert stage.desk.job(good.job_id).status is Status.COMPLETED
        after = stage.desk.job(bad.job_id)
        assert (after.status, after.attempt_count) == (Status.QUEUED, 1)


# ------------------------------------------------------------------------------------- the lane's own task
@pytest.mark.parametrize(
    ("payload", "result", "sent"),
    [
        ({"conversation_id": "c-1"}, "replied", 1),
        ({"conversation_id": "c-1", "topic": "billing"}, "replied", 1),
        ({"conversation_id": "c-1", "topic": "legal"}, "routed:specialists", 0),
        ({"conversation_id": "c-1", "topic": "account_security"}, "routed:specialists", 0),
    ],
)
def test_an_event_is_routed_and_answered_if_a_machine_may(payload: Any, result: str, sent: int) -> None:
    """Tier 0 topics go to people, everything else gets its acknowledgement once."""
    with a_stage() as stage:
        job = stage.enqueue(payload=payload)
        stage.returned(sqs_record(job))
        stage.returned(sqs_record(job))
        assert (stage.desk.job(job.job_id).result, len(stage.desk.vendor.accepts)) == (result, sent)


@pytest.mark.parametrize(
    ("payload", "error"),
    [
        ({}, "bad_input:conversation_id"),
        ({"conversation_id": ""}, "bad_input:conversation_id"),
        ({"conversation_id": "the customer's words"}, "bad_input:conversation_id"),
        ({"conversation_id": 7}, "bad_input:conversation_id"),
        ({"conversation_id": "c" * 129}, "bad_input:conversation_id"),
        ({"conversation_id": "c-1", "topic": ["billing"]}, "bad_input:topic"),
        ({"conversation_id": "c-1", "topic": None}, "bad_input:topic"),
    ],
)
def test_an_event_nobody_can_route_fails_by_its_field(payload: Any, error: str) -> None:
    """Malformed, at once, and nothing is sent."""
    with a_stage() as stage:
        job = stage.enqueue(payload=payload)
        assert stage.returned(sqs_record(job)) == []
        after = stage.desk.job(job.job_id)
        assert (after.status, after.category, after.last_error) == (Status.FAILED, Category.MALFORMED, error)
        assert stage.desk.vendor.requests == 0


@pytest.mark.req("C2")
@pytest.mark.parametrize(
    "setting", [{"level": Level.ROUTE_ONLY}, {"level": Level.NORMAL, "automation_enabled": False}], ids=["safe", "off"]
)
def test_safe_mode_routes_and_replies_to_nobody(setting: dict[str, Any]) -> None:
    """Completed as `withheld`; nothing is sent then or after it ends, until a person asks for it."""
    with a_stage() as stage:
        job = stage.enqueue()
        stage.desk.close("all", **setting)
        assert stage.returned(sqs_record(job)) == []
        assert (stage.desk.job(job.job_id).result, stage.desk.vendor.requests) == ("withheld", 0)
        stage.desk.open()
        assert stage.returned(sqs_record(job)) == []
        assert stage.desk.vendor.requests == 0


@pytest.mark.req("C8")
@pytest.mark.parametrize(
    ("says", "category"),
    [(Says.REFUSE_AUTH, Category.AUTH), (Says.REFUSE_PERMANENT, Category.VENDOR_PERMANENT)],
)
def test_a_vendors_no_is_sorted(says: Says, category: Category) -> None:
    """The failed row carries what its dead letter is found by."""
    with a_stage() as stage:
        job = stage.enqueue()
        stage.desk.vendor.script.append(says)
        assert stage.returned(sqs_record(job)) == []
        assert stage.desk.job(job.job_id).category is category
