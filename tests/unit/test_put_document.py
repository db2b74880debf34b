"""A producer puts a document: text too large for a payload."""

from __future__ import annotations

from typing import Any

import pytest

from shared.adapters.memory.clock import VirtualClock
from shared.adapters.memory.stores import MemoryContentStore
from shared.client import Penstock
from shared.core.document import MAX_DOCUMENT_BYTES
from shared.core.errors import BadInput, Unavailable


class Sluggish(MemoryContentStore):
    """Does not answer the first `faults` times."""

    def __init__(self, faults: int) -> None:
        super().__init__()
        self.faults = faults

    def put(self, ref: str, data: bytes) -> None:
        self.faults -= 1
        if self.faults >= 0:
            raise Unavailable("content", "SlowDown")
        super().put(ref, data)


def a_door(content: MemoryContentStore) -> Penstock:
    nobody: Any = object()
    return Penstock("prod", lanes={}, jobs=nobody, content=content, clock=VirtualClock())


def test_a_document_is_stored_under_its_tenant() -> None:
    """Its reference goes into a payload; the same id again replaces the text."""
    content = MemoryContentStore()
    door = a_door(content)
    assert door.put_document("acme", "d-1", "grün") == door.put_document("acme", "d-1", "blau") == "document/acme/d-1"
    assert content.get("document/acme/d-1") == b"blau"


@pytest.mark.parametrize(
    ("tenant", "document_id", "data"),
    [("", "d", "x"), ("a b", "d", "x"), ("acme", "a/b", "x"), ("acme", "d", ""), ("acme", "d", b"\xff")],
)
def test_what_cannot_be_a_document_is_refused_and_not_stored(tenant: str, document_id: str, data: Any) -> None:
    """Named by its field; nothing was written."""
    content = MemoryContentStore()
    with pytest.raises(BadInput):
        a_door(content).put_document(tenant, document_id, data)
    with pytest.raises(BadInput):
        a_door(content).put_document("acme", "d", b"x" * (MAX_DOCUMENT_BYTES + 1))
    assert not content.refs()


def test_a_store_that_does_not_answer_is_asked_again() -> None:
    """A few times; then the producer is told."""
    content = Sluggish(faults=2)
    a_door(content).put_document("acme", "d-1", "text")
    assert content.get("document/acme/d-1") == b"text"
    with pytest.raises(Unavailable):
        a_door(Sluggish(faults=99)).put_document("acme", "d-1", "text")
