"""The stream consumer's door: a bad record is isolated, its neighbours pass, and only an outage is raised."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.adapters import rows
from shared.core.job import Category, Job, Status
from shared.core.switches import Level
from shared.runtime.door import DoorFailed
from tests.builders import NOW, a_job
from tests.functions.stage import a_stage, stream_event, stream_record
from tests.unit.usecases.desk import Flaky

GOOD = rows.job_item(a_job(task="answer_event"))
FIELDS = [*sorted(set(GOOD) - {"pk"}), *("wsk", "expires_at", "category", "routing_decision", "fence", "a_new_one")]
odd_attributes = st.one_of(
    st.none(),
    st.integers(),
    st.just({}),
    st.builds(dict, S=st.text(max_size=8)),
    st.builds(dict, S=st.none() | st.integers()),
    st.builds(dict, N=st.text(max_size=5)),
    st.just({"N": "9" * 60}),
    st.just({"S": "9999-12-31T23:59:59.999-14:00"}),
    st.just({"L": [{"S": "x"}]}),
    st.just({"L": [{"S": "2026-01-01T00:00:00.000Z|queued|x"}, None]}),
    st.just({"M": {"a": {"N": "1e999999"}}}),
    st.just({"M": {"a": None}}),
    st.just({"M": {"a": {"B": b"x"}}}),
    st.just({"BOOL": True}),
)


@pytest.mark.fault("B12", "K1", "C8")
@given(changes=st.dictionaries(st.sampled_from(FIELDS), odd_attributes, min_size=1, max_size=3))
def test_any_malformed_row_is_isolated_and_its_neighbours_pass(changes: dict[str, Any]) -> None:
    """Whatever stands in a row's fields: no uncaught exception, and the records around it are admitted."""
    with a_stage() as stage:
        first, second = stage.enqueue("first"), stage.enqueue("second")
        strange = {**GOOD, **changes}
        answer = stage.invoke("stream", stream_event(_item(first), strange, _item(second)))
        messages = list(stage.desk.queued_messages())
        assert {first.job_id, second.job_id} <= set(messages)
        assert answer["sent"] >= 2


def _item(job: Job) -> dict[str, Any]:
    return rows.job_item(job)


@pytest.mark.fault("B12")
@pytest.mark.parametrize(
    "image", [None, {}, {"pk": None}, {"pk": {}}, {"pk": {"S": ""}}, {"pk": {"S": "RING#support#t"}}]
)
def test_rows_that_are_no_jobs_are_passed_over(image: Any) -> None:
    """The table holds other rows, too."""
    with a_stage() as stage:
        good = stage.enqueue()
        answer = stage.invoke("stream", stream_event(image, _item(good)))
        assert answer == {"sent": 1, "held": 0, "dead_letters": 0, "isolated": 0}


@pytest.mark.fault("K1")
@pytest.mark.parametrize(
    "change",
    [
        {"status": {"S": "hibernating"}},
        {"priority": {"N": "9"}},
        {"category": {"S": "weird"}},
        {"lane": {"S": "Not a lane"}},
        {"tenant": {"S": "a customer's words"}},
        {"task": {"S": ""}},
        {"created_at": {"S": "yesterday"}},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_row_this_version_cannot_read_is_left_alone(change: dict[str, Any]) -> None:
    """Isolated and counted; nothing is written, nothing is sent for it."""
    with a_stage() as stage:
        job = stage.enqueue()
        item = {**(stage.desk.jobs.item(job.job_id) or {}), **change}
        stage.desk.jobs.plant(item)
        assert stage.invoke("stream", stream_event(item))["isolated"] == 1
        assert stage.desk.jobs.item(job.job_id) == item
        assert stage.desk.queued_messages() == []


def test_removals_are_never_admitted() -> None:
    """An expired row is not a new job."""
    with a_stage() as stage:
        event = {"Records": [stream_record(_item(stage.enqueue()), "REMOVE")]}
        assert stage.invoke("stream", event)["sent"] == 0


@pytest.mark.fault("B7")
@pytest.mark.parametrize("in_s", [0, 40])
def test_a_hand_off_is_not_sent_a_second_time(in_s: int) -> None:
    """The dispatcher has sent its message; the record of its leaving the index is nobody's work."""
    with a_stage() as stage:
        job = stage.enqueue(not_before=NOW + timedelta(seconds=60 + in_s))
        stage.desk.clock.advance(60)
        seen = stage.desk.jobs.stream.last
        assert stage.desk.dispatch().sent == 1
        changes = [
            stream_record(record.new.item, record.event_name, record.old.item)
            for record in stage.desk.jobs.stream.since(seen, 10)
            if record.new is not None and record.old is not None
        ]
        assert changes
        assert stage.invoke("stream", {"Records": changes})["sent"] == 0
        assert stage.desk.queued_messages() == [job.job_id]
        assert not stage.desk.job(job.job_id).waits


@pytest.mark.parametrize("status", ["processing", "failed", "batch_submitted"])
def test_a_move_to_queued_is_admitted(status: str) -> None:
    """Whoever releases a job only writes its row."""
    with a_stage() as stage:
        item = _item(stage.enqueue())
        record = stream_record(item, "MODIFY", {**item, "status": {"S": status}})
        assert stage.invoke("stream", {"Records": [record]})["sent"] == 1


def test_a_failed_job_that_stays_failed_gets_no_second_letter() -> None:
    """Only the move to failed makes one."""
    with a_stage() as stage:
        item = _item(stage.desk.put(a_job(status=Status.FAILED)))
        record = stream_record(item, "MODIFY", {**item, "last_error": {"S": "x"}})
        assert stage.invoke("stream", {"Records": [record]})["dead_letters"] == 0


@pytest.mark.fault("B12")
def test_a_job_of_a_lane_nobody_configured_ends_failed_without_a_loop() -> None:
    """Failed as poison; its own failed record, which has no dead-letter queue, is isolated and harms no letter."""
    with a_stage() as stage:
        stranger = stage.desk.put(a_job(lane="mail"))
        stage.invoke("stream", stream_event(_item(stranger)))
        after = stage.desk.job(stranger.job_id)
        assert (after.status, after.category, after.last_error) == (Status.FAILED, Category.POISON, "unknown_lane")
        failed = stage.desk.put(a_job(key="x", status=Status.FAILED))
        answer = stage.invoke("stream", stream_event(_item(after), _item(failed)))
        assert (answer["isolated"], answer["dead_letters"]) == (1, 1)


@pytest.mark.req("C8")
def test_a_failed_job_gets_its_dead_letter() -> None:
    """From its row alone, whoever failed it."""
    with a_stage() as stage:
        job = stage.desk.put(a_job(status=Status.FAILED))
        assert stage.invoke("stream", stream_event(_item(job)))["dead_letters"] == 1
        assert stage.desk.dead_letters.depth("support").total == 1


def test_a_closed_switch_holds() -> None:
    """Nothing is sent; the row says why."""
    with a_stage() as stage:
        job = stage.enqueue()
        stage.desk.close("all", Level.DRAIN)
        assert stage.invoke("stream", stream_event(_item(job)))["held"] == 1
        assert stage.desk.job(job.job_id).blocked_by == "switches:all"


@pytest.mark.fault("B12", "I1")
def test_an_outage_is_raised_as_a_code() -> None:
    """The batch comes again; Lambda prints the code, not the cause."""
    with a_stage() as stage:
        flaky = Flaky(stage.desk.queues, "send")
        flaky.down = True
        stage.desk.queues = flaky  # type: ignore[assignment]
        job = stage.enqueue()
        with pytest.raises(DoorFailed, match=r"^stream:unavailable$") as failed:
            stage.invoke("stream", stream_event(_item(job)))
        assert failed.value.__suppress_context__
        flaky.down = False
        assert stage.invoke("stream", stream_event(_item(job)))["sent"] == 1


@pytest.mark.parametrize("event", [None, [], {"Records": None}, {"Records": [None]}])
def test_what_is_no_event_fails_by_code(event: Any) -> None:
    """DynamoDB never sends these."""
    with a_stage() as stage, pytest.raises(DoorFailed, match=r"^stream:\w+$"):
        stage.invoke("stream", event)
