"""Schedules: rules are read strictly, slots are UTC, and no summer time moves or doubles one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.core.errors import BadInput
from shared.core.moment import iso, parse
from shared.core.schedule import Misfire, Overlap, ScheduleRule, is_going, made_up, missed, slot_at, slots_in_sight
from shared.core.stage import StageSpec
from tests.builders import NOW
from tests.unit.core.strategies import moments

BERLIN, NEW_YORK = ZoneInfo("Europe/Berlin"), ZoneInfo("America/New_York")
NIGHTS = {
    "Berlin loses an hour": (BERLIN, datetime(2026, 3, 29, 1, 0, tzinfo=UTC)),
    "Berlin gains an hour": (BERLIN, datetime(2026, 10, 25, 1, 0, tzinfo=UTC)),
    "New York loses an hour": (NEW_YORK, datetime(2026, 3, 8, 7, 0, tzinfo=UTC)),
    "New York gains an hour": (NEW_YORK, datetime(2026, 11, 1, 6, 0, tzinfo=UTC)),
}
"""Each transition night of 2026: the zone and the moment its clocks are put."""


@pytest.mark.fault("D2")
@pytest.mark.parametrize(
    ("text", "made"), [("skip", 0), ("run_once", 1), ("catch_up(1)", 1), ("catch_up(7)", 7), ("catch_up(100)", 100)]
)
def test_a_misfire_rule_is_read_and_written(text: str, made: int) -> None:
    """The three forms, and back."""
    rule = Misfire.parse(text)
    assert rule.made_up == made
    assert Misfire.parse(str(rule)) == rule


@pytest.mark.parametrize("text", ["", "never", "catch_up", "catch_up(0)", "catch_up(101)", "catch_up(-1)", 3, None])
def test_any_other_misfire_rule_is_refused(text: object) -> None:
    """With the field and the forms there are."""
    with pytest.raises(BadInput, match="skip, run_once or catch_up"):
        Misfire.parse(text)


def test_a_stage_has_a_rule_for_each_schedule() -> None:
    """Said in its settings, skip where nothing is said; a wrong one is named by its place."""
    entry = {"misfire": "catch_up(3)", "overlap": "allow"}
    spec = StageSpec.from_mappings("dev", {"schedule_rules": {"auditor": entry}})
    rule = spec.schedule_rules["auditor"]
    assert rule == ScheduleRule(misfire=Misfire(made_up=3), overlap=Overlap.ALLOW)
    assert ScheduleRule.from_mapping("auditor", rule.to_mapping()) == rule
    assert ScheduleRule() == ScheduleRule(misfire=Misfire(made_up=0), overlap=Overlap.SKIP)
    assert ScheduleRule().to_mapping() == {}
    for wrong, where in (
        ({"auditor": {"overlap": "maybe"}}, "schedule_rules.auditor.overlap"),
        ({"auditor": {"misfire": "maybe"}}, "schedule_rules.auditor.misfire"),
        ({"auditor": {"late": "skip"}}, "schedule_rules.auditor"),
        ({"gardener": {}}, "schedule_rules.gardener"),
    ):
        with pytest.raises(BadInput) as refused:
            StageSpec.from_mappings("dev", {"schedule_rules": wrong})
        assert refused.value.field == where


@given(at=moments, period_s=st.sampled_from([60, 300, 3600]), gap=st.integers(0, 40), most=st.integers(0, 10))
def test_what_is_made_up_was_missed(at: datetime, period_s: int, gap: int, most: int) -> None:
    """The newest of the slots between the last run and this one, oldest first, and never more than the rule says."""
    slot = slot_at(at, period_s)
    step = timedelta(seconds=period_s)
    last = slot - step * (gap + 1)
    slots = made_up(slot, last, period_s, Misfire(made_up=most))
    assert missed(slot, last, period_s) == gap
    assert slots == [slot - step * back for back in range(min(gap, most), 0, -1)]
    assert made_up(slot, None, period_s, Misfire(made_up=most)) == []


@pytest.mark.fault("D3")
@given(period_s=st.sampled_from([60, 300, 3600]), limit_s=st.integers(1, 900), age_s=st.integers(0, 5000))
def test_every_run_that_may_be_going_is_in_sight(period_s: int, limit_s: int, age_s: int) -> None:
    """However long a run may take, the look reaches back to the slot it was started in."""
    started = NOW - timedelta(seconds=age_s)
    if is_going(started, None, NOW, limit_s):
        slots = (slot_at(NOW, period_s) - slot_at(started, period_s)).total_seconds() / period_s + 1
        assert slots <= slots_in_sight(period_s, limit_s)
    assert not is_going(started, NOW, NOW, limit_s)


@pytest.mark.fault("D5")
@pytest.mark.parametrize(("zone", "change"), NIGHTS.values(), ids=NIGHTS)
@pytest.mark.parametrize("period_s", [60, 300, 3600])
def test_slots_do_not_feel_a_change_of_clocks(zone: ZoneInfo, change: datetime, period_s: int) -> None:
    """Through both nights, told in local time: one slot follows the other, none is left out and none comes twice."""
    before, after = (change + timedelta(hours=h) for h in (-3, 3))
    assert before.astimezone(zone).utcoffset() != after.astimezone(zone).utcoffset()
    steps = range(0, int((after - before).total_seconds()), period_s)
    told = [(before + timedelta(seconds=s)).astimezone(zone) for s in steps]
    slots = [slot_at(moment, period_s) for moment in told]
    assert slots == [before + timedelta(seconds=s) for s in steps]
    assert sorted(map(iso, slots)) == [iso(slot) for slot in slots]
    assert all(missed(two, one, period_s) == 0 for one, two in pairwise(slots))


@pytest.mark.fault("D5")
@pytest.mark.parametrize(("zone", "change"), NIGHTS.values(), ids=NIGHTS)
def test_a_moment_is_written_and_read_back_as_itself(zone: ZoneInfo, change: datetime) -> None:
    """The hour that comes twice is two hours in UTC, and their texts are in order."""
    moments_of_night = [change + timedelta(minutes=m) for m in (-61, -60, -30, -1, 0, 1, 30, 59, 60, 61)]
    texts = [iso(moment.astimezone(zone)) for moment in moments_of_night]
    assert [parse(text) for text in texts] == moments_of_night
    assert sorted(set(texts)) == texts
