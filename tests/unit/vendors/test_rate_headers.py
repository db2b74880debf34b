"""What an answer's headers tell of its account: every family, every unit, and nothing that cannot be true."""

from __future__ import annotations

import math
from datetime import timedelta

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from shared.adapters.vendors.rate_headers import duration_s, report_of
from shared.core import feedback
from shared.core.account import Limit, is_amount
from shared.core.budget import SECOND, Terms, us_of
from shared.core.feedback import NOTHING
from shared.core.moment import iso
from shared.core.search import Spending
from tests.builders import NOW, an_account

NOW_US = us_of(NOW)
OPENAI = {
    "x-ratelimit-limit-requests": "60",
    "x-ratelimit-remaining-requests": "59",
    "x-ratelimit-reset-requests": "1s",
    "x-ratelimit-limit-tokens": "150000",
    "x-ratelimit-remaining-tokens": "149984",
    "x-ratelimit-reset-tokens": "6m0s",
}
ANTHROPIC = {
    "anthropic-ratelimit-requests-limit": "50",
    "anthropic-ratelimit-requests-remaining": "49",
    "anthropic-ratelimit-requests-reset": iso(NOW + timedelta(seconds=2)),
    "anthropic-ratelimit-tokens-limit": "90000",
    "anthropic-ratelimit-tokens-remaining": "0",
    "anthropic-ratelimit-tokens-reset": "2025-12-31T23:00:00Z",
}


@pytest.mark.req("X9")
def test_openais_headers_are_read() -> None:
    """Limits, what is left, and how long until it is whole again."""
    report = report_of(OPENAI, NOW)
    assert report.limits == {Limit.REQUESTS: 60, Limit.TOKENS: 150_000}
    assert report.remaining == {Limit.REQUESTS: 59, Limit.TOKENS: 149_984}
    assert report.reset_s == {Limit.REQUESTS: 1.0, Limit.TOKENS: 360.0}
    assert report.retry_after_s is None


@pytest.mark.req("X9")
def test_anthropics_headers_are_read() -> None:
    """Their resets are times; one that is past is now."""
    report = report_of(ANTHROPIC, NOW)
    assert report.limits == {Limit.REQUESTS: 50, Limit.TOKENS: 90_000}
    assert report.remaining == {Limit.REQUESTS: 49, Limit.TOKENS: 0}
    assert report.reset_s == {Limit.REQUESTS: 2.0, Limit.TOKENS: 0.0}


def test_tokens_count_before_input_tokens() -> None:
    """A vendor that limits both ways apart is read by what goes in; one that tells the whole, by the whole."""
    apart = {
        "anthropic-ratelimit-input-tokens-limit": "40000",
        "anthropic-ratelimit-input-tokens-remaining": "39000",
        "anthropic-ratelimit-output-tokens-limit": "8000",
    }
    assert report_of(apart, NOW).limits == {Limit.TOKENS: 40_000}
    assert report_of(apart, NOW).remaining == {Limit.TOKENS: 39_000}
    assert report_of({**apart, **ANTHROPIC}, NOW).limits[Limit.TOKENS] == 90_000


def test_the_case_of_a_header_does_not_matter() -> None:
    """Proxies write them as they like."""
    assert report_of({name.title(): value for name, value in OPENAI.items()}, NOW) == report_of(OPENAI, NOW)


def test_of_two_families_the_lower_limit_counts() -> None:
    """With what is left of it, and limit by limit."""
    report = report_of({**OPENAI, **ANTHROPIC, "x-ratelimit-limit-tokens": "1000"}, NOW)
    assert report.limits == {Limit.REQUESTS: 50, Limit.TOKENS: 90_000}  # 149,984 of 1,000 left is not believed.
    assert report.remaining == {Limit.REQUESTS: 49, Limit.TOKENS: 0}
    lower = {"x-ratelimit-limit-tokens": "1000", "x-ratelimit-remaining-tokens": "10"}
    assert report_of({**ANTHROPIC, **lower}, NOW).remaining[Limit.TOKENS] == 10


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1s", 1.0),
        ("6m0s", 360.0),
        ("250ms", 0.25),
        ("1m30.5s", 90.5),
        ("1h2m3s", 3723.0),
        ("2d", 172_800.0),
        ("0s", 0.0),
        ("8.64s", 8.64),
        ("5m", 300.0),
        ("1s500ms", 1.5),
        ("17", 17.0),
        (" 3s ", 3.0),
    ],
)
def test_durations_are_read_in_every_unit(text: str, seconds: float) -> None:
    """As OpenAI writes them, and as others who write like it."""
    assert duration_s(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", " ", "s", "-1s", "1x", "s1", "1s1m", "１s", "1e3s", "NaN", "99999d", "999999999"])
def test_what_is_no_duration_is_left_out(text: str) -> None:
    """Malformed, negative or longer than a month."""
    assert duration_s(text) is None


@pytest.mark.parametrize("value", ["", "-5", "0", "1.5", "1e3", "many", "1" * 40, "6０", "0x10", "1,000"])
def test_a_limit_that_cannot_be_one_leaves_the_others_as_they_are(value: str) -> None:
    """Field by field."""
    report = report_of({**OPENAI, "x-ratelimit-limit-requests": value}, NOW)
    assert report.limits == {Limit.TOKENS: 150_000}


@pytest.mark.fault("G7")
@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"Retry-After": "Thu, 01 Jan 2026 00:00:09 GMT"}, 9.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after-ms": "1250"}, 1.25),
        ({"retry-after": "2", "retry-after-ms": "1250"}, 1.25),
        ({"retry-after": "2", "retry-after-ms": "-1"}, 2.0),
        ({"retry-after": "2", "retry-after-ms": ""}, 2.0),
    ],
)
def test_the_wait_a_vendor_asks_for_is_read(headers: dict[str, str], seconds: float | None) -> None:
    """Seconds, a date or milliseconds; nothing, where it asks for nothing that can be read."""
    assert report_of(headers, NOW).retry_after_s == seconds


def test_an_answer_without_such_headers_tells_nothing() -> None:
    """As most answers do."""
    assert report_of({"content-type": "application/json"}, NOW) is NOTHING


numbers = st.integers(-10, 10**15).map(str) | st.text(max_size=20)
texts = numbers | st.text(st.sampled_from("0123456789.:-+TZ smhdeEGM"), max_size=30) | st.floats().map(str)
known = st.sampled_from(
    [*OPENAI, *ANTHROPIC, "retry-after", "retry-after-ms", "Anthropic-Ratelimit-Input-Tokens-Limit"]
)


@pytest.mark.fault("G7")
@settings(max_examples=300)
@given(headers=st.dictionaries(known | st.text(max_size=20), texts, max_size=8))
@example(headers={"anthropic-ratelimit-requests-reset": "0001-01-01T00:00:00+23:59"})
@example(headers={"anthropic-ratelimit-requests-reset": "9999-12-31T23:59:59-23:59"})
@example(headers={"retry-after": "Fri, 31 Dec 9999 23:59:59 GMT"})
def test_no_header_breaks_the_account(headers: dict[str, str]) -> None:
    """Whatever is sent: limits that can be limits, never more left than there is, waits from a second to an hour."""
    report = report_of(headers, NOW)
    assert all(is_amount(limit) for limit in report.limits.values())
    for limit, left in report.remaining.items():
        assert 0 <= left <= report.limits.get(limit, left)
    assert all(0 <= seconds < 3 * 10**6 for seconds in report.reset_s.values())
    assert report.retry_after_s is None or 0 <= report.retry_after_s < math.inf
    spending = Spending(call_us=SECOND, spent_us=0, sent_us=0)
    after = feedback.slowed(an_account(), Terms(), report, NOW_US, NOW_US, spending)
    assert after is not None
    assert SECOND <= after.quiet_until_us - NOW_US <= 3600 * SECOND
