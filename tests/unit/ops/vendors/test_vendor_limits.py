"""The limits of a vendor on virtual time: what passes in a minute, what a refusal says, what waiting brings."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ops.vendors.accounts import Accounts
from ops.vendors.allowance import duration_text
from ops.vendors.helpdesk import action_request
from ops.vendors.limits import MinuteLimit
from ops.vendors.request import VendorRequest

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def reply(key: str = "k1") -> VendorRequest:
    return action_request(conversation="c1", text="Hello", key=key)


def later(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def helpdesk(**changes: object) -> Accounts:
    return Accounts(seed=7, configs={"helpdesk": changes})


@settings(max_examples=60, deadline=None)
@given(
    gaps_ms=st.lists(st.integers(min_value=0, max_value=4000), min_size=1, max_size=200),
    limit=st.integers(min_value=1, max_value=30),
    burst=st.none() | st.integers(min_value=1, max_value=10),
    count_refused=st.booleans(),
)
def test_no_sliding_minute_passes_the_limit(
    gaps_ms: list[int], limit: int, burst: int | None, count_refused: bool
) -> None:
    """However requests come, any sliding minute lets at most the limit through, and the rest is 429."""
    accounts = helpdesk(requests_per_minute=limit, burst_requests=burst, rejected_calls_count=count_refused)
    now, passed = NOW, []
    for number, gap_ms in enumerate(gaps_ms):
        now += timedelta(milliseconds=gap_ms)
        verdict = accounts.handle(reply(f"k{number}"), now)
        assert verdict.status in (201, 429)
        if verdict.status == 201:
            passed.append(now)
    for start in passed:
        inside = [at for at in passed if start <= at < start + timedelta(minutes=1)]
        assert len(inside) <= limit
    if burst is not None:
        assert max(Counter(passed).values()) <= burst


@settings(max_examples=60, deadline=None)
@given(
    units=st.lists(st.integers(min_value=1, max_value=50), min_size=1, max_size=60),
    burst=st.none() | st.integers(min_value=50, max_value=80),
)
def test_whoever_waits_as_told_is_served(units: list[int], burst: int | None) -> None:
    """A limit's wait is exact: a microsecond before it the units do not fit, at its end they do."""
    limit, now = MinuteLimit(limit=100, burst=burst), NOW
    for amount in units:
        wait_s = limit.wait_s(amount, now)
        if wait_s:
            now += timedelta(seconds=wait_s)
            assert limit.wait_s(amount, now - timedelta(microseconds=1)) > 0
            assert limit.wait_s(amount, now) == 0
        limit.charge(amount, now)


def test_a_limit_tells_itself_in_headers() -> None:
    """Every answer carries limit, remaining and reset; a 429 carries a Retry-After that is enough."""
    accounts = helpdesk(requests_per_minute=2)
    verdicts = [accounts.handle(reply(f"k{number}"), later(number)) for number in range(3)]
    assert [verdict.headers["x-ratelimit-remaining-requests"] for verdict in verdicts] == ["1", "0", "0"]
    assert verdicts[0].headers["x-ratelimit-limit-requests"] == "2"
    assert verdicts[2].status == 429
    assert verdicts[2].headers["x-ratelimit-reset-requests"] == "59s"
    assert verdicts[2].headers["retry-after"] == "58"
    assert accounts.handle(reply("again"), later(2 + 58)).status == 201


def test_refused_calls_count_only_where_told() -> None:
    """A caller that hammers is served again after a minute, unless what was refused counts as well."""
    served = {}
    for counts in (False, True):
        accounts = helpdesk(requests_per_minute=5, rejected_calls_count=counts)
        verdicts = [accounts.handle(reply(f"k{second}"), later(second)) for second in range(180)]
        served[counts] = sum(verdict.status == 201 for verdict in verdicts)
    assert served == {False: 15, True: 5}


def test_a_changed_limit_remembers_the_last_minute() -> None:
    """Lowering a limit while running counts what was let through just before."""
    accounts = helpdesk(requests_per_minute=10)
    for number in range(5):
        accounts.handle(reply(f"k{number}"), NOW)
    accounts.configure("helpdesk", requests_per_minute=5, latency_s=0)
    assert accounts.handle(reply("more"), later(1)).status == 429
    assert accounts.handle(reply("more"), later(60)).status == 201


def test_another_switch_does_not_refill_the_burst() -> None:
    """Changing what has nothing to do with a limit leaves the limit's bucket as empty as it was."""
    accounts = helpdesk(requests_per_minute=60, burst_requests=1)
    assert accounts.handle(reply("a"), NOW).status == 201
    accounts.configure("helpdesk", lookup="none")
    assert [accounts.handle(reply("b"), later(at)).status for at in (0.9, 1)] == [429, 201]


@pytest.mark.parametrize("form", ["seconds", "date", "missing", "garbage"])
def test_retry_after_comes_in_every_form(form: str) -> None:
    """Retry-After is seconds, a date that is not too early, absent, or nonsense."""
    accounts = helpdesk(error_429_share=1, retry_after=form, retry_after_s=2.5)
    header = accounts.handle(reply(), later(0.25)).headers.get("retry-after")
    if form == "seconds":
        assert header == "3"
    elif form == "date":
        assert header is not None
        assert parsedate_to_datetime(header) == later(3)
    elif form == "missing":
        assert header is None
    else:
        assert header is not None
        assert not header.isdigit()


@pytest.mark.parametrize(("seconds", "text"), [(0, "0ms"), (0.12, "120ms"), (6, "6s"), (90.5, "1m30.5s"), (60, "1m0s")])
def test_durations_are_written_as_the_vendor_writes_them(seconds: float, text: str) -> None:
    """Reset times have the inference vendor's form."""
    assert duration_text(seconds) == text


def test_a_minute_can_be_short() -> None:
    """A test that waits in real time has its limits by the second: whoever waits as told is served."""
    accounts = helpdesk(requests_per_minute=2, minute_s=3)
    assert [accounts.handle(reply(f"k{n}"), NOW).status for n in range(3)] == [201, 201, 429]
    refused = accounts.handle(reply("k3"), later(1))
    assert (refused.status, refused.headers["retry-after"]) == (429, "2")
    assert accounts.handle(reply("k4"), later(3)).status == 201
    accounts.configure("helpdesk", minute_s=60)
    assert [accounts.handle(reply(f"k{n}"), later(8)).status for n in (5, 6)] == [201, 429]


def test_an_impossible_call_is_told_to_wait_a_minute() -> None:
    """As long as the minute is here: what never fits has no better time."""
    accounts = helpdesk(requests_per_minute=5, burst_requests=1, minute_s=4)
    accounts.handle(reply("k1"), NOW)
    assert int(accounts.handle(reply("k2"), NOW).headers["retry-after"]) <= 4
