"""Intent, vendor, record: one send in the life of a job, and no second one without a licence."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from shared.adapters.memory.vendor import Says
from shared.contract import metrics
from shared.core.effects import Effect, EffectRow, EffectState, Sent, Withheld, effect_id_of
from shared.core.job import Category, Job, Status
from shared.core.outcome import Done, Outcome
from shared.core.sensitive import Sensitive
from shared.core.switches import Level
from shared.usecases.context import Context
from shared.usecases.run_attempt import Answer
from tests.builders import NOW, a_job, a_ticket, an_effect_row
from tests.unit.usecases.desk import Desk, Flaky
from tests.vendors_and_tasks import VendorKind, effect_of, reply_and_tag

KINDS = list(VendorKind)


def ran(desk: Desk, job: Job, **more: Any) -> Job:
    """The job after one attempt."""
    desk.work(a_ticket(job), **more)
    return desk.job(job.job_id)


def again(desk: Desk, job: Job, by: str = "w2/2") -> Job:
    """The job after its next attempt, once it is due."""
    due = desk.job(job.job_id).due
    if due is not None:
        desk.clock.advance_to(due)
    return ran(desk, desk.job(job.job_id), by=by)


@pytest.mark.req("C1")
@pytest.mark.parametrize("kind", KINDS)
def test_a_send_is_intended_made_and_recorded(kind: VendorKind) -> None:
    """One row with the vendor's id; the key is the effect's id and holds no attempt."""
    desk = Desk(kind=kind)
    job = desk.put(a_job())
    assert ran(desk, job).result == "replied"
    (row,) = desk.rows(job.job_id)
    (accept,) = desk.vendor.accepts
    assert (row.state, row.vendor_id, row.fence) == (EffectState.ACCEPTED, accept.vendor_id, 1)
    assert accept.key == row.effect_id == effect_id_of(job.job_id, "reply")
    assert desk.telemetry.counts[metrics.SENT, "support"] == 1


@pytest.mark.req("C1")
@pytest.mark.fault("C5")
@pytest.mark.parametrize("kind", KINDS)
def test_a_job_whose_row_was_forgotten_is_not_sent_again(kind: VendorKind) -> None:
    """The same cause after the row's expiry: the effect row ends it `completed`, result `already_done`."""
    desk = Desk(kind=kind)
    job = desk.put(a_job())
    ran(desk, job)
    desk.jobs.expire(job.job_id)
    desk.clock.advance(40 * 86_400)
    after = ran(desk, desk.put(a_job(created_at=desk.clock.now(), updated_at=desk.clock.now())))
    assert (after.status, after.result) == (Status.COMPLETED, "already_done")
    assert len(desk.vendor.accepts) == desk.vendor.requests == 1


@pytest.mark.req("C1")
def test_each_effect_of_a_job_is_made_once_however_often_it_runs() -> None:
    """The first attempt dies between two effects; the second makes only the one that is missing."""
    desk = Desk(tasks={"reply": reply_and_tag})
    desk.vendor.script.extend([Says.ACCEPT, Says.REFUSE_RATE])
    job = desk.put(a_job())
    assert ran(desk, job).status is Status.QUEUED
    after = again(desk, job)
    assert (after.status, after.result) == (Status.COMPLETED, "replied")
    assert sorted(accept.action for accept in desk.vendor.accepts) == ["reply", "tag"]
    assert desk.vendor.duplicates() == {}


@pytest.mark.req("C8")
@pytest.mark.parametrize(
    ("says", "category", "error"),
    [
        (Says.REFUSE_PERMANENT, Category.VENDOR_PERMANENT, "vendor_permanent:helpdesk:422"),
        (Says.REFUSE_AUTH, Category.AUTH, "vendor_auth:helpdesk"),
    ],
)
def test_a_clear_no_fails_under_its_category(says: Says, category: Category, error: str) -> None:
    """No attempt is repeated that cannot help; the row says refused, so a replay may send."""
    desk = Desk()
    desk.vendor.script.append(says)
    job = desk.put(a_job())
    after = ran(desk, job)
    assert (after.status, after.category, after.last_error) == (Status.FAILED, category, error)
    assert [row.state for row in desk.rows(job.job_id)] == [EffectState.REFUSED]
    assert desk.vendor.accepts == []


@pytest.mark.fault("B3")
def test_a_rate_limit_defers_without_using_an_attempt() -> None:
    """Three refusals, then an accept: no attempt used, one send, under one row."""
    desk = Desk()
    desk.vendor.script.extend([Says.REFUSE_RATE] * 3)
    job = desk.put(a_job())
    after = ran(desk, job)
    for _ in range(3):
        assert (after.status, after.blocked_by) == (Status.QUEUED, "vendor:helpdesk:429")
        after = again(desk, job)
    assert (after.status, after.attempt_count, len(desk.vendor.accepts)) == (Status.COMPLETED, 0, 1)
    assert len(desk.rows(job.job_id)) == 1


@pytest.mark.req("F9")
def test_a_vendor_that_never_lets_up_fails_the_job_after_max_wait() -> None:
    """Deferred for a day, then `retries_exhausted`: no unbounded retry."""
    desk = Desk(max_wait_s=3600)
    desk.vendor.script.extend([Says.REFUSE_RATE] * 10_000)
    desk.vendor._rate_retry_s = 600.0
    job = desk.put(a_job())
    after, tries = ran(desk, job), 1
    while after.status is Status.QUEUED:
        after, tries = again(desk, job), tries + 1
    assert (after.category, after.last_error) == (Category.RETRIES_EXHAUSTED, "max_wait:vendor:helpdesk:429")
    assert (tries, after.attempt_count, desk.vendor.accepts) == (7, 0, [])


# -------------------------------------------------------------------------------------- unknown outcomes
@pytest.mark.fault("A1", "A2")
@pytest.mark.parametrize("says", [Says.UNKNOWN, Says.ACCEPTED_BUT_UNKNOWN])
def test_without_help_from_the_vendor_an_unknown_outcome_waits_for_a_person(says: Says) -> None:
    """Accepted or not, it looks the same: failed as `outcome_unknown`, never sent again."""
    desk = Desk(kind=VendorKind.NEITHER)
    desk.vendor.script.append(says)
    job = desk.put(a_job())
    after = ran(desk, job)
    assert (after.status, after.category, after.last_error) == (
        Status.FAILED,
        Category.OUTCOME_UNKNOWN,
        "outcome_unknown:reply",
    )
    assert desk.vendor.requests == 1
    assert [row.open for row in desk.rows(job.job_id)] == [True]
    assert desk.telemetry.counts[metrics.UNKNOWN, "support"] == 1


@pytest.mark.fault("A1")
@pytest.mark.parametrize("says", [Says.UNKNOWN, Says.ACCEPTED_BUT_UNKNOWN])
def test_a_vendor_that_deduplicates_is_asked_again_under_the_same_key(says: Says) -> None:
    """One attempt used; the key is the same, so it ends completed with one accept."""
    desk = Desk(kind=VendorKind.DEDUPES)
    desk.vendor.script.append(says)
    job = desk.put(a_job())
    assert ran(desk, job).last_error == "vendor_unknown:read_timeout"
    after = again(desk, job)
    assert (after.status, after.attempt_count) == (Status.COMPLETED, 1)
    assert (len(desk.vendor.accepts), desk.vendor.requests) == (1, 2)
    assert {accept.key for accept in desk.vendor.accepts} == {effect_id_of(job.job_id, "reply")}


@pytest.mark.fault("A1", "F6")
def test_after_the_vendors_window_nothing_is_sent_by_itself() -> None:
    """A day and a little later its memory may be gone: the job waits for a person."""
    desk = Desk(kind=VendorKind.DEDUPES)
    desk.vendor.script.append(Says.ACCEPTED_BUT_UNKNOWN)
    job = desk.put(a_job())
    ran(desk, job)
    desk.clock.advance(86_400 - 299)
    after = ran(desk, desk.job(job.job_id), by="w2/2")
    assert (after.status, after.category) == (Status.FAILED, Category.OUTCOME_UNKNOWN)
    assert desk.vendor.requests == 1


@pytest.mark.fault("A1")
def test_a_look_up_that_finds_it_is_the_record() -> None:
    """Found: recorded and completed, and nothing is sent a second time."""
    desk = Desk(kind=VendorKind.EXACT)
    desk.vendor.script.append(Says.ACCEPTED_BUT_UNKNOWN)
    job = desk.put(a_job())
    after = ran(desk, job)
    assert (after.status, desk.vendor.requests, desk.vendor.lookups) == (Status.COMPLETED, 1, 1)
    (row,) = desk.rows(job.job_id)
    assert (row.state, row.vendor_id) == (EffectState.ACCEPTED, desk.vendor.accepts[0].vendor_id)


@pytest.mark.fault("A2")
@pytest.mark.parametrize("kind", [VendorKind.EXACT, VendorKind.EVENTUAL])
def test_a_look_up_that_does_not_find_it_is_no_licence(kind: VendorKind) -> None:
    """Asked again while it may still arrive, without using attempts; then a person decides."""
    desk = Desk(kind=kind)
    desk.vendor.script.append(Says.UNKNOWN)
    job = desk.put(a_job())
    after, looks = ran(desk, job), 1
    while after.status is Status.QUEUED and looks <= 8:
        assert (after.blocked_by, after.attempt_count) == ("outcome_lookup", 0)
        assert after.due is not None
        # Each look is later than the one before: a job that may look again at once never comes to its end.
        assert after.due > desk.clock.now()
        after, looks = again(desk, job), looks + 1
    assert (after.status, after.category) == (Status.FAILED, Category.OUTCOME_UNKNOWN)
    assert desk.vendor.requests == 1
    assert 2 <= looks <= 8
    assert desk.clock.now() - NOW <= timedelta(seconds=desk.lane.lookup_grace_s + 60)


@pytest.mark.fault("A1")
def test_a_look_up_gives_up_at_the_end_of_its_grace() -> None:
    """At that very moment, not one look later."""
    desk = Desk(kind=VendorKind.EXACT)
    desk.vendor.script.append(Says.UNKNOWN)
    job = desk.put(a_job())
    ran(desk, job)
    desk.clock.advance(desk.lane.lookup_grace_s)
    after = ran(desk, desk.job(job.job_id), by="w2/2")
    assert (after.status, after.category) == (Status.FAILED, Category.OUTCOME_UNKNOWN)
    assert desk.vendor.requests == 1


@pytest.mark.fault("A4")
@pytest.mark.parametrize("meanwhile", ["taken over", "accepted"])
def test_a_refusal_whose_row_moved_is_not_the_last_word(meanwhile: str) -> None:
    """Another worker has the intent, or found it accepted: a *no* to this request ends neither, and nothing is sent."""
    desk = Desk(kind=VendorKind.DEDUPES)
    desk.vendor.script.append(Says.REFUSE_PERMANENT)
    job = desk.put(a_job())

    class Racing(Flaky):
        raced = False

        def record(self, row: EffectRow, result: EffectRow) -> None:
            if not self.raced:
                self.raced = True
                taken = effects.take_over(row, fence=row.fence + 1, now=desk.clock.now())
                if meanwhile == "accepted":
                    effects.record(taken, replace(taken, state=EffectState.ACCEPTED, vendor_id="m-1", recorded_at=NOW))
            effects.record(row, result)

    effects = desk.effects
    desk.effects = Racing(effects)  # type: ignore[assignment]
    answer = desk.work(a_ticket(job))
    after, (row,) = desk.job(job.job_id), desk.rows(job.job_id)
    if meanwhile == "accepted":
        assert (answer, after.status, after.result) == (Answer.ACKNOWLEDGE, Status.COMPLETED, "already_done")
        assert (row.state, row.vendor_id) == (EffectState.ACCEPTED, "m-1")
    else:
        assert (answer, after.status) == (Answer.RETURN, Status.PROCESSING)
        assert (row.state, row.fence) == (EffectState.INTENT, 2)
    assert desk.vendor.requests == 1


@pytest.mark.fault("A1")
def test_a_vendor_that_is_slow_to_know_is_asked_until_it_does() -> None:
    """Absent at first, found later: completed, one send."""
    desk = Desk(kind=VendorKind.EVENTUAL)
    desk.vendor.script.append(Says.ACCEPTED_BUT_UNKNOWN)
    job = desk.put(a_job())
    after = ran(desk, job)
    assert after.blocked_by == "outcome_lookup"
    after = again(desk, job)
    assert (after.status, after.result, desk.vendor.requests) == (Status.COMPLETED, "already_done", 1)


@pytest.mark.fault("A4")
@pytest.mark.parametrize("kind", KINDS)
def test_a_dead_workers_intent_is_never_sent_blindly(kind: VendorKind) -> None:
    """An intent without a result stands; the next worker sends only to a vendor that deduplicates."""
    desk = Desk(kind=kind)
    job = desk.put(a_job(fence=1))
    desk.effects.intend(an_effect_row(job_id=job.job_id, fence=1))
    after = ran(desk, job)
    sent = kind is VendorKind.DEDUPES
    assert desk.vendor.requests == sent
    assert (after.status is Status.COMPLETED) == sent
    if sent:
        (row,) = desk.rows(job.job_id)
        assert (row.fence, row.first_intent_at) == (2, NOW)


@pytest.mark.fault("A6")
@pytest.mark.parametrize("kind", KINDS)
def test_a_record_that_cannot_be_written_leaves_the_intent_open(kind: VendorKind) -> None:
    """The vendor has it; whatever follows, it is not sent a second time without deduplication."""
    desk = Desk(kind=kind)
    flaky = Flaky(desk.effects, "accept")
    flaky.down = True
    desk.effects = flaky  # type: ignore[assignment]
    job = desk.put(a_job())
    assert ran(desk, job).last_error == "record_unavailable"
    assert [row.open for row in desk.rows(job.job_id)] == [True]
    flaky.down = False
    after = again(desk, job)
    assert (len(desk.vendor.accepts), desk.vendor.duplicates()) == (1, {})
    unknown = kind is VendorKind.NEITHER
    waits = kind is VendorKind.EVENTUAL
    assert after.status is (Status.FAILED if unknown else Status.QUEUED if waits else Status.COMPLETED)


@pytest.mark.fault("C1")
def test_an_intent_that_cannot_be_written_is_not_sent() -> None:
    """No intent, no send: the job waits a little, no attempt used."""
    desk = Desk()
    flaky = Flaky(desk.effects, "intend")
    flaky.down = True
    desk.effects = flaky  # type: ignore[assignment]
    job = desk.put(a_job())
    after = ran(desk, job)
    assert (after.status, after.attempt_count, desk.vendor.requests) == (Status.QUEUED, 0, 0)
    assert desk.rows(job.job_id) == []


@pytest.mark.fault("A7")
@pytest.mark.parametrize("left_s", [0.1, 4.0, 4.9])
def test_without_time_to_send_and_record_no_intent_is_written(left_s: float) -> None:
    """Four seconds left of a send that may take four: the job comes back, untouched."""
    desk = Desk()
    job = desk.put(a_job())
    after = ran(desk, job, left_s=left_s)
    assert (after.status, after.blocked_by, after.attempt_count) == (Status.QUEUED, "time_budget", 0)
    assert (desk.rows(job.job_id), desk.vendor.requests) == ([], 0)
    assert ran(desk, desk.job(job.job_id), left_s=5.0, by="w2/2").status is Status.COMPLETED


# --------------------------------------------------------------------------------------------- switches
@pytest.mark.req("C2")
@pytest.mark.parametrize("scope", ["all", "vendor/helpdesk", "lane/support", "task/support/reply"])
def test_safe_mode_runs_the_job_and_withholds_the_reply(scope: str) -> None:
    """Routed, completed, result `withheld`; nothing is sent then, and nothing later by itself."""
    desk = Desk()
    job = desk.put(a_job())
    desk.close(scope, Level.ROUTE_ONLY)
    after = ran(desk, job)
    assert (after.status, after.result) == (Status.COMPLETED, "withheld")
    assert (desk.vendor.requests, desk.rows(job.job_id)) == (0, [])
    desk.open(scope)
    desk.clock.advance(86_400)
    assert desk.dispatch().sent == 0
    assert desk.work(a_ticket(job), by="w2/2") is Answer.ACKNOWLEDGE
    assert desk.vendor.requests == 0


@pytest.mark.req("C2")
def test_automation_off_withholds_the_reply_too() -> None:
    """The same without paid calls, and it says which scope did it."""
    seen: list[Sent | Withheld] = []

    def task(job: Job, ctx: Context) -> Outcome:
        seen.append(ctx.effect("reply", effect_of("reply", job)))
        return Done("withheld")

    desk = Desk(tasks={"reply": task})
    job = desk.put(a_job())
    desk.close("lane/support", Level.NORMAL, automation_enabled=False)
    assert ran(desk, job).result == "withheld"
    assert seen == [Withheld("lane/support")]
    assert desk.vendor.requests == 0


@pytest.mark.req("C2")
def test_what_no_customer_sees_goes_on_in_safe_mode() -> None:
    """A tag for the team is not a reply."""

    def task(job: Job, ctx: Context) -> Outcome:
        hidden = Effect(vendor="helpdesk", action="tag", target="c", body=Sensitive({}), customer_visible=False)
        return Done("tagged" if isinstance(ctx.effect("tag", hidden), Sent) else "withheld")

    desk = Desk(tasks={"reply": task})
    job = desk.put(a_job())
    desk.close("all", Level.ROUTE_ONLY)
    assert ran(desk, job).result == "tagged"


@pytest.mark.fault("E6")
@pytest.mark.req("C2")
def test_a_switch_closed_between_claim_and_intent_stops_the_send() -> None:
    """Checked again before the point of no return: the job waits, nothing was sent."""

    def task(job: Job, ctx: Context) -> Outcome:
        desk.close("all", Level.HALT)
        ctx.effect("reply", effect_of("reply", job))
        return Done("replied")

    desk = Desk(tasks={"reply": task}, function_timeout_s=60, job_timeout_s=40, visibility_s=400)
    job = desk.put(a_job())
    after = ran(desk, job, left_s=50)
    assert (after.status, after.blocked_by, after.attempt_count) == (Status.QUEUED, "switches:all", 0)
    assert (desk.vendor.requests, desk.rows(job.job_id)) == (0, [])


@pytest.mark.fault("E6")
@pytest.mark.parametrize("level", [Level.ROUTE_ONLY, Level.HALT])
@pytest.mark.parametrize("kind", KINDS)
def test_look_ups_and_records_stay_open_under_a_closed_switch(level: Level, kind: VendorKind) -> None:
    """What stands at the vendor counts; an open intent is looked up or waits, and is not sent again."""

    def task(job: Job, ctx: Context) -> Outcome:
        if not desk.switches.entries:
            desk.close("all", level)
        made = ctx.effect("reply", effect_of("reply", job))
        return Done("replied" if isinstance(made, Sent) else "withheld")

    desk = Desk(kind=kind, tasks={"reply": task}, function_timeout_s=60, job_timeout_s=40, visibility_s=400)
    job = desk.put(a_job(fence=1))
    row = an_effect_row(job_id=job.job_id)
    desk.effects.intend(row)
    desk.vendor.perform(effect_of("reply", job), key=row.effect_id, timeout_s=1)
    desk.clock.advance(30)
    after = ran(desk, job, left_s=50)
    assert desk.vendor.requests == 1
    wanted = {
        VendorKind.DEDUPES: (Status.QUEUED, None),
        VendorKind.EXACT: (Status.COMPLETED, None),
        VendorKind.EVENTUAL: (Status.COMPLETED, None),
        VendorKind.NEITHER: (Status.FAILED, Category.OUTCOME_UNKNOWN),
    }
    assert (after.status, after.category) == wanted[kind]


def test_an_accepted_effect_counts_under_a_closed_switch() -> None:
    """It was sent before the switch closed: the job may say so."""
    desk = Desk()
    job = desk.put(a_job(fence=1))
    row = an_effect_row(job_id=job.job_id)
    desk.effects.intend(row)
    from dataclasses import replace

    desk.effects.record(row, replace(row, state=EffectState.ACCEPTED, recorded_at=NOW, vendor_id="v-1"))
    desk.close("all", Level.ROUTE_ONLY)
    assert ran(desk, job).result == "already_done"
    assert desk.vendor.requests == 0


# ---------------------------------------------------------------------------------------- two workers
@pytest.mark.fault("A4")
def test_a_frozen_worker_that_resumes_cannot_record_over_its_successor() -> None:
    """Frozen inside the vendor call, overtaken by a second worker under the same key: one accept, one result."""
    overtaken: list[Answer] = []

    class Freezing(Flaky):
        def perform(self, *args: Any, **kwargs: Any) -> Any:
            answer = vendor.perform(*args, **kwargs)
            if not overtaken:
                overtaken.append(Answer.RETURN)
                desk.clock.advance(desk.lane.claim_timeout_s + 1)
                overtaken[0] = desk.work(a_ticket(job, message_id="2"), by="w2/2")
            return answer

    desk = Desk(kind=VendorKind.DEDUPES)
    vendor = desk.vendor
    desk.vendor = Freezing(vendor)  # type: ignore[assignment]
    job = desk.put(a_job())
    first = desk.work(job, by="w1/1")
    assert overtaken == [Answer.ACKNOWLEDGE]
    assert first is Answer.RETURN
    after = desk.job(job.job_id)
    assert (after.status, len(vendor.accepts)) == (Status.COMPLETED, 1)
    (row,) = desk.rows(job.job_id)
    assert row.state is EffectState.ACCEPTED
