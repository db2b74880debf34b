"""Explain: where a job stands, what every gate says, and when it can run at the earliest."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.core.admission import admit
from shared.core.job import Category, Job, Status
from shared.core.message import QueueDepth
from shared.core.switches import Level
from shared.usecases.explain import Explanation, explain
from tests.builders import NOW, a_job, an_effect_row
from tests.unit.usecases.desk import Desk

LATER = NOW + timedelta(hours=1)


def why(job: Job, *, desk: Desk | None = None, visible: int = 7, effects: list | None = None) -> Explanation:
    desk = desk or Desk()
    view, depth = desk.viewer.of("support"), QueueDepth(visible=visible, in_flight=0)
    return explain(job, view, effects or [], depth, desk.clock.now())


STANDINGS: dict[str, tuple[Job, str, datetime, str]] = {
    "in the queue": (a_job(), "in_queue", NOW, "in the queue since 2026-01-01T00:00:00.000Z, about 7 ahead"),
    "waiting for its time": (
        a_job(not_before_at=LATER, due=LATER, blocked_by="backoff"),
        "waiting",
        NOW,
        "waiting in the table (backoff)",
    ),
    "waiting, due": (a_job(due=NOW), "waiting", NOW, "waiting in the table (due)"),
    "handed off": (a_job(due=None), "in_queue", NOW, "in the queue since"),
    "claimed": (
        a_job(status=Status.PROCESSING),
        "claimed",
        NOW,
        "claimed since 2026-01-01T00:00:00.000Z by w1/00000001",
    ),
    "claimed by the dead": (
        a_job(status=Status.PROCESSING, claimed_at=NOW - timedelta(minutes=5)),
        "claimed",
        NOW - timedelta(minutes=5),
        "by a worker that died; its message brings it back",
    ),
    "in a batch": (a_job(status=Status.BATCH_SUBMITTED), "in_batch", NOW, "in a provider's batch since"),
    "completed": (
        a_job(status=Status.COMPLETED),
        "ended",
        NOW,
        "ended completed at 2026-01-01T00:00:00.000Z (replied)",
    ),
    "completed, something withheld": (
        a_job(status=Status.COMPLETED, result="withheld", withheld={"chat": "all", "reply": "lane/support"}),
        "ended",
        NOW,
        "ended completed at 2026-01-01T00:00:00.000Z (withheld, chat withheld by all, reply withheld by lane/support)",
    ),
    "canceled": (a_job(status=Status.CANCELED), "ended", NOW, "ended canceled at 2026-01-01T00:00:00.000Z"),
    "failed": (
        a_job(status=Status.FAILED, category=Category.AUTH, last_error="vendor_auth:helpdesk"),
        "ended",
        NOW,
        "ended failed at 2026-01-01T00:00:00.000Z (auth: vendor_auth:helpdesk)",
    ),
}


@pytest.mark.parametrize(("job", "standing", "since", "sentence"), STANDINGS.values(), ids=STANDINGS)
def test_each_standing_has_its_sentence(job: Job, standing: str, since: datetime, sentence: str) -> None:
    """Where it is, since when, and what that means."""
    said = why(job)
    assert (said.standing, said.since) == (standing, since)
    assert sentence in said.sentence
    assert "()" not in said.sentence


@pytest.mark.parametrize("status", [Status.QUEUED, Status.PROCESSING])
def test_an_open_effect_is_said_first(status: Status) -> None:
    """Nobody knows its outcome: that is the most important thing about the job."""
    said = why(a_job(status=status), effects=[an_effect_row()])
    assert (said.standing, said.since) == ("effect_open", NOW)
    assert "effect 'reply' is open at helpdesk since" in said.sentence


def test_an_ended_job_is_ended_even_with_an_open_effect() -> None:
    """`outcome_unknown` is an end until a person decides."""
    failed = a_job(status=Status.FAILED, category=Category.OUTCOME_UNKNOWN)
    assert why(failed, effects=[an_effect_row()]).standing == "ended"


@pytest.mark.req("F9")
@given(in_s=st.integers(-100, 100))
def test_the_earliest_time_is_its_own_or_now(in_s: int) -> None:
    """Once no gate but its own time is in the way."""
    at = NOW + timedelta(seconds=in_s)
    assert why(a_job(not_before_at=at, due=at)).earliest == max(NOW, at)


@pytest.mark.req("F9")
@pytest.mark.parametrize("level", [Level.NO_NEW_STARTS, Level.DRAIN, Level.HALT])
def test_what_a_person_must_open_has_no_time(level: Level) -> None:
    """The switch, its key and the command that opens it are named instead."""
    desk = Desk()
    desk.close("lane/support", level)
    said = why(a_job(), desk=desk)
    assert said.earliest is None
    assert said.verdict.blocked is not None
    assert said.verdict.blocked.key == "lane/support"
    assert "penstock control set lane/support normal" in said.verdict.blocked.unblock


@pytest.mark.parametrize("status", sorted(set(Status) - {Status.QUEUED}))
def test_only_a_queued_job_has_an_earliest_time(status: Status) -> None:
    """The others have started or are over."""
    assert why(a_job(status=status)).earliest is None


@given(in_s=st.integers(-100, 100), level=st.sampled_from(Level))
def test_there_is_no_second_opinion(in_s: int, level: Level) -> None:
    """What is explained is the very verdict admission gives."""
    desk = Desk()
    desk.close("all", level)
    job = a_job(not_before_at=NOW + timedelta(seconds=in_s))
    assert why(job, desk=desk).verdict == admit(job, desk.viewer.of("support"), desk.clock.now())
