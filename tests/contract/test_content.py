"""The promises of `ContentStore`, kept by every adapter."""

from __future__ import annotations

import pytest

from tests.contract.worlds import World


@pytest.mark.parametrize("data", [b"", b"{}", "Grüße 👋\n".encode(), bytes(range(256)) * 1024])
def test_content_is_read_back_byte_for_byte(world: World, data: bytes) -> None:
    """Whatever was written, up to the largest payload."""
    world.content.put("payload/1/abc", data)
    assert world.content.get("payload/1/abc") == data


def test_what_is_not_there_is_none(world: World) -> None:
    """Absent is an answer, not an error; deleting it is no error either."""
    assert world.content.get("payload/none") is None
    world.content.delete("payload/none")


def test_content_can_be_stored_again(world: World) -> None:
    """The same ref and bytes a second time: a lost reply is harmless."""
    world.content.put("payload/1", b"x")
    world.content.put("payload/1", b"x")
    assert world.content.get("payload/1") == b"x"


def test_deleted_content_is_gone(world: World) -> None:
    """And only that."""
    world.content.put("payload/1", b"x")
    world.content.put("payload/2", b"y")
    world.content.delete("payload/1")
    assert world.content.get("payload/1") is None
    assert world.content.get("payload/2") == b"y"
