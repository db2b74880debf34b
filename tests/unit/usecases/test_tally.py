"""What a batch counts, and that it is written once and never in the way."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from shared.adapters.memory.vendor import Says
from shared.core.effects import Accepted, Answer, Call, Refused, Unknown
from shared.core.feedback import Report
from shared.core.job import Job
from shared.core.outcome import Done, Fail, Outcome, Retry
from shared.core.sensitive import Sensitive
from shared.core.signals import Counts, VendorCounts, total
from shared.usecases.context import Context
from shared.usecases.tally import Tally
from tests.builders import NOW, a_job, a_ticket, an_account
from tests.unit.usecases.desk import Desk


def counted(desk: Desk) -> Counts:
    return total(minute.counts for minute in desk.signals.minutes(desk.lane.name, since=NOW))


def deliveries(desk: Desk, *tasks: str) -> list[Any]:
    jobs = [desk.put(a_job(task=task, key=f"event-{n}")) for n, task in enumerate(tasks)]
    return [a_ticket(job, message_id=f"{n:08d}-message") for n, job in enumerate(jobs)]


def ask(job: Job, ctx: Context) -> Outcome:
    ctx.call(Call(vendor="helpdesk", action="classify", body=Sensitive({}), paid=False))
    return Done("asked")


def done(job: Job, ctx: Context) -> Outcome:
    return Done()


def stumble(job: Job, ctx: Context) -> Outcome:
    raise TimeoutError


def fail(job: Job, ctx: Context) -> Outcome:
    from shared.core.job import Category

    return Fail(Category.MALFORMED, "bad_input:x")


TASKS = {"ask": ask, "done": done, "stumble": stumble, "fail": fail}


@pytest.mark.req("C16")
@pytest.mark.parametrize(("minute_s", "at_s"), [(60, 0), (2, 6)])
def test_a_batch_counts_in_its_lanes_own_minute(minute_s: int, at_s: int) -> None:
    """Seven seconds after the full minute: the minute of the clock, or the fourth of two seconds."""
    desk = Desk(tasks=TASKS, minute_s=minute_s)
    tickets = deliveries(desk, "done")
    desk.clock.advance(7)
    desk.batch(*tickets)
    assert [one.at for one in desk.signals.minutes(desk.lane.name, since=NOW)] == [NOW + timedelta(seconds=at_s)]


def test_a_batch_is_one_write_with_all_that_happened() -> None:
    """Claims, ends, errors, the vendor's answers and the oldest age, whatever the size of the batch."""
    desk = Desk(tasks=TASKS, batch_size=10, parallel=1)
    desk.vendor.call_script += [Says.ACCEPT, Says.REFUSE_RATE, Says.UNKNOWN]
    tickets = deliveries(desk, "ask", "ask", "ask", "done", "stumble", "fail")
    desk.clock.advance(75)
    assert desk.batch(*tickets) == []
    assert desk.signals.calls == 1
    assert counted(desk) == Counts(
        claims=6,
        completed=2,
        failed=1,
        errors=3,
        oldest_age_s=75,
        vendors={"helpdesk": VendorCounts(calls=3, limited=1, errors=1)},
    )


def test_age_counts_from_when_a_job_was_due() -> None:
    """A job for later is not old because it was enqueued early."""
    tally = Tally()
    tally.claimed(a_job(not_before_at=NOW + timedelta(hours=1)), NOW + timedelta(hours=1, seconds=7))
    assert tally.take() == Counts(claims=1, oldest_age_s=7)
    tally.claimed(a_job(not_before_at=NOW + timedelta(seconds=2)), NOW)
    assert tally.take().oldest_age_s == 0


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (Accepted("v", report=Report(tokens_used=42)), VendorCounts(calls=1, tokens=42)),
        (Refused("429"), VendorCounts(calls=1, limited=1)),
        (Refused("unreachable"), VendorCounts(calls=1, errors=1)),
        (Refused("401", auth=True), VendorCounts(calls=1, errors=1)),
        (Refused("422", permanent=True), VendorCounts(calls=1)),
        (Unknown("timeout"), VendorCounts(calls=1, errors=1)),
    ],
)
def test_what_an_answer_says_of_its_vendor(answer: Answer, expected: VendorCounts) -> None:
    """A 429 is a limit, silence an error, a refusal of one request neither."""
    tally = Tally()
    tally.heard("helpdesk", answer)
    assert tally.take() == Counts(vendors={"helpdesk": expected})


def test_what_never_left_says_nothing() -> None:
    """A request that could not be built is not a call."""
    tally = Tally()
    tally.heard("helpdesk", Refused("unsent", unsent=True))
    assert tally.take().nothing


def test_a_call_that_waits_for_its_account_is_no_call() -> None:
    """A refusal by our own budget never reached the vendor; an answered call counts with and without an account."""
    desk = Desk(tasks=TASKS, account=an_account(requests_per_minute=1, burst_s=0.0), batch_size=10, parallel=1)
    desk.batch(*deliveries(desk, "ask", "ask", "ask"))
    vendors = counted(desk).vendors
    assert vendors["helpdesk"].calls == desk.vendor.calls < 3


def test_an_ending_is_counted_once() -> None:
    """A retry is an error and no failure; the last one is both."""
    tally = Tally()
    desk = Desk(tasks={"stumble": stumble}, max_attempts=1, retry_backoff_s=())
    desk.batch(a_ticket(desk.put(a_job(task="stumble", max_attempts=1))))
    assert (counted(desk).errors, counted(desk).failed) == (1, 1)
    tally.settled(a_job(), Retry("x"))
    assert tally.take() == Counts(errors=1)


def test_a_write_that_fails_fails_no_message() -> None:
    """It is told, and the batch stands as it is."""
    desk = Desk(tasks=TASKS)
    desk.signals.down = True
    assert desk.batch(*deliveries(desk, "done")) == []
    assert [event.code for event in desk.telemetry.named("signals_unwritten")] == ["unavailable"]
    desk.signals.down = False
    assert counted(desk).nothing, "what could not be written is not written later, into another minute"


def test_an_empty_batch_writes_nothing() -> None:
    """Nothing happened."""
    desk = Desk(tasks=TASKS)
    desk.batch()
    assert desk.signals.calls == 0
