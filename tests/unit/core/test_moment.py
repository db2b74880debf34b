"""How a moment is written and read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.core import moment
from tests.unit.core.strategies import moments

zones = st.integers(-23 * 60, 23 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))


@given(at=moments, zone=zones)
def test_what_is_written_is_read_back(at: datetime, zone: timezone) -> None:
    """UTC, milliseconds, always 24 characters, whatever zone it was said in."""
    text = moment.iso(at.astimezone(zone))
    assert len(text) == 24
    assert text.endswith("Z")
    assert moment.parse(text) == at
    assert moment.iso(moment.parse(text)) == text


@given(one=moments, other=moments)
def test_text_order_is_time_order(one: datetime, other: datetime) -> None:
    """Sort keys hold times, so they must sort as times do."""
    assert (moment.iso(one) < moment.iso(other)) == (one < other)


@given(at=st.datetimes(datetime(2000, 1, 1), datetime(2199, 1, 1), timezones=st.just(UTC)))
def test_a_row_keeps_whole_milliseconds(at: datetime) -> None:
    """Cutting is towards the past and by less than one; cutting twice changes nothing."""
    cut = moment.whole_ms(at)
    assert timedelta(0) <= at - cut < timedelta(milliseconds=1)
    assert moment.whole_ms(cut) == cut
    assert moment.parse(moment.iso(at)) == cut


@given(at=moments)
def test_an_expiry_is_whole_seconds(at: datetime) -> None:
    """DynamoDB's expiry keeps seconds: never later than what was meant, and by less than one."""
    back = moment.from_epoch_s(moment.epoch_s(at))
    assert timedelta(0) <= at - back < timedelta(seconds=1)


@given(text=st.text(max_size=40))
def test_anything_else_is_a_value_error_that_repeats_nothing(text: str) -> None:
    """Python's own error quotes what it could not read; ours does not."""
    try:
        assert moment.parse(text).tzinfo is UTC
        return
    except ValueError as exc:
        refused = exc
    assert str(refused) in ("is not an ISO 8601 time", "has no time zone", "is out of range")
    assert refused.__cause__ is None


@pytest.mark.parametrize(
    "text", ["2026-01-01T00:00:00", "2026-01-01", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "soon", ""]
)
def test_what_no_row_can_mean_is_refused(text: str) -> None:
    """Naive, out of range or no time at all."""
    with pytest.raises(ValueError):  # noqa: PT011 (the sentence differs, that it is a ValueError is the promise)
        moment.parse(text)
