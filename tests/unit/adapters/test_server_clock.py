"""How far our clock is ahead of DynamoDB's, told by the dates of its answers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from moto import mock_aws

from shared.adapters.aws.clients import client, server_clock
from shared.adapters.aws.server_clock import ServerClock, skew_of
from tests.builders import NOW


def heard(date: str | None, *, local: datetime = NOW, took_s: float = 0.01) -> float | None:
    """What is known after one answer with this date, at this local time."""
    times = iter([local.timestamp() - took_s, local.timestamp()])
    clock, context = ServerClock(lambda: next(times)), dict[str, Any]()
    clock.asked(context=context)
    headers = {} if date is None else {"date": date}
    clock.answered(parsed={"ResponseMetadata": {"HTTPHeaders": headers}}, context=context)
    return clock.skew_s()


def a_date(ahead_s: float) -> str:
    """A server's date when our clock says `NOW` and is so far ahead."""
    return format_datetime(NOW - timedelta(seconds=ahead_s), usegmt=True)


@pytest.mark.fault("D4")
@pytest.mark.parametrize(
    ("ahead_s", "skew_s"), [(0, 0.0), (1, 0.0), (-1, -1.5), (2, 1.5), (30, 29.5), (-30, -30.5), (3, 2.5), (-3, -3.5)]
)
def test_a_clock_outside_of_the_dates_second_is_wrong_by_the_rest(ahead_s: int, skew_s: float) -> None:
    """A date is cut to its second: from half a second before it to one and a half after it, the clock is right."""
    assert heard(a_date(ahead_s)) == skew_s


@given(skew_s=st.floats(-100, 100), server_s=st.floats(10**9, 2 * 10**9))
def test_the_estimate_is_never_off_by_more_than_half_a_second_or_unseen(skew_s: float, server_s: float) -> None:
    """Wherever in its second the server is; a clock that counts as right is less than a second and a half off."""
    estimate = skew_of(float(int(server_s)), server_s + skew_s)
    assert abs(estimate - skew_s) <= 0.5 + 1e-6 or (estimate == 0.0 and abs(skew_s) <= 1.5 + 1e-6)


@pytest.mark.parametrize("date", [None, "", "yesterday", "Thu, 99 Foo 2026 99:99:99 GMT", "\x00", "1"])
def test_a_date_that_cannot_be_read_tells_nothing(date: str | None) -> None:
    """Unknown is not right and not wrong."""
    assert heard(date) is None


@pytest.mark.parametrize("took_s", [1.5, 30.0, -5.0])
def test_a_slow_answer_tells_nothing(took_s: float) -> None:
    """It was on its way, or we stood still, or the clock was set meanwhile."""
    assert heard(a_date(0), took_s=took_s) is None


def test_a_clock_that_was_set_right_is_right_again() -> None:
    """The newest answer counts."""
    now = [NOW.timestamp() + 30]
    clock, context = ServerClock(lambda: now[0]), dict[str, Any]()
    answer = {"ResponseMetadata": {"HTTPHeaders": {"date": a_date(0)}}}
    clock.asked(context=context)
    clock.answered(parsed=answer, context=context)
    assert clock.skew_s() == 29.5
    now[0] = NOW.timestamp()
    clock.asked(context=context)
    clock.answered(parsed=answer, context=context)
    assert clock.skew_s() == 0.0


def test_every_dynamodb_client_tells_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer, or an error, is enough."""
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    server_clock.cache_clear()
    with mock_aws():
        made = client("dynamodb", connections=7)
        assert server_clock().skew_s() is None
        made.meta.events.register_first("after-call.dynamodb", _dated)
        with pytest.raises(made.exceptions.ResourceNotFoundException):
            made.get_item(TableName="none", Key={"pk": {"S": "x"}})
    skew_s = server_clock().skew_s()
    assert skew_s is not None
    assert 28 < skew_s < 31


def _dated(parsed: dict[str, Any], **_: Any) -> None:
    date = format_datetime(datetime.now(UTC) - timedelta(seconds=30), usegmt=True)
    parsed["ResponseMetadata"]["HTTPHeaders"]["date"] = date
