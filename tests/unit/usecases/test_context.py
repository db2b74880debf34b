"""What a task is given: its text, and the only two ways to touch the world."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from shared.adapters.memory.vendor import MemoryVendor, Says
from shared.core.effects import Call, Effect, Withheld
from shared.core.job import Category, Job, Status
from shared.core.outcome import Done, Outcome
from shared.core.sensitive import MASK, Sensitive
from shared.core.switches import Level
from shared.usecases.context import Context
from tests.builders import a_job
from tests.unit.usecases.desk import Desk

ASK = Call(vendor="helpdesk", action="classify", body=Sensitive({"text": "hello"}))
FREE = Call(vendor="helpdesk", action="classify", body=Sensitive({}), paid=False)


def ran(task: Callable[[Job, Context], Any], *, desk: Desk | None = None, payload: Any = None, **more: Any) -> Job:
    """The job after this task."""
    desk = desk or Desk()
    desk.tasks = {"reply": task}
    ref = desk.enqueue(payload=payload if payload is not None else {"text": "hello"})
    desk.work(ref.job_id, **more)
    return desk.job(ref.job_id)


def asking(call: Call = ASK) -> Callable[[Job, Context], Outcome]:
    def task(job: Job, ctx: Context) -> Outcome:
        made = ctx.call(call)
        return Done("withheld" if isinstance(made, Withheld) else "asked")

    return task


def test_the_payload_is_what_was_enqueued_and_masked() -> None:
    """Read from the content store; shown to nobody by accident."""
    seen: list[Sensitive[Any]] = []
    ran(lambda job, ctx: seen.append(ctx.payload) or Done(), payload={"text": "hello", "n": [1, 2.5, None]})  # type: ignore[func-returns-value]
    assert seen[0].reveal() == {"text": "hello", "n": [1, 2.5, None]}
    assert repr(seen[0]) == MASK


def test_an_empty_payload_is_an_empty_object() -> None:
    """No object is stored or read for it."""
    seen: list[Any] = []
    ran(lambda job, ctx: seen.append(ctx.payload.reveal()) or Done(), payload={})  # type: ignore[func-returns-value]
    assert seen == [{}]


def test_a_payload_that_is_gone_fails_at_once() -> None:
    """Erased or expired: no retry brings it back."""

    def task(job: Job, ctx: Context) -> Outcome:
        desk.content.delete(job.payload_ref or "")
        ctx.payload.reveal()
        return Done()

    desk = Desk()
    after = ran(task, desk=desk)
    assert (after.status, after.category, after.last_error) == (Status.FAILED, Category.MALFORMED, "payload_missing")


def test_a_document_of_the_jobs_own_tenant_is_read_and_masked() -> None:
    """By the reference its producer was given."""
    desk = Desk()
    desk.content.put("document/tenant-1/d-1", b"hello")
    seen: list[Sensitive[bytes]] = []
    ran(lambda job, ctx: seen.append(ctx.document("document/tenant-1/d-1")) or Done(), desk=desk)  # type: ignore[func-returns-value]
    assert (repr(seen[0]), seen[0].reveal()) == (MASK, b"hello")


@pytest.mark.parametrize(
    ("ref", "error"),
    [
        ("document/tenant-2/d-1", "bad_input:document"),
        ("document/tenant-1/x/d-1", "bad_input:document"),
        ("payload/tenant-1/d-1", "bad_input:document"),
        (None, "bad_input:document"),
        ("document/tenant-1/absent", "document_missing"),
    ],
)
def test_any_other_document_fails_at_once(ref: Any, error: str) -> None:
    """Another tenant's text is never read, and what is gone does not come back."""
    desk = Desk()
    for tenant in ("tenant-2", "tenant-1/x"):
        desk.content.put(f"document/{tenant}/d-1", b"another's words")
    reads: list[str] = []
    get = desk.content.get
    desk.content.get = lambda ref: reads.append(ref) or get(ref)  # type: ignore[method-assign,func-returns-value]
    after = ran(lambda job, ctx: Done(ctx.document(ref).reveal().decode()), desk=desk)
    assert (after.status, after.category, after.last_error) == (Status.FAILED, Category.MALFORMED, error)
    assert [read for read in reads if read.startswith("document/")] == ([ref] if error == "document_missing" else [])


def test_a_task_cannot_swallow_the_engines_ending() -> None:
    """`except Exception` around an effect does not turn a refusal into a success."""

    def task(job: Job, ctx: Context) -> Outcome:
        try:
            ctx.effect(
                "reply", Effect(vendor="helpdesk", action="r", target="t", body=Sensitive({}), customer_visible=True)
            )
        except Exception:
            return Done("swallowed")
        return Done("sent")

    desk = Desk()
    desk.vendor.script.append(Says.REFUSE_PERMANENT)
    assert ran(task, desk=desk).category is Category.VENDOR_PERMANENT


def test_a_call_may_be_asked_again_and_has_no_key() -> None:
    """Its answer is masked; nothing is written for it."""
    desk = Desk()
    desk.vendor = MemoryVendor(clock=desk.clock, call_reply={"topic": "billing"})
    seen: list[Any] = []
    after = ran(lambda job, ctx: seen.append(ctx.call(ASK)) or Done("asked"), desk=desk)  # type: ignore[func-returns-value]
    assert after.result == "asked"
    assert (repr(seen[0]), seen[0].reveal()) == (MASK, {"topic": "billing"})
    assert desk.rows(after.job_id) == []


@pytest.mark.parametrize(
    ("says", "status", "fields"),
    [
        (Says.UNKNOWN, Status.QUEUED, {"attempt_count": 1, "last_error": "vendor_unavailable:helpdesk:read_timeout"}),
        (Says.REFUSE_RATE, Status.QUEUED, {"attempt_count": 0, "blocked_by": "vendor:helpdesk:429"}),
        (Says.REFUSE_PERMANENT, Status.FAILED, {"category": Category.VENDOR_PERMANENT}),
        (Says.REFUSE_AUTH, Status.FAILED, {"category": Category.AUTH}),
    ],
)
def test_a_calls_failures(says: Says, status: Status, fields: dict[str, Any]) -> None:
    """A time-out or 5xx is passing and uses an attempt, a 429 defers, a clear no fails."""
    desk = Desk()
    desk.vendor.call_script.append(says)
    after = ran(asking(), desk=desk)
    assert after.status is status
    assert {name: getattr(after, name) for name in fields} == fields


@pytest.mark.req("C2")
def test_automation_off_forbids_paid_calls_only() -> None:
    """The paid one is withheld and not made; a free look-up goes on."""
    for call, result, calls in ((ASK, "withheld", 0), (FREE, "asked", 1)):
        desk = Desk()
        desk.close("all", Level.NORMAL, automation_enabled=False)
        assert ran(asking(call), desk=desk).result == result
        assert desk.vendor.calls == calls


@pytest.mark.req("C2")
def test_safe_mode_still_asks() -> None:
    """Withholding replies does not stop the routing that needs a model."""
    desk = Desk()
    desk.close("all", Level.ROUTE_ONLY)
    assert ran(asking(), desk=desk).result == "asked"


def test_without_time_a_call_is_not_made() -> None:
    """One attempt used, nothing paid."""
    desk = Desk()
    after = ran(asking(), desk=desk, left_s=0.5)
    assert (after.last_error, desk.vendor.calls) == ("time_budget", 0)


@pytest.mark.parametrize(
    ("task", "error"),
    [
        (lambda job, ctx: ctx.effect("reply", ASK), "bad_input:effect"),
        (
            lambda job, ctx: ctx.call(
                Effect(vendor="helpdesk", action="r", target="t", body=Sensitive({}), customer_visible=True)
            ),
            "bad_input:call",
        ),
        (
            lambda job, ctx: ctx.effect(
                "reply", Effect(vendor="nobody", action="r", target="t", body=Sensitive({}), customer_visible=True)
            ),
            "bad_input:vendor",
        ),
        (lambda job, ctx: ctx.call(Call(vendor="nobody", action="r", body=Sensitive({}))), "bad_input:vendor"),
        (
            lambda job, ctx: ctx.effect(
                "Not A Name",
                Effect(vendor="helpdesk", action="r", target="t", body=Sensitive({}), customer_visible=True),
            ),
            "bad_input:effect",
        ),
        (lambda job, ctx: ctx.keep("../../etc", b"x"), "bad_input:name"),
        (lambda job, ctx: ctx.keep("two words", b"x"), "bad_input:name"),
    ],
)
def test_a_wrong_door_is_a_defect_of_the_task(task: Callable[[Job, Context], Any], error: str) -> None:
    """Failed at once, naming what; nothing is sent."""
    desk = Desk()
    after = ran(task, desk=desk)
    assert (after.status, after.category, after.last_error) == (Status.FAILED, Category.MALFORMED, error)
    assert (desk.vendor.requests, desk.vendor.calls) == (0, 0)


def test_a_result_is_kept_by_reference() -> None:
    """The row names where it is; keeping the same name again replaces it."""

    def task(job: Job, ctx: Context) -> Outcome:
        ctx.keep("summary", b"first")
        return Done("kept", ctx.keep("summary", b"the summary"))

    desk = Desk()
    after = ran(task, desk=desk)
    assert after.result_ref == f"result/{after.job_id}/summary"
    assert desk.content.get(after.result_ref) == b"the summary"


def test_a_task_is_given_the_time() -> None:
    """From outside, so that tests can bring their own."""
    seen: list[Any] = []
    desk = Desk()
    ran(lambda job, ctx: seen.append(ctx.now) or Done(), desk=desk)  # type: ignore[func-returns-value]
    assert seen == [desk.clock.now()]


def test_the_tenant_is_the_rows_and_not_the_payloads() -> None:
    """Whatever a payload claims, the job says whose it is."""
    seen: list[str] = []
    desk = Desk()
    ran(lambda job, ctx: seen.append(job.tenant) or Done(), desk=desk, payload={"tenant": "somebody-else"})  # type: ignore[func-returns-value]
    assert seen == [a_job().tenant]
