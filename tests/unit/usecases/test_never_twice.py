"""What a refusal, an end and late evidence say of an intent that stands open."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from threading import Barrier, BrokenBarrierError
from typing import Any

import pytest

from shared.adapters.memory.vendor import Says
from shared.contract import metrics
from shared.core import lifecycle
from shared.core.effects import Effect, EffectState, Lookup
from shared.core.errors import ClaimLost
from shared.core.job import Category, Job, Status
from shared.core.outcome import Done, Fail, Outcome, Retry, Submitted
from shared.core.sensitive import Sensitive
from shared.core.switches import Level
from shared.usecases.context import Context, Task
from shared.usecases.settle import settle
from tests.builders import a_job, a_ticket, an_account, an_effect_row
from tests.unit.usecases.desk import Desk, Flaky
from tests.vendors_and_tasks import VendorKind

DAY_S = 86_400
REFUSALS = (Says.REFUSE_RATE, Says.REFUSE_PERMANENT, Says.REFUSE_AUTH, Says.UNREACHABLE, Says.UNSENT)
PASSING = (Says.REFUSE_RATE, Says.UNREACHABLE, Says.UNSENT)


def ran(desk: Desk, job: Job, by: str = "w1/1") -> Job:
    """The job after one attempt, once it is due."""
    due = desk.job(job.job_id).due
    if due is not None:
        desk.clock.advance_to(due)
    desk.work(a_ticket(job), by=by)
    return desk.job(job.job_id)


def released(desk: Desk, job_id: str, by: str = "w9/9") -> Job:
    """A failed job after a plan let it go and it ran once."""
    failed = desk.job(job_id)
    desk.jobs.move(failed, lifecycle.replayed(failed, "plan-1", desk.clock.now()))
    return ran(desk, desk.job(job_id), by)


def accepted_and_lost(desk: Desk, *then: Says) -> Job:
    """A job whose first request was accepted and whose answer was lost; `then` is said to the next ones."""
    desk.vendor.script.extend([Says.ACCEPTED_BUT_UNKNOWN, *then])
    job = desk.put(a_job())
    ran(desk, job)
    return desk.job(job.job_id)


# ------------------------------------------------------------------------------------- refused re-sends
@pytest.mark.req("R8")
@pytest.mark.fault("A13")
@pytest.mark.parametrize("says", REFUSALS)
def test_a_refused_re_send_leaves_the_intent_open(says: Says) -> None:
    """The *no* is to the second request. The first was accepted: after the window, nothing is sent again."""
    desk = Desk(kind=VendorKind.DEDUPES)
    job = accepted_and_lost(desk, says)
    after = ran(desk, job, by="w2/2")
    (row,) = desk.rows(job.job_id)
    assert (row.state, row.taken_over) == (EffectState.INTENT, True)
    assert after.status is (Status.QUEUED if says in PASSING else Status.FAILED)
    assert after.category is (None if says in PASSING else Category.OUTCOME_UNKNOWN)
    desk.clock.advance(2 * DAY_S)
    later = ran(desk, job, by="w3/3") if after.status is Status.QUEUED else released(desk, job.job_id)
    assert (later.status, later.category) == (Status.FAILED, Category.OUTCOME_UNKNOWN)
    assert len(desk.vendor.accepts) == 1


@pytest.mark.req("R8")
@pytest.mark.fault("A13")
@pytest.mark.parametrize("says", PASSING)
def test_a_passing_refusal_of_a_re_send_is_tried_again_inside_the_window(says: Says) -> None:
    """The vendor still remembers the key: the third request finds what the first one did."""
    desk = Desk(kind=VendorKind.DEDUPES)
    job = accepted_and_lost(desk, says)
    ran(desk, job, by="w2/2")
    after = ran(desk, job, by="w3/3")
    assert (after.status, len(desk.vendor.accepts)) == (Status.COMPLETED, 1)


@pytest.mark.fault("A13")
def test_refused_credentials_wait_for_their_account() -> None:
    """An account to wait for: the re-send is put back, not parked, and finds the accept once the key is good."""
    desk = Desk(kind=VendorKind.DEDUPES, account=an_account())
    job = accepted_and_lost(desk, Says.REFUSE_AUTH)
    after = ran(desk, job, by="w2/2")
    assert (after.status, [row.open for row in desk.rows(job.job_id)]) == (Status.QUEUED, [True])
    assert ran(desk, job, by="w3/3").status is Status.COMPLETED
    assert len(desk.vendor.accepts) == 1


@pytest.mark.fault("A13")
@pytest.mark.parametrize("says", REFUSALS)
def test_a_refused_re_send_is_looked_up(says: Says) -> None:
    """A vendor that also tells what it accepted is asked at once: found is a record."""
    desk = Desk(kind=VendorKind.DEDUPES)
    desk.vendor.lookup = Lookup.EXACT
    job = accepted_and_lost(desk, says)
    after = ran(desk, job, by="w2/2")
    assert (after.status, len(desk.vendor.accepts)) == (Status.COMPLETED, 1)
    assert [row.state for row in desk.rows(job.job_id)] == [EffectState.ACCEPTED]


@pytest.mark.fault("A13")
def test_a_re_send_refused_for_good_is_looked_up_until_its_grace_ends() -> None:
    """A look-up that lags does not find it at once: asked again from the first intent on, then a person decides."""
    desk = Desk(kind=VendorKind.DEDUPES)
    desk.vendor.lookup = Lookup.EXACT
    desk.vendor.script.extend([Says.UNKNOWN, *[Says.REFUSE_PERMANENT] * 50])
    job = desk.put(a_job())
    after, begun = ran(desk, job), desk.clock.now()
    for number in range(2, 40):
        after = ran(desk, job, by=f"w{number}/{number}")
        if after.status is Status.FAILED:
            break
    assert after.category is Category.OUTCOME_UNKNOWN
    assert desk.clock.now() - begun <= timedelta(seconds=desk.lane.lookup_grace_s + 60)


@pytest.mark.req("R8")
@pytest.mark.fault("A13")
@pytest.mark.parametrize("kind", list(VendorKind))
def test_ten_clean_refusals_in_a_row_end_in_one_accept(kind: VendorKind) -> None:
    """Each request was begun, none taken over: its 429 is the whole truth, and nobody has to be asked."""
    desk = Desk(kind=kind)
    desk.vendor.script.extend([Says.REFUSE_RATE] * 10)
    job = desk.put(a_job())
    after = ran(desk, job)
    for number in range(10):
        assert after.status is Status.QUEUED
        assert [row.state for row in desk.rows(job.job_id)] == [EffectState.REFUSED]
        after = ran(desk, job, by=f"w{number + 2}/1")
    assert (after.status, after.attempt_count, len(desk.vendor.accepts)) == (Status.COMPLETED, 0, 1)
    assert desk.telemetry.counts[metrics.UNKNOWN, "support"] == 0
    assert desk.telemetry.counts[metrics.CONTRADICTED, "support"] == 0


# --------------------------------------------------------------------------------- waiting over an intent
@pytest.mark.req("F9")
@pytest.mark.fault("A18")
def test_a_wait_that_ends_over_an_open_intent_is_an_unknown_outcome() -> None:
    """The vendor says 429 to every re-send for a day: what it did with the first request, nobody knows."""
    desk = Desk(kind=VendorKind.DEDUPES, max_wait_s=3600)
    desk.vendor._rate_retry_s = 600.0
    job = accepted_and_lost(desk, *[Says.REFUSE_RATE] * 100)
    after = desk.job(job.job_id)
    number = 2
    while after.status is Status.QUEUED:
        after, number = ran(desk, job, by=f"w{number}/1"), number + 1
    assert (after.category, after.last_error) == (Category.OUTCOME_UNKNOWN, "max_wait:vendor:helpdesk:429")
    assert len(desk.vendor.accepts) == 1


# ------------------------------------------------------------------------ what an attempt has not passed
def an_effect(name: str, **other: Any) -> Effect:
    """An effect of the help desk."""
    values: dict[str, Any] = {"vendor": "helpdesk", "action": "reply", "target": "c-1", "customer_visible": True}
    return Effect(**{**values, "body": Sensitive({"name": name}), **other})


Act = Callable[[Context], Outcome | None]


def acting(*attempts: Act) -> Mapping[str, Task]:
    """A task whose first attempt does the first thing, the second the second, and the last one for ever."""
    tried = iter(attempts)
    last: list[Act] = []

    def task(job: Job, ctx: Context) -> Outcome:
        last.append(next(tried, last[-1] if last else attempts[-1]))
        return last[-1](ctx) or Done("made")

    return {"reply": task}


def making(*names: str, **other: Any) -> Act:
    """Make these effects in this order."""

    def act(ctx: Context) -> None:
        for name in names:
            ctx.effect(name, an_effect(name, **other))

    return act


@pytest.mark.req("R8")
@pytest.mark.fault("A14")
@pytest.mark.parametrize(
    ("kind", "status", "category"),
    [
        (VendorKind.EXACT, Status.COMPLETED, None),
        (VendorKind.DEDUPES, Status.FAILED, Category.OUTCOME_UNKNOWN),
    ],
)
def test_done_asks_the_effects_that_its_attempt_did_not_pass(
    kind: VendorKind, status: Status, category: Category | None
) -> None:
    """The second attempt decides otherwise and does nothing: the open intent is looked up, never sent, else parked."""
    desk = Desk(kind=kind, tasks=acting(making("reply"), lambda ctx: Done("nothing_to_do")))
    job = desk.put(a_job())
    desk.vendor.script.append(Says.ACCEPTED_BUT_UNKNOWN)
    desk.vendor.lookup, look_up = Lookup.NONE, desk.vendor.lookup
    desk.vendor.dedupes_by_key = timedelta(days=1)
    ran(desk, job)
    desk.vendor.lookup, desk.vendor.dedupes_by_key = look_up, None if kind is VendorKind.EXACT else timedelta(days=1)
    after = ran(desk, job, by="w2/2")
    assert (after.status, after.category, desk.vendor.requests) == (status, category, 1)
    if status is Status.COMPLETED:
        assert after.result == "acted_before:nothing_to_do"
        assert [row.state for row in desk.rows(job.job_id)] == [EffectState.ACCEPTED]


@pytest.mark.fault("A14")
def test_done_waits_for_a_look_up_that_may_still_find_it() -> None:
    """Absent inside the grace is no answer yet: the job is asked again later, and parked when the grace is over."""
    desk = Desk(kind=VendorKind.EXACT, tasks=acting(making("reply"), lambda ctx: Done("nothing_to_do")))
    desk.vendor.script.append(Says.UNKNOWN)
    job = desk.put(a_job())
    ran(desk, job)
    assert ran(desk, job, by="w2/2").blocked_by == "outcome_lookup"
    desk.clock.advance(desk.lane.lookup_grace_s)
    after = ran(desk, job, by="w3/3")
    assert (after.status, after.category, desk.vendor.requests) == (Status.FAILED, Category.OUTCOME_UNKNOWN, 1)


@pytest.mark.fault("A14")
def test_an_end_after_an_accepted_effect_of_before_says_so() -> None:
    """What the last attempt says it did is not all that was done."""
    desk = Desk(tasks=acting(lambda ctx: (making("reply")(ctx), Retry("later"))[1], lambda ctx: Done("routed")))
    job = desk.put(a_job())
    ran(desk, job)
    after = ran(desk, job, by="w2/2")
    assert (after.status, after.result) == (Status.COMPLETED, "acted_before:routed")


@pytest.mark.fault("A14")
def test_what_was_refused_before_is_no_act() -> None:
    """Nothing stands at the vendor: the end is the task's own."""
    desk = Desk(tasks=acting(making("reply"), lambda ctx: Done("routed")))
    desk.vendor.script.append(Says.REFUSE_RATE)
    job = desk.put(a_job())
    ran(desk, job)
    assert ran(desk, job, by="w2/2").result == "routed"


@pytest.mark.fault("A14")
def test_a_failure_over_an_open_intent_of_another_effect_is_unknown() -> None:
    """The second attempt fails for a reason of its own; what was begun before comes first, and its reason is kept."""
    desk = Desk(
        kind=VendorKind.DEDUPES, tasks=acting(making("reply"), lambda ctx: Fail(Category.VENDOR_PERMANENT, "gone"))
    )
    job = accepted_and_lost(desk)
    after = ran(desk, job, by="w2/2")
    assert (after.category, after.last_error) == (Category.OUTCOME_UNKNOWN, "gone")


@pytest.mark.fault("A14")
def test_a_failure_looks_up_what_it_did_not_pass() -> None:
    """Found: recorded, and the job fails for its own reason, with nothing left unknown."""
    desk = Desk(kind=VendorKind.DEDUPES, tasks=acting(making("reply"), lambda ctx: Fail(Category.MALFORMED, "gone")))
    job = accepted_and_lost(desk)
    desk.vendor.lookup = Lookup.EXACT
    after = ran(desk, job, by="w2/2")
    assert (after.status, after.category, after.last_error) == (Status.FAILED, Category.MALFORMED, "gone")
    assert [row.state for row in desk.rows(job.job_id)] == [EffectState.ACCEPTED]


@pytest.mark.fault("A14")
def test_the_vendor_of_the_row_is_asked() -> None:
    """A vendor that the lane no longer has cannot be asked: a person decides, and nobody else's look-up counts."""
    desk = Desk(kind=VendorKind.EXACT, tasks=acting(lambda ctx: Done("nothing_to_do")))
    job = desk.put(a_job(fence=1))
    desk.effects.intend(an_effect_row(job_id=job.job_id, vendor="gone"))
    after = ran(desk, job)
    assert (after.category, desk.vendor.lookups) == (Category.OUTCOME_UNKNOWN, 0)


@pytest.mark.fault("A14")
@pytest.mark.parametrize("swallows", [Exception, BaseException])
def test_a_task_that_swallows_its_end_has_ended_all_the_same(swallows: type[BaseException]) -> None:
    """`except BaseException`, and another effect after it: nothing more is sent, and the engine's end is the end."""

    def act(ctx: Context) -> Outcome:
        for name in ("reply", "tag"):
            try:
                making(name)(ctx)
            except swallows:
                continue
        return Done("made")

    desk = Desk(tasks=acting(act))
    desk.vendor.script.append(Says.ACCEPTED_BUT_UNKNOWN)
    job = desk.put(a_job())
    after = ran(desk, job)
    assert (after.category, desk.vendor.requests) == (Category.OUTCOME_UNKNOWN, 1)


@pytest.mark.fault("A14")
def test_a_task_that_swallows_a_fault_of_a_vendor_is_not_done() -> None:
    """The request broke between intent and answer; the task goes on as if nothing had been: its end asks the row."""

    class Broken(Flaky):
        def perform(self, *_: Any, **__: Any) -> Any:
            raise RuntimeError("a fault of the adapter")

    def act(ctx: Context) -> Outcome:
        with suppress(Exception):
            making("reply")(ctx)
        return Done("made")

    desk = Desk(tasks=acting(act))
    desk.vendor = Broken(desk.vendor)  # type: ignore[assignment]
    job = desk.put(a_job())
    assert ran(desk, job).category is Category.OUTCOME_UNKNOWN


@pytest.mark.req("R8")
@pytest.mark.fault("A14")
@pytest.mark.parametrize("kind", list(VendorKind))
def test_a_task_that_asks_again_in_the_same_moment_sends_once(kind: VendorKind) -> None:
    """The adapter breaks behind the accept, the task tries again at once, in the same millisecond: the intent is its
    own, of its own fence and moment, and open all the same."""

    class Broken(Flaky):
        def perform(self, *args: Any, **more: Any) -> Any:
            self._target.perform(*args, **more)
            raise RuntimeError("what it said cannot be read")

    def act(ctx: Context) -> None:
        with suppress(RuntimeError):
            making("reply")(ctx)
        making("reply")(ctx)

    desk = Desk(kind=kind, tasks=acting(act))
    vendor, desk.vendor = desk.vendor, Broken(desk.vendor)  # type: ignore[assignment]
    job = desk.put(a_job())
    for number in range(4):
        if desk.job(job.job_id).status is Status.QUEUED:
            ran(desk, job, by=f"w{number}/1")
    assert len(vendor.accepts) == 1


@pytest.mark.req("R8")
@pytest.mark.fault("A15")
@pytest.mark.parametrize("other", [{}, {"target": "c-2"}], ids=["the same", "another"])
def test_two_threads_of_a_task_make_one_effect_of_a_name(other: dict[str, Any]) -> None:
    """Both ask in the same millisecond, under one fence: the second one meets what the first one did."""
    together = Barrier(2)

    class Together(Flaky):
        def intend(self, row: Any) -> Any:
            answer = self._target.intend(row)
            with suppress(BrokenBarrierError):
                together.wait(timeout=0.2)
            return answer

    def act(ctx: Context) -> None:
        with ThreadPoolExecutor(max_workers=2) as pool:
            both = [pool.submit(making("reply", **more), ctx) for more in ({}, other)]
        for one in both:
            one.result()

    desk = Desk(tasks=acting(act))
    desk.effects = Together(desk.effects)  # type: ignore[assignment]
    after = ran(desk, desk.put(a_job()))
    assert (after.category, len(desk.vendor.accepts)) == (Category.MALFORMED if other else None, 1)


@pytest.mark.fault("A14", "C1", "E3")
@pytest.mark.parametrize("method", ["intend", "of_job", "read"])
@pytest.mark.parametrize("says", [Done("made"), Retry("later"), Fail(Category.MALFORMED, "odd")])
def test_a_task_that_swallows_a_fault_of_a_store_has_no_say(method: str, says: Outcome) -> None:
    """The intent could not be written, or what stands, or the switches, could not be read; the task goes on as if it
    had been made. The attempt is put back for the store, with nothing sent and no attempt used."""

    def act(ctx: Context) -> Outcome:
        with suppress(Exception):
            making("reply")(ctx)
        return says

    desk = Desk(tasks=acting(act, making("reply")))
    desk.effects = down = Flaky(desk.effects, "intend", "of_job")  # type: ignore[assignment]
    job = desk.put(a_job(fence=int(method == "of_job")))
    down._methods, down.down = (method,), True
    if method == "read":
        desk.clock.advance(120)

        def unreadable(ctx: Context) -> Outcome:
            desk.control.down = True
            desk.clock.advance(70)
            return act(ctx)

        desk.tasks = acting(unreadable, making("reply"))
    desk.work(a_ticket(job), left_s=500)
    down.down = desk.control.down = False
    after = desk.job(job.job_id)
    assert (after.status, after.attempt_count, desk.vendor.requests) == (Status.QUEUED, 0, 0)
    assert (after.blocked_by or "").startswith("store:")
    assert ran(desk, job, by="w2/2").status is Status.COMPLETED
    assert len(desk.vendor.accepts) == 1


# --------------------------------------------------------------------------------------- names and order
@pytest.mark.req("R8")
@pytest.mark.fault("A15")
@pytest.mark.parametrize("says", [Says.ACCEPT, Says.REFUSE_RATE])
def test_a_new_name_beside_a_row_that_was_not_passed_is_malformed(says: Says) -> None:
    """A model that changed its mind: the customer is not told a second thing, and a replay does not help."""
    first: Act = lambda ctx: (making("reply_billing")(ctx), Retry("later"))[1]  # noqa: E731
    desk = Desk(tasks=acting(first, making("reply_shipping")))
    desk.vendor.script.append(says)
    job = desk.put(a_job())
    ran(desk, job)
    requests = desk.vendor.requests
    after = ran(desk, job, by="w2/2")
    assert (after.category, after.last_error) == (Category.MALFORMED, "new_effect:reply_shipping")
    assert released(desk, job.job_id).category is Category.MALFORMED
    assert desk.vendor.requests == requests == 1


@pytest.mark.fault("A15")
def test_a_new_name_beside_an_open_row_is_unknown() -> None:
    """Nobody knows what became of the first: that comes before the task's fault."""
    desk = Desk(kind=VendorKind.DEDUPES, tasks=acting(making("reply_billing"), making("reply_shipping")))
    job = accepted_and_lost(desk)
    after = ran(desk, job, by="w2/2")
    assert (after.category, after.last_error) == (Category.OUTCOME_UNKNOWN, "new_effect:reply_shipping")
    assert len(desk.vendor.accepts) == 1


@pytest.mark.fault("A15")
def test_a_later_release_may_append_effects() -> None:
    """The old ones are passed first, in their order: what comes behind them is new, and made."""
    first: Act = lambda ctx: (making("tag", "reply")(ctx), Retry("later"))[1]  # noqa: E731
    desk = Desk(tasks=acting(first, making("tag", "reply", "assign")))
    job = desk.put(a_job())
    ran(desk, job)
    after = ran(desk, job, by="w2/2")
    assert (after.status, len(desk.vendor.accepts)) == (Status.COMPLETED, 3)


@pytest.mark.fault("A15")
def test_a_job_whose_row_was_forgotten_meets_what_it_did() -> None:
    """On its first claim nothing is read; the row in its way tells that it was here before, and then all are."""
    desk = Desk(tasks=acting(making("tag", "reply"), making("tag", "note")))
    job = desk.put(a_job())
    ran(desk, job)
    desk.jobs.expire(job.job_id)
    after = ran(desk, desk.put(a_job()))
    assert (after.fence, after.category, after.last_error) == (1, Category.MALFORMED, "new_effect:note")


@pytest.mark.fault("A14")
def test_what_was_read_behind_a_closed_switch_counts() -> None:
    """A job whose row was forgotten, on its first claim: the switch made it look, and its end asks what it saw."""
    desk = Desk(kind=VendorKind.DEDUPES, tasks=acting(making("tag"), making("reply")))
    job = accepted_and_lost(desk)
    desk.jobs.expire(job.job_id)
    desk.close("all", Level.ROUTE_ONLY)
    after = ran(desk, desk.put(a_job()))
    assert (after.fence, after.status, after.category) == (1, Status.FAILED, Category.OUTCOME_UNKNOWN)


@pytest.mark.fault("A14")
def test_nothing_is_handed_to_a_batch_over_an_open_intent() -> None:
    """Whoever collects the batch asks no effects: they are asked before."""
    desk = Desk(kind=VendorKind.DEDUPES, tasks=acting(making("reply"), lambda ctx: Submitted("batch-1")))
    job = accepted_and_lost(desk)
    assert ran(desk, job, by="w2/2").category is Category.OUTCOME_UNKNOWN
    assert ran(desk, desk.put(a_job(key="b")), by="w2/2").status is Status.BATCH_SUBMITTED


# ------------------------------------------------------------------------------ one name for two effects
OTHERS = [{"action": "close"}, {"target": "c-2"}, {"vendor": "mailer"}]


@pytest.mark.req("R8")
@pytest.mark.fault("A19")
@pytest.mark.parametrize("other", OTHERS, ids=lambda other: next(iter(other)))
@pytest.mark.parametrize("says", [Says.ACCEPT, Says.REFUSE_RATE, Says.UNKNOWN])
def test_the_same_name_for_another_effect_is_not_sent(other: dict[str, Any], says: Says) -> None:
    """Another vendor, action or target under one name: malformed, or unknown where the row is open."""
    first: Act = lambda ctx: (making("reply")(ctx), Retry("later"))[1]  # noqa: E731
    desk = Desk(kind=VendorKind.DEDUPES, tasks=acting(first, making("reply", **other)), vendors=("helpdesk", "mailer"))
    mailer = desk.another_vendor("mailer")
    desk.vendor.script.append(says)
    job = desk.put(a_job())
    ran(desk, job)
    after = ran(desk, job, by="w2/2")
    wanted = Category.OUTCOME_UNKNOWN if says is Says.UNKNOWN else Category.MALFORMED
    assert (after.category, after.last_error) == (wanted, "other_effect:reply")
    assert (desk.vendor.requests, mailer.requests) == (1, 0)


@pytest.mark.fault("A19")
def test_another_body_is_the_same_effect() -> None:
    """What is said may differ; that something was said to this customer is what counts."""
    first: Act = lambda ctx: (making("reply")(ctx), Retry("later"))[1]  # noqa: E731
    desk = Desk(tasks=acting(first, making("reply", body=Sensitive({"text": "in other words"}))))
    job = desk.put(a_job())
    ran(desk, job)
    assert ran(desk, job, by="w2/2").result == "already_done"


@pytest.mark.fault("A19")
def test_an_effect_without_a_target_is_refused_before_its_intent() -> None:
    """What cannot be told apart is not begun."""
    desk = Desk(tasks=acting(making("reply", target=None)))
    job = desk.put(a_job())
    after = ran(desk, job)
    assert (after.category, desk.rows(job.job_id)) == (Category.MALFORMED, [])


# ----------------------------------------------------------------------------------------- late evidence
class Late(Flaky):
    """A vendor whose first answer comes after `meanwhile`."""

    meanwhile: Callable[[], object] | None = None

    def perform(self, *args: Any, **kwargs: Any) -> Any:
        answer = self._target.perform(*args, **kwargs)
        act, self.meanwhile = self.meanwhile, None
        if act is not None:
            act()
        return answer


def late(desk: Desk, meanwhile: Callable[[], object]) -> None:
    """Let something happen between the vendor's first answer and the worker hearing it."""
    vendor = Late(desk.vendor)
    vendor.meanwhile = meanwhile
    desk.vendor = vendor  # type: ignore[assignment]


@pytest.mark.req("R8")
@pytest.mark.fault("A16")
def test_a_worker_that_withheld_is_no_evidence() -> None:
    """Parked over the intent of another worker; the one that made nothing must not end it as completed."""
    desk = Desk()
    job = desk.put(a_job())
    desk.close("all", Level.ROUTE_ONLY)

    def meanwhile(ctx: Context) -> Outcome:
        desk.effects.intend(an_effect_row(job_id=job.job_id))
        standing = desk.job(job.job_id)
        parked = lifecycle.settled(standing, Fail(Category.OUTCOME_UNKNOWN, "x"), desk.lane, desk.clock.now())
        desk.jobs.move(standing, parked)
        return Done("withheld")

    desk.tasks = acting(meanwhile)
    after = ran(desk, job)
    assert (after.status, after.category) == (Status.FAILED, Category.OUTCOME_UNKNOWN)


@pytest.mark.fault("A16")
@pytest.mark.parametrize("state", [None, EffectState.INTENT, EffectState.REFUSED, EffectState.ACCEPTED])
def test_late_evidence_is_every_effect_accepted(state: EffectState | None) -> None:
    """A late `Done` completes a parked job only when its effects, read again, are there and all accepted."""
    desk = Desk()
    job = desk.put(a_job())
    desk.jobs.claim(job.job_id, by="w1/1", now=desk.clock.now())
    mine = desk.job(job.job_id)
    for name, end in (("reply", state), ("tag", EffectState.ACCEPTED)) if state else ():
        row = an_effect_row(job_id=job.job_id, name=name)
        desk.effects.intend(row)
        if end is EffectState.ACCEPTED:
            desk.effects.accept(replace(row, state=end, vendor_id="v-1"))
        elif end is EffectState.REFUSED:
            desk.effects.record(row, replace(row, state=end, reason="429"))
    parked = lifecycle.settled(mine, Fail(Category.OUTCOME_UNKNOWN, "x"), desk.lane, desk.clock.now())
    desk.jobs.move(mine, parked)
    with suppress(ClaimLost):
        settle(mine, Done("made"), lane=desk.lane, **desk.stores())
    wanted = Status.COMPLETED if state is EffectState.ACCEPTED else Status.FAILED
    assert desk.job(job.job_id).status is wanted


# ------------------------------------------------------------------------- acceptances that come too late
@pytest.mark.req("R8")
@pytest.mark.fault("A17")
def test_an_acceptance_after_not_sent_is_recorded_and_nothing_is_sent_again() -> None:
    """Two people said *not sent*, the vendor took it after all: the row says so, it alarms, nothing is sent again."""
    desk = Desk()
    job = desk.put(a_job())

    def not_sent() -> None:
        (row,) = desk.rows(job.job_id)
        desk.effects.record(row, replace(row, state=EffectState.REFUSED, reason="operator:not_sent:case/1"))
        standing = desk.job(job.job_id)
        failed = lifecycle.settled(standing, Fail(Category.OUTCOME_UNKNOWN, "x"), desk.lane, desk.clock.now())
        desk.jobs.move(standing, failed)

    late(desk, not_sent)
    ran(desk, job)
    (row,) = desk.rows(job.job_id)
    assert (row.state, row.vendor_id, row.contradicted) == (EffectState.ACCEPTED, "helpdesk-1", True)
    assert desk.telemetry.counts[metrics.CONTRADICTED, "support"] == 1
    assert desk.job(job.job_id).status is Status.COMPLETED
    assert desk.vendor.requests == 1


@pytest.mark.req("R8")
@pytest.mark.fault("A20")
def test_a_second_acceptance_is_kept_beside_the_first() -> None:
    """Said *not sent*, replayed and accepted, and then the first answer comes: both ids stand, and it alarms."""
    desk = Desk()
    job = desk.put(a_job())

    def replayed() -> None:
        (row,) = desk.rows(job.job_id)
        desk.effects.record(row, replace(row, state=EffectState.REFUSED, reason="operator:not_sent:case/1"))
        standing = desk.job(job.job_id)
        failed = lifecycle.settled(standing, Fail(Category.OUTCOME_UNKNOWN, "x"), desk.lane, desk.clock.now())
        desk.jobs.move(standing, failed)
        assert released(desk, job.job_id).status is Status.COMPLETED

    late(desk, replayed)
    ran(desk, job)
    (row,) = desk.rows(job.job_id)
    assert (row.vendor_id, row.also_accepted) == ("helpdesk-2", ("helpdesk-1",))
    assert desk.telemetry.counts[metrics.CONTRADICTED, "support"] == 1


@pytest.mark.fault("A20")
@pytest.mark.parametrize(("times", "alarms"), [(None, 0), (1, 0), (2, 1)])
def test_a_look_up_that_shows_two_accepts_alarms(times: int | None, alarms: int) -> None:
    """The vendor tells how often it took the key: twice is a duplicate, whoever made it."""

    class Counting(Flaky):
        def look_up(self, *args: Any, **more: Any) -> Any:
            return replace(self._target.look_up(*args, **more), times=times)

    desk = Desk(kind=VendorKind.EXACT)
    desk.vendor = Counting(desk.vendor)  # type: ignore[assignment]
    desk.vendor.script.append(Says.ACCEPTED_BUT_UNKNOWN)
    job = desk.put(a_job())
    assert ran(desk, job).status is Status.COMPLETED
    assert desk.telemetry.counts[metrics.CONTRADICTED, "support"] == alarms


@pytest.mark.fault("A17")
def test_an_acceptance_under_an_intent_that_was_taken_over_is_recorded() -> None:
    """Frozen in the call, overtaken by a worker that learnt nothing: what the first one heard is not thrown away."""
    desk = Desk(kind=VendorKind.DEDUPES)
    job = desk.put(a_job())

    def overtaken() -> None:
        desk.clock.advance(desk.lane.claim_timeout_s + 1)
        desk.vendor._target.script.append(Says.REFUSE_PERMANENT)  # type: ignore[attr-defined]
        desk.work(a_ticket(job, message_id="2"), by="w2/2")
        assert desk.job(job.job_id).category is Category.OUTCOME_UNKNOWN

    late(desk, overtaken)
    ran(desk, job)
    assert [row.state for row in desk.rows(job.job_id)] == [EffectState.ACCEPTED]
    assert desk.job(job.job_id).status is Status.COMPLETED


# ------------------------------------------------------------------------------------ time and switches
@pytest.mark.fault("A7")
@pytest.mark.parametrize("taken_over", [False, True])
def test_a_worker_that_stood_still_after_its_intent_does_not_send(taken_over: bool) -> None:
    """No time left at the send: nothing leaves the machine, and a begun intent is closed again, a taken one is not."""
    desk = Desk(kind=VendorKind.DEDUPES)
    job = desk.put(a_job())
    if taken_over:
        job = accepted_and_lost(desk)
    requests = desk.vendor.requests

    class Slow(Flaky):
        def intend(self, row: Any) -> Any:
            answer = self._target.intend(row)
            desk.clock.advance(0 if taken_over else 60)
            return answer

        def take_over(self, *args: Any, **more: Any) -> Any:
            answer = self._target.take_over(*args, **more)
            desk.clock.advance(60)
            return answer

    effects, desk.effects = desk.effects, Slow(desk.effects)  # type: ignore[assignment]
    after = ran(desk, job, by="w2/2")
    desk.effects = effects
    assert (after.status, after.blocked_by, desk.vendor.requests) == (Status.QUEUED, "time_budget", requests)
    assert [row.open for row in desk.rows(job.job_id)] == [taken_over]
    assert ran(desk, job, by="w3/3").status is Status.COMPLETED
    assert len(desk.vendor.accepts) == 1


@pytest.mark.req("C2")
@pytest.mark.fault("E6")
def test_halt_stops_an_effect_that_no_customer_sees() -> None:
    """`route_only` lets a tag through, `halt` lets nothing through: no intent is written, and the job waits."""
    desk = Desk(
        tasks=acting(making("tag", customer_visible=False)), function_timeout_s=60, job_timeout_s=40, visibility_s=400
    )

    def act(ctx: Context) -> None:
        desk.close("all", Level.HALT)
        making("tag", customer_visible=False)(ctx)

    desk.tasks = acting(act, making("tag", customer_visible=False))
    job = desk.put(a_job())
    desk.work(a_ticket(job), left_s=50)
    after = desk.job(job.job_id)
    assert (after.status, after.blocked_by) == (Status.QUEUED, "switches:all")
    assert (desk.rows(job.job_id), desk.vendor.requests) == ([], 0)


# --------------------------------------------------------------------------------------------- its price
class Counted(Flaky):
    """Effects whose reads are counted."""

    reads = 0

    def of_job(self, job_id: str) -> Any:
        self.reads += 1
        return self._target.of_job(job_id)


def test_the_open_path_reads_no_effects() -> None:
    """One attempt with two effects: no read; a second attempt: one, however many effects it has; and one for the first
    attempt of a job whose row was forgotten, once it meets what it did."""
    first: Act = lambda ctx: (making("tag", "reply")(ctx), Retry("later"))[1]  # noqa: E731
    desk = Desk(tasks=acting(first, making("tag", "reply", "assign")))
    counted = Counted(desk.effects)
    desk.effects = counted  # type: ignore[assignment]
    job = desk.put(a_job())
    ran(desk, job)
    assert counted.reads == 0
    ran(desk, job, by="w2/2")
    assert (desk.job(job.job_id).status, counted.reads) == (Status.COMPLETED, 1)
    desk.jobs.expire(job.job_id)
    again = ran(desk, desk.put(a_job()))
    assert (again.fence, again.result, counted.reads) == (1, "already_done", 2)
