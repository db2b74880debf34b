"""A vendor account as a row: read back as it was written, small, and not believed where it cannot be true."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.adapters.attributes import Item
from shared.adapters.budget_rows import budget_from_item, budget_item
from shared.adapters.meter import item_size
from shared.core.account import DAILY, PACED, Limit
from shared.core.budget import Budget, Hold, Search, Shut, Terms, us_of
from shared.core.errors import UnreadableRow
from shared.core.rate import want_of
from tests.builders import NOW, a_job

NOW_US = us_of(NOW)
moments = st.integers(0, 10**17)
amounts = st.integers(0, 10**12)
fractions = st.floats(0, 100, allow_nan=False)
above_0 = st.floats(0.001, 100, allow_nan=False)
limits = st.dictionaries(st.sampled_from(list(Limit)), st.integers(1, 10**12))
budgets = st.builds(
    Budget,
    terms=st.builds(
        Terms,
        version=amounts,
        told=limits,
        pinned=limits,
        search=st.none()
        | st.builds(
            Search, base=above_0, top=above_0, since_us=moments, unit_s=above_0, spent_us=st.integers(-(10**17), 10**17)
        ),
        shut=st.none()
        | st.builds(
            Shut, reason=st.text(), since_us=moments, probe_us=moments, probe_every_s=fractions, probe_by=st.text()
        ),
        quiet_until_us=moments,
        changed_us=moments,
        enforced=st.none() | st.booleans(),
    ),
    arrival_us=st.dictionaries(st.sampled_from(PACED), moments),
    day=st.integers(0, 10**6),
    used=st.dictionaries(st.sampled_from(DAILY), amounts),
    holds=st.dictionaries(st.text(), st.builds(Hold, slots=amounts, batch_tokens=amounts, until_us=moments)),
    line_us=moments,
    spent_us=moments,
    usual_tokens=amounts,
)


@given(budget=budgets)
def test_an_account_is_read_back_as_it_was_written(budget: Budget) -> None:
    """Every part, every digit of every fraction, whatever a holder is called."""
    assert budget_from_item("openai", budget_item("openai", budget)) == budget


def a_full_item() -> Item:
    """A row with every part, and ten holders."""
    terms = Terms(
        version=1234,
        told={Limit.REQUESTS: 500, Limit.TOKENS: 200_000},
        pinned={Limit.TOKENS: 150_000},
        search=Search(base=0.123456789, top=0.5, since_us=NOW_US, unit_s=123.456, spent_us=NOW_US),
        quiet_until_us=NOW_US + 1,
        changed_us=NOW_US + 2,
    )
    budget = Budget(
        terms=terms,
        arrival_us=dict.fromkeys(PACED, NOW_US + 3),
        day=20_454,
        used=dict.fromkeys(DAILY, 123456),
        holds={f"{n:032x}": Hold(slots=3, batch_tokens=0, until_us=NOW_US + n + 1) for n in range(10)},
        line_us=NOW_US + 7,
        spent_us=NOW_US,
        usual_tokens=123_456,
    )
    return budget_item("openai", budget)


def test_an_account_with_ten_holders_is_one_write_unit() -> None:
    """Under a kilobyte: each take costs one unit."""
    assert item_size(a_full_item()) <= 1024


def test_a_search_that_was_written_before_goes_on() -> None:
    """Without the attributes that say how fast it grows and what had been spent: within a minute, and nothing."""
    item = a_full_item()
    for name in ("unit_s", "spent_us"):
        del item["terms"]["M"]["search"]["M"][name]
    del item["spent_us"]
    budget = budget_from_item("openai", item)
    assert budget.spent_us == 0
    assert budget.terms.search == Search(base=0.123456789, top=0.5, since_us=NOW_US, unit_s=60.0, spent_us=0)


def test_an_account_that_was_written_before_has_no_usual_use() -> None:
    """Without the attribute nobody has told it: a call is charged with its estimate."""
    item = a_full_item()
    del item["usual"]
    budget = budget_from_item("openai", item)
    assert budget.usual_tokens == 0
    assert want_of(a_job(estimated_tokens=None), budget).tokens == 0


def test_no_fraction_is_a_float() -> None:
    """DynamoDB's numbers are texts with all their digits."""
    search = a_full_item()["terms"]["M"]["search"]["M"]
    assert search["base"] == {"N": "0.123456789"}


@pytest.mark.parametrize(
    ("name", "attribute"),
    [
        ("requests_arrival_us", {"S": "soon"}),
        ("requests_arrival_us", {"N": "1.5"}),
        ("day", {"N": "-1"}),
        ("requests_per_day_used", {"N": "-3"}),
        ("concurrency_held", {"N": "29"}),
        ("batch_tokens_held", {"N": "1"}),
        ("hold#x", {"S": "3"}),
        ("hold#x", {"M": {"slots": {"N": "3"}}}),
        ("hold#x", {"M": {"slots": {"N": "-1"}, "until_us": {"N": "1"}}}),
        ("hold#x", {"M": {"slots": {"N": "1"}, "until_us": {"N": "1"}}}),
        ("line_us", {"BOOL": True}),
        ("version", {"N": "-1"}),
        ("terms", {"S": "{}"}),
        ("terms", {"M": {"told": {"S": "x"}}}),
        ("terms", {"M": {"told": {"M": {"requests": {"N": "1.5"}}}}}),
        ("terms", {"M": {"search": {"M": {"base": {"N": "1"}}}}}),
        ("terms", {"M": {"search": {"M": {"base": {"N": "0"}, "top": {"N": "1"}, "since_us": {"N": "1"}}}}}),
        ("terms", {"M": {"search": {"M": {"base": {"N": "1"}, "top": {"N": "0"}, "since_us": {"N": "1"}}}}}),
        ("spent_us", {"N": "0.5"}),
        ("terms", {"M": {"shut": {"M": {"reason": {"N": "1"}}}}}),
        ("terms", {"M": {"enforced": {"S": "no"}}}),
        ("terms", {"M": {"quiet_until_us": {"S": "1"}}}),
    ],
)
def test_a_row_that_cannot_be_true_is_not_believed(name: str, attribute: dict[str, Any]) -> None:
    """The error names the account and the field."""
    with pytest.raises(UnreadableRow, match="BUDGET#openai") as caught:
        budget_from_item("openai", {**a_full_item(), name: attribute})
    assert name.split("#")[0] in caught.value.problem


def test_what_a_newer_version_adds_is_left_alone() -> None:
    """An attribute, a part of the terms or a limit that is not known here."""
    item = a_full_item()
    before = budget_from_item("openai", item)
    item["weather"] = {"S": "fine"}
    item["terms"]["M"]["told"]["M"]["images"] = {"N": "5"}
    item["terms"]["M"]["mood"] = {"S": "good"}
    assert budget_from_item("openai", item) == before
