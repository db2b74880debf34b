"""What a lane's vendors cost an hour: counted calls and tokens times a price table; never 0 for what is not known."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra.stage import load_stage
from shared.core.errors import BadInput
from shared.core.governing import Rules
from shared.core.signals import Counts, Minute, Signals, VendorCounts
from shared.core.stage import StageSpec
from shared.core.vendor_cost import Price, Prices, cost_of
from tests.builders import NOW, a_lane

PRICES = Prices(
    vendors={
        "helpdesk": Price(per_call=0.01, per_1000_tokens=0.0),
        "openai": Price(per_call=0.0, per_1000_tokens=0.5),
    }
)


def seen(*minutes: tuple[int, dict[str, VendorCounts]], minute_s: int = 60) -> Signals:
    """Signals with these counts, each so many minutes back."""
    return Signals(
        at=NOW,
        minute_s=minute_s,
        minutes=tuple(
            Minute(at=NOW - timedelta(seconds=back * minute_s), counts=Counts(vendors=vendors))
            for back, vendors in minutes
        ),
    )


def calls(number: int, tokens: int = 0) -> VendorCounts:
    """So many calls."""
    return VendorCounts(calls=number, tokens=tokens)


@pytest.mark.req("C15")
def test_calls_and_tokens_times_their_prices_by_vendor() -> None:
    """A steady hour: 60 minutes of 10 calls at 1 cent, and of 200 tokens at half a dollar a thousand."""
    steady = seen(*((back, {"helpdesk": calls(10), "openai": calls(1, tokens=200)}) for back in range(1, 61)))
    cost = cost_of(steady, PRICES)
    assert {one.vendor: one.per_hour for one in cost.vendors} == pytest.approx({"helpdesk": 6.0, "openai": 6.0})
    assert (cost.per_hour, cost.currency, cost.unpriced) == (12.0, "USD", ())


@pytest.mark.req("C15")
def test_a_loop_shows_in_minutes_and_stays_for_the_hour() -> None:
    """Two minutes at 10 dollars each are 80 an hour at that pace; an hour's end later they still cost their 20."""
    assert cost_of(seen((1, {"helpdesk": calls(1000)}), (2, {"helpdesk": calls(1000)})), PRICES).per_hour == 80.0
    assert cost_of(seen((40, {"helpdesk": calls(2000)})), PRICES).per_hour == 20.0
    assert cost_of(seen((61, {"helpdesk": calls(2000)})), PRICES).per_hour == 0.0


@pytest.mark.req("C15")
@pytest.mark.parametrize("minute_s", [60, 2])
def test_a_steady_lane_reads_steady(minute_s: int) -> None:
    """Full minutes only, whatever their length: the one that has begun makes nothing dearer."""
    per_minute = {"helpdesk": calls(minute_s)}
    steady = seen(*((back, per_minute) for back in range(3600 // minute_s + 1)), minute_s=minute_s)
    assert cost_of(steady, PRICES).per_hour == pytest.approx(36.0)


@pytest.mark.req("C15")
def test_a_vendor_without_a_price_is_named_and_never_free() -> None:
    """Alone, beside a known one, and also when it was called before the last quarter of the hour."""
    alone = cost_of(seen((1, {"crm": calls(9)})), PRICES)
    assert (alone.words, alone.unpriced) == ("no price: crm", ("crm",))
    beside = cost_of(seen((1, {"helpdesk": calls(100)}), (50, {"crm": calls(9)})), PRICES)
    assert beside.words == "at least 4.00 USD; no price: crm"
    assert cost_of(seen(), PRICES).words == "0.00 USD"


@pytest.mark.req("C15")
def test_above_the_threshold_is_a_spike_and_at_it_is_none() -> None:
    """And a lane without a threshold has none at any cost."""
    cost = cost_of(seen((30, {"helpdesk": calls(1000)})), PRICES)
    assert cost.per_hour == 10.0
    assert [cost.spikes(a_lane(cost_spike_per_hour=most)) for most in (9.99, 10.0, None)] == [True, False, False]


@given(
    minutes=st.lists(st.tuples(st.integers(0, 70), st.integers(0, 10**6), st.integers(0, 10**9)), max_size=20),
    more=st.tuples(st.integers(1, 60), st.integers(0, 10**6), st.integers(0, 10**9)),
)
def test_another_call_never_makes_it_cheaper(minutes: list[tuple[int, int, int]], more: tuple[int, int, int]) -> None:
    """Whatever was counted when."""
    before = [(back, {"openai": calls(number, tokens)}) for back, number, tokens in minutes]
    after = [*before, (more[0], {"openai": calls(more[1], more[2])})]
    assert cost_of(seen(*after), PRICES).per_hour >= cost_of(seen(*before), PRICES).per_hour


# ------------------------------------------------------------------------------------------- configuration
@pytest.mark.req("C14", "C15")
def test_prices_come_from_the_defaults_file_and_reach_whoever_judges() -> None:
    """Both vendors of the shipped configuration have one, and the rules told make the same table again."""
    spec = load_stage("prod", for_show=True)
    assert set(spec.prices.vendors) >= {vendor for lane in spec.lanes.values() for vendor in lane.vendors}
    assert Rules.from_mapping(spec.governing).prices == spec.prices
    assert Rules.from_mapping(spec.governing).window_s >= 3600


@pytest.mark.req("C15")
def test_a_threshold_on_an_unknown_cost_is_refused() -> None:
    """It would never ring; null, or a price that is said to be 0, is taken."""
    lane: dict[str, Any] = {"tasks": ["reply"], "vendors": ["crm"], "cost_spike_per_hour": 5.0}
    vendor = {"crm": {"kind": "helpdesk", "base_url": "https://crm.example.com"}}
    with pytest.raises(BadInput, match=r"needs the price of vendor crm: add prices\.vendors\.crm"):
        StageSpec.from_mappings("dev", {"lanes": {"support": lane}, "vendors": vendor})
    free = {"prices": {"vendors": {"crm": {"per_call": 0, "per_1000_tokens": 0}}}}
    StageSpec.from_mappings("dev", {"lanes": {"support": lane}, "vendors": vendor, **free})
    StageSpec.from_mappings("dev", {"lanes": {"support": {**lane, "cost_spike_per_hour": None}}, "vendors": vendor})


@pytest.mark.parametrize(
    ("prices", "field"),
    [
        ({"vendors": {"crm": {"per_call": 1}}}, "prices.vendors.crm"),
        ({"vendors": {"crm": {"per_call": 1, "per_1000_tokens": 1, "per_day": 1}}}, "prices.vendors.crm"),
        ({"vendors": {"crm": None}}, "prices.vendors.crm"),
        ({"vendors": {"crm": {"per_call": -1, "per_1000_tokens": 0}}}, "prices.vendors.crm.per_call"),
        ({"vendors": {"crm": {"per_call": True, "per_1000_tokens": 0}}}, "prices.vendors.crm.per_call"),
        ({"vendors": {"crm": {"per_call": float("nan"), "per_1000_tokens": 0}}}, "prices.vendors.crm.per_call"),
        ({"vendors": [1]}, "prices.vendors"),
        ({"currency": "$"}, "prices.currency"),
        ({"currency": 5}, "prices.currency"),
        ({"dollars": {}}, "prices"),
        ([1], "prices"),
    ],
    ids=str,
)
def test_what_is_no_price_is_refused_by_name(prices: Any, field: str) -> None:
    """A half-said price is none."""
    with pytest.raises(BadInput) as refused:
        StageSpec.from_mappings("dev", {"prices": prices})
    assert refused.value.field == field


@pytest.mark.parametrize("most", [0, -1, True, "10", float("inf"), float("nan")])
def test_a_threshold_is_an_amount(most: Any) -> None:
    """Above 0; null is said where none is wanted."""
    with pytest.raises(BadInput, match="must be an amount of money above 0, or null"):
        a_lane(cost_spike_per_hour=most)
