"""An unknown outcome is resolved by two people with evidence, and nothing is ever sent twice by it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from shared.adapters.memory.vendor import Says
from shared.core.effects import Effect, EffectState
from shared.core.errors import BadInput
from shared.core.job import Category, Job, Status
from shared.core.outcome import Done, Outcome
from shared.core.plan import Finding
from shared.core.sensitive import Sensitive
from shared.core.switches import Level
from shared.usecases.context import Context
from tests.builders import an_effect_row
from tests.unit.usecases.desk import Flaky
from tests.unit.usecases.redriving import ADA, BOB, RedriveDesk, a_session
from tests.vendors_and_tasks import VendorKind

NOT_SENT, ACCEPTED = Finding.NOT_SENT, Finding.ACCEPTED


def a_parked(says: Says = Says.UNKNOWN, **lane: object) -> tuple[RedriveDesk, str]:
    """A desk with one job whose outcome nobody knows, a while ago."""
    desk = RedriveDesk(**lane)
    (job_id,) = desk.fail(1, says=says)
    assert desk.job(job_id).category is Category.OUTCOME_UNKNOWN
    desk.clock.advance(desk.lane.visibility_s)
    return desk, job_id


@pytest.mark.req("C9")
@pytest.mark.fault("A1")
def test_accepted_completes_the_job_with_its_evidence() -> None:
    """The effect is recorded under the evidence, the job is completed, and nothing was sent for it."""
    desk, job_id = a_parked(Says.ACCEPTED_BUT_UNKNOWN)
    desk.resolver().request(job_id, ACCEPTED, "ticket/4711", by=ADA)
    assert desk.job(job_id).status is Status.FAILED
    _, job = desk.resolver().confirm(job_id, ACCEPTED, "ticket/4711", by=BOB)
    assert (job.status, job.result) == (Status.COMPLETED, "resolved")
    (row,) = desk.rows(job_id)
    assert (row.state, row.vendor_id, row.reason) == (
        EffectState.ACCEPTED,
        "ticket/4711",
        "operator:accepted:ticket/4711",
    )
    assert len(desk.vendor.accepts) == 1
    kinds = [event.kind for event in desk.history.of(f"job/{job_id}", limit=5)]
    assert sorted(kinds) == ["resolution_confirmed", "resolution_requested"]
    # Given again, it changes nothing.
    assert desk.resolver().confirm(job_id, ACCEPTED, "ticket/4711", by=BOB)[1].status is Status.COMPLETED


@pytest.mark.req("C9")
@pytest.mark.fault("A1", "J6")
def test_not_sent_may_be_sent_again_by_a_plan_and_by_nothing_else() -> None:
    """Recorded as refused with its evidence; the job stays failed until a plan; then it is sent once."""
    desk, job_id = a_parked()
    with pytest.raises(BadInput, match="nobody knows"):
        desk.plan(job_id=job_id)
    desk.resolver().request(job_id, NOT_SENT, "case/12", by=ADA)
    with pytest.raises(BadInput, match="nobody knows"):
        desk.plan(job_id=job_id)
    _, job = desk.resolver().confirm(job_id, NOT_SENT, "case/12", by=BOB)
    assert job.status is Status.FAILED
    (row,) = desk.rows(job_id)
    assert (row.state, row.reason) == (EffectState.REFUSED, "operator:not_sent:case/12")
    desk.started(job_id=job_id)
    desk.tick()
    assert desk.job(job_id).status is Status.COMPLETED
    assert len(desk.vendor.accepts) == 1
    assert desk.rows(job_id)[0].first_intent_at == row.first_intent_at


@pytest.mark.fault("J6")
def test_who_requested_it_cannot_confirm_it() -> None:
    """Nothing is recorded; where the lane lets one person replay, one may do this, too."""
    desk, job_id = a_parked()
    desk.resolver().request(job_id, NOT_SENT, "case/12", by=ADA)
    with pytest.raises(BadInput, match="was requested by you: somebody else must confirm it"):
        desk.resolver().confirm(job_id, NOT_SENT, "case/12", by=ADA)
    assert desk.rows(job_id)[0].open
    alone, other = a_parked(one_person_redrive=1)
    alone.resolver().request(other, NOT_SENT, "case/12", by=ADA)
    alone.resolver().confirm(other, NOT_SENT, "case/12", by=ADA)
    assert not alone.rows(other)[0].open


@pytest.mark.fault("J9", "J6")
def test_a_second_name_is_no_second_person() -> None:
    """Ada's own session of the approver's role, and a session whose name she chose: nothing is recorded."""
    desk, job_id = a_parked()
    desk.resolver().request(job_id, NOT_SENT, "case/12", by=ADA)
    with pytest.raises(BadInput, match="was requested by you"):
        desk.resolver().confirm(job_id, NOT_SENT, "case/12", by=a_session("penstock-dev-approver", "ada"))
    with pytest.raises(BadInput, match="may have chosen its name"):
        desk.resolver().confirm(job_id, NOT_SENT, "case/12", by=a_session("Admin", "bob"))
    desk.resolver().request(job_id, NOT_SENT, "case/12", by=a_session("Admin", "bob"))
    with pytest.raises(BadInput, match="somebody whom AWS names must request it again"):
        desk.resolver().confirm(job_id, NOT_SENT, "case/12", by=ADA)
    assert desk.rows(job_id)[0].open


@pytest.mark.fault("J9", "J6")
def test_a_request_that_changes_hands_while_it_is_confirmed_is_refused() -> None:
    """Between the look at who asked and the yes, Bob himself asks: his own yes does not meet his own request."""
    desk, job_id = a_parked()
    desk.resolver().request(job_id, NOT_SENT, "case/12", by=ADA)
    mine = a_session("penstock-dev-approver", "bob")

    class Meanwhile:
        def __getattr__(self, name: str) -> Any:
            return getattr(desk.resolutions, name)

        def confirm(self, *said: Any, **how: Any) -> Any:
            desk.resolver().request(job_id, NOT_SENT, "case/12", by=mine)
            return desk.resolutions.confirm(*said, **how)

    with pytest.raises(BadInput, match=f"was requested by {mine} meanwhile; look at it again"):
        replace(desk.resolver(), resolutions=Meanwhile()).confirm(job_id, NOT_SENT, "case/12", by=BOB)
    assert desk.rows(job_id)[0].open


@pytest.mark.fault("J6")
def test_what_is_confirmed_is_what_was_requested() -> None:
    """Nothing requested, another finding, another evidence, expired, confirmed before: each its own sentence."""
    desk, job_id = a_parked()
    confirm = desk.resolver().confirm
    with pytest.raises(BadInput, match="nobody has asked for a resolution"):
        confirm(job_id, NOT_SENT, "case/12", by=BOB)
    desk.resolver().request(job_id, NOT_SENT, "case/12", by=ADA)
    with pytest.raises(BadInput, match="what was requested is not_sent with evidence case/12"):
        confirm(job_id, ACCEPTED, "case/12", by=BOB)
    with pytest.raises(BadInput, match="confirm exactly that"):
        confirm(job_id, NOT_SENT, "case/13", by=BOB)
    desk.clock.advance(24 * 3600)
    with pytest.raises(BadInput, match="expired"):
        confirm(job_id, NOT_SENT, "case/12", by=BOB)
    assert desk.rows(job_id)[0].open


@pytest.mark.fault("A4")
def test_while_a_worker_may_still_be_sending_nobody_can_say_not_sent() -> None:
    """Before one visibility time-out after the intent it is refused, with the time from which it is not."""
    desk = RedriveDesk()
    (job_id,) = desk.fail(1, says=Says.UNKNOWN)
    (row,) = desk.rows(job_id)
    desk.clock.advance_to(row.intent_at + timedelta(seconds=desk.lane.visibility_s - 1))
    with pytest.raises(BadInput, match="its worker may still be sending; look at the vendor after"):
        desk.resolver().request(job_id, NOT_SENT, "case/12", by=ADA)
    desk.clock.advance(1)
    desk.resolver().request(job_id, NOT_SENT, "case/12", by=ADA)


@pytest.mark.fault("A1")
def test_evidence_that_came_meanwhile_wins() -> None:
    """A record that was written between request and confirmation stays: not sent is refused then."""
    desk, job_id = a_parked(Says.ACCEPTED_BUT_UNKNOWN)
    desk.resolver().request(job_id, NOT_SENT, "case/12", by=ADA)
    (row,) = desk.rows(job_id)
    desk.effects.record(row, replace(row, state=EffectState.ACCEPTED, recorded_at=desk.clock.now(), vendor_id="v-1"))
    with pytest.raises(BadInput, match="no open effect"):
        desk.resolver().confirm(job_id, NOT_SENT, "case/12", by=BOB)
    assert desk.rows(job_id)[0].state is EffectState.ACCEPTED


def a_parked_pair() -> tuple[RedriveDesk, str]:
    """A job with two effects whose end nobody knows: the vendor has the tag, and not the reply.

    The reply met a 429, then a switch withheld it while the tag was begun, then it was begun again.
    """

    def task(job: Job, ctx: Context) -> Outcome:
        body: Sensitive[Mapping[str, Any]] = Sensitive({})
        for name, seen in (("reply", True), ("tag", False)):
            ctx.effect(name, Effect(vendor="helpdesk", action=name, target="c-1", body=body, customer_visible=seen))
        return Done("made")

    desk = RedriveDesk(kind=VendorKind.DEDUPES, tasks={"reply": task})
    desk.vendor.script.extend([Says.REFUSE_RATE, Says.ACCEPTED_BUT_UNKNOWN, Says.UNKNOWN])
    job_id = desk.enqueue().job_id
    for level, wait_s in ((Level.NORMAL, 0), (Level.ROUTE_ONLY, 0), (Level.NORMAL, 0), (Level.NORMAL, 2 * 86_400)):
        desk.close("all", level)
        desk.clock.advance_to((desk.job(job_id).due or desk.clock.now()) + timedelta(seconds=max(11, wait_s)))
        desk.work(job_id)
    assert desk.job(job_id).category is Category.OUTCOME_UNKNOWN
    assert [(row.name, row.open) for row in desk.rows(job_id)] == [("reply", True), ("tag", True)]
    desk.clock.advance(desk.lane.visibility_s)
    return desk, job_id


@pytest.mark.req("C9", "R8")
@pytest.mark.fault("A1", "J6")
def test_of_two_open_effects_each_is_resolved_by_itself() -> None:
    """One finding for both would be a false word about one: a second tag, or a reply that nobody gets."""
    desk, job_id = a_parked_pair()
    with pytest.raises(BadInput, match="has reply, tag open; look each up and resolve it by its name"):
        desk.resolver().request(job_id, NOT_SENT, "case/12", by=ADA)
    with pytest.raises(BadInput, match=r"note of .* is not open; what is: reply, tag"):
        desk.resolver().request(job_id, NOT_SENT, "case/12", by=ADA, effect="note")
    for effect, finding in (("tag", ACCEPTED), ("reply", NOT_SENT)):
        desk.resolver().request(job_id, finding, "case/12", by=ADA, effect=effect)
        _, job = desk.resolver().confirm(job_id, finding, "case/12", by=BOB, effect=effect)
        assert job.status is Status.FAILED
    desk.started(job_id=job_id)
    desk.tick()
    assert desk.job(job_id).status is Status.COMPLETED
    assert sorted(accept.action for accept in desk.vendor.accepts) == ["reply", "tag"]


@pytest.mark.fault("A16")
def test_the_last_effect_that_is_known_completes_the_job() -> None:
    """Both are there: the first word leaves the job as it stands, the second one completes it."""
    desk, job_id = a_parked_pair()
    said = []
    for effect in ("reply", "tag"):
        desk.resolver().request(job_id, ACCEPTED, "t/1", by=ADA, effect=effect)
        said.append(desk.resolver().confirm(job_id, ACCEPTED, "t/1", by=BOB, effect=effect)[1].status)
    assert said == [Status.FAILED, Status.COMPLETED]


@pytest.mark.fault("A1")
def test_two_words_about_one_effect_do_not_both_stand() -> None:
    """Asked for with its name and without: whoever is confirmed second is told what it is by now."""
    desk, job_id = a_parked()
    desk.resolver().request(job_id, NOT_SENT, "case/12", by=ADA)
    desk.resolver().request(job_id, ACCEPTED, "t/1", by=ADA, effect="reply")
    (row,) = desk.rows(job_id)

    class Meanwhile(Flaky):
        def confirm(self, *args: Any, **more: Any) -> Any:
            answer = self._target.confirm(*args, **more)
            desk.effects.record(row, replace(row, state=EffectState.REFUSED, reason="operator:not_sent:case/12"))
            return answer

    desk.resolutions = Meanwhile(desk.resolutions)  # type: ignore[assignment]
    with pytest.raises(BadInput, match="effect reply is refused by now; look again"):
        desk.resolver().confirm(job_id, ACCEPTED, "t/1", by=BOB, effect="reply")


@pytest.mark.req("R8")
@pytest.mark.fault("A1", "F2")
def test_what_was_begun_after_the_request_is_not_resolved_by_it() -> None:
    """A confirmation that stands still before its record: meanwhile the worker's own refusal arrived, a plan let the
    job go, and the effect was begun anew. Said of that one, *not sent* would be a second send."""
    desk, job_id = a_parked()
    desk.resolver().request(job_id, NOT_SENT, "case/12", by=ADA)
    (row,) = desk.rows(job_id)

    class Asleep(Flaky):
        def confirm(self, *args: Any, **more: Any) -> Any:
            answer = self._target.confirm(*args, **more)
            desk.effects.record(row, replace(row, state=EffectState.REFUSED, recorded_at=desk.clock.now(), reason="4"))
            desk.vendor.script.append(Says.ACCEPTED_BUT_UNKNOWN)
            desk.started(job_id=job_id)
            desk.tick()
            return answer

    desk.resolutions = Asleep(desk.resolutions)  # type: ignore[assignment]
    with pytest.raises(BadInput, match="was begun again after that was requested"):
        desk.resolver().confirm(job_id, NOT_SENT, "case/12", by=BOB)
    assert desk.rows(job_id)[0].open
    assert len(desk.vendor.accepts) == 1


def test_a_confirmation_given_again_says_the_same() -> None:
    """It goes on where it ended; said otherwise it is refused with what was confirmed."""
    desk, job_id = a_parked()
    desk.resolver().request(job_id, NOT_SENT, "case/12", by=ADA)
    desk.resolver().confirm(job_id, NOT_SENT, "case/12", by=BOB)
    assert desk.resolver().confirm(job_id, NOT_SENT, "case/12", by=BOB)[1].status is Status.FAILED
    with pytest.raises(BadInput, match="what was requested is not_sent with evidence case/12"):
        desk.resolver().confirm(job_id, ACCEPTED, "case/12", by=BOB)


@pytest.mark.fault("A16")
def test_accepted_does_not_complete_a_job_with_an_effect_that_was_refused() -> None:
    """One effect is known to stand by evidence, another is known not to: the job stays failed, for a plan."""
    desk, job_id = a_parked(Says.ACCEPTED_BUT_UNKNOWN)
    desk.effects.intend(an_effect_row(job_id=job_id, name="tag", state=EffectState.REFUSED))
    desk.resolver().request(job_id, ACCEPTED, "t/1", by=ADA)
    assert desk.resolver().confirm(job_id, ACCEPTED, "t/1", by=BOB)[1].status is Status.FAILED
    assert desk.plan(job_id=job_id).plan.count == 1


def test_accepted_with_more_to_do_goes_on_under_a_plan() -> None:
    """Two effects, the first one unknown: it is recorded, the job stays failed, and a replay makes only the second."""
    desk = RedriveDesk()
    (job_id,) = desk.fail(1, says=Says.ACCEPTED_BUT_UNKNOWN, task="reply_and_tag")
    desk.clock.advance(desk.lane.visibility_s)
    desk.resolver().request(job_id, ACCEPTED, "t/1", by=ADA, more_to_do=True)
    with pytest.raises(BadInput, match="confirm exactly that"):
        desk.resolver().confirm(job_id, ACCEPTED, "t/1", by=BOB)
    assert desk.resolver().confirm(job_id, ACCEPTED, "t/1", by=BOB, more_to_do=True)[1].status is Status.FAILED
    desk.started(job_id=job_id)
    desk.tick()
    assert desk.job(job_id).status is Status.COMPLETED
    assert [accept.action for accept in desk.vendor.accepts] == ["reply", "tag"]


@pytest.mark.parametrize(
    ("finding", "evidence", "says"),
    [
        (NOT_SENT, "", "evidence: is missing"),
        (NOT_SENT, "I looked, it is not there", "it is an id, not text"),
        (NOT_SENT, "x" * 129, "at most 128"),
    ],
)
def test_evidence_is_a_reference(finding: Finding, evidence: str, says: str) -> None:
    """No prose: where it can be seen."""
    desk, job_id = a_parked()
    with pytest.raises(BadInput, match=says):
        desk.resolver().request(job_id, finding, evidence, by=ADA)


def test_what_has_nothing_to_resolve() -> None:
    """No such job, one that is not failed, one whose outcome is known; more to do is for what was accepted."""
    desk, parked = a_parked()
    (known,) = desk.fail(1)
    resolver = desk.resolver()
    with pytest.raises(BadInput, match="does not exist"):
        resolver.request("nobody", NOT_SENT, "x", by=ADA)
    with pytest.raises(BadInput, match="only a failed job"):
        resolver.request(desk.enqueue(key="new").job_id, NOT_SENT, "x", by=ADA)
    desk.clock.advance(timedelta(hours=1).total_seconds())
    with pytest.raises(BadInput, match="its outcome is known"):
        resolver.request(known, NOT_SENT, "x", by=ADA)
    with pytest.raises(BadInput, match="is for what was accepted"):
        resolver.request(parked, NOT_SENT, "x", by=ADA, more_to_do=True)
