"""The promises of `ContentStore`, kept by every adapter: rows, objects, and both by the reference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from shared.contract import names, table
from shared.core.lane import MAX_ROW_PAYLOAD_BYTES
from shared.core.ports import ContentStore
from tests.contract.worlds import World

OBJECT = names.PAYLOADS
ROW = names.PAYLOAD_ROWS + table.payload_pk("acme", "", "")
PLACES: Mapping[str, tuple[str, str]] = {
    "objects": ("objects", OBJECT),
    "rows": ("payload_rows", ROW),
    "objects_of_both": ("content", OBJECT),
    "rows_of_both": ("content", ROW),
}
"""Which store of the world, and how a reference begins there."""


@dataclass(frozen=True, slots=True)
class Place:
    """A store, and references that are its own."""

    store: ContentStore
    begins: str

    def ref(self, name: str) -> str:
        return self.begins + name


@pytest.fixture(params=PLACES)
def place(world: World, request: pytest.FixtureRequest) -> Place:
    store, begins = PLACES[request.param]
    return Place(getattr(world, store), begins)


@pytest.mark.parametrize(
    "data", [b"", b"{}", "Grüße 👋\n".encode(), bytes(range(256)) * 16, b"a" * MAX_ROW_PAYLOAD_BYTES]
)
def test_content_is_read_back_byte_for_byte(place: Place, data: bytes) -> None:
    """Whatever was written, up to the largest payload that a row may hold: text that deflates and bytes that do not."""
    place.store.put(place.ref("abc"), data)
    assert place.store.get(place.ref("abc")) == data


def test_an_object_holds_the_largest_payload(world: World) -> None:
    """Far more than a row."""
    for store in (world.objects, world.content):
        store.put(f"{OBJECT}large", bytes(range(256)) * 1024)
        assert store.get(f"{OBJECT}large") == bytes(range(256)) * 1024


def test_what_is_not_there_is_none(place: Place) -> None:
    """Absent is an answer, not an error; deleting it is no error either."""
    assert place.store.get(place.ref("none")) is None
    place.store.delete(place.ref("none"))


def test_content_can_be_stored_again(place: Place) -> None:
    """The same ref and bytes a second time: a lost reply is harmless."""
    place.store.put(place.ref("1"), b"x")
    place.store.put(place.ref("1"), b"x")
    assert place.store.get(place.ref("1")) == b"x"


@pytest.mark.req("R14")
def test_deleted_content_is_gone(place: Place) -> None:
    """And only that, in whichever store it was: an erasure reaches both."""
    place.store.put(place.ref("1"), b"x")
    place.store.put(place.ref("2"), b"y")
    place.store.delete(place.ref("1"))
    assert place.store.get(place.ref("1")) is None
    assert place.store.get(place.ref("2")) == b"y"


def test_each_text_is_in_one_store_alone(world: World) -> None:
    """The reference decides: nothing is written twice, and nothing has to be looked for in two places."""
    world.content.put(f"{ROW}1", b"small")
    world.content.put(f"{OBJECT}1", b"large")
    assert (world.payload_rows.get(f"{ROW}1"), world.objects.get(f"{OBJECT}1")) == (b"small", b"large")
    assert world.objects.get(f"{ROW}1") is None
