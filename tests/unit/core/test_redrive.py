"""The law of a redrive: canary, ten, the rest; room to spare; and every reason to stop."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.core.admission import AccountView, Capacity, View
from shared.core.effects import EffectState
from shared.core.job import Status
from shared.core.lifecycle import replayed
from shared.core.plan import Fate, Progress, Step, entry_of, fate_of, manifest_hash
from shared.core.rate import Budget, Shut, Terms, us_of
from shared.core.redrive import MOST_OPEN, Finish, Look, Release, Stop, Wait, decide, drain_s, obstacle, room
from shared.core.switches import Level, Switches
from tests.builders import NOW, a_job, a_lane, a_switch, an_account, an_effect_row
from tests.unit.core.test_cohort import a_failed


def a_look(**overrides: Any) -> Look:
    """A plan of a hundred jobs that nobody has begun, with all the room there is."""
    values: dict[str, Any] = {
        "left": 100,
        "open": 0,
        "fates": {},
        "letters": 100,
        "fewest_letters": 100,
        "room": 1000,
    }
    return Look(**{**values, **overrides})


@pytest.mark.req("C10")
@pytest.mark.fault("F5")
@pytest.mark.parametrize(
    ("look", "does"),
    [
        ({}, Release(1)),
        ({"left": 99, "open": 1}, Wait("canary")),
        ({"left": 99, "fates": {Fate.COMPLETED: 1}}, Release(10)),
        ({"left": 95, "open": 4, "fates": {Fate.COMPLETED: 1}}, Release(6)),
        ({"left": 89, "open": 10, "fates": {Fate.COMPLETED: 1}}, Wait("jobs under way")),
        ({"left": 89, "open": 1, "fates": {Fate.COMPLETED: 10}}, Wait("jobs under way")),
        ({"left": 89, "fates": {Fate.COMPLETED: 11}}, Release(89)),
        ({"left": 5000, "fates": {Fate.COMPLETED: 11}}, Release(MOST_OPEN)),
        ({"left": 5000, "open": MOST_OPEN, "fates": {Fate.COMPLETED: 11}}, Wait("jobs under way")),
        ({"left": 89, "room": 3, "fates": {Fate.COMPLETED: 11}}, Release(3)),
        ({"left": 89, "room": 0, "held_by": "budget:desk", "fates": {Fate.COMPLETED: 11}}, Wait("budget:desk")),
        ({"left": 99, "fates": {Fate.CHANGED: 1}}, Release(1)),
        ({"left": 0, "open": 2, "fates": {Fate.COMPLETED: 98}}, Wait("jobs under way")),
        ({"left": 0, "fates": {Fate.COMPLETED: 100}}, Finish()),
    ],
)
def test_one_then_ten_then_the_rest(look: dict[str, Any], does: object) -> None:
    """Each wave begins when the one before has ended, and nobody goes for whom there is no room."""
    assert decide(a_look(**look)) == does


@pytest.mark.fault("F5")
@pytest.mark.parametrize(
    ("look", "why"),
    [
        ({"fates": {Fate.RELAPSED: 1}}, "relapse"),
        ({"fates": {Fate.COMPLETED: 500, Fate.RELAPSED: 1}}, "relapse"),
        ({"fates": {Fate.FAILED: 1}}, "failures"),
        ({"fates": {Fate.COMPLETED: 80, Fate.FAILED: 9}}, "failures"),
        ({"letters": 111}, "dead_letters"),
        ({"shut": "desk"}, "shut"),
        ({"quiet_looks": 60}, "rate_limited"),
    ],
)
def test_it_stops_itself(look: dict[str, Any], why: str) -> None:
    """The same error again, other errors, more dead letters, a vendor that takes no calls or answers 429."""
    stopped = decide(a_look(**look))
    assert isinstance(stopped, Stop)
    assert stopped.reason.startswith(f"{why}:")


@pytest.mark.parametrize(
    "look",
    [
        {"fates": {Fate.COMPLETED: 100, Fate.FAILED: 1}},
        {"letters": 110},
        {"quiet_looks": 59},
        {"fates": {Fate.GONE: 9}},
    ],
)
def test_it_does_not_stop_for_little(look: dict[str, Any]) -> None:
    """One other failure among a hundred, a few letters, a short quiet: it goes on."""
    assert isinstance(decide(a_look(**look)), Release)


@given(st.integers(0, 300), st.integers(0, 150), st.integers(0, 400), st.integers(-5, 400))
def test_never_more_than_the_wave_and_the_room(left: int, open_: int, done: int, space: int) -> None:
    """Whatever it sees, what it releases fits: the wave, the room, what may be open, and what is left."""
    decision = decide(a_look(left=left, open=open_, fates={Fate.COMPLETED: done}, room=space))
    if isinstance(decision, Release):
        assert 0 < decision.count <= min(left, space)
        assert open_ + decision.count <= MOST_OPEN
        assert done >= 11 or done + open_ + decision.count <= (1 if done == 0 else 11)


# --------------------------------------------------------------------------------------------------- room
def a_view(terms: Terms | None = None, depth: int = 0, **overrides: Any) -> View:
    lane = a_lane(parallel=10, baseline=2, expected_job_s=1.0)
    account = AccountView(spec=an_account(requests_per_minute=600), budget=Budget(terms=terms or Terms()))
    values: dict[str, Any] = {
        "lane": lane,
        "switches": Switches(),
        "capacity": Capacity(depth=depth, limit=1000),
        "accounts": (account,),
    }
    return View(**{**values, **overrides})


def spare(view: View, *, backlog: bool = False, busy: int = 0, under_way: int = 0) -> tuple[int, str]:
    job = replayed(a_failed("1"), "p", NOW)
    found = room(job, view, NOW, 1.0, backlog=backlog, busy=busy, under_way=under_way)
    return found.count, found.held_by


@pytest.mark.req("C11")
@pytest.mark.fault("F5")
def test_a_replay_has_half_of_the_pace_and_a_quarter_of_the_slots() -> None:
    """360 requests a minute are six a second: three for replays. Of twenty slots at the baseline cap replays hold five
    at most, and only idle ones: however long they go on, the others find fifteen."""
    slow = (AccountView(spec=an_account(requests_per_minute=360), budget=Budget()),)
    assert spare(a_view(accounts=slow)) == (3, "")
    assert spare(a_view(accounts=())) == (5, "")
    assert spare(a_view(accounts=()), busy=4, under_way=4) == (1, "")
    assert spare(a_view(accounts=()), busy=5, under_way=5) == (0, "replays under way")
    assert spare(a_view(accounts=()), busy=17) == (3, "")
    assert spare(a_view(accounts=()), busy=19) == (1, "")


@pytest.mark.req("C11")
@pytest.mark.fault("F5")
def test_others_come_first() -> None:
    """A backlog, messages that wait, a closed switch, a quiet or shut account: nobody is released."""
    now_us = us_of(NOW)
    shut = Terms(shut=Shut(reason="errors", since_us=now_us, probe_us=now_us + 10**9, probe_every_s=10))
    assert spare(a_view(), backlog=True) == (0, "backlog")
    assert spare(a_view(), busy=20) == (0, "capacity:support")
    assert spare(a_view(depth=1000)) == (0, "capacity:support")
    assert spare(a_view(), busy=16) == (4, "")
    closed = Switches(entries={"lane/support": a_switch("lane/support", Level.NO_NEW_STARTS)})
    assert spare(a_view(switches=closed)) == (0, "switches:lane/support")
    assert spare(a_view(Terms(quiet_until_us=now_us + 1))) == (0, "budget:desk_account")
    assert room(a_job(), a_view(shut), NOW, 1.0, backlog=False, busy=0).shut == "desk_account"


def test_how_long_it_takes_at_the_least() -> None:
    """By its slots at the baseline cap, or by half of the account's pace, whichever is slower."""
    lane = a_lane(parallel=10, baseline=2, expected_job_s=1.0)
    assert drain_s(1000, lane, []) == 200
    assert drain_s(1000, lane, [an_account(requests_per_minute=300)]) == 400
    assert drain_s(1000, lane, [an_account(requests_per_minute=300, enforced=False)]) == 200


# -------------------------------------------------------------------------------------------- obstacles
@pytest.mark.req("C9")
@pytest.mark.fault("F3", "C5")
def test_a_job_beyond_the_effect_horizon_is_not_replayed() -> None:
    """380 days after its first intent the guard is still there; a day later nobody relies on it any more."""
    row = an_effect_row(state=EffectState.REFUSED, recorded_at=NOW)
    assert obstacle(a_failed("1"), [row], NOW + timedelta(days=380)) is None
    assert "380 days" in str(obstacle(a_failed("1"), [row], NOW + timedelta(days=380, seconds=1)))


@pytest.mark.fault("F6", "A1")
def test_an_unknown_outcome_is_not_replayed() -> None:
    """An open intent is nobody's licence to send, whatever the job's category."""
    assert "jobs resolve" in str(obstacle(a_failed("1"), [an_effect_row()], NOW))
    assert obstacle(a_failed("1"), [], NOW) is None


# ---------------------------------------------------------------------------------------- manifest, fates
@pytest.mark.fault("J6")
def test_any_change_is_another_manifest() -> None:
    """Another job, order, fence, category or error: another hash."""
    one, two = a_failed("1"), a_failed("2")
    variants = [[one], [two, one], [one, a_failed("2", fence=2)], [one, a_failed("2", error="other")], []]
    hashes = {manifest_hash(map(entry_of, jobs)) for jobs in ([one, two], *variants)}
    assert len(hashes) == len(variants) + 1


@pytest.mark.fault("F2")
def test_a_released_job_is_no_longer_what_was_planned() -> None:
    """Its fence rose with the release: the same entry never fits it again, even if it fails again unclaimed."""
    job = a_failed("1")
    entry, after = entry_of(job), replayed(job, "p", NOW)
    assert entry.holds(job)
    assert not entry.holds(after)
    assert (after.status, after.attempt_count, after.replay_count, after.fence) == (Status.QUEUED, 0, 1, job.fence + 1)
    assert (after.expires_at, after.category, after.signature, after.plan_id) == (None, None, None, "p")


@pytest.mark.req("C10")
def test_a_replayed_job_has_all_its_attempts_again() -> None:
    """It failed by using them up: released with none left it would fail at its first retry."""
    job = replace(a_failed("1"), attempt_count=5, waiting_since=NOW, permit_at=NOW)
    after = replayed(job, "p", NOW)
    assert (after.attempt_count, after.waiting_since, after.permit_at) == (0, None, None)


@pytest.mark.parametrize(
    ("job", "fate"),
    [
        (None, Fate.GONE),
        (a_failed("1"), Fate.CHANGED),
        (a_job(plan_id="p"), None),
        (a_job(plan_id="p", status=Status.PROCESSING), None),
        (a_job(plan_id="p", status=Status.COMPLETED), Fate.COMPLETED),
        (a_job(plan_id="p", status=Status.CANCELED), Fate.CANCELED),
        (a_failed("1", plan_id="p"), Fate.RELAPSED),
        (a_failed("1", plan_id="p", signature="other"), Fate.FAILED),
    ],
)
def test_what_became_of_a_job(job: Any, fate: Fate | None) -> None:
    """By its row: still under way, or one of the ends."""
    assert fate_of(entry_of(a_failed("1")), job, "p") is fate


def test_steps_add_up() -> None:
    """All steps together say how far a plan came."""
    first = Step(number=0, at=NOW, tried=1, fates={"a": Fate.COMPLETED})
    last = Step(number=1, at=NOW, tried=3, fates={"b": Fate.RELAPSED, "c": Fate.COMPLETED})
    progress = Progress(steps=(first, last))
    assert (progress.tried, progress.ended) == (3, None)
    assert progress.counts == {"completed": 2, "relapsed": 1}
