"""A validation passes when everything is in order, and each planted violation makes it fail by its own name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from shared.core import lifecycle
from shared.core.effects import Absent, EffectState, Found, Lookup, LookupAnswer, NoAnswer, effect_id_of
from shared.core.errors import BadInput, Unavailable
from shared.core.job import Category, Status
from shared.core.outcome import Done
from shared.core.personal import MARK
from shared.core.switches import Level
from shared.core.validation_facts import Verdict
from shared.usecases.keep_incident import open_incident
from tests.builders import a_job
from tests.unit.usecases.aftermath import ADA, BILLING, ENGINE, LEGAL, WORKER, Aftermath


@pytest.mark.req("C12")
def test_everything_in_order_passes() -> None:
    """Nothing is said to be wrong, nothing was left out, and everything was counted."""
    after = Aftermath()
    checks = after.checks()
    assert {name: (check.violations, check.unchecked) for name, check in checks.items()} == dict.fromkeys(
        ("documented", "effects", "tier_0", "leaks", "replays", "states"), ((), ())
    )
    assert after.verdict() is Verdict.PASS
    assert checks["effects"].counts == {
        "add_tag accepted": 5,
        "assign accepted": 5,
        "looked up": 14,
        "reply accepted": 4,
    }
    assert checks["tier_0"].counts == {"Tier 0 jobs": 1, "answered jobs": 4}
    assert checks["leaks"].counts == {"lines read": 6, "log groups": 2}
    assert checks["documented"].counts == {"incidents": 1, "changes by hand": 5}
    assert checks["replays"].counts == {"plans": 1, "replayed jobs": 1}


# --------------------------------------------------------------------------------------- planted violations
def double_accept(after: Aftermath) -> None:
    after.send(effect_id_of(after.answered[0].job_id, "reply"))


def double_tag(after: Aftermath) -> None:
    after.send(effect_id_of(after.answered[0].job_id, "add_tag"), "add_tag")


def row_without_record(after: Aftermath) -> None:
    after.effect(after.answer("event-lost", effects=()), "reply", sent=False)


def refused_and_yet_sent(after: Aftermath) -> None:
    after.effect(after.answer("event-refused", effects=()), "reply", EffectState.REFUSED)


def unknown_and_yet_sent(after: Aftermath) -> None:
    job = a_job(key="event-unknown", status=Status.FAILED, category=Category.OUTCOME_UNKNOWN, routing_decision=BILLING)
    after.jobs.put(replace(job, created_at=after.clock.now(), updated_at=after.clock.now()))
    after.effect(job, "reply", EffectState.INTENT)


def another_id(after: Aftermath) -> None:
    job = after.answer("event-ids", effects=())
    row = after.effect(job, "reply", EffectState.INTENT)
    result = replace(row, state=EffectState.ACCEPTED, recorded_at=after.clock.now(), vendor_id="another")
    after.effects.record(row, result)


def one_cause_two_tasks(after: Aftermath) -> None:
    after.answer("event-0", task="second")


def tier_0_reply(after: Aftermath) -> None:
    after.answer("event-sued", route=LEGAL)


def tier_0_by_the_list(after: Aftermath) -> None:
    after.answer("event-sued", route={**LEGAL, "tier_0": False})


def tier_0_under_a_quiet_name(after: Aftermath) -> None:
    after.effect(after.answer("event-quiet", route=LEGAL, effects=()), "assign_and_reply")


def accepted_under_two_ids(after: Aftermath) -> None:
    row = after.effect(after.answer("event-two", effects=()), "reply")
    after.effects.accept(replace(row, state=EffectState.ACCEPTED, vendor_id="helpdesk-other"))


def tier_0_begun(after: Aftermath) -> None:
    job = after.answer("event-sued", route=LEGAL, effects=())
    after.effect(job, "reply", EffectState.INTENT, sent=False)


def canary_in_a_line(after: Aftermath) -> None:
    after.logs.write(ENGINE, after.clock.now(), f"got {MARK.upper()}-7f3a")


def email_in_a_line(after: Aftermath) -> None:
    after.logs.write(WORKER, after.clock.now(), "from jane.doe@example.org")


def open_again(after: Aftermath) -> None:
    open_incident("support", by=ADA, why="again", history=after.history, clock=after.clock)


def change_without_incident(after: Aftermath) -> None:
    after.clock.advance(3600)
    after.switch(Level.HALT, "just in case")


def change_without_a_reason(after: Aftermath) -> None:
    after.happened("capacity/support", "pin", ADA, cap=8)


def change_by_nobody(after: Aftermath) -> None:
    after.happened("switch/lane/support", "switch", "", level="normal", why="x")


def replayed_without_plan(after: Aftermath) -> None:
    after.answer("event-again", replay_count=1)


def replayed_by_a_plan_that_is_not_there(after: Aftermath) -> None:
    after.answer("event-again", plan="plan-nobody")


def replayed_by_another_plan(after: Aftermath) -> None:
    after.answer("event-again", plan="plan-event-replayed")


def approved_by_its_author(after: Aftermath) -> None:
    after.redrive("event-own", approver=ADA)


def stuck_in_the_queue(after: Aftermath) -> None:
    long_ago = after.since - timedelta(hours=2)
    after.jobs.put(a_job(key="event-stuck", created_at=long_ago, updated_at=long_ago))


PLANTED: dict[str, tuple[Callable[[Aftermath], None], str]] = {
    "the vendor accepted a reply twice": (double_accept, "double_effect"),
    "the vendor has a tag twice": (double_tag, "double_effect"),
    "a row says accepted, the vendor knows nothing": (row_without_record, "lost_effect"),
    "a row says not sent, the vendor has it": (refused_and_yet_sent, "accepted_after_all"),
    "nobody knew, the vendor has it": (unknown_and_yet_sent, "accepted_unrecorded"),
    "row and record name different ids": (another_id, "another_id"),
    "two tasks answered one cause": (one_cause_two_tasks, "double_effect"),
    "a Tier 0 reply": (tier_0_reply, "tier_0_answered"),
    "a reply to an intent that the list has": (tier_0_by_the_list, "tier_0_answered"),
    "a Tier 0 reply whose name begins with assign": (tier_0_under_a_quiet_name, "tier_0_answered"),
    "a row with a second acceptance": (accepted_under_two_ids, "double_effect"),
    "a Tier 0 reply that was begun": (tier_0_begun, "tier_0_answered"),
    "a canary in a log line": (canary_in_a_line, "personal_data"),
    "an e-mail address in a log line": (email_in_a_line, "personal_data"),
    "an incident that is open": (open_again, "incident_open"),
    "a change in no incident": (change_without_incident, "outside_incident"),
    "a change without a reason": (change_without_a_reason, "unexplained"),
    "a change by nobody": (change_by_nobody, "unexplained"),
    "a job replayed without a plan": (replayed_without_plan, "replayed_without_plan"),
    "a plan that is not there": (replayed_by_a_plan_that_is_not_there, "replayed_without_plan"),
    "a plan that is about other jobs": (replayed_by_another_plan, "replayed_without_plan"),
    "a plan approved by its author": (approved_by_its_author, "unapproved_plan"),
    "a job that nothing brings on": (stuck_in_the_queue, "stuck"),
}


@pytest.mark.req("C12")
@pytest.mark.parametrize(("plant", "code"), PLANTED.values(), ids=PLANTED)
def test_a_planted_violation_fails_by_its_name(plant: Callable[[Aftermath], None], code: str) -> None:
    """Nothing before, and exactly this after: what, where, and no word of what a customer wrote."""
    after = Aftermath()
    assert after.codes() == set()
    plant(after)
    found = after.violations()
    assert {one.code for one in found} == {code}
    assert after.verdict() is Verdict.FAIL
    assert all(one.where and one.what for one in found)


@pytest.mark.req("C12", "R14")
def test_what_was_seen_is_not_repeated() -> None:
    """A finding names the group, the stream, the time and the character; the address itself is nowhere."""
    after = Aftermath()
    email_in_a_line(after)
    (found,) = after.violations()
    assert (WORKER in found.where, "character 5" in found.where) == (True, True)
    assert "jane" not in repr(after.checks())


@pytest.mark.req("C12")
def test_no_incident_on_record_fails() -> None:
    """A validation of a time that nobody wrote anything down about is not one after an incident."""
    after = Aftermath()
    later = after.clock.now() - timedelta(seconds=1)
    assert after.codes(since=later) == {"no_incident"}


def test_the_engines_own_changes_need_nobody() -> None:
    """A trip by the governor stands in the timeline, and no person has to explain it."""
    after = Aftermath()
    after.clock.advance(7200)
    after.happened("switch/lane/support", "switch", "governor", level="route_only", why="unstable: helpdesk")
    assert after.codes() == set()
    assert len(after.facts().switches) == 3


# --------------------------------------------------------------------------------- never a pass by omission
class Silent:
    """A vendor that can be asked and does not answer."""

    name, dedupes_by_key, lookup = "helpdesk", None, Lookup.EXACT

    def __init__(self, answer: LookupAnswer | None = None) -> None:
        self.answer, self.asked = answer or NoAnswer("timeout"), 0

    def perform(self, request: Any, *, key: str | None, timeout_s: float) -> Any:
        raise AssertionError("a validation sends nothing")

    def look_up(self, key: str, *, timeout_s: float) -> LookupAnswer:
        self.asked += 1
        return self.answer


class Locked:
    """Logs that this caller may not read."""

    def lines(self, group: str, **span: Any) -> Any:
        raise Unavailable("logs", "AccessDeniedException")


@pytest.mark.req("C12")
@pytest.mark.parametrize(
    ("options", "check", "word"),
    [
        ({"vendors": {}}, "effects", "is not known"),
        ({"vendors": {"helpdesk": Silent()}}, "effects", "gave no answer"),
        ({"logs": Locked()}, "leaks", "AccessDeniedException"),
    ],
    ids=["no vendor", "a silent vendor", "no permission"],
)
def test_what_could_not_be_looked_at_is_no_pass(options: dict[str, Any], check: str, word: str) -> None:
    """Incomplete, with the reason; the other checks are judged all the same."""
    after = Aftermath()
    checks = after.checks(**options)
    assert {name for name, one in checks.items() if one.verdict is not Verdict.PASS} == {check}
    assert checks[check].verdict is Verdict.INCOMPLETE
    assert word in checks[check].unchecked[0]
    assert after.verdict(**options) is Verdict.INCOMPLETE


@pytest.mark.req("C12")
def test_a_vendor_that_does_not_count_proves_nothing() -> None:
    """Found, without how often: whether it was sent twice is not known."""
    after = Aftermath()

    class Uncounting(Silent):
        def look_up(self, key: str, *, timeout_s: float) -> LookupAnswer:
            answer = after.vendor.look_up(key, timeout_s=timeout_s)
            return Found(answer.vendor_id) if isinstance(answer, Found) else answer

    checks = after.checks(vendors={"helpdesk": Uncounting()})
    assert "how often" in checks["effects"].unchecked[0]
    assert checks["effects"].verdict is Verdict.INCOMPLETE


def test_an_answer_of_a_job_without_a_route_is_not_checked() -> None:
    """Nobody can tell what it was about without reading what the customer wrote, and that is not done."""
    after = Aftermath()
    after.answer("event-bare", route=None)
    assert "keep no route" in after.checks()["tier_0"].unchecked[0]


def test_an_outcome_that_nobody_knows_is_not_checked() -> None:
    """Begun, parked, and the vendor does not know it: an operator decides, the report does not."""
    after = Aftermath()
    job = a_job(key="event-unknown", status=Status.FAILED, category=Category.OUTCOME_UNKNOWN, routing_decision=BILLING)
    after.jobs.put(replace(job, created_at=after.clock.now(), updated_at=after.clock.now()))
    after.effect(job, "reply", EffectState.INTENT, sent=False)
    checks = after.checks()
    assert "penstock jobs resolve" in checks["effects"].unchecked[0]
    assert checks["effects"].violations == ()


def test_what_a_worker_does_right_now_is_nobodys_fault() -> None:
    """A job under way may have begun to send a moment ago."""
    after = Aftermath()
    now = after.clock.now()
    job = a_job(key="event-now", status=Status.PROCESSING, created_at=now, updated_at=now, claimed_at=now)
    after.jobs.put(job)
    after.effect(job, "add_tag", EffectState.INTENT)
    assert after.verdict() is Verdict.PASS


class Working(Silent):
    """A vendor of a lane that works on: while it is asked, a worker records what it has sent and ends its job."""

    def __init__(self, after: Aftermath, meanwhile: Callable[[], None]) -> None:
        super().__init__()
        self.after, self.meanwhile = after, [meanwhile]

    def look_up(self, key: str, *, timeout_s: float) -> LookupAnswer:
        if self.meanwhile:
            self.meanwhile.pop()()
        return self.after.vendor.look_up(key, timeout_s=timeout_s)


@pytest.mark.req("C12")
@pytest.mark.parametrize("before", [EffectState.INTENT, EffectState.REFUSED])
def test_what_is_recorded_while_one_looks_is_looked_at_again(before: EffectState) -> None:
    """A row read as open or refused, and accepted a moment later: a second look finds the truth, and the route."""
    after = Aftermath()
    now = after.clock.now() - timedelta(hours=1)
    job = a_job(key="event-now", status=Status.PROCESSING, created_at=now, updated_at=after.clock.now(), claimed_at=now)
    after.jobs.put(job)
    row = after.effect(job, "reply", before, sent=False)

    def meanwhile() -> None:
        if before is EffectState.REFUSED:
            after.effects.intend(row)
        given = after.send(row.effect_id)
        result = replace(row, state=EffectState.ACCEPTED, recorded_at=after.clock.now(), vendor_id=given)
        after.effects.record(row, result)
        done = lifecycle.settled(job, Done("replied", routing=BILLING), after.lane, after.clock.now())
        after.jobs.move(job, done)

    checks = after.checks(vendors={"helpdesk": Working(after, meanwhile)})
    assert {
        name: (one.violations, one.unchecked) for name, one in checks.items() if one.verdict is not Verdict.PASS
    } == {}
    assert checks["tier_0"].counts["answered jobs"] == 5


def test_jobs_that_expired_leave_a_gap() -> None:
    """Completed jobs are kept for a week: a report on two weeks says what it cannot see."""
    after = Aftermath()
    checks = after.checks(since=after.clock.now() - timedelta(days=14))
    assert all("expired" in checks[name].unchecked[-1] for name in ("effects", "tier_0", "states"))


def test_a_plan_that_runs_is_not_judged_yet() -> None:
    """What becomes of its jobs is not known before it ends."""
    after = Aftermath()
    after.redrive("event-running", ended=False)
    assert "still runs" in after.checks()["replays"].unchecked[0]


# --------------------------------------------------------------------------------------------- bounded reads
def test_a_sample_says_so_and_asks_for_what_may_be_wrong() -> None:
    """Of many effects a few are looked up, first whatever was replayed or not accepted. The rest is not proven."""
    after = Aftermath()
    refused_and_yet_sent(after)
    checks = after.checks(sample=5)
    assert "a sample: 5 of 15 effects were looked up at their vendor" in checks["effects"].unchecked[0]
    assert [one.code for one in checks["effects"].violations] == ["accepted_after_all"]
    assert Aftermath().verdict(sample=5) is Verdict.INCOMPLETE
    assert Aftermath().verdict(sample=15) is Verdict.PASS


def test_a_silent_vendor_is_not_asked_for_ever() -> None:
    """After twenty look-ups without an answer nobody else is asked."""
    after = Aftermath()
    for number in range(40):
        after.answer(f"more-{number}")
    silent = Silent()
    after.checks(vendors={"helpdesk": silent})
    assert silent.asked == 20


def test_a_vendor_is_asked_at_its_pace() -> None:
    """Fourteen look-ups at sixty a minute take thirteen seconds."""
    after = Aftermath()
    began = after.clock.now()
    after.facts(per_minute={"helpdesk": 60})
    assert (after.clock.now() - began).total_seconds() == pytest.approx(13, abs=0.1)


def test_an_eventual_look_up_is_given_its_time() -> None:
    """A vendor that knows late may not know yet: not checked now, lost when the grace is over."""
    after = Aftermath()
    after.vendor.lookup = Lookup.EVENTUAL
    silent = Silent(Absent())
    silent.lookup = Lookup.EVENTUAL
    after.answer("event-fresh")
    found = after.checks(vendors={"helpdesk": silent})["effects"]
    assert "may not know them yet" in found.unchecked[0]
    assert len(found.violations) == 14


def test_an_incident_by_its_id() -> None:
    """One is looked at by name; a name that is none lists those there are."""
    after = Aftermath()
    (incident,) = after.facts().incidents
    assert after.facts(incident_id=incident.incident_id).incidents == (incident,)
    with pytest.raises(BadInput, match=incident.incident_id):
        after.facts(incident_id="nope")


def test_time_that_does_not_pass_is_refused() -> None:
    """From later to earlier there is nothing to look at."""
    after = Aftermath()
    with pytest.raises(BadInput, match="since"):
        after.facts(since=after.clock.now(), until=after.since)
