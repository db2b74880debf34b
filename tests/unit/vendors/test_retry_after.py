"""`Retry-After`: seconds, a date, nothing or nonsense; always a finite wait, and always clamped."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from shared.adapters.vendors.retry_after import DEFAULT_S, retry_after_s
from shared.core.effects import Refused
from shared.core.outcome import Defer
from shared.usecases.make_effect import outcome_of_refusal
from tests.builders import NOW


def waited_s(header: str | None) -> float:
    """How long a job waits after a 429 with this header."""
    refused = Refused("429", retry_after_s=retry_after_s(header, NOW))
    outcome = outcome_of_refusal(refused, "helpdesk", NOW)
    assert isinstance(outcome, Defer)
    return (outcome.until - NOW).total_seconds()


@pytest.mark.fault("G7")
@settings(max_examples=150)
@given(
    header=st.none()
    | st.text(max_size=60)
    | st.text(st.sampled_from("0123456789.,:+-eE GMTZ１２janfebJANsunSUN"), max_size=40)
)
@example("1" * 400)
@example("-1")
@example("1e9")
@example("NaN")
@example("Infinity")
@example("１２")
@example("Thu, 01 Jan 1970 00:00:00 GMT")
@example("Fri, 31 Dec 9999 23:59:59 GMT")
@example("Mon, 01 Jan 0001 00:00:00 +2359")
@example("Thu, 99 Foo 2026 99:99:99 GMT")
@example("\x00")
def test_any_header_gives_a_wait_between_a_second_and_an_hour(header: str | None) -> None:
    """Huge, negative, a date long past, a date without end, or no sense at all."""
    seconds = retry_after_s(header, NOW)
    assert math.isfinite(seconds)
    assert seconds >= 0
    assert 1.0 <= waited_s(header) <= 3600.0


@pytest.mark.fault("G7")
@given(seconds=st.integers(1, 3600))
def test_seconds_are_taken_at_their_word(seconds: int) -> None:
    """Within the bounds, exactly; blanks around it do not matter."""
    assert waited_s(f" {seconds} ") == seconds
    assert retry_after_s(f"{seconds}.5", NOW) == seconds + 0.5


@pytest.mark.fault("G7")
@given(ahead=st.integers(-5000, 5000))
def test_a_date_is_counted_from_now(ahead: int) -> None:
    """The past means at once, which the clamp makes one second."""
    header = format_datetime(NOW + timedelta(seconds=ahead), usegmt=True)
    assert retry_after_s(header, NOW) == max(0, ahead)
    assert waited_s(header) == min(max(ahead, 1), 3600)


@pytest.mark.fault("G7")
@pytest.mark.parametrize("header", [None, "", "soon", "-5", "+5", "1e3", "0x10", "1_0", "５", "5 seconds", "10,20"])
def test_what_cannot_be_read_waits_half_a_minute(header: str | None) -> None:
    """Python's own `int` would take some of these."""
    assert retry_after_s(header, datetime.now(UTC)) == DEFAULT_S
