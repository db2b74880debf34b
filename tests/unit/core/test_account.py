"""An account's entry in the configuration: whole limits, named mistakes."""

from __future__ import annotations

from typing import Any

import pytest

from shared.core.account import MOST, AccountSpec, Limit, is_amount, setting_of
from shared.core.errors import BadInput
from tests.builders import an_account


@pytest.mark.req("X3")
@pytest.mark.parametrize("limit", list(Limit))
@pytest.mark.parametrize("value", [0, -1, 1.5, "60", True, MOST + 1])
def test_a_limit_is_a_whole_number_above_nothing(limit: Limit, value: object) -> None:
    """Anything else is named by its setting."""
    with pytest.raises(BadInput, match=f"accounts.desk_account.{setting_of(limit)}"):
        an_account(**{setting_of(limit): value})


@pytest.mark.parametrize("limit", list(Limit))
def test_a_limit_is_kept_as_it_is_configured(limit: Limit) -> None:
    """One that is left out is not kept."""
    bare = {setting_of(each): None for each in Limit}
    assert an_account(**bare).configured(limit) is None
    assert an_account(**{**bare, setting_of(limit): 7}).configured(limit) == 7


@pytest.mark.req("X3")
def test_a_burst_and_its_leases_fit_into_a_vendors_second() -> None:
    """Half a second is spent ahead, and as much may be in hands: a bucket of one second has room for both."""
    assert AccountSpec(name="model", vendor="model", requests_per_minute=60).burst_s == 0.5


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "Open AI"},
        {"vendor": ""},
        {"burst_s": 2.1},
        {"burst_s": -0.1},
        {"burst_s": True},
        {"share": 0},
        {"share": 1.1},
        {"share": "half"},
        {"explore": 0.9},
        {"explore": float("nan")},
        {"enforced": 1},
    ],
)
def test_a_mistake_in_an_entry_is_named(wrong: dict[str, Any]) -> None:
    """By the account and the field."""
    with pytest.raises(BadInput, match="accounts"):
        an_account(**wrong)


def test_amounts_are_whole_positive_and_not_absurd() -> None:
    """What a vendor tells is held to the same."""
    assert [is_amount(value) for value in (1, MOST, 0, -1, MOST + 1, 1.0, True, None)] == [True, True, *[False] * 6]
