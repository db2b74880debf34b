"""What becomes of a backlog: cleared, stalled, never, or by a time with a range."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.core.errors import BadInput
from shared.core.forecast import Outlook, Seen, arrivals_per_s, forecast, possible_per_s
from tests.builders import NOW, a_lane

LANE = a_lane(parallel=1, baseline=2, ceiling=20, expected_job_s=1.0)
MINUTE = timedelta(minutes=1)


def test_nothing_waits() -> None:
    """An empty lane is cleared, whatever it did."""
    assert forecast(Seen(backlog=0, cap=2), LANE, NOW).outlook is Outlook.CLEARED


def test_a_backlog_clears_by_what_was_done_lately() -> None:
    """600 jobs at two a second need five minutes; the range is that of the best and the worst minute."""
    seen = Seen(backlog=600, done=[120, 180, 60, 120, 120], cap=2)
    found = forecast(seen, a_lane(parallel=10, expected_job_s=1.0, ceiling=20), NOW)
    assert found.outlook is Outlook.CLEARS
    assert found.by == NOW + 5 * MINUTE
    assert found.earliest == NOW + 600 / 3 * timedelta(seconds=1)
    assert found.latest == NOW + 10 * MINUTE


def test_what_comes_meanwhile_takes_longer() -> None:
    """Half as many come as are done: twice the time."""
    seen = Seen(backlog=600, done=[120] * 5, backlogs=[(NOW - 5 * MINUTE, 900)], cap=2)
    assert arrivals_per_s(seen, NOW) == pytest.approx(1.0)
    assert forecast(seen, LANE, NOW).by == NOW + 10 * MINUTE


def test_more_comes_than_can_be_done() -> None:
    """It will not drain, and says what limits it."""
    seen = Seen(backlog=600, done=[120] * 5, backlogs=[(NOW - 5 * MINUTE, 300)], cap=2)
    found = forecast(seen, LANE, NOW)
    assert (found.outlook, found.limited_by, found.by, found.latest) == (Outlook.WILL_NOT_DRAIN, "cap", None, None)


def test_a_closed_gate_stalls_it() -> None:
    """Time alone does not open it: no time is given."""
    found = forecast(Seen(backlog=5, cap=2, blocked_by="switches:lane/support"), LANE, NOW)
    assert (found.outlook, found.by, found.limited_by) == (Outlook.STALLED, None, "switches:lane/support")


def test_more_workers_help_until_the_budget_holds() -> None:
    """What if: six times the cap is three times as fast where an account lets six a second pass; above the ceiling it
    is refused."""
    seen = Seen(backlog=3_600, done=[120] * 5, cap=2, pace_per_s=6.0)
    assert forecast(seen, LANE, NOW).by == NOW + 30 * MINUTE
    found = forecast(seen, LANE, NOW, cap=12)
    assert (found.by, found.limited_by) == (NOW + 10 * MINUTE, "budget")
    with pytest.raises(BadInput, match="ceiling"):
        forecast(seen, LANE, NOW, cap=21)


def test_before_anything_was_done_the_possible_counts() -> None:
    """A backlog that was enqueued this minute: two slots of a second each."""
    assert possible_per_s(LANE, 2, None) == (2.0, "cap")
    assert forecast(Seen(backlog=120, cap=2), LANE, NOW).by == NOW + MINUTE


@given(
    backlog=st.integers(1, 10**6),
    done=st.lists(st.integers(0, 10**4), max_size=15),
    cap=st.integers(2, 20),
    pace=st.none() | st.floats(0.01, 1000),
    before=st.integers(0, 10**6),
)
def test_a_forecast_is_consistent(backlog: int, done: list[int], cap: int, pace: float | None, before: int) -> None:
    """The early time is not after the usual one, nor that after the late one; nothing is faster than is possible, and a
    higher cap is never slower."""
    seen = Seen(backlog=backlog, done=done, cap=cap, pace_per_s=pace, backlogs=[(NOW - 5 * MINUTE, before)])
    found = forecast(seen, LANE, NOW)
    times = [at for at in (found.earliest, found.by, found.latest) if at is not None]
    assert times == sorted(times)
    assert found.service_per_s <= possible_per_s(LANE, cap, pace)[0]
    more = forecast(seen, LANE, NOW, cap=20)
    assert more.service_per_s >= found.service_per_s
    assert found.by is None or (more.by is not None and more.by <= found.by)


def test_a_burst_of_a_moment_ago_is_no_rate() -> None:
    """Seen half a second before it came, a backlog would seem to grow by thousands a minute: nobody is told so."""
    for seconds, comes in ((0.5, 0.0), (29, 0.0), (60, 1000 / 60)):
        seen = Seen(backlog=1000, done=[0], backlogs=[(NOW - timedelta(seconds=seconds), 0)], cap=2)
        assert arrivals_per_s(seen, NOW) == pytest.approx(comes)
