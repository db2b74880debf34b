"""Run jobs: a scheduled run works its async jobs off itself, one call each, within its own limits."""

from __future__ import annotations

from typing import Any

import pytest

from shared.core.effects import Accepted, Answer, Call, Effect, Lookup, NoAnswer, Refused
from shared.core.job import Category, Status
from shared.core.run import RunConfig
from shared.core.sensitive import Sensitive
from shared.core.switches import Level
from tests.builders import a_switch
from tests.unit.usecases.rewriting import RewriteDesk


class Model:
    """A chat vendor that answers as it is told."""

    name, dedupes_by_key, lookup = "openai", None, Lookup.NONE

    def __init__(self, *answers: Answer | str) -> None:
        self.answers = list(answers)
        self.calls: list[Any] = []

    def perform(self, request: Effect | Call, *, key: str | None, timeout_s: float) -> Answer:
        self.calls.append(request.body.reveal())
        answer = self.answers.pop(0) if self.answers else "said kindly"
        if not isinstance(answer, str):
            return answer
        return Accepted("c-1", Sensitive({"choices": [{"message": {"content": answer}, "finish_reason": "stop"}]}))

    def look_up(self, key: str, *, timeout_s: float) -> NoAnswer:
        return NoAnswer("none")


def a_desk(model: Model, count: int = 3, **more: Any) -> RewriteDesk:
    """So many async jobs, and as many for batches, which nobody here touches."""
    desk = RewriteDesk(vendors={"openai": model}, **more)  # type: ignore[dict-item]
    for number in range(count):
        desk.enqueue(number, surface="direct_message")
        desk.enqueue(number + 100)
        desk.clock.advance(1)
    return desk


@pytest.mark.req("R12", "R13")
def test_one_call_a_job_and_the_answer_kept() -> None:
    """Its text is in the content store, named by the row; the batch line is untouched; the counts are the run's."""
    model = Model()
    desk = a_desk(model)
    counts = desk.work()
    assert (counts["claimed"], counts["succeeded"], counts["openai/model-a.succeeded"]) == (3, 3, 3)
    assert len(model.calls) == 3
    assert desk.states() == {Status.COMPLETED: 3, Status.QUEUED: 3}
    assert desk.text_of(desk.job(1)) == "said kindly"
    assert {call["model"] for call in model.calls} == {"model-a"}


@pytest.mark.req("R7")
def test_a_run_takes_its_limit_and_no_more() -> None:
    """The oldest two; the rest waits."""
    desk = a_desk(Model(), 4, run=RunConfig(max_jobs_per_run=2))
    assert desk.work()["claimed"] == 2
    assert [desk.job(number).status for number in range(4)] == [Status.COMPLETED] * 2 + [Status.QUEUED] * 2


@pytest.mark.req("R10", "R11")
def test_a_failed_call_waits_its_backoff_and_asks_nobody_else() -> None:
    """One attempt used, then the second and last; the provider is the one that was decided."""
    model = Model(Refused("503"), Refused("503"))
    desk = a_desk(model, 1, run=RunConfig(retry_backoff_seconds=(900, 7200)))
    assert desk.work()["requeued"] == 1
    assert desk.job(0).attempt_count == 1
    assert desk.work()["claimed"] == 0
    desk.clock.advance(901)
    assert desk.work()["failed"] == 1
    assert (desk.job(0).category, len(model.calls)) == (Category.RETRIES_EXHAUSTED, 2)


def test_an_answer_that_is_none_is_asked_for_again() -> None:
    """Cut off, empty, or of another shape: one attempt used."""
    for answer in (
        Accepted("c", Sensitive({"choices": [{"message": {"content": "x"}, "finish_reason": "length"}]})),
        Accepted("c", Sensitive({"choices": []})),
        "   ",
    ):
        desk = a_desk(Model(answer), 1)
        assert desk.work()["requeued"] == 1
        assert desk.job(0).last_error in ("answer_cut", "answer_invalid")


def test_a_closed_lane_takes_nobody_and_without_automation_nobody_is_paid() -> None:
    """Completed means rewritten: what may not be paid for waits, whichever switch says so."""
    model = Model()
    desk = a_desk(model)
    desk.control.set_switch(a_switch(scope="lane/rewrite", level=Level.NO_NEW_STARTS))
    assert desk.work()["held"] == 1
    desk.control.set_switch(a_switch(scope="lane/rewrite", level=Level.NORMAL, automation_enabled=False))
    desk.clock.advance(10)
    assert desk.work()["held"] == 1
    desk.control.set_switch(a_switch(scope="lane/rewrite", level=Level.NORMAL))
    desk.control.set_switch(a_switch(scope="tenant/rewrite/home-1", level=Level.NORMAL, automation_enabled=False))
    desk.clock.advance(10)
    assert desk.work()["requeued"] == 3
    assert model.calls == []
    assert (desk.job(1).status, desk.job(1).attempt_count) == (Status.QUEUED, 0)


def test_no_time_left_takes_nobody() -> None:
    """Who is claimed must have time to end."""
    desk = a_desk(Model())
    assert desk.work(seconds=5)["claimed"] == 0


def test_several_at_once() -> None:
    """In threads, each claimed only when somebody is free for it."""
    desk = a_desk(Model(), 12, parallel=4)
    assert desk.work()["succeeded"] == 12
