"""How bad it is, number by number, each from the configuration."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from infra.stage import CONFIG, DEFAULTS
from shared.core.capacity import POLICIES, Policy
from shared.core.errors import BadInput
from shared.core.severity import Reading, Severity, Thresholds, of_age, read, severity
from shared.core.signals import (
    MINUTE,
    Counts,
    Minute,
    Moved,
    Signals,
    VendorCounts,
    coarse_age_s,
    moved_now,
    queue_age_s,
    total,
)
from shared.core.stage import StageSpec
from tests.builders import NOW

T = Thresholds()
AT = NOW + timedelta(seconds=20)
"""Twenty seconds into a minute."""


def signals(*back: Counts, **more: Any) -> Signals:
    """The last full minute, the one before, and so on."""
    minutes = tuple(Minute(at=NOW - n * MINUTE, counts=counts) for n, counts in enumerate(back, start=1))
    return Signals(at=AT, minutes=minutes, **more)


def a_vendor(**counts: int) -> Counts:
    return Counts(claims=counts.get("calls", 0), vendors={"helpdesk": VendorCounts(**counts)})


def seen(age_s: int) -> Signals:
    """A worker started a job of that age."""
    return signals(Counts(claims=1, oldest_age_s=age_s), visible=1)


# ----------------------------------------------------------------------------------------------- queue age
@pytest.mark.req("C3")
@pytest.mark.parametrize(
    ("age_s", "expected"),
    [
        (0, Severity.NORMAL),
        (59, Severity.NORMAL),
        (60, Severity.MILD),
        (119, Severity.MILD),
        (120, Severity.MODERATE),
        (300, Severity.MODERATE),
        (301, Severity.SEVERE),
        (86_400, Severity.SEVERE),
    ],
)
def test_age_alone_gives_the_class(age_s: int, expected: Severity) -> None:
    """normal < 60 s ≤ mild < 120 s ≤ moderate ≤ 300 s < severe."""
    assert expected is severity(seen(age_s), T)
    assert expected is severity(Signals(at=AT, oldest_due_at=AT - timedelta(seconds=age_s)), T)


@pytest.mark.req("C3")
def test_age_is_of_the_oldest_wherever_it_stands() -> None:
    """The table and the queue, whichever holds the older job."""
    young = signals(Counts(claims=3, oldest_age_s=10), oldest_due_at=AT - timedelta(seconds=200))
    assert queue_age_s(young) == 200
    assert queue_age_s(signals(Counts(claims=3, oldest_age_s=90), oldest_due_at=AT - timedelta(seconds=5))) == 90


@pytest.mark.req("C3")
def test_a_standstill_grows_older() -> None:
    """Nothing is started and messages are visible: the age grows from what it was when the queue last moved."""
    stands = signals(visible=7, moved=Moved(at=AT - timedelta(minutes=6), age_s=30))
    assert queue_age_s(stands) == 390
    assert Severity.SEVERE is severity(stands, T)
    assert stands.moved == moved_now(stands), "it goes on from the same moment"


@pytest.mark.req("C3")
def test_an_empty_queue_has_no_age_and_starts_anew() -> None:
    """What is not there does not wait, and the next standstill counts from here."""
    empty = signals(visible=0, moved=Moved(at=AT - timedelta(hours=1), age_s=30))
    assert queue_age_s(empty) == 0
    assert Moved(at=AT) == moved_now(empty)


def test_the_first_look_at_a_standstill_begins_to_count() -> None:
    """Nobody knows since when it stands: from now on."""
    first = signals(visible=3)
    assert queue_age_s(first) == 0
    later = replace(first, at=AT + timedelta(seconds=90), moved=moved_now(first))
    assert queue_age_s(later) == 90


def test_the_minute_that_has_begun_counts_as_movement() -> None:
    """A look at the first seconds of a minute sees the minute before, too."""
    fresh = Signals(
        at=AT, minutes=(Minute(at=NOW, counts=Counts(claims=1, oldest_age_s=70)),), visible=5, moved=Moved(at=NOW)
    )
    assert queue_age_s(fresh) == 70


# ------------------------------------------------------------------------------------------------- spikes
@pytest.mark.req("C16", "C3")
@pytest.mark.parametrize("kind", ["limited", "errors"])
@pytest.mark.parametrize(
    ("bad", "calls", "spikes"), [(5, 100, True), (5, 101, False), (4, 4, False), (5, 5, True), (0, 0, False)]
)
def test_a_spike_is_five_calls_and_five_percent(kind: str, bad: int, calls: int, spikes: bool) -> None:
    """Of one vendor's calls in the last full minute; it raises the class by one."""
    found = read(signals(a_vendor(calls=calls, **{kind: bad})), T)
    assert (("helpdesk",) if spikes else ()) == (found.limited if kind == "limited" else found.failing)
    assert (Severity.MILD if spikes else Severity.NORMAL) is found.severity


@pytest.mark.req("C16")
def test_only_the_last_full_minute_spikes() -> None:
    """Neither the minute before it nor the one that has begun."""
    bad = a_vendor(calls=10, limited=10)
    assert read(signals(Counts(), bad), T).limited == ()
    assert read(Signals(at=AT, minutes=(Minute(at=NOW, counts=bad),)), T).limited == ()


@pytest.mark.req("C3")
def test_worker_errors_spike_too() -> None:
    """Five attempts and five percent that went wrong."""
    assert Severity.MILD is severity(signals(Counts(claims=100, errors=5)), T)
    assert Severity.NORMAL is severity(signals(Counts(claims=101, errors=5)), T)


@pytest.mark.req("C3")
def test_a_spike_raises_by_one_and_no_further_than_severe() -> None:
    """However many spike at once."""
    bad = Counts(claims=10, errors=10, oldest_age_s=130, vendors={"helpdesk": VendorCounts(calls=10, limited=9)})
    assert Severity.SEVERE is severity(signals(bad, visible=1), T)
    assert Severity.SEVERE is severity(signals(replace(bad, oldest_age_s=900), visible=1), T)


# ------------------------------------------------------------------------------- growth, normal, unstable
@pytest.mark.req("C16", "C3")
def test_one_job_that_failed_within_five_minutes_is_growth_and_severe() -> None:
    """However young the queue is; after five minutes it is history."""
    quiet = [Counts()] * 4
    assert Severity.SEVERE is severity(signals(*quiet, Counts(failed=1)), T)
    assert Severity.NORMAL is severity(signals(*quiet, Counts(), Counts(failed=1)), T)


@pytest.mark.req("C16")
def test_dead_letters_that_are_put_back_are_no_growth() -> None:
    """The depth of the queue says nothing: only jobs that failed count."""
    assert not read(signals(Counts(claims=9), dead_letters=500), T).growing


@pytest.mark.req("C16")
@pytest.mark.parametrize(
    ("counts", "normal"),
    [
        (Counts(), True),
        (Counts(claims=1000, errors=9), True),
        (Counts(claims=1000, errors=10), False),
        (a_vendor(calls=1000, limited=9), True),
        (a_vendor(calls=1000, limited=10), False),
        (a_vendor(calls=1000, errors=9), True),
        (a_vendor(calls=1000, errors=10), False),
    ],
)
def test_normal_is_under_one_percent_over_a_quarter_of_an_hour(counts: Counts, normal: bool) -> None:
    """Each of the three rates; what is older than fifteen minutes is forgotten."""
    assert normal is read(signals(*[Counts()] * 14, counts), T).normal_rates
    assert read(signals(*[Counts()] * 15, counts), T).normal_rates


@pytest.mark.req("C16", "C13")
def test_unstable_is_a_spike_in_two_minutes_running_or_an_open_breaker() -> None:
    """429s in one and errors in the other count, one minute alone does not."""
    limited, failing = a_vendor(calls=10, limited=5), a_vendor(calls=10, errors=5)
    assert read(signals(limited, failing), T).unstable == ("helpdesk",)
    assert read(signals(limited), T).unstable == ()
    assert read(signals(limited, Counts(), failing), T).unstable == ()
    assert read(signals(shut=frozenset({"openai"})), T).unstable == ("openai",)


# ------------------------------------------------------------------------------------------- configuration
@pytest.mark.req("C14")
def test_every_number_stands_in_the_defaults_file() -> None:
    """Thresholds and policies, each setting of each; what the code has by default is the same."""
    told = yaml.safe_load((CONFIG / DEFAULTS).read_text())
    assert {name: getattr(T, name) for name in Thresholds.__dataclass_fields__} == told["severity"]
    assert dict(POLICIES) == {name: Policy.from_mapping(name, entry) for name, entry in told["policies"].items()}
    assert {**POLICIES["ramp"].to_mapping()} == told["policies"]["ramp"]


@pytest.mark.req("C14")
def test_a_stage_changes_the_numbers() -> None:
    """A threshold and a policy, by its overlay; the rest stays."""
    stage = StageSpec.from_mappings(
        "dev", {}, {"severity": {"mild_age_s": 5}, "policies": {"conservative": {"interval_s": 60}}}
    )
    assert Severity.MILD is of_age(5, stage.severity)
    assert (stage.policies["conservative"].interval_s, stage.policies["conservative"].step_up) == (60, 2)


@pytest.mark.req("C16")
@pytest.mark.parametrize("minute_s", [1, 2, 5, 30, 60])
def test_a_lane_in_fast_time_is_judged_by_its_own_minutes(minute_s: int) -> None:
    """The last full one for a spike, two running for unstable; the one that has begun says nothing yet."""
    bad = Counts(vendors={"helpdesk": VendorCounts(calls=10, limited=5)})

    def seen(*back: int) -> Reading:
        minutes = tuple(Minute(at=NOW - timedelta(seconds=n * minute_s), counts=bad) for n in back)
        return read(Signals(at=NOW + timedelta(seconds=minute_s - 0.1), minutes=minutes, minute_s=minute_s), T)

    assert seen(0).limited == seen(2).limited == ()
    assert (seen(1).limited, seen(1).unstable) == (("helpdesk",), ())
    assert seen(1, 2).unstable == ("helpdesk",)
    stage = {"severity": {"growth_window_s": 60}, "lanes": {"support": {"tasks": ["a"], "minute_s": minute_s}}}
    assert StageSpec.from_mappings("dev", {}, stage).lanes["support"].minute_s == minute_s


@pytest.mark.fault("E5")
@pytest.mark.parametrize(
    "wrong",
    [
        {"severity": {"mild_age_s": 0}},
        {"severity": {"mild_age_s": 120}},
        {"severity": {"spike_share": 0}},
        {"severity": {"spike_share": "many"}},
        {"severity": {"growth_window_s": 5}},
        {"severity": {"growth_window_s": 5}, "lanes": {"support": {"tasks": ["reply"], "minute_s": 6}}},
        {"severity": {"panic_age_s": 5}},
        {"policies": {"conservative": {"step_up": 0}}},
        {"policies": {"conservative": {"step_down": 1.5}}},
        {"policies": {"conservative": {"ceiling": 5000}}},
        {"policies": {"conservative": {"lowers_on": ["rain"]}}},
        {"lanes": {"support": {"tasks": ["reply"], "policy": "heroic"}}},
    ],
)
def test_numbers_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    """By the name of the setting."""
    with pytest.raises(BadInput, match=r"severity|policies|policy"):
        StageSpec.from_mappings("dev", {}, wrong)


# ----------------------------------------------------------------------------------------------- properties
whole = st.integers(0, 1000)
vendor_counts = st.builds(VendorCounts, calls=whole, limited=whole, errors=whole, tokens=whole)
counts = st.builds(
    Counts,
    claims=whole,
    completed=whole,
    failed=whole,
    errors=whole,
    oldest_age_s=whole,
    vendors=st.dictionaries(st.sampled_from(["helpdesk", "openai"]), vendor_counts),
)


@given(several=st.lists(counts, max_size=6))
def test_the_order_of_batches_does_not_matter(several: list[Counts]) -> None:
    """Counts are sums and one largest age."""
    assert total(several) == total(reversed(several))


@pytest.mark.req("C3")
@given(age_s=st.integers(0, 2000), more_s=st.integers(0, 2000), rest=counts)
def test_an_older_queue_is_never_less_severe(age_s: int, more_s: int, rest: Counts) -> None:
    """Whatever else is going on."""
    at = [AT - timedelta(seconds=age) for age in (age_s, age_s + more_s)]
    younger, older = (severity(signals(rest, oldest_due_at=due), T) for due in at)
    assert younger <= older


@given(age_s=st.floats(0, 10**7))
def test_an_age_is_kept_without_losing_its_class(age_s: float) -> None:
    """Never younger than it was, at most a step older, and one of few values."""
    kept = coarse_age_s(age_s)
    assert age_s <= kept <= age_s + (1 if age_s <= 300 else 60 if age_s <= 3600 else 3600)


@pytest.mark.req("C14")
def test_a_stage_tells_its_governor_what_differs() -> None:
    """Nothing where all is at its default; else those numbers, which make the same rules again."""
    assert StageSpec.from_mappings("dev", {}).governing == {}
    told = StageSpec.from_mappings(
        "dev", {}, {"severity": {"mild_age_s": 5}, "policies": {"conservative": {"interval_s": 60}}}
    ).governing
    assert told["severity"] == {"mild_age_s": 5}
    assert Policy.from_mapping("conservative", told["policies"]["conservative"]).interval_s == 60
