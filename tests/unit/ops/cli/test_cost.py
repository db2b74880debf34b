"""`penstock cost`: from counted calls and list prices, with everything it rests on."""

from __future__ import annotations

from typing import Any

import pytest

from ops.cli.prices import Load, bill


def quantity(load: Load, what: str) -> float:
    """One line of the bill."""
    (found,) = [item.quantity for item in bill(load) if item.what == what]
    return found


@pytest.mark.parametrize(
    ("load", "units"),
    [
        (Load(jobs=1, effects=0, waits=0), 3),
        (Load(jobs=1, effects=0, waits=1), 8),
        (Load(jobs=1, effects=1, waits=0), 5),
        (Load(jobs=1000, effects=2, waits=0.5), 9500),
    ],
)
def test_write_units_are_the_engines(load: Load, units: float) -> None:
    """3 units for a job that runs at once, 8 for one that waits, 2 for each effect."""
    assert quantity(load, "write units") == pytest.approx(units)


def test_a_million_jobs(penstock: Any) -> None:
    """The items add up to the total, and the assumptions are there."""
    document = penstock("cost", "--jobs", "1e6", "--json").document
    assert document["total_usd"] == pytest.approx(sum(item["usd"] for item in document["items"]), abs=1e-4)
    assert document["per_million_usd"] == document["total_usd"]
    assert document["region"] == "us-east-1"
    assert len(document["assumptions"]) >= 4
    text = penstock("cost", "--jobs", "1e6").out
    for part in ("DynamoDB", "S3", "SQS", "Lambda", "1,000,000 jobs: $", "not counted"):
        assert part in text


def test_cost_grows_with_the_load(penstock: Any) -> None:
    """Twice the jobs cost twice as much; effects, waits and small batches cost more."""

    def total(*options: str) -> float:
        return float(penstock("cost", "--json", *options).document["total_usd"])

    base = total("--jobs", "1e6")
    assert total("--jobs", "2e6") == pytest.approx(2 * base)
    for option in (("--effects", "3"), ("--waits", "0.9"), ("--batch", "1"), ("--job-s", "5"), ("--memory-mb", "2048")):
        assert total(*option) > base


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--jobs", "0"),
        ("--jobs", "-5"),
        ("--jobs", "nan"),
        ("--jobs", "inf"),
        ("--waits", "1.5"),
        ("--effects", "-1"),
        ("--batch", "11"),
        ("--job-s", "0"),
        ("--memory-mb", "64"),
    ],
)
def test_numbers_that_make_no_sense(penstock: Any, option: str, value: str) -> None:
    """A number out of its range is refused by name."""
    assert "must be between" in penstock("cost", option, value, code=1).err


def test_no_number_at_all(penstock: Any) -> None:
    """A word is a usage error."""
    penstock("cost", "--jobs", "many", code=2)
