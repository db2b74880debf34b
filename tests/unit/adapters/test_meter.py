"""The Meter's sizes and units are DynamoDB's published rules."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from shared.adapters.meter import UNMETERED, Meter, Usage, index_units, item_size, read_units, write_units

WAITING = {"pk": {"S": "JOB#1"}, "wpk": {"S": "support#0#2"}, "wsk": {"S": "a"}}


@pytest.mark.parametrize(
    ("attribute", "size"),
    [
        ({"S": ""}, 0),
        ({"S": "abc"}, 3),
        ({"S": "é€"}, 5),
        ({"N": "0"}, 1),
        ({"N": "7"}, 2),
        ({"N": "27"}, 2),
        ({"N": "271"}, 3),
        ({"N": "-27"}, 3),
        ({"N": "2700"}, 2),
        ({"N": "0.0027"}, 2),
        ({"N": "1" * 38}, 20),
        ({"B": b"1234"}, 4),
        ({"BOOL": True}, 1),
        ({"NULL": True}, 1),
        ({"L": []}, 3),
        ({"L": [{"S": "ab"}, {"N": "1"}]}, 3 + 1 + 2 + 1 + 2),
        ({"M": {}}, 3),
        ({"M": {"k": {"S": "ab"}}}, 3 + 1 + 1 + 2),
        ({"SS": ["ab", "c"]}, 3),
        ({"NS": ["1", "22"]}, 4),
        ({"BS": [b"ab"]}, 2),
    ],
)
def test_an_attributes_size_is_its_name_and_its_value(attribute: dict[str, Any], size: int) -> None:
    """Text and names in UTF-8 bytes, two digits a byte, three bytes for a list or map and one an element."""
    assert item_size({"né": attribute}) == 3 + size


@pytest.mark.parametrize(
    ("sizes", "units"), [((0,), 1), ((), 1), ((1024,), 1), ((1025,), 2), ((10, 3000), 3), ((3000, 10), 3)]
)
def test_a_write_costs_per_started_kilobyte_of_the_larger_row(sizes: tuple[int, ...], units: int) -> None:
    """The row before counts as much as the row after."""
    assert write_units(*sizes) == units


@pytest.mark.parametrize(
    ("size", "consistent", "units"),
    [(0, True, 1), (4096, True, 1), (4097, True, 2), (0, False, 0.5), (9000, False, 1.5)],
)
def test_a_read_costs_per_started_four_kilobytes(size: int, consistent: bool, units: float) -> None:
    """Half of it when it may be a little out of date."""
    assert read_units(size, consistent=consistent) == units


def test_the_index_costs_when_its_key_changes() -> None:
    """Nothing for a row outside it, one to enter or leave, two to move, nothing when only other fields change."""
    plain = {"pk": {"S": "JOB#1"}}
    moved = {**WAITING, "wsk": {"S": "b"}}
    assert index_units(None, plain) == 0
    assert index_units(plain, plain) == 0
    assert index_units(None, WAITING) == 1
    assert index_units(plain, WAITING) == 1
    assert index_units(WAITING, plain) == 1
    assert index_units(WAITING, moved) == 2
    assert index_units(WAITING, {**WAITING, "status": {"S": "x"}}) == 0


def test_usage_is_kept_by_port_and_operation() -> None:
    """A snapshot is what was used until then; a delta is what came after."""
    meter = Meter()
    meter.write("jobs", "put", old=None, new=WAITING)
    before = meter.snapshot()
    meter.write("jobs", "put", old=None, new=WAITING)
    meter.refused("jobs", "claim", old={"pk": {"S": "x" * 2000}})
    meter.read("jobs", "get", [WAITING, None], consistent=True)
    meter.call("queues", "send")
    assert meter.delta(before) == {
        ("jobs", "put"): Usage(calls=1, write_units=1, index_units=1),
        ("jobs", "claim"): Usage(calls=1, write_units=2),
        ("jobs", "get"): Usage(calls=1, read_units=1),
        ("queues", "send"): Usage(calls=1),
    }
    assert meter.total() == Usage(calls=5, read_units=1, write_units=4, index_units=2)
    assert meter.total().all_write_units == 6
    assert meter.delta(meter.snapshot()) == {}


def test_threads_lose_no_count() -> None:
    """Workers in one process share one Meter."""
    meter = Meter()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: meter.call("queues", "send"), range(2000)))
    assert meter.total().calls == 2000


def test_nobody_measuring_counts_nothing() -> None:
    """The meter that adapters have by default."""
    UNMETERED.call("a", "b")
    UNMETERED.read("a", "b", [], consistent=True)
    UNMETERED.write("a", "b", old=None, new={})
    UNMETERED.refused("a", "b", old=None)
    assert UNMETERED.total() == Usage()
    assert not UNMETERED.counts
