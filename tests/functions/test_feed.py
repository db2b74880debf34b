"""The change feed's door: what of a stream's records becomes news, and where the stream goes on after a refusal."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.adapters import rows
from shared.core.feed import change_of
from shared.core.job import Job, Status
from shared.runtime.door import DoorFailed
from shared.usecases.publish_changes import TRIES
from tests.builders import a_job
from tests.functions.stage import Stage, a_stage, sqs_record
from tests.functions.test_stream import FIELDS, GOOD, odd_attributes
from tests.unit.usecases.desk import Flaky

NOTHING_FAILED: dict[str, Any] = {"batchItemFailures": []}


def record(new: Any, old: Any = None, *, event: str = "", number: int = 1) -> dict[str, Any]:
    """One record of the jobs table's stream."""
    images = {key: image for key, image in (("NewImage", new), ("OldImage", old)) if image is not None}
    name = event or ("MODIFY" if old else "INSERT")
    return {"eventName": name, "dynamodb": {**images, "SequenceNumber": str(number)}}


def told(stage: Stage) -> list[tuple[str | None, str]]:
    return [(detail.get("previous"), detail["status"]) for detail in stage.feed.details]


def changes_in(stage: Stage) -> list[dict[str, Any]]:
    """Every write to the jobs table so far, as the stream has it."""
    return [
        record(one.new and one.new.item, one.old and one.old.item, event=one.event_name, number=one.sequence)
        for one in stage.desk.jobs.stream.since(0, 10_000)
    ]


@pytest.mark.req("R15")
def test_the_walk_of_a_job_is_told_state_by_state() -> None:
    """Enqueued, claimed, done; nobody asks the engine, and nothing but these three is published."""
    with a_stage() as stage:
        job = stage.enqueue()
        assert stage.returned(sqs_record(job)) == []
        assert stage.invoke("feed", {"Records": changes_in(stage)}) == NOTHING_FAILED
        assert told(stage) == [(None, "queued"), ("queued", "processing"), ("processing", "completed")]
        numbers = [detail["sequence"] for detail in stage.feed.details]
        assert numbers == sorted(numbers)
        assert {detail["job_id"] for detail in stage.feed.details} == {job.job_id}


@pytest.mark.req("R15")
def test_a_row_that_stays_in_its_state_is_no_news() -> None:
    """Held by a switch, handed off by the dispatcher, a failed job whose letter was moved: none is published."""
    with a_stage() as stage:
        for status in (Status.QUEUED, Status.FAILED):
            item = rows.job_item(a_job(status=status))
            assert stage.invoke("feed", {"Records": [record({**item, "x": {"S": "y"}}, item)]}) == NOTHING_FAILED
        queued = rows.job_item(a_job())
        older = {**queued, "status": {"S": "pending"}}
        stage.invoke("feed", {"Records": [record(queued, older)]})
        assert (stage.feed.details, stage.feed.asked) == ([], [])


@pytest.mark.req("R15")
@pytest.mark.parametrize("expired", [True, False])
def test_a_removal_is_no_news(expired: bool) -> None:
    """By expiry or by hand: a job's end was told when it ended."""
    with a_stage() as stage:
        gone = record(None, rows.job_item(a_job(status=Status.COMPLETED)), event="REMOVE")
        if expired:
            gone["userIdentity"] = {"type": "Service", "principalId": "dynamodb.amazonaws.com"}
        assert stage.invoke("feed", {"Records": [gone]}) == NOTHING_FAILED
        assert stage.feed.asked == []


@pytest.mark.req("R15")
def test_the_stream_goes_on_from_the_first_change_that_was_not_taken() -> None:
    """It brings that one and all behind it again; what is heard twice has the same id."""
    with a_stage() as stage:
        jobs = [a_job(key=f"event-{number}") for number in range(5)]
        batch = [record(rows.job_item(job), number=100 + number) for number, job in enumerate(jobs)]
        for job in (jobs[1], jobs[3]):
            stage.feed.refuse(_change(job), times=TRIES)
        answer = stage.invoke("feed", {"Records": batch})
        assert answer == {"batchItemFailures": [{"itemIdentifier": "101"}]}
        assert stage.invoke("feed", {"Records": batch[1:]}) == NOTHING_FAILED
        heard = [detail["change_id"] for detail in stage.feed.details]
        assert set(heard) == {_change(job).change_id for job in jobs}
        assert len(heard) == 7


@pytest.mark.fault("B12", "K1")
@given(changes=st.dictionaries(st.sampled_from(FIELDS), odd_attributes, min_size=1, max_size=3))
def test_any_malformed_row_is_passed_over_and_its_neighbours_are_told(changes: dict[str, Any]) -> None:
    """Whatever stands in a row, new or old: no exception, no record to come again, no neighbour held up."""
    with a_stage() as stage:
        first, second = (rows.job_item(a_job(key=key)) for key in ("first", "second"))
        strange = {**GOOD, **changes}
        batch = [record(first), record(strange), record(GOOD, strange), record(strange, GOOD), record(second)]
        assert stage.invoke("feed", {"Records": batch}) == NOTHING_FAILED
        heard = {detail["job_id"] for detail in stage.feed.details}
        assert {_change(a_job(key=key)).job_id for key in ("first", "second")} <= heard


@pytest.mark.fault("B12")
@pytest.mark.parametrize("image", [None, {}, {"pk": None}, {"pk": {"S": ""}}, {"pk": {"S": "RING#support#t"}}])
def test_rows_that_are_no_jobs_are_passed_over(image: Any) -> None:
    """The table holds other rows, too."""
    with a_stage() as stage:
        assert stage.invoke("feed", {"Records": [record(image), record(GOOD)]}) == NOTHING_FAILED
        assert len(stage.feed.details) == 1


@pytest.mark.fault("I1")
def test_an_outage_is_raised_as_a_code() -> None:
    """The batch comes again; Lambda prints the code, not the cause."""
    with a_stage() as stage:
        flaky = Flaky(stage.feed, "publish")
        flaky.down = True
        stage.feed = flaky
        with pytest.raises(DoorFailed, match=r"^feed:unavailable$") as failed:
            stage.invoke("feed", {"Records": [record(GOOD)]})
        assert failed.value.__suppress_context__
        flaky.down = False
        assert stage.invoke("feed", {"Records": [record(GOOD)]}) == NOTHING_FAILED


@pytest.mark.parametrize("event", [None, [], {"Records": None}, {"Records": [None]}])
def test_what_is_no_event_fails_by_code(event: Any) -> None:
    """DynamoDB never sends these."""
    with a_stage() as stage, pytest.raises(DoorFailed, match=r"^feed:\w+$"):
        stage.invoke("feed", event)


def test_the_feed_writes_nothing_to_the_engine() -> None:
    """No row changes by being told: the write path of a job costs what it cost before."""
    with a_stage() as stage:
        stage.enqueue()
        before = stage.desk.jobs.stream.last
        stage.invoke("feed", {"Records": changes_in(stage)})
        assert stage.desk.jobs.stream.last == before


def _change(job: Job) -> Any:
    return change_of(job, None)
