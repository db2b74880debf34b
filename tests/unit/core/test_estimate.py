"""The delay when only an estimate is known: five steps, one by one and together."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.core import estimate

numbers = st.integers(-(10**12), 10**12)
chances = st.floats(0, 1)


@pytest.mark.req("X5")
@pytest.mark.parametrize(
    ("needed", "available", "missing"), [(25_000, 5_000, 20_000), (5, 5, 0), (1, 9, 0), (3, -4, 7)]
)
def test_step_one_is_what_is_missing(needed: int, available: int, missing: int) -> None:
    """Never negative; a debt is missing too."""
    assert estimate.deficit(needed, available) == missing


@pytest.mark.req("X5")
@pytest.mark.parametrize(
    ("tokens", "requests", "seconds"), [(20_000, 0, 40.0), (0, 1, 1.0), (15_000, 60, 60.0), (0, 0, 0.0)]
)
def test_step_two_is_the_part_of_a_minute_of_the_larger_deficit(tokens: int, requests: int, seconds: float) -> None:
    """Tokens of 30,000, requests of 60."""
    assert estimate.base_delay_s(tokens, 30_000, requests, 60) == seconds


@pytest.mark.req("X5")
@pytest.mark.parametrize(
    ("used", "factor"), [(-1, 1.0), (0, 1.0), (0.5, 1.0), (0.9, 1.0), (0.95, 2.0), (1.0, 3.0), (7.0, 3.0)]
)
def test_step_three_grows_from_nine_tenths_to_all(used: float, factor: float) -> None:
    """One to three, evenly."""
    assert estimate.backoff(used) == pytest.approx(factor)


@pytest.mark.req("X5")
@given(delay_s=st.floats(0, 1000), chance=chances)
def test_step_four_is_a_fifth_more_or_less(delay_s: float, chance: float) -> None:
    """By the number drawn: the ends are reached, nothing lies beyond."""
    assert 0.8 * delay_s - 1e-9 <= estimate.jittered(delay_s, chance) <= 1.2 * delay_s + 1e-9
    assert estimate.jittered(100, 0) == pytest.approx(80)
    assert estimate.jittered(100, 1) == pytest.approx(120)


@pytest.mark.req("X5")
def test_step_five_is_five_minutes_at_most() -> None:
    """Whatever is missing."""
    assert (estimate.capped(299.0), estimate.capped(301.0)) == (299.0, 300.0)


@pytest.mark.req("X5")
@given(chance=chances)
def test_the_example_waits_between_32_and_48_seconds(chance: float) -> None:
    """25,000 tokens are needed; 5,000 of 30,000 and 30 of 60 requests are left."""
    seconds = estimate.estimated_delay_s(
        estimated_tokens=25_000,
        available_tokens=5_000,
        available_requests=30,
        tokens_per_minute=30_000,
        requests_per_minute=60,
        chance=chance,
    )
    assert 32 - 1e-9 <= seconds <= 48 + 1e-9
    assert seconds == pytest.approx(32 + 16 * chance)


@pytest.mark.req("X5")
@given(estimated=numbers, tokens=numbers, requests=numbers, tpm=numbers, rpm=numbers, chance=st.floats(-5, 5))
def test_no_input_gives_a_wait_below_zero_or_above_five_minutes(
    estimated: int, tokens: int, requests: int, tpm: int, rpm: int, chance: float
) -> None:
    """Nothing, debts, absurd numbers and limits of zero."""
    seconds = estimate.estimated_delay_s(
        estimated_tokens=estimated,
        available_tokens=tokens,
        available_requests=requests,
        tokens_per_minute=tpm,
        requests_per_minute=rpm,
        chance=chance,
    )
    assert 0 <= seconds <= 300
